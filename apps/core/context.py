"""What every page of the console gets."""

from typing import Any

from django.http import HttpRequest

from apps.core.models import User
from apps.core.roles import Permission

_THEMES = {"light", "dark"}


def console(request: HttpRequest) -> dict[str, Any]:
    """`theme` (light, dark or empty for the system's) and `may`: permission name → bool."""
    user = getattr(request, "user", None)
    theme = request.COOKIES.get("theme", "")
    return {
        "theme": theme if theme in _THEMES else "",
        "may": {
            permission.value: isinstance(user, User) and user.may(permission)
            for permission in Permission
        },
    }
