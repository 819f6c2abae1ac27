"""Forms of the admin pages of teams and keys."""

from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.forms.models import BaseInlineFormSet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from apps.keys.models import ApiKey
from apps.keys.rules import networks_validator

_GRACES = [
    (0, gettext_lazy("it stops at once")),
    (3600, gettext_lazy("1 hour")),
    (86400, gettext_lazy("1 day")),
    (7 * 86400, gettext_lazy("7 days")),
    (30 * 86400, gettext_lazy("30 days")),
]


class OnePerName(BaseInlineFormSet):  # type: ignore[type-arg]  # of limits or of budgets
    """Rows of which no two have the same kind (limits) or period (budgets)."""

    name_field: ClassVar[str]

    def clean(self) -> None:
        """Name the field that two rows share."""
        super().clean()
        kept = [form.cleaned_data for form in self.forms if form not in self.deleted_forms]
        names = [data[self.name_field] for data in kept if self.name_field in data]
        if len(set(names)) < len(names):
            raise forms.ValidationError(_("Each kind and each period may be there once."))


class LimitFormSet(OnePerName):
    """One limit a kind."""

    name_field = "kind"


class BudgetFormSet(OnePerName):
    """One budget a period."""

    name_field = "period"


class NetworksField(forms.CharField):
    """Networks, one a line, as a list of texts."""

    widget = UnfoldAdminTextareaWidget

    def prepare_value(self, value: Any) -> Any:
        """Lines of a stored list."""
        return "\n".join(value) if isinstance(value, list) else value

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compared as networks, not as text."""
        return bool((initial or []) != self.to_python(data))

    def to_python(self, value: Any) -> Any:
        """The lines that are not empty."""
        return [line.strip() for line in (value or "").splitlines() if line.strip()]

    def validate(self, value: Any) -> None:
        """Each line is a network."""
        networks_validator(value)


class KeyForm(forms.ModelForm):  # type: ignore[type-arg]  # for the type checker only
    """A key without its secret."""

    allowed_networks = NetworksField(
        label=gettext_lazy("allowed networks"),
        required=False,
        help_text=gettext_lazy("One a line, such as 10.0.0.0/8; empty: from anywhere."),
    )

    class Meta:
        model = ApiKey
        fields = [
            "team", "name", "expires_at", "allows_all_routes", "routes", "allowed_networks",
            "data_class", "priority",
        ]  # fmt: skip
        help_texts = {
            "name": gettext_lazy("Who or what uses it, such as “search-backend”."),
            "expires_at": gettext_lazy("Empty: it works until it is revoked."),
            "routes": gettext_lazy("The only routes it may call, unless all are allowed."),
            "priority": gettext_lazy("0 to 9, higher is served first; empty: as its team."),
        }

    def clean_expires_at(self) -> datetime | None:
        """A moment to come, where it was changed."""
        end: datetime | None = self.cleaned_data["expires_at"]
        if end and "expires_at" in self.changed_data and end <= timezone.now():
            raise forms.ValidationError(_("This moment has passed already."))
        return end

    def clean(self) -> dict[str, Any]:
        """A key may call all routes, or those in the list."""
        data = super().clean() or {}
        if data.get("allows_all_routes"):
            data["routes"] = []
        elif not data.get("routes"):
            self.add_error("routes", _("Choose at least one route, or allow all."))
        if self._is_name_taken(data):
            self.add_error("name", _("The team has a key of this name already."))
        return data

    def _is_name_taken(self, data: dict[str, Any]) -> bool:
        """The service asks again, with the team locked; here what was typed is still at hand."""
        team_id = data["team"].pk if "team" in data else self.instance.team_id
        if not {"team", "name"} & set(self.changed_data) or team_id is None:
            return False
        return ApiKey.objects.filter(
            team_id=team_id, name=data.get("name"), revoked_at=None
        ).exists()


class GraceForm(forms.Form):
    """How long a rotated key goes on working."""

    grace_seconds = forms.TypedChoiceField(
        label=gettext_lazy("The old key works on for"),
        choices=_GRACES,
        coerce=int,
        initial=86400,
        widget=UnfoldAdminSelectWidget,
    )
