"""What lists of the REST API can be narrowed by."""

import django_filters

from apps.catalog.models import ServedModel


class ModelFilters(django_filters.FilterSet):
    """`name` is exact."""

    class Meta:
        model = ServedModel
        fields = ["name", "kind"]
