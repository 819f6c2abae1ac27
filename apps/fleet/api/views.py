"""REST: servers, placements and operations."""

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.api.serializers import validated
from apps.core.edges import actor_of
from apps.core.roles import Permission
from apps.fleet import selectors
from apps.fleet.api import filters
from apps.fleet.api import serializers as shapes
from apps.fleet.models import Operation, Placement, Server
from apps.fleet.services import operations, servers


@extend_schema_view(
    list=extend_schema(summary="Servers by name"),
    retrieve=extend_schema(summary="One server"),
    destroy=extend_schema(summary="Delete a server"),
)
class ServerViews(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Server]
):
    """Processes that serve models. Every enabled one is looked at every few seconds."""

    queryset = Server.objects.all()
    serializer_class = shapes.ServerSerializer
    filterset_class = filters.ServerFilters
    write_permission = Permission.ADMINISTER
    lookup_value_converter = "int"

    def get_queryset(self) -> QuerySet[Server]:
        return selectors.servers_with_counts()

    @extend_schema(
        summary="Make a server",
        request=shapes.ServerInput,
        responses={201: shapes.ServerSerializer},
    )
    def create(self, request: Request) -> Response:
        """Left out, `is_external` is true for paid APIs and false for engines."""
        values = validated(shapes.ServerInput, request)
        server = servers.server_create(actor=actor_of(request), **values)
        return self._answer(server, status=201)

    @extend_schema(
        summary="Change a server",
        request=shapes.ServerChangesInput,
        responses=shapes.ServerSerializer,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        """When host or port change, the API key must be given anew."""
        values = validated(shapes.ServerChangesInput, request, partial=True)
        return self._answer(servers.server_update(actor=actor_of(request), server_id=pk, **values))

    def destroy(self, request: Request, pk: int) -> Response:
        """Refused with 409 while routes point to it. Models on it go on running."""
        servers.server_delete(actor=actor_of(request), server_id=pk)
        return Response(status=204)

    def _answer(self, server: Server, status: int = 200) -> Response:
        return Response(shapes.ServerSerializer(selectors.server_get(server.pk)).data, status)


@extend_schema_view(
    list=extend_schema(summary="Placements by server and model"),
    retrieve=extend_schema(summary="One placement"),
)
class PlacementViews(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Placement]
):
    """Models on servers. Those found in a server's repository come by themselves."""

    queryset = Placement.objects.all()
    serializer_class = shapes.PlacementSerializer
    filterset_class = filters.PlacementFilters
    write_permission = Permission.OPERATE
    lookup_value_converter = "int"

    def get_queryset(self) -> QuerySet[Placement]:
        return selectors.placements_with_operations()

    @extend_schema(summary="Load", request=None, responses={202: shapes.OperationSerializer})
    @action(detail=True, methods=["post"])
    def load(self, request: Request, pk: int) -> Response:
        """Answers with the operation, which is done in the background. A ready model is left."""
        return _requested(request, pk, Operation.Kind.LOAD)

    @extend_schema(summary="Unload", request=None, responses={202: shapes.OperationSerializer})
    @action(detail=True, methods=["post"])
    def unload(self, request: Request, pk: int) -> Response:
        """Requests that have begun are answered; new ones are refused at once."""
        return _requested(request, pk, Operation.Kind.UNLOAD)

    @extend_schema(summary="Reload", request=None, responses={202: shapes.OperationSerializer})
    @action(detail=True, methods=["post"])
    def reload(self, request: Request, pk: int) -> Response:
        """Unload, then load what the repository has now. The model is away meanwhile."""
        return _requested(request, pk, Operation.Kind.RELOAD)


def _requested(request: Request, pk: int, kind: Operation.Kind) -> Response:
    validated(shapes.NothingInput, request)
    operation = operations.operation_request(actor=actor_of(request), placement_id=pk, kind=kind)
    return Response(shapes.OperationSerializer(operation).data, status=202)


@extend_schema_view(
    list=extend_schema(summary="Operations, newest first"),
    retrieve=extend_schema(summary="One operation"),
)
class OperationViews(viewsets.ReadOnlyModelViewSet[Operation]):
    """Loads, unloads and reloads: asked for, sent, watched, ended."""

    queryset = Operation.objects.all()
    serializer_class = shapes.OperationSerializer
    filterset_class = filters.OperationFilters
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Operation]:
        return selectors.operations_of()
