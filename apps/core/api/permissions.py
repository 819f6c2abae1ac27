"""Roles on REST views, closed by default."""

from typing import Any

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from apps.core.models import User
from apps.core.roles import Permission


class RolePermission(BasePermission):
    """Reads need `read_permission` of the view (default VIEW), writes its `write_permission`.

    A view that writes and names no `write_permission` asks for ADMINISTER.
    """

    message = "your role may not do this"

    def has_permission(self, request: Request, view: Any) -> bool:
        if not isinstance(request.user, User):
            return False
        if request.method in SAFE_METHODS:
            needed = getattr(view, "read_permission", Permission.VIEW)
        else:
            needed = getattr(view, "write_permission", Permission.ADMINISTER)
        return request.user.may(needed)
