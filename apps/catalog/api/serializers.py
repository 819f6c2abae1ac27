"""What goes into and comes out of the REST API about models."""

from rest_framework import serializers

from apps.catalog.models import ModelVersion, ServedModel
from apps.catalog.services import DEFAULT_LOAD_DEADLINE_SECONDS
from apps.core.api.serializers import StrictSerializer

_MAX_DEADLINE_SECONDS = 86_400


class VersionSerializer(serializers.ModelSerializer[ModelVersion]):
    """A numbered version that some server has been seen to know."""

    class Meta:
        model = ModelVersion
        fields = ["number", "note", "created_at"]
        read_only_fields = fields


class ModelSerializer(serializers.ModelSerializer[ServedModel]):
    """A model and its versions, highest first."""

    versions = VersionSerializer(many=True, read_only=True)

    class Meta:
        model = ServedModel
        fields = [
            "id", "name", "kind", "description", "load_deadline_seconds", "versions", "created_at",
        ]  # fmt: skip
        read_only_fields = fields


class ModelChangesInput(StrictSerializer):
    """What may be changed; what is left out stays."""

    kind = serializers.ChoiceField(choices=ServedModel.Kind.choices, required=False)
    description = serializers.CharField(allow_blank=True, required=False)
    load_deadline_seconds = serializers.IntegerField(
        min_value=1,
        max_value=_MAX_DEADLINE_SECONDS,
        required=False,
        help_text="A load that takes longer counts as hung.",
    )


class ModelInput(StrictSerializer):
    """A new model, under the name that servers know it by."""

    name = serializers.CharField(max_length=128)
    kind = serializers.ChoiceField(
        choices=ServedModel.Kind.choices, required=False, default=ServedModel.Kind.OTHER
    )
    description = serializers.CharField(allow_blank=True, required=False, default="")
    load_deadline_seconds = serializers.IntegerField(
        min_value=1,
        max_value=_MAX_DEADLINE_SECONDS,
        required=False,
        default=DEFAULT_LOAD_DEADLINE_SECONDS,
        help_text="A load that takes longer counts as hung.",
    )
