"""The form of a route and of its targets."""

from typing import TYPE_CHECKING, Any, cast

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from apps.fleet.models import Server
from apps.routes.models import Route, Target
from apps.routes.targets import MAX_TARGETS

# Django's form classes are generic to the type checker only.
if TYPE_CHECKING:
    RouteModelForm = forms.ModelForm[Route]
    TargetModelForm = forms.ModelForm[Target]
    TargetFormSet = forms.BaseFormSet["TargetForm"]
else:
    RouteModelForm = TargetModelForm = forms.ModelForm
    TargetFormSet = forms.BaseFormSet

# Fields of a route in the order in which a request meets them.
TIMEOUTS = (
    "connect_timeout_seconds",
    "first_byte_timeout_seconds",
    "idle_timeout_seconds",
    "total_timeout_seconds",
)


class RouteFilters(django_filters.FilterSet):
    """What the list of routes can be narrowed and sorted by."""

    q = django_filters.CharFilter(
        field_name="name",
        lookup_expr="icontains",
        label=_("Search"),
        widget=forms.TextInput(attrs={"placeholder": _("Search by name")}),
    )
    enabled = django_filters.ChoiceFilter(
        field_name="is_enabled",
        choices=[("true", _("Enabled")), ("false", _("Disabled"))],
        label=_("State"),
        empty_label=_("Any state"),
    )
    data_class = django_filters.ChoiceFilter(
        choices=Route.DataClass, label=_("Data class"), empty_label=_("Any data class")
    )
    server = django_filters.ModelChoiceFilter(
        field_name="targets__server",
        queryset=Server.objects.all(),
        to_field_name="name",
        distinct=True,
        label=_("Server"),
        empty_label=_("Any server"),
    )
    sort = django_filters.OrderingFilter(
        fields=[("name", "name"), ("updated_at", "changed")], widget=forms.HiddenInput
    )

    class Meta:
        model = Route
        fields: list[str] = []


class RouteForm(RouteModelForm):
    """What a route is called and its policy. Checks only; services write."""

    class Meta:
        model = Route
        fields = [
            "name",
            "description",
            "is_enabled",
            "data_class",
            "default_max_tokens",
            "max_attempts",
            "wait_seconds",
            "max_waiting",
            *TIMEOUTS,
        ]
        labels = {
            "max_attempts": _("Targets that a request may try"),
            "wait_seconds": _("Wait for a free target (seconds)"),
            "max_waiting": _("Requests that may wait"),
            "connect_timeout_seconds": _("Connect within (seconds)"),
            "first_byte_timeout_seconds": _("First byte within (seconds)"),
            "idle_timeout_seconds": _("Longest pause in a stream (seconds)"),
            "total_timeout_seconds": _("Whole answer within (seconds)"),
        }
        help_texts = {
            "name": _("What clients write into “model”."),
            "is_enabled": _("A disabled route answers 404 like an unknown model."),
            "data_class": _("“On-prem only” is never sent to an external server."),
            "default_max_tokens": _(
                "Held on budgets and token limits when a request names no maximum."
            ),
            "wait_seconds": _("While every target is full or cools down after failures."),
            "max_waiting": _("In each web process; further ones get 503 at once."),
        }
        widgets = {"description": forms.Textarea(attrs={"rows": 2})}


class TargetForm(TargetModelForm):
    """One place that requests may go to."""

    class Meta:
        model = Target
        fields = [
            "server", "upstream_model", "version", "protocol", "tier", "weight", "max_in_flight",
            "is_enabled",
        ]  # fmt: skip
        help_texts = {
            "version": _("Empty: the server chooses."),
            "tier": _("0 is tried first."),
            "weight": _("Share of the tier."),
            "max_in_flight": _("Empty: as many as come."),
        }

    def values(self) -> dict[str, Any]:
        """The target as route services take it."""
        data = dict(self.cleaned_data)
        data.pop("DELETE", None)
        return {"server_id": data.pop("server").pk, **data}


class Targets(TargetFormSet):
    """All targets of a route: at least one, none twice."""

    def clean(self) -> None:
        """Raise when a target is named twice; the second one is told so at its field."""
        if any(self.errors):
            return
        seen: set[tuple[object, ...]] = set()
        for form in self.kept:
            data = form.cleaned_data
            identity = (data["server"], data["upstream_model"], data["version"])
            if identity in seen:
                form.add_error("upstream_model", _("This target is listed twice."))
            seen.add(identity)
        if not seen:
            raise ValidationError(_("A route needs at least one target."))

    @property
    def kept(self) -> list[TargetForm]:
        """Forms that were filled in or there before, and are not marked for deletion."""
        return [
            form
            for form in self.forms
            if (form.has_changed() or not form.empty_permitted) and form not in self.deleted_forms
        ]

    def add_problems(self, name: str, problems: list[str]) -> None:
        """Say what a service refused (`targets.0.weight`) at its field, or above all targets."""
        index, _dot, field = name.removeprefix("targets.").partition(".")
        if not index.isdecimal():
            self.non_form_errors().extend(problems)
            return
        form = self.kept[int(index)]
        field = field.removesuffix("_id")
        form.add_error(field if field in form.fields else None, problems)

    @property
    def values(self) -> list[dict[str, Any]]:
        """The targets as route services take them."""
        return [form.values() for form in self.kept]


def targets_formset(extra: int) -> type[Targets]:
    """A set of target forms with `extra` empty ones after what is there."""
    made = forms.formset_factory(
        TargetForm,
        formset=Targets,
        extra=extra,
        max_num=MAX_TARGETS,
        absolute_max=MAX_TARGETS,
        can_delete=True,
    )
    return cast(type[Targets], made)


def with_another_target(sent: QueryDict) -> tuple[RouteForm, Targets]:
    """The forms as they were sent, unchecked, with one more empty target and without deleted ones.

    What adds a row is a plain submit button, so it works without script.
    """
    form = RouteForm(initial={name: sent.get(name) for name in RouteForm.base_fields})
    total = sent.get("targets-TOTAL_FORMS", "")
    count = min(int(total), MAX_TARGETS) if total.isdecimal() else 0
    rows = [_sent_target(sent, index) for index in range(count)]
    kept = [row for row in rows if row["upstream_model"] and not row["DELETE"]]
    return form, targets_formset(extra=1)(initial=kept, prefix="targets")


def _sent_target(sent: QueryDict, index: int) -> dict[str, str | None]:
    names = [*TargetForm.base_fields, "DELETE"]
    return {name: sent.get(f"targets-{index}-{name}") for name in names}
