"""REST: models."""

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from apps.catalog import selectors, services
from apps.catalog.api import filters
from apps.catalog.api import serializers as shapes
from apps.catalog.models import ServedModel
from apps.core.api.serializers import validated
from apps.core.edges import actor_of
from apps.core.roles import Permission


@extend_schema_view(
    list=extend_schema(summary="Models by name"), retrieve=extend_schema(summary="One model")
)
class ModelViews(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[ServedModel]
):
    """Models by the names that servers know them by. Those found on servers come by themselves."""

    queryset = ServedModel.objects.all()
    serializer_class = shapes.ModelSerializer
    filterset_class = filters.ModelFilters
    write_permission = Permission.OPERATE
    lookup_value_converter = "int"

    def get_queryset(self) -> QuerySet[ServedModel]:
        return selectors.models_with_versions()

    @extend_schema(
        summary="Make a model", request=shapes.ModelInput, responses={201: shapes.ModelSerializer}
    )
    def create(self, request: Request) -> Response:
        values = validated(shapes.ModelInput, request)
        model = services.model_create(actor=actor_of(request), **values)
        return self._answer(model, status=201)

    @extend_schema(
        summary="Change a model", request=shapes.ModelChangesInput, responses=shapes.ModelSerializer
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        values = validated(shapes.ModelChangesInput, request, partial=True)
        return self._answer(services.model_update(actor=actor_of(request), model_id=pk, **values))

    def _answer(self, model: ServedModel, status: int = 200) -> Response:
        return Response(shapes.ModelSerializer(selectors.model_get(model.pk)).data, status)
