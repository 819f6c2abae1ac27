"""What lists of the REST API can be narrowed by."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from django.utils import timezone

from apps.billing.models import DailyUsage, Price, UsageRecord
from apps.billing.selectors import USAGE_GROUPS, prices_in_force, usage_sums
from apps.core.api.filters import AtFilters


class PriceFilters(django_filters.FilterSet):
    """`is_in_force=true` leaves the one of each model that holds now."""

    is_in_force = django_filters.BooleanFilter(method="filter_in_force")

    class Meta:
        model = Price
        fields = ["server", "upstream_model", "currency"]

    def filter_in_force(self, prices: QuerySet[Price], name: str, value: bool) -> QuerySet[Price]:
        del name
        in_force = prices_in_force(timezone.now()).values("pk")
        return prices.filter(pk__in=in_force) if value else prices.exclude(pk__in=in_force)


class UsageFilters(AtFilters):
    """By when, by whom and where it went."""

    class Meta:
        model = UsageRecord
        fields = ["team", "key", "route", "server", "status", "endpoint", "request_id"]


class GroupsFilter(django_filters.BaseCSVFilter, django_filters.ChoiceFilter):
    """A list of columns, such as `day,team`."""


class UsageSumFilters(django_filters.FilterSet):
    """`from` and `to` are UTC days, both included; what is left is summed by `group_by`."""

    # `from` is a word of Python: it cannot be written as an attribute.
    vars()["from"] = django_filters.DateFilter(field_name="day", lookup_expr="gte")
    to = django_filters.DateFilter(field_name="day", lookup_expr="lte")
    route = django_filters.CharFilter(field_name="route_name")
    server = django_filters.CharFilter(field_name="server_name")
    group_by = GroupsFilter(
        method="keep", choices=[(name, name) for name in USAGE_GROUPS], label="Left out: day."
    )

    class Meta:
        model = DailyUsage
        fields = ["team", "key", "upstream_model", "currency"]

    def keep(self, rows: QuerySet[DailyUsage], name: str, value: object) -> QuerySet[DailyUsage]:
        del name, value
        return rows

    def filter_queryset(self, queryset: QuerySet[DailyUsage]) -> QuerySet[Any]:
        """Sums, one item a group."""
        rows = super().filter_queryset(queryset)
        return usage_sums(rows, by=self.form.cleaned_data["group_by"] or ["day"])
