"""What goes into and comes out of the REST API about prices and use."""

from typing import Any

from rest_framework import serializers

from apps.billing.models import MAX_PRICE, RATES, Price, UsageRecord
from apps.core.api.serializers import StrictSerializer
from apps.core.money import from_picos


class PriceSerializer(serializers.ModelSerializer[Price]):
    """What a model of a server costs from a moment on, per million tokens."""

    server_id = serializers.IntegerField(read_only=True)
    server_name = serializers.CharField(source="server.name", read_only=True)

    class Meta:
        model = Price
        fields = [
            "id", "server_id", "server_name", "upstream_model", "currency", *RATES,
            "effective_from", "created_at",
        ]  # fmt: skip
        read_only_fields = fields


def _rate(**options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(
        max_digits=14, decimal_places=6, min_value=0, max_value=MAX_PRICE, **options
    )


class PriceInput(StrictSerializer):
    """A price; the ones before it stay for what they priced."""

    server_id = serializers.IntegerField()
    upstream_model = serializers.CharField(
        max_length=200, help_text="The name under which the server knows the model."
    )
    currency = serializers.CharField(max_length=3, required=False, default="USD")
    input_per_million = _rate()
    output_per_million = _rate()
    cached_input_per_million = _rate(
        required=False, allow_null=True, default=None, help_text="Left out: as other input."
    )
    cache_write_per_million = _rate(
        required=False, allow_null=True, default=None, help_text="Left out: as other input."
    )
    reasoning_per_million = _rate(
        required=False, allow_null=True, default=None, help_text="Left out: as other output."
    )
    per_request = _rate(required=False, default=0)
    per_image = _rate(required=False, default=0, help_text="An image in the prompt.")
    per_compute_second = _rate(
        required=False, default=0, help_text="A second that the target is busy with a request."
    )
    effective_from = serializers.DateTimeField(
        required=False, allow_null=True, default=None, help_text="Left out: from now on."
    )
    allows_jump = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Set it to confirm a price over a hundred times the one that holds.",
    )


class UsageRecordSerializer(serializers.ModelSerializer[UsageRecord]):
    """One client request, whatever became of it."""

    team_id = serializers.IntegerField(read_only=True)
    team_name = serializers.CharField(source="team.name", read_only=True)
    key_id = serializers.IntegerField(read_only=True)
    key_name = serializers.CharField(source="key.name", read_only=True)
    route_id = serializers.IntegerField(read_only=True, allow_null=True)
    server_id = serializers.IntegerField(read_only=True, allow_null=True)
    price_id = serializers.IntegerField(read_only=True, allow_null=True)
    cost = serializers.DecimalField(
        max_digits=20,
        decimal_places=12,
        read_only=True,
        allow_null=True,
        help_text="Exact amount of `currency`; null when no price was known.",
    )

    class Meta:
        model = UsageRecord
        fields = [
            "id", "at", "endpoint", "status", "http_status", "error_code", "is_stream",
            "request_id", "team_id", "team_name", "key_id", "key_name", "route_id", "route_name",
            "server_id", "server_name", "upstream_model", "version", "input_tokens",
            "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens",
            "images", "compute_microseconds", "is_estimated", "price_id", "cost", "currency",
            "duration_seconds", "first_token_seconds", "attempts", "decision",
        ]  # fmt: skip
        read_only_fields = fields


class UsageSumSerializer(serializers.Serializer[Any]):
    """Sums over requests that share `currency` and the columns asked for by `group_by`."""

    day = serializers.DateField(required=False)
    team_id = serializers.IntegerField(required=False)
    key_id = serializers.IntegerField(required=False)
    route_name = serializers.CharField(required=False)
    server_name = serializers.CharField(required=False)
    upstream_model = serializers.CharField(required=False)
    currency = serializers.CharField(help_text="Empty for requests without a price.")
    requests = serializers.IntegerField()
    errors = serializers.IntegerField()  # type: ignore[assignment]  # DRF takes fields off the class
    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    cost = serializers.SerializerMethodField(help_text="Exact amount of `currency`.")

    def get_cost(self, row: dict[str, Any]) -> str:
        return f"{from_picos(int(row['cost_picos'])):f}"
