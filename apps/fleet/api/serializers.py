"""What goes into and comes out of the REST API about servers, placements and operations."""

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.core.api.serializers import StrictSerializer
from apps.fleet import words
from apps.fleet.models import Operation, Placement, Server


class ServerSerializer(serializers.ModelSerializer[Server]):
    """A server: what it was set to, and what the last look found. Its key is never shown."""

    has_api_key = serializers.SerializerMethodField()
    state_text = serializers.SerializerMethodField(help_text="What is wrong; empty for nothing.")
    extensions: serializers.ListField = serializers.ListField(
        child=serializers.CharField(), read_only=True
    )
    offered_models: serializers.ListField = serializers.ListField(
        child=serializers.CharField(), read_only=True, help_text="Of engines other than Triton."
    )
    placement_count = serializers.IntegerField(read_only=True)
    ready_count = serializers.IntegerField(read_only=True)

    class Meta:
        model = Server
        fields = [
            "id", "name", "kind", "url", "grpc_address", "metrics_url", "is_external",
            "is_enabled", "has_api_key", "note", "created_at", "state", "state_reason",
            "state_text", "state_since", "last_seen_at", "engine_version", "extensions",
            "control_mode", "offered_models", "placement_count", "ready_count",
        ]  # fmt: skip
        read_only_fields = fields

    def get_has_api_key(self, server: Server) -> bool:
        return bool(server.api_key_encrypted)

    def get_state_text(self, server: Server) -> str:
        return words.server_words(server.state_reason)


class ServerChangesInput(StrictSerializer):
    """What may be changed; what is left out stays."""

    name = serializers.CharField(max_length=128, required=False)
    url = serializers.CharField(
        max_length=300,
        required=False,
        help_text="Root of the HTTP interface: http://gpu-1:8000, without /v1 or /v2.",
    )
    grpc_address = serializers.CharField(
        max_length=200,
        allow_blank=True,
        required=False,
        help_text="Triton only: host:port. Loads go over it without blocking HTTP.",
    )
    metrics_url = serializers.CharField(max_length=300, allow_blank=True, required=False)
    is_external = serializers.BooleanField(
        required=False, help_text="Never used for what is marked on-prem only."
    )
    is_enabled = serializers.BooleanField(required=False)
    api_key = serializers.CharField(
        allow_blank=True,
        required=False,
        write_only=True,
        trim_whitespace=False,
        help_text="Kept encrypted, never shown again; empty forgets it.",
    )
    note = serializers.CharField(allow_blank=True, required=False)


class ServerInput(ServerChangesInput):
    """A new server."""

    name = serializers.CharField(max_length=128)
    kind = serializers.ChoiceField(choices=Server.Kind.choices)
    url = serializers.CharField(
        max_length=300,
        help_text="Root of the HTTP interface: http://gpu-1:8000, without /v1 or /v2.",
    )


class NothingInput(StrictSerializer):
    """An empty body: these actions have no options."""


class VersionSeenSerializer(serializers.Serializer[dict[str, object]]):
    """A version as the server's index shows it."""

    number = serializers.IntegerField(read_only=True)
    state = serializers.CharField(read_only=True, help_text="In Triton's words.")
    reason = serializers.CharField(read_only=True)


class OperationSerializer(serializers.ModelSerializer[Operation]):
    """One load, unload or reload."""

    placement_id = serializers.IntegerField(read_only=True)
    server_id = serializers.IntegerField(source="placement.server_id", read_only=True)
    server_name = serializers.CharField(source="placement.server.name", read_only=True)
    model_id = serializers.IntegerField(source="placement.model_id", read_only=True)
    model_name = serializers.CharField(source="placement.model.name", read_only=True)
    is_open = serializers.BooleanField(read_only=True)
    verdict_text = serializers.SerializerMethodField(
        help_text="How it ended and what to do about it; empty while it is open."
    )

    class Meta:
        model = Operation
        fields = [
            "id", "placement_id", "server_id", "server_name", "model_id", "model_name", "kind",
            "step", "state", "is_open", "generation", "attempts", "verdict", "verdict_text",
            "reason", "requested_by_label", "created_at", "dispatched_at", "deadline_at",
            "finished_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_verdict_text(self, operation: Operation) -> str:
        return words.verdict_words(operation.verdict)


class NewestOperationSerializer(serializers.ModelSerializer[Operation]):
    """The newest operation of a placement, in short."""

    class Meta:
        model = Operation
        fields = ["id", "kind", "step", "state", "is_open", "created_at", "finished_at"]
        read_only_fields = fields


class PlacementSerializer(serializers.ModelSerializer[Placement]):
    """A model on a server: what is wanted, and what was last seen."""

    server_id = serializers.IntegerField(read_only=True)
    server_name = serializers.CharField(source="server.name", read_only=True)
    model_id = serializers.IntegerField(read_only=True)
    model_name = serializers.CharField(source="model.name", read_only=True)
    versions = VersionSeenSerializer(many=True, read_only=True)
    ready_versions: serializers.ListField = serializers.ListField(
        child=serializers.IntegerField(), read_only=True
    )
    latest_operation = serializers.SerializerMethodField(help_text="Null when there was none.")

    class Meta:
        model = Placement
        fields = [
            "id", "server_id", "server_name", "model_id", "model_name", "desired", "generation",
            "observed", "versions", "ready_versions", "reason", "observed_at", "since",
            "latest_operation",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(NewestOperationSerializer(allow_null=True))
    def get_latest_operation(self, placement: Placement) -> object:
        latest = placement.latest_operation
        return None if latest is None else NewestOperationSerializer(latest).data
