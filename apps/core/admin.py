"""Admin pages of people, their tokens, and the audit log."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminPasswordWidget

from apps.core import services
from apps.core.admin_pages import ReadOnlyAdmin, ServiceAdmin, badge, each_row
from apps.core.edges import actor_of
from apps.core.models import AuditEntry, ManagementToken, User
from apps.core.roles import Permission

admin.site.unregister(Group)  # rights follow from the role alone


class UserForm(forms.ModelForm):  # type: ignore[type-arg]  # for the type checker only
    """A person; the password is only ever written."""

    password = forms.CharField(
        label=_("New password"),
        required=False,
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text=_("At least 12 characters. Empty: it stays as it is."),
    )

    class Meta:
        model = User
        fields = ["username", "full_name", "email", "role", "time_zone", "is_active"]


class NewUserForm(UserForm):
    """A new person needs a password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password"].required = True
        self.fields["password"].help_text = _("At least 12 characters.")


@admin.register(User)
class UserAdmin(ServiceAdmin[User]):
    """People and their roles."""

    permission = Permission.ADMINISTER
    form = UserForm
    list_display = ["username", "full_name", "email", "role_badge", "is_active", "last_login"]
    list_filter = ["role", "is_active"]
    search_fields = ["username", "full_name", "email"]

    @badge(_("role"), {"admin": "danger", "key_manager": "warning", "operator": "info"})
    def role_badge(self, user: User) -> tuple[str, str]:
        return user.role, user.get_role_display()

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kw: Any
    ) -> Any:
        return super().get_form(
            request, obj, change, **kw | {"form": UserForm if obj else NewUserForm}
        )

    def get_fields(self, request: HttpRequest, obj: User | None = None) -> list[Any]:
        fields: list[Any] = ["username", "full_name", "email", "role", "password"]
        return [*fields, "time_zone", "is_active"] if obj else fields

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        return ["username"] if obj else []

    def create(self, request: HttpRequest, values: dict[str, Any]) -> User:
        return services.user_create(actor=actor_of(request), **values)

    def update(self, request: HttpRequest, row: User, values: dict[str, Any]) -> None:
        actor, password = actor_of(request), values.pop("password", "")
        changes: Any = values
        services.user_update(actor=actor, user_id=row.pk, changes=changes)
        if password:
            services.user_password_set(actor=actor, user_id=row.pk, password=password)


@admin.register(ManagementToken)
class ManagementTokenAdmin(ServiceAdmin[ManagementToken]):
    """Tokens of the REST API; one makes them for oneself."""

    permission = Permission.ADMINISTER
    list_display = ["name", "user", "prefix", "state", "created_at", "expires_at", "last_used_at"]
    list_select_related = ["user"]
    list_filter = [("user", admin.RelatedOnlyFieldListFilter)]
    search_fields = ["name", "prefix", "user__username"]
    fields = ["name", "expires_at"]
    actions = ["revoke"]

    def has_change_permission(
        self, request: HttpRequest, obj: ManagementToken | None = None
    ) -> bool:
        return obj is None and super().has_change_permission(request)

    @badge(_("state"), {"active": "success", "expired": "warning", "revoked": "danger"})
    def state(self, token: ManagementToken) -> tuple[str, str]:
        if token.revoked_at is not None:
            return "revoked", str(_("Revoked"))
        if token.expires_at is not None and token.expires_at <= timezone.now():
            return "expired", str(_("Expired"))
        return "active", str(_("Active"))

    def save_model(
        self, request: HttpRequest, obj: ManagementToken, form: Any, change: bool
    ) -> None:
        owner = request.user
        if isinstance(owner, User):
            token, secret = services.token_issue(
                actor=actor_of(request), user=owner, **form.cleaned_data
            )
            obj.pk, obj.prefix = token.pk, token.prefix
            request.META["inferadmin.secret"] = secret

    def response_add(
        self, request: HttpRequest, obj: ManagementToken, post_url_continue: str | None = None
    ) -> HttpResponse:
        """The secret, instead of the list."""
        return self.show_secret(
            request,
            obj,
            request.META.pop("inferadmin.secret"),
            title=_("Your new management token"),
            usage=_("Send it as “Authorization: Bearer …” to /api/v1/."),
        )

    @admin.action(description=_("Revoke the chosen tokens"), permissions=["change"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[ManagementToken]) -> None:
        actor = actor_of(request)
        each_row(
            request,
            list(chosen),
            lambda token: services.token_revoke(actor=actor, token_id=token.pk),
            _("Revoked"),
        )


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin[AuditEntry]):
    """Who did what to which object."""

    list_display = ["at", "actor_label", "action", "object_type", "object_label", "source_ip"]
    list_filter = ["object_type", "at"]
    search_fields = ["actor_label", "action", "object_label", "object_id", "request_id"]
    date_hierarchy = "at"
