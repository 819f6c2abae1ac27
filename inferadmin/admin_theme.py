"""The look and the menu of the admin pages: the console's palette, and ways back to it."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.core.admin_pages import may
from apps.core.roles import Permission


def favicon(request: HttpRequest) -> str:
    """Address of the product's mark."""
    del request
    return static("favicon.svg")


def environment(request: HttpRequest) -> list[str] | None:
    """A warning beside the title while debugging is on."""
    del request
    return [str(_("Debug")), "warning"] if settings.DEBUG else None


def may_administer(request: HttpRequest) -> bool:
    """True for who sees people, tokens and the audit log."""
    return may(request, Permission.ADMINISTER)


def never(request: HttpRequest) -> bool:
    """False: pages of the console are never the current one here."""
    del request
    return False


def _item(title: Promise, icon: str, url: str, **options: Any) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(url), **options}


_ADMINS: dict[str, Any] = {"permission": may_administer}
_CONSOLE: dict[str, Any] = {"active": never}


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Groups of the menu, as Unfold takes them."""
    del request
    return [
        {
            "title": _("Govern"),
            "items": [
                _item(_("API keys"), "key", "admin:keys_apikey_changelist"),
                _item(_("Teams"), "group", "admin:keys_team_changelist"),
                _item(_("Prices"), "sell", "admin:billing_price_changelist"),
            ],
        },
        {
            "title": _("System"),
            "items": [
                _item(_("Users"), "person", "admin:core_user_changelist", **_ADMINS),
                _item(
                    _("Management tokens"),
                    "token",
                    "admin:core_managementtoken_changelist",
                    **_ADMINS,
                ),
                _item(_("Audit log"), "history", "admin:core_auditentry_changelist", **_ADMINS),
            ],
        },
        {
            "title": _("Console"),
            "items": [
                _item(_("Overview"), "monitoring", "home", **_CONSOLE),
                _item(_("Fleet"), "dns", "fleet:server-list", **_CONSOLE),
                _item(_("Models"), "deployed_code", "catalog:model-list", **_CONSOLE),
                _item(_("Routes"), "alt_route", "routes:route-list", **_CONSOLE),
                _item(_("Playground"), "chat", "gateway:playground", **_CONSOLE),
                _item(_("Requests"), "receipt_long", "billing:request-list", **_CONSOLE),
                _item(_("Keys and use"), "query_stats", "keys:key-list", **_CONSOLE),
            ],
        },
    ]
