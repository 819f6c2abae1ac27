"""What lists of the REST API can be narrowed by."""

import django_filters

from apps.catalog.models import ServedModel
from apps.fleet.models import Operation, Placement, Server


class ServerFilters(django_filters.FilterSet):
    """`name` is exact."""

    class Meta:
        model = Server
        fields = ["name", "kind", "state", "is_external", "is_enabled"]


class PlacementFilters(django_filters.FilterSet):
    """`server` and `model` are ids, `model_name` is exact."""

    model_name = django_filters.CharFilter(field_name="model__name")

    class Meta:
        model = Placement
        fields = ["server", "model", "desired", "observed"]


class OperationFilters(django_filters.FilterSet):
    """`server`, `model` and `placement` are ids; `state` may be given several times."""

    state = django_filters.MultipleChoiceFilter(choices=Operation.State)
    server = django_filters.ModelChoiceFilter(
        field_name="placement__server", queryset=Server.objects.all()
    )
    model = django_filters.ModelChoiceFilter(
        field_name="placement__model", queryset=ServedModel.objects.all()
    )

    class Meta:
        model = Operation
        fields = ["placement", "kind"]
