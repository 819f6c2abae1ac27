"""Who acts: a person, a token or the system itself."""

from dataclasses import dataclass

from apps.core.errors import PermissionDeniedError
from apps.core.models import User
from apps.core.roles import Permission


@dataclass(frozen=True, slots=True)
class Actor:
    """Stands behind an action; goes into its audit entry.

    `user` is `None` for the system (a task, a command).
    """

    user: User | None
    label: str
    request_id: str = ""
    source_ip: str | None = None

    def require(self, permission: Permission) -> None:
        """Raise PermissionDeniedError unless the actor holds the permission; the system does."""
        if self.user is not None and not self.user.may(permission):
            raise PermissionDeniedError(
                f"your role ({self.user.get_role_display()}) may not do this; "
                f"it needs the permission “{permission}”"
            )


SYSTEM = Actor(user=None, label="system")
