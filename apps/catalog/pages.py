"""What the console pages of models show."""

import django_filters
from django import forms
from django.db.models import Count, Max, QuerySet
from django.utils.translation import gettext_lazy as _

from apps.catalog.models import ServedModel
from apps.core.errors import NotFoundError

_SORTS = {"name": ("name",), "kind": ("kind", "name"), "created": ("created_at", "name")}


class ModelFilters(django_filters.FilterSet):
    """What the list of models can be narrowed by."""

    q = django_filters.CharFilter(
        field_name="name",
        lookup_expr="icontains",
        label=_("Search"),
        widget=forms.TextInput(attrs={"placeholder": _("Search by name")}),
    )
    kind = django_filters.ChoiceFilter(
        choices=ServedModel.Kind, label=_("Kind"), empty_label=_("Any kind")
    )

    class Meta:
        model = ServedModel
        fields: list[str] = []


def models_for_list(sort: str = "name") -> QuerySet[ServedModel]:
    """Models with `version_count` and `newest_version`; "-name" turns the order of "name" round."""
    names = _SORTS.get(sort.removeprefix("-"), _SORTS["name"])
    order = [f"-{name}" for name in names] if sort.startswith("-") else list(names)
    return ServedModel.objects.annotate(
        version_count=Count("versions"), newest_version=Max("versions__number")
    ).order_by(*order)


def model_for_page(pk: int) -> ServedModel:
    """The model; raises NotFoundError."""
    model = models_for_list().filter(pk=pk).first()
    if model is None:
        raise NotFoundError(f"there is no model {pk}")
    return model
