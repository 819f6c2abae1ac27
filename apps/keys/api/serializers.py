"""What goes into and comes out of the REST API about keys."""

from typing import Any

from django.utils import timezone
from rest_framework import serializers

from apps.core.api.serializers import StrictSerializer
from apps.keys.models import MAX_PRIORITY, ApiKey, Budget, Limit, Priority, Team
from apps.keys.rules import MAX_NETWORKS, MAX_WARNING_PERCENT, MAX_WARNINGS
from apps.keys.services import MAX_GRACE_SECONDS
from apps.routes.models import Route


class TeamSerializer(serializers.ModelSerializer[Team]):
    """A team; `active_keys` counts its keys that are neither revoked nor expired."""

    active_keys = serializers.IntegerField(read_only=True)

    class Meta:
        model = Team
        fields = [
            "id", "name", "is_active", "note", "data_class", "priority", "created_at",
            "active_keys",
        ]  # fmt: skip
        read_only_fields = fields


class PriorityField(serializers.IntegerField):
    """A number from 0 to 9 or `low`, `normal`, `high`; higher is served first when it is full."""

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=0, max_value=MAX_PRIORITY, **options)

    def to_internal_value(self, data: Any) -> int:
        """Number of a name."""
        names = {priority.name.lower(): priority.value for priority in Priority}
        return super().to_internal_value(names.get(data, data) if isinstance(data, str) else data)


def _data_class() -> serializers.ChoiceField:
    return serializers.ChoiceField(
        choices=Route.DataClass.choices,
        required=False,
        help_text="on_prem: none of its requests is ever sent to an external server.",
    )


class TeamInput(StrictSerializer):
    """A new team."""

    name = serializers.CharField(max_length=128)
    note = serializers.CharField(required=False, allow_blank=True, default="")
    data_class = _data_class()
    priority = PriorityField(required=False)


class TeamChangesInput(StrictSerializer):
    """What may be changed; what is left out stays."""

    name = serializers.CharField(max_length=128, required=False)
    note = serializers.CharField(allow_blank=True, required=False)
    is_active = serializers.BooleanField(
        required=False, help_text="False: all keys of the team are refused within two seconds."
    )
    data_class = _data_class()
    priority = PriorityField(required=False)


class KeySerializer(serializers.ModelSerializer[ApiKey]):
    """A key without its secret; `prefix` tells which one it is."""

    team_id = serializers.IntegerField(read_only=True)
    team_name = serializers.CharField(source="team.name", read_only=True)
    state = serializers.SerializerMethodField(help_text="At the time of the answer.")
    route_ids: serializers.PrimaryKeyRelatedField[Route] = serializers.PrimaryKeyRelatedField(
        source="routes", many=True, read_only=True, help_text="Empty when all are allowed."
    )
    route_names = serializers.SerializerMethodField()
    allowed_networks = serializers.ListField(
        child=serializers.CharField(), read_only=True, help_text="Empty: from anywhere."
    )
    rotated_from_id = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="The key that this one replaced."
    )

    class Meta:
        model = ApiKey
        fields = [
            "id", "team_id", "team_name", "name", "prefix", "state", "allows_all_routes",
            "route_ids", "route_names", "allowed_networks", "data_class", "priority",
            "created_at", "expires_at", "revoked_at", "rotated_from_id",
        ]  # fmt: skip
        read_only_fields = fields

    def get_state(self, key: ApiKey) -> str:
        return key.state_at(timezone.now())

    def get_route_names(self, key: ApiKey) -> list[str]:
        return [route.name for route in key.routes.all()]


class IssuedKeySerializer(KeySerializer):
    """A new key: the only answer that holds its secret."""

    secret = serializers.CharField(read_only=True)

    class Meta(KeySerializer.Meta):
        fields = [*KeySerializer.Meta.fields, "secret"]
        read_only_fields = fields


def _route_ids(**options: Any) -> serializers.ListField:
    return serializers.ListField(
        child=serializers.IntegerField(), max_length=1000, required=False, **options
    )


def _networks() -> serializers.ListField:
    return serializers.ListField(
        child=serializers.CharField(max_length=50),
        max_length=MAX_NETWORKS,
        required=False,
        help_text="Networks that it may be used from, such as 10.0.0.0/8; empty: from anywhere.",
    )


