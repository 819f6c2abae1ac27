"""Questions about routes."""

from django.db.models import Prefetch, QuerySet

from apps.core.errors import NotFoundError
from apps.routes.models import Route, Target


def routes_with_targets() -> QuerySet[Route]:
    """All routes by name; their targets come lowest tier first, with servers: two queries."""
    targets = Target.objects.select_related("server").order_by("tier", "-weight", "id")
    return Route.objects.prefetch_related(Prefetch("targets", queryset=targets)).order_by("name")


def route_get(pk: int) -> Route:
    """The route with its targets; raises NotFoundError."""
    route = routes_with_targets().filter(pk=pk).first()
    if route is None:
        raise NotFoundError(f"there is no route {pk}")
    return route
