"""Who may go on watching the live socket."""

from django.contrib.sessions.models import Session

from apps.core.models import User
from apps.core.roles import Permission


def may_still_watch(user_id: int, session_key: str | None) -> bool:
    """True while the person is active, may view, and has not signed out of the session.

    `session_key` is `None` where the socket was opened without a session.
    """
    user = User.objects.filter(pk=user_id).first()
    if user is None or not user.may(Permission.VIEW):
        return False
    return session_key is None or Session.objects.filter(session_key=session_key).exists()
