"""Serializers that name what they do not know."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request


class StrictSerializer(serializers.Serializer[Any]):
    """Input of an action: an unknown field is an error that lists the known ones."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = [name for name, field in self.fields.items() if not field.read_only]
            unknown = sorted(set(map(str, data)) - set(known))
            if unknown:
                raise serializers.ValidationError(
                    {name: [f"unknown field; known are {', '.join(known)}"] for name in unknown}
                )
        return super().to_internal_value(data)


def validated(kind: type[StrictSerializer], request: Request, *, partial: bool = False) -> Any:
    """The request's body, checked; with `partial` only what was sent. Raises ValidationError."""
    given = kind(data=request.data, partial=partial)
    given.is_valid(raise_exception=True)
    return given.validated_data
