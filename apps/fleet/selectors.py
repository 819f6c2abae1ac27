"""Questions about servers, placements and operations."""

from django.db.models import Count, Prefetch, Q, QuerySet

from apps.core.errors import NotFoundError
from apps.fleet.models import Operation, Placement, Server

_ANSWERS = Q(placements__observed__in=(Placement.Observed.READY, Placement.Observed.DEGRADED))


def servers_with_counts() -> QuerySet[Server]:
    """All servers by name; `placement_count` and `ready_count` count their models."""
    return Server.objects.annotate(
        placement_count=Count("placements", distinct=True),
        ready_count=Count("placements", filter=_ANSWERS, distinct=True),
    ).order_by("name")


def server_get(pk: int) -> Server:
    """The server with its counts; raises NotFoundError."""
    server = servers_with_counts().filter(pk=pk).first()
    if server is None:
        raise NotFoundError(f"there is no server {pk}")
    return server


def placements_with_operations() -> QuerySet[Placement]:
    """All placements by server and model with their newest operation: two queries."""
    newest = Operation.objects.order_by("-created_at", "-id")[:1]
    return (
        Placement.objects.select_related("server", "model")
        .prefetch_related(Prefetch("operations", queryset=newest, to_attr="latest_operations"))
        .order_by("server__name", "model__name")
    )


def placements_of(server_id: int) -> QuerySet[Placement]:
    """The placements of a server by model, each with its newest operation."""
    return placements_with_operations().filter(server_id=server_id)


def placement_get(pk: int) -> Placement:
    """The placement with its newest operation; raises NotFoundError."""
    placement = placements_with_operations().filter(pk=pk).first()
    if placement is None:
        raise NotFoundError(f"there is no placement {pk}")
    return placement


def operations_of(
    *,
    server_id: int | None = None,
    placement_id: int | None = None,
    model_id: int | None = None,
) -> QuerySet[Operation]:
    """Operations, newest first; `None` does not narrow."""
    wanted = {
        "placement__server_id": server_id,
        "placement_id": placement_id,
        "placement__model_id": model_id,
    }
    return Operation.objects.select_related("placement__server", "placement__model").filter(
        **{name: value for name, value in wanted.items() if value is not None}
    )


def placement_ready_versions() -> dict[tuple[int, str], list[int]]:
    """(server id, model name) → versions that answer, highest first; one item a placement.

    Of a server that cannot be reached they are those last seen: whether it still answers is for
    the caller to find out.
    """
    rows = Placement.objects.select_related("model").only("server_id", "model__name", "versions")
    return {(row.server_id, row.model.name): row.ready_versions for row in rows}
