"""What lists of the REST API can be narrowed by."""

import django_filters

from apps.fleet.models import Server
from apps.routes.models import Route


class RouteFilters(django_filters.FilterSet):
    """`name` is exact; `server` is the id of a server that a target is on."""

    server = django_filters.ModelChoiceFilter(
        field_name="targets__server", queryset=Server.objects.all(), distinct=True
    )

    class Meta:
        model = Route
        fields = ["name", "is_enabled", "data_class"]
