"""REST: what was done, by whom, to what."""

import django_filters
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, viewsets

from apps.core.api.filters import AtFilters
from apps.core.api.pagination import NewestFirst
from apps.core.models import AuditEntry


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    """One action; `before` and `after` hold what changed, secrets starred out."""

    class Meta:
        model = AuditEntry
        fields = [
            "id", "at", "actor", "actor_label", "action", "object_type", "object_id",
            "object_label", "before", "after", "request_id", "source_ip",
        ]  # fmt: skip
        read_only_fields = fields


class AuditFilters(AtFilters):
    """`actor` is the name that the entry shows."""

    actor = django_filters.CharFilter(field_name="actor_label")

    class Meta:
        model = AuditEntry
        fields = ["action", "object_type", "object_id", "request_id"]


@extend_schema_view(
    list=extend_schema(summary="Audit entries, newest first"),
    retrieve=extend_schema(summary="One audit entry"),
)
class AuditViews(
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    viewsets.GenericViewSet[AuditEntry],
):
    """The audit log; it is only ever written by what happens."""

    queryset = AuditEntry.objects.all()
    serializer_class = AuditEntrySerializer
    lookup_value_converter = "int"
    filterset_class = AuditFilters
    pagination_class = NewestFirst
