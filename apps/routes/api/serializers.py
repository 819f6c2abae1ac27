"""What goes into and comes out of the REST API about routes."""

from rest_framework import serializers

from apps.core.api.serializers import StrictSerializer
from apps.routes.models import Route, Target

_MAX_TIMEOUT_SECONDS = 86_400
_MAX_TOKENS = 10_000_000


class TargetSerializer(serializers.ModelSerializer[Target]):
    """One place that requests may go to."""

    server_id = serializers.IntegerField(read_only=True)
    server_name = serializers.CharField(source="server.name", read_only=True)

    class Meta:
        model = Target
        fields = [
            "id", "server_id", "server_name", "upstream_model", "version", "protocol", "tier",
            "weight", "is_enabled", "max_in_flight",
        ]  # fmt: skip
        read_only_fields = fields


class RouteSerializer(serializers.ModelSerializer[Route]):
    """A public model name and where its requests go; lowest tier first."""

    targets = TargetSerializer(many=True, read_only=True)

    class Meta:
        model = Route
        fields = [
            "id", "name", "description", "is_enabled", "data_class", "connect_timeout_seconds",
            "first_byte_timeout_seconds", "idle_timeout_seconds", "total_timeout_seconds",
            "default_max_tokens", "max_attempts", "wait_seconds", "max_waiting", "targets",
            "created_at", "updated_at",
        ]  # fmt: skip
        read_only_fields = fields


class TargetInput(StrictSerializer):
    """One target of a route."""

    server_id = serializers.IntegerField()
    upstream_model = serializers.CharField(max_length=200)
    version = serializers.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        required=False,
        allow_null=True,
        help_text="Triton only. Left out: the highest version that is ready.",
    )
    protocol = serializers.ChoiceField(choices=Target.Protocol.choices)
    tier = serializers.IntegerField(
        min_value=0, max_value=9, required=False, help_text="0 is tried first."
    )
    weight = serializers.IntegerField(
        min_value=0, max_value=10_000, required=False, help_text="Share of the tier's traffic."
    )
    is_enabled = serializers.BooleanField(required=False)
    max_in_flight = serializers.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        required=False,
        allow_null=True,
        help_text="Requests at once, of all workers. Past them the next target is asked. "
        "Null: as many as come.",
    )


def _timeout() -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=1,
        max_value=_MAX_TIMEOUT_SECONDS,
        required=False,
        allow_null=True,
        help_text="Null: the installation's default.",
    )


class RouteChangesInput(StrictSerializer):
    """What may be changed; what is left out stays. `targets` replaces all of them."""

    name = serializers.CharField(max_length=128, required=False)
    description = serializers.CharField(allow_blank=True, required=False)
    is_enabled = serializers.BooleanField(required=False)
    data_class = serializers.ChoiceField(choices=Route.DataClass.choices, required=False)
    connect_timeout_seconds = _timeout()
    first_byte_timeout_seconds = _timeout()
    idle_timeout_seconds = _timeout()
    total_timeout_seconds = _timeout()
    default_max_tokens = serializers.IntegerField(
        min_value=1, max_value=_MAX_TOKENS, required=False
    )
    max_attempts = serializers.IntegerField(
        min_value=1, max_value=10, required=False, help_text="Targets that one request may try."
    )
    wait_seconds = serializers.IntegerField(
        min_value=0,
        max_value=300,
        required=False,
        help_text="How long a request waits while every target is full or cools down.",
    )
    max_waiting = serializers.IntegerField(
        min_value=0,
        max_value=10_000,
        required=False,
        help_text="Requests of one worker that may wait.",
    )
    targets = TargetInput(many=True, required=False)


class RouteInput(RouteChangesInput):
    """A new route."""

    name = serializers.CharField(max_length=128)
    targets = TargetInput(many=True)
