"""REST: prices, the records of requests, and sums over them."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, mixins, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from apps.billing import selectors
from apps.billing.api import filters
from apps.billing.api import serializers as shapes
from apps.billing.models import RATES, DailyUsage, Price, UsageRecord
from apps.billing.services import prices
from apps.core.api.pagination import NewestFirst
from apps.core.api.serializers import validated
from apps.core.edges import actor_of
from apps.core.roles import Permission


@extend_schema_view(
    list=extend_schema(summary="Prices, by server and model, the latest first"),
    retrieve=extend_schema(summary="One price"),
    destroy=extend_schema(summary="Take back a price that has not begun"),
)
class PriceViews(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Price]):
    """Prices are added, not changed: what is billed stays."""

    queryset = Price.objects.all()
    serializer_class = shapes.PriceSerializer
    filterset_class = filters.PriceFilters
    write_permission = Permission.MANAGE_KEYS
    lookup_value_converter = "int"

    def get_queryset(self) -> QuerySet[Price]:
        return selectors.prices_for_display()

    @extend_schema(
        summary="Set a price", request=shapes.PriceInput, responses={201: shapes.PriceSerializer}
    )
    def create(self, request: Request) -> Response:
        """Holds for requests from `effective_from` on; every worker knows within two seconds."""
        values = validated(shapes.PriceInput, request)
        rates: Any = {name: values.pop(name) for name in RATES}
        price = prices.price_set(actor=actor_of(request), rates=rates, **values)
        return Response(shapes.PriceSerializer(price).data, status=201)

    def destroy(self, request: Request, pk: int) -> Response:
        prices.price_withdraw(actor=actor_of(request), price_id=self.get_object().pk)
        return Response(status=204)


@extend_schema_view(
    list=extend_schema(summary="Requests, newest first"),
    retrieve=extend_schema(summary="One request"),
)
class UsageViews(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[UsageRecord]
):
    """One record a client request, whatever became of it, a few seconds after it ended."""

    queryset = UsageRecord.objects.all()
    serializer_class = shapes.UsageRecordSerializer
    filterset_class = filters.UsageFilters
    pagination_class = NewestFirst
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[UsageRecord]:
        return selectors.records_for_api()


@extend_schema(summary="Sums of use and cost")
class UsageSumView(generics.ListAPIView[Any]):
    """Requests, tokens and cost by UTC day, team, key, route, server or model."""

    queryset = DailyUsage.objects.all()
    serializer_class = shapes.UsageSumSerializer
    filterset_class = filters.UsageSumFilters
