"""What every page of the console gets."""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from apps.core.models import User
from apps.core.roles import Permission

_THEMES = {"light", "dark"}


def console(request: HttpRequest) -> dict[str, Any]:
    """What `base.html` and the pages in it read.

    `theme`: light, dark or empty for the system's; `may`: permission name → bool; `texts`: what
    scripts say, by name.
    """
    user = getattr(request, "user", None)
    theme = request.COOKIES.get("theme", "")
    return {
        "theme": theme if theme in _THEMES else "",
        "may": {
            permission.value: isinstance(user, User) and user.may(permission)
            for permission in Permission
        },
        "texts": _texts(),
    }


def _texts() -> dict[str, str]:
    """Texts of `frontend/src`; `{0}` is replaced there."""
    return {
        "live_live": _("Live"),
        "live_live_title": _("Numbers and states arrive as they change"),
        "live_paused": _("Paused"),
        "live_paused_title": _("Nothing is updated until you go on"),
        "live_stale": _("Reconnecting"),
        "live_stale_title": _("The live connection is lost; the page asks every 10 seconds"),
        "live_off": _("Not live"),
        "live_off_title": _("The live connection was refused; load the page again or sign in"),
        "no_numbers": _("No numbers in the last 15 minutes"),
        "time": _("Time"),
        "ago": _("{0} ago"),
        "ahead": _("in {0}"),
        "span_days": _("{0} d"),
        "span_hours": _("{0} h"),
        "span_minutes": _("{0} min"),
        "span_seconds": _("{0} s"),
        "close": _("Close"),
        "copied": _("Copied"),
        "not_copied": _("The browser does not let us copy; mark the text and copy it yourself"),
        "failed": _("That did not work (error {0})"),
        "signed_out": _("You are signed out; load the page again"),
        "unreachable": _("The server does not answer; nothing was changed"),
    }