class KeyInput(StrictSerializer):
    """What a new key is made of."""

    team_id = serializers.IntegerField()
    name = serializers.CharField(max_length=128)
    expires_at = serializers.DateTimeField(
        required=False, allow_null=True, default=None, help_text="Left out: it does not expire."
    )
    allows_all_routes = serializers.BooleanField(required=False, default=True)
    route_ids = _route_ids(
        default=list, help_text="Ids of the only routes it may call; with allows_all_routes false."
    )
    allowed_networks = _networks()
    data_class = _data_class()
    priority = PriorityField(required=False, allow_null=True)


class KeyChangesInput(StrictSerializer):
    """What may be changed; what is left out stays."""

    name = serializers.CharField(max_length=128, required=False)
    expires_at = serializers.DateTimeField(required=False, allow_null=True)
    allows_all_routes = serializers.BooleanField(required=False)
    route_ids = _route_ids()
    allowed_networks = _networks()
    data_class = _data_class()
    priority = PriorityField(required=False, allow_null=True)


class RotationInput(StrictSerializer):
    """How long the old key works beside the new one."""

    grace_seconds = serializers.IntegerField(min_value=0, max_value=MAX_GRACE_SECONDS)


class ScopeInput(StrictSerializer):
    """What a limit or budget holds for: exactly one of the three."""

    team_id = serializers.IntegerField(required=False, allow_null=True)
    key_id = serializers.IntegerField(required=False, allow_null=True)
    route_id = serializers.IntegerField(required=False, allow_null=True)


class ScopeSerializer(serializers.Serializer[Any]):
    """What a limit or budget holds for: one of the three, the others are null."""

    team_id = serializers.IntegerField(read_only=True, allow_null=True)
    key_id = serializers.IntegerField(read_only=True, allow_null=True)
    route_id = serializers.IntegerField(read_only=True, allow_null=True)


class LimitSerializer(ScopeSerializer, serializers.ModelSerializer[Limit]):
    """A cap on a rate or on requests at once."""

    class Meta:
        model = Limit
        fields = ["id", "team_id", "key_id", "route_id", "kind", "value"]
        read_only_fields = fields


class LimitInput(ScopeInput):
    """A cap; it replaces one of the same kind for the same thing."""

    kind = serializers.ChoiceField(choices=Limit.Kind.choices)
    value = serializers.IntegerField(min_value=1, max_value=Limit.MAX_VALUE)


def _amount() -> serializers.DecimalField:
    return serializers.DecimalField(
        max_digits=15, decimal_places=6, min_value=0, max_value=Budget.MAX_AMOUNT
    )


class BudgetSerializer(ScopeSerializer, serializers.ModelSerializer[Budget]):
    """Money that may be spent in a period."""

    warn_percents = serializers.ListField(child=serializers.IntegerField(), read_only=True)

    class Meta:
        model = Budget
        fields = [
            "id", "team_id", "key_id", "route_id", "period", "amount", "currency", "time_zone",
            "week_start", "is_hard", "warn_percents", "raised_amount", "raised_until", "reset_at",
            "created_at",
        ]  # fmt: skip
        read_only_fields = fields


class BudgetInput(ScopeInput):
    """A budget; it replaces one of the same period for the same thing."""

    period = serializers.ChoiceField(choices=Budget.Period.choices)
    amount = _amount()
    currency = serializers.CharField(max_length=3, required=False, default="USD")
    time_zone = serializers.CharField(
        max_length=64,
        required=False,
        allow_blank=True,
        help_text="Where its days begin, such as Europe/Berlin; empty: as the installation's.",
    )
    week_start = serializers.IntegerField(
        min_value=0, max_value=6, required=False, help_text="Of a weekly budget; 0 is Monday."
    )
    is_hard = serializers.BooleanField(
        required=False, help_text="False: it only warns, and nothing is refused."
    )
    warn_percents = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=MAX_WARNING_PERCENT),
        max_length=MAX_WARNINGS,
        required=False,
    )


class RaiseInput(StrictSerializer):
    """More to spend until a moment."""

    amount = _amount()
    until = serializers.DateTimeField()
