"""The admin pages: who may open which, and that what changes goes through services."""

import re
from collections.abc import Callable
from typing import Any

from django.contrib import admin as django_admin
from django.test import Client
from django.urls import reverse

from apps.core.actors import SYSTEM
from apps.core.audit import audit_write
from apps.core.models import AuditEntry, ManagementToken, User
from apps.core.secrets import digest_of

ConsoleAs = Callable[[User], Client]
PASSWORD = "a-long-and-rare-password"


def _lists() -> list[str]:
    names = sorted(
        model._meta.label_lower.replace(".", "_") for model in django_admin.site._registry
    )
    return [name for name in names if not name.startswith("auth_")]


KEY_MANAGERS_LISTS = {"keys_team", "keys_apikey", "billing_price"}


def test_viewers_and_operators_have_no_admin_pages(
    console_as: ConsoleAs, viewer: User, operator: User
) -> None:
    for user in (viewer, operator):
        for name in _lists():
            response = console_as(user).get(reverse(f"admin:{name}_changelist"))
            assert response.status_code == 302
        assert console_as(user).get(reverse("admin:keys_apikey_add")).status_code == 302


def test_a_key_manager_sees_keys_teams_and_prices_only(
    console_as: ConsoleAs, key_manager: User
) -> None:
    client = console_as(key_manager)

    for name in _lists():
        response = client.get(reverse(f"admin:{name}_changelist"))
        assert response.status_code == (200 if name in KEY_MANAGERS_LISTS else 403), name
    menu = client.get(reverse("admin:index")).content.decode()
    assert reverse("admin:keys_apikey_changelist") in menu
    assert reverse("admin:core_user_changelist") not in menu


def test_an_admin_sees_every_list(console_as: ConsoleAs, admin: User) -> None:
    client = console_as(admin)

    for name in _lists():
        assert client.get(reverse(f"admin:{name}_changelist")).status_code == 200, name


def test_the_policy_of_admin_pages_differs_from_the_consoles(
    console_as: ConsoleAs, admin: User
) -> None:
    client = console_as(admin)

    policy = client.get(reverse("admin:index"))["Content-Security-Policy"]
    console = client.get("/account/login/")["Content-Security-Policy"]

    assert "script-src 'self' 'unsafe-eval'" in policy
    assert "style-src 'self' 'unsafe-inline'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in console


def test_nothing_is_deleted_in_the_admin() -> None:
    for model, pages in django_admin.site._registry.items():
        assert not pages.has_delete_permission(None), model  # type: ignore[arg-type]  # it asks nobody


def test_a_person_is_made_and_changed_through_services(console_as: ConsoleAs, admin: User) -> None:
    client = console_as(admin)
    person = {"username": "ada", "full_name": "Ada", "email": "", "role": "operator"}

    weak = client.post(reverse("admin:core_user_add"), person | {"password": "short"})
    made = client.post(reverse("admin:core_user_add"), person | {"password": PASSWORD})
    user = User.objects.get(username="ada")
    changed = client.post(
        reverse("admin:core_user_change", args=[user.pk]),
        {"full_name": "Ada", "role": "viewer", "is_active": "on", "password": PASSWORD + "2"},
    )

    user.refresh_from_db()
    assert (weak.status_code, made.status_code, changed.status_code) == (302, 302, 302)
    assert (user.role, user.check_password(PASSWORD + "2")) == ("viewer", True)
    assert list(AuditEntry.objects.values_list("action", "actor_label")) == [
        ("user.password_set", "admin"),
        ("user.update", "admin"),
        ("user.create", "admin"),
    ]


def test_the_last_admin_is_told_so(console_as: ConsoleAs, admin: User) -> None:
    url = reverse("admin:core_user_change", args=[admin.pk])

    response = console_as(admin).post(url, {"role": "viewer", "is_active": "on"}, follow=True)

    assert "nobody would be left who administers" in response.content.decode()
    admin.refresh_from_db()
    assert admin.role == "admin"


def test_a_token_is_shown_once(console_as: ConsoleAs, admin: User) -> None:
    client = console_as(admin)

    page = client.post(reverse("admin:core_managementtoken_add"), {"name": "script"})

    secret = _secret_in(page)
    assert "no-store" in page["Cache-Control"]
    assert ManagementToken.objects.get().digest == digest_of(secret)
    listed = client.get(reverse("admin:core_managementtoken_changelist")).content.decode()
    assert secret not in listed
    assert secret not in str(dict(client.session))


def test_tokens_are_revoked_from_the_list(console_as: ConsoleAs, admin: User) -> None:
    client = console_as(admin)
    client.post(reverse("admin:core_managementtoken_add"), {"name": "script"})
    chosen = {"action": "revoke", "_selected_action": [ManagementToken.objects.get().pk]}

    client.post(reverse("admin:core_managementtoken_changelist"), chosen)

    assert ManagementToken.objects.get().revoked_at is not None


def test_the_history_of_a_row_is_the_audit_log(console_as: ConsoleAs, admin: User) -> None:
    audit_write(actor=SYSTEM, action="user.greet", target=admin, after={"word": "hello"})

    page = console_as(admin).get(reverse("admin:core_user_history", args=[admin.pk]))

    assert "user.greet" in page.content.decode()
    assert "word: hello" in page.content.decode()


def test_the_audit_log_is_only_read(console_as: ConsoleAs, admin: User) -> None:
    entry = audit_write(actor=SYSTEM, action="user.greet", target=admin)
    url = reverse("admin:core_auditentry_change", args=[entry.pk])

    assert console_as(admin).get(url).status_code == 200
    assert console_as(admin).post(url, {"action": "other"}).status_code == 403


def _secret_in(page: Any) -> str:
    found = re.search(r'id="secret"[^>]*value="([^"]+)"', page.content.decode())
    assert found is not None
    return found.group(1)
