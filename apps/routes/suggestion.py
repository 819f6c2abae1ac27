"""What the first target of a new route would be, from what a link tells."""

from typing import TypedDict

from apps.catalog.models import ServedModel
from apps.fleet.models import Placement, Server
from apps.routes.models import Target
from apps.routes.targets import protocols_of


class Suggestion(TypedDict):
    """Values of a target's form."""

    server: int
    upstream_model: str
    protocol: str


def suggested_target(*, model_name: str, server_name: str = "") -> Suggestion | None:
    """The model on the named server, else where it is ready, else where it is at all.

    `None` when no such server, or no server with such a model, is known.
    """
    if server_name:
        server = Server.objects.filter(name=server_name).first()
    else:
        server = _server_with(model_name)
    if server is None:
        return None
    return Suggestion(
        server=server.pk, upstream_model=model_name, protocol=_protocol_for(server, model_name)
    )


def _server_with(model_name: str) -> Server | None:
    placements = Placement.objects.filter(model__name=model_name).select_related("server")
    ready = [placement for placement in placements if placement.ready_versions]
    return next((placement.server for placement in [*ready, *placements]), None)


def _protocol_for(server: Server, model_name: str) -> str:
    """The `Target.Protocol` that fits best."""
    if not server.is_triton:
        return protocols_of(server.kind)[0]
    is_llm = ServedModel.objects.filter(name=model_name, kind=ServedModel.Kind.LLM).exists()
    return Target.Protocol.TRITON_GENERATE if is_llm else Target.Protocol.TRITON_INFER
