"""Filters of the lists of keys and teams, and the forms of a key's life."""

import django_filters
from django import forms
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.core.names import model_name_validator
from apps.keys import selectors
from apps.keys.models import ApiKey, Team
from apps.routes.models import Route


class KeyFilters(django_filters.FilterSet):
    """What the list of keys can be narrowed and sorted by."""

    q = django_filters.CharFilter(
        method="filter_text",
        label=_("Search"),
        widget=forms.TextInput(attrs={"placeholder": _("Name or prefix")}),
    )
    team = django_filters.ModelChoiceFilter(
        queryset=Team.objects.all(),
        to_field_name="name",
        label=_("Team"),
        empty_label=_("Any team"),
    )
    state = django_filters.ChoiceFilter(
        method="filter_state",
        choices=ApiKey.State,
        label=_("State"),
        empty_label=_("Any state"),
    )
    sort = django_filters.OrderingFilter(
        fields=[
            ("name", "name"),
            ("team__name", "team"),
            ("created_at", "created"),
            ("expires_at", "expires"),
        ],
        widget=forms.HiddenInput,
    )

    class Meta:
        model = ApiKey
        fields: list[str] = []

    def filter_text(self, keys: QuerySet[ApiKey], name: str, value: str) -> QuerySet[ApiKey]:
        del name
        return keys.filter(Q(name__icontains=value) | Q(prefix__startswith=value[:12]))

    def filter_state(self, keys: QuerySet[ApiKey], name: str, value: str) -> QuerySet[ApiKey]:
        del name
        return selectors.keys_in_state(keys, value, timezone.now())


class KeyForm(forms.Form):
    """A new key. The secret is made by the service and shown once."""

    team = forms.ModelChoiceField(
        label=_("Team"), queryset=Team.objects.filter(is_active=True), empty_label=None
    )
    name = forms.CharField(
        label=_("Name"),
        max_length=128,
        validators=[model_name_validator],
        help_text=_("Who or what uses it, such as “search-backend”."),
    )
    expires_at = forms.DateTimeField(
        label=_("Expires"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text=_("Empty: it stays good until it is revoked."),
    )
    allows_all_routes = forms.BooleanField(label=_("All routes"), required=False, initial=True)
    routes = forms.ModelMultipleChoiceField(
        label=_("Allowed routes"),
        queryset=Route.objects.all(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Only these, unless all routes are allowed."),
    )

    def clean(self) -> dict[str, object]:
        """A key that may call nothing, or that has expired already, is a mistake."""
        data = super().clean() or {}
        if not data.get("allows_all_routes") and not data.get("routes"):
            self.add_error("routes", _("Choose at least one route, or allow all."))
        expires_at = data.get("expires_at")
        if expires_at is not None and expires_at <= timezone.now():
            self.add_error("expires_at", _("This moment has passed already."))
        return data

    @property
    def route_ids(self) -> list[int]:
        """The routes that the key is kept to; none when it may call all."""
        if self.cleaned_data["allows_all_routes"]:
            return []
        return [route.pk for route in self.cleaned_data["routes"]]


class RotateForm(forms.Form):
    """How long the old key goes on working beside the new one."""

    GRACE = [
        (0, _("Stop the old key at once")),
        (3600, _("1 hour")),
        (86400, _("1 day")),
        (7 * 86400, _("7 days")),
        (30 * 86400, _("30 days")),
    ]

    grace_seconds = forms.TypedChoiceField(
        label=_("The old key keeps working for"), choices=GRACE, coerce=int, initial=86400
    )


class TeamFilters(django_filters.FilterSet):
    """What the list of teams can be narrowed and sorted by."""

    q = django_filters.CharFilter(
        field_name="name",
        lookup_expr="icontains",
        label=_("Search"),
        widget=forms.TextInput(attrs={"placeholder": _("Search by name")}),
    )
    sort = django_filters.OrderingFilter(
        fields=[("name", "name"), ("created_at", "created")], widget=forms.HiddenInput
    )

    class Meta:
        model = Team
        fields: list[str] = []
