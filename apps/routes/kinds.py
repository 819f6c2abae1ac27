"""What a route is for, told from the models behind it."""

from collections.abc import Iterable

from apps.catalog.models import ServedModel
from apps.routes.models import Route


def route_kinds(routes: Iterable[Route]) -> dict[int, str]:
    """`ServedModel.Kind` of each route by its id, from its first target; LLM where unknown.

    External servers have no catalogue row, and nearly all of their models talk.
    """
    first = {route.pk: _first_model(route) for route in routes}
    kinds = dict(
        ServedModel.objects.filter(name__in=set(first.values())).values_list("name", "kind")
    )
    return {pk: kinds.get(name, ServedModel.Kind.LLM) for pk, name in first.items()}


def _first_model(route: Route) -> str:
    return next((target.upstream_model for target in route.targets.all()), "")
