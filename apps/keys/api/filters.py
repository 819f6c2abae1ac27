"""What lists of the REST API can be narrowed by."""

import django_filters
from django.db.models import QuerySet
from django.utils import timezone

from apps.keys.models import ApiKey, Budget, Limit, Team
from apps.keys.selectors import keys_in_state


class TeamFilters(django_filters.FilterSet):
    """`name` is exact."""

    class Meta:
        model = Team
        fields = ["name", "is_active"]


class KeyFilters(django_filters.FilterSet):
    """`state` is as of now."""

    state = django_filters.ChoiceFilter(choices=ApiKey.State, method="filter_state")

    class Meta:
        model = ApiKey
        fields = ["team", "name", "prefix"]

    def filter_state(self, keys: QuerySet[ApiKey], name: str, value: str) -> QuerySet[ApiKey]:
        del name
        return keys_in_state(keys, value, timezone.now())


class LimitFilters(django_filters.FilterSet):
    """By what they hold for."""

    class Meta:
        model = Limit
        fields = ["team", "key", "route", "kind"]


class BudgetFilters(django_filters.FilterSet):
    """By what they hold for."""

    class Meta:
        model = Budget
        fields = ["team", "key", "route", "period", "currency"]
