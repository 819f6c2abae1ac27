"""REST: routes and their targets."""

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.api.serializers import validated
from apps.core.edges import actor_of
from apps.core.roles import Permission
from apps.routes import selectors, services
from apps.routes.api import filters
from apps.routes.api import serializers as shapes
from apps.routes.models import Route


@extend_schema_view(
    list=extend_schema(summary="Routes by name"),
    retrieve=extend_schema(summary="One route"),
    destroy=extend_schema(summary="Delete a route"),
)
class RouteViews(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Route]):
    """Public model names. A change holds for every gateway worker within two seconds."""

    queryset = Route.objects.all()
    serializer_class = shapes.RouteSerializer
    filterset_class = filters.RouteFilters
    write_permission = Permission.OPERATE
    lookup_value_converter = "int"

    def get_queryset(self) -> QuerySet[Route]:
        return selectors.routes_with_targets()

    @extend_schema(
        summary="Make a route", request=shapes.RouteInput, responses={201: shapes.RouteSerializer}
    )
    def create(self, request: Request) -> Response:
        values = validated(shapes.RouteInput, request)
        route = services.route_create(actor=actor_of(request), **values)
        return self._answer(route, status=201)

    @extend_schema(
        summary="Change a route", request=shapes.RouteChangesInput, responses=shapes.RouteSerializer
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        """Targets that are sent replace all that there are."""
        values = validated(shapes.RouteChangesInput, request, partial=True)
        return self._answer(services.route_update(actor=actor_of(request), route_id=pk, **values))

    def destroy(self, request: Request, pk: int) -> Response:
        services.route_delete(actor=actor_of(request), route_id=pk)
        return Response(status=204)

    def _answer(self, route: Route, status: int = 200) -> Response:
        return Response(shapes.RouteSerializer(selectors.route_get(route.pk)).data, status)
