"""Filters that do not swallow mistakes."""

from typing import Any

import django_filters
from django.db.models import Model, QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

_ALWAYS_KNOWN = {"page", "page_size", "cursor", "format"}


class StrictFilterBackend(DjangoFilterBackend):
    """django-filter, but an unknown query parameter is a 400 that names it."""

    def filter_queryset(  # type: ignore[override]
        self, request: Request, queryset: QuerySet[Model], view: Any
    ) -> QuerySet[Model]:
        filterset = self.get_filterset(request, queryset, view)
        known = _ALWAYS_KNOWN | (set(filterset.get_filters()) if filterset is not None else set())
        unknown = sorted(set(request.query_params) - known)
        if unknown:
            raise ValidationError(
                {
                    name: [f"unknown parameter; known are {', '.join(sorted(known))}"]
                    for name in unknown
                }
            )
        filtered: QuerySet[Model] = super().filter_queryset(request, queryset, view)
        return filtered


class AtFilters(django_filters.FilterSet):
    """`from` and `to` bound the column `at`; `to` itself is left out."""

    # `from` is a word of Python: it cannot be written as an attribute.
    vars()["from"] = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte")
    to = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="lt")
