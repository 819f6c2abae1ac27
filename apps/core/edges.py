"""What edges share: from a request to an actor, and the guard of a console view."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponseBase

from apps.core.actors import Actor
from apps.core.errors import AuthenticationError
from apps.core.models import User
from apps.core.roles import Permission

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def actor_of(request: HttpRequest) -> Actor:
    """The signed-in person behind a console or REST request; raises AuthenticationError."""
    user = request.user
    if not isinstance(user, User):
        raise AuthenticationError("sign in first")
    return Actor(
        user=user,
        label=user.username,
        request_id=request.META.get("inferadmin.request_id", ""),
        source_ip=request.META.get("REMOTE_ADDR") or None,
    )


def requires(permission: Permission) -> Callable[[View[P]], View[P]]:
    """Let a console view run only for who holds `permission`; else PermissionDeniedError."""

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            actor_of(request).require(permission)
            return view(request, *args, **kwargs)

        return guarded  # type: ignore[return-value]  # wraps() forgets that request is positional

    return decorate
