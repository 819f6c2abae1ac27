"""What the list of requests can be narrowed by; every field is a query parameter."""

from datetime import timedelta

import django_filters
from django import forms
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.billing.models import UsageRecord
from apps.billing.request_log import matching
from apps.fleet.models import Server
from apps.keys.models import ApiKey, Team
from apps.routes.models import Route

RANGES = {
    "15m": (timedelta(minutes=15), _("Last 15 minutes")),
    "1h": (timedelta(hours=1), _("Last hour")),
    "24h": (timedelta(days=1), _("Last 24 hours")),
    "7d": (timedelta(days=7), _("Last 7 days")),
    "30d": (timedelta(days=30), _("Last 30 days")),
}


def _moment() -> forms.DateTimeInput:
    return forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class RequestFilters(django_filters.FilterSet):
    """Filters of the request log. Names instead of numbers, so that an address can be read."""

    q = django_filters.CharFilter(
        method="filter_request_id",
        label=_("Request id"),
        widget=forms.TextInput(attrs={"placeholder": _("Request id")}),
    )
    status = django_filters.ChoiceFilter(
        choices=UsageRecord.Status, label=_("Status"), empty_label=_("Any status")
    )
    team = django_filters.ModelChoiceFilter(
        queryset=Team.objects.all(),
        to_field_name="name",
        label=_("Team"),
        empty_label=_("Any team"),
    )
    route = django_filters.ModelChoiceFilter(
        queryset=Route.objects.all(),
        to_field_name="name",
        label=_("Route"),
        empty_label=_("Any route"),
    )
    server = django_filters.ModelChoiceFilter(
        queryset=Server.objects.all(),
        to_field_name="name",
        label=_("Server"),
        empty_label=_("Any server"),
    )
    # Companies have thousands of keys: chosen on a key's page, shown here as a chip.
    key = django_filters.ModelChoiceFilter(
        queryset=ApiKey.objects.select_related("team"),
        label=_("Key"),
        widget=forms.HiddenInput,
    )
    slower = django_filters.NumberFilter(
        field_name="duration_seconds",
        lookup_expr="gte",
        min_value=0,
        label=_("Slower than (seconds)"),
        widget=forms.NumberInput(
            attrs={"placeholder": _("Slower than, s"), "step": "any", "min": 0}
        ),
    )
    range = django_filters.ChoiceFilter(
        method="filter_range",
        choices=[(name, label) for name, (_span, label) in RANGES.items()],
        label=_("Time"),
        empty_label=_("Any time"),
    )
    since = django_filters.DateTimeFilter(
        field_name="at", lookup_expr="gte", label=_("From"), widget=_moment()
    )
    until = django_filters.DateTimeFilter(
        field_name="at", lookup_expr="lt", label=_("Until"), widget=_moment()
    )

    class Meta:
        model = UsageRecord
        fields: list[str] = []

    def filter_request_id(
        self, records: QuerySet[UsageRecord], name: str, value: str
    ) -> QuerySet[UsageRecord]:
        del name
        return records.filter(matching(value.strip()))

    def filter_range(
        self, records: QuerySet[UsageRecord], name: str, value: str
    ) -> QuerySet[UsageRecord]:
        del name
        span, _label = RANGES[value]
        return records.filter(at__gte=timezone.now() - span)

    @property
    def matching(self) -> QuerySet[UsageRecord]:
        """The records that fit; none at all while a filter holds a mistake."""
        found: QuerySet[UsageRecord] = self.qs if self.is_valid() else UsageRecord.objects.none()
        return found

    @property
    def is_narrowed(self) -> bool:
        """True when any filter is set."""
        return any((self.data or {}).get(name) for name in self.filters)
