"""Admin pages of prices; the ledger to look at."""

from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.billing.models import RATES, DailyUsage, Price, UsageRecord
from apps.billing.pricing import Quantities, cost_picos
from apps.billing.selectors import (
    PRICE_JUMP,
    price_jump_of,
    price_row,
    prices_for_display,
    prices_in_force,
)
from apps.billing.services import prices
from apps.core.admin_pages import ReadOnlyAdmin, ServiceAdmin, badge, page_action, short_time
from apps.core.edges import actor_of
from apps.core.errors import InferAdminError
from apps.core.money import from_picos
from apps.core.roles import Permission

_FIELDS = ["server", "upstream_model", "currency", *RATES, "effective_from"]
_EXAMPLE = gettext_lazy(
    "1,000 input tokens cost {input}; a request of 1,000 input and 500 output tokens costs {total}."
)


class PriceForm(forms.ModelForm):  # type: ignore[type-arg]  # for the type checker only
    """A new price. A jump has to be confirmed."""

    allows_jump = forms.BooleanField(
        label=gettext_lazy("Confirm"),
        required=False,
        help_text=gettext_lazy(
            "Tick it only where a price really is over a hundred times the one that holds."
        ),
    )

    class Meta:
        model = Price
        fields = _FIELDS
        help_texts = {
            "upstream_model": gettext_lazy("The name under which the server knows the model."),
            "cached_input_per_million": gettext_lazy("Empty: it costs what other input costs."),
            "cache_write_per_million": gettext_lazy("Empty: it costs what other input costs."),
            "reasoning_per_million": gettext_lazy("Empty: it costs what other output costs."),
            "per_compute_second": gettext_lazy("A second that the target is busy with a request."),
            "effective_from": gettext_lazy("Now or later: what is billed stays as it is."),
        }

    def clean(self) -> dict[str, Any]:
        """Find slips of units while the form still holds what was typed."""
        data = super().clean() or {}
        if not self.errors and not data["allows_jump"]:
            rate = price_jump_of(Price(**{name: data[name] for name in _FIELDS}))
            if rate is not None:
                self.add_error(
                    rate,
                    _("Over %(times)d times the price that holds. Prices are per million tokens.")
                    % {"times": PRICE_JUMP},
                )
        return data


class HoldsFilter(admin.SimpleListFilter):
    """Prices that hold now."""

    title = gettext_lazy("holds now")
    parameter_name = "holds"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, Any]]:
        del request, model_admin
        return [("yes", _("Yes")), ("no", _("No"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Price]) -> QuerySet[Price]:
        del request
        in_force = prices_in_force(timezone.now()).values("pk")
        if self.value() == "yes":
            return queryset.filter(pk__in=in_force)
        return queryset.exclude(pk__in=in_force) if self.value() == "no" else queryset


@admin.register(Price)
class PriceAdmin(ServiceAdmin[Price]):
    """Prices are added; one that has begun is never changed."""

    form = PriceForm
    list_display = ["upstream_model", "server", "state", "input", "output", "per_call", "currency",
                    "begins"]  # fmt: skip
    list_filter = [HoldsFilter, ("server", admin.RelatedOnlyFieldListFilter), "currency"]
    search_fields = ["upstream_model", "server__name"]
    actions_detail = ["withdraw"]

    class Media:
        js = [forms.Script("billing/price_example.js", defer=True)]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Price]:
        return prices_for_display()

    def has_change_permission(self, request: HttpRequest, obj: Price | None = None) -> bool:
        return obj is None and super().has_change_permission(request)

    def get_fields(self, request: HttpRequest, obj: Price | None = None) -> list[Any]:
        fields = ["server", "upstream_model", "currency", *RATES, "example", "effective_from"]
        return fields if obj else [*fields, "allows_jump"]

    def get_readonly_fields(self, request: HttpRequest, obj: Price | None = None) -> list[str]:
        return ["example"]

    @admin.display(description=gettext_lazy("example"))
    def example(self, price: Price | None) -> str:
        """Filled by a script while a price is typed."""
        if price is None or price.pk is None:
            return format_html('<output id="price-example" data-text="{}"></output>', _EXAMPLE)
        return str(_EXAMPLE).format(
            input=_cost(price, 1000, 0, without_request=True), total=_cost(price, 1000, 500)
        )

    @badge(gettext_lazy("state"), {"holds": "success", "to_come": "info", "past": "warning"})
    def state(self, price: Price) -> tuple[str, str]:
        if price.effective_from > timezone.now():
            return "to_come", _("To come")
        return ("holds", _("Holds")) if price.pk in self._in_force else ("past", _("Past"))

    @admin.display(description=gettext_lazy("input / 1M"), ordering="input_per_million")
    def input(self, price: Price) -> str:
        return _plain(price.input_per_million)

    @admin.display(description=gettext_lazy("output / 1M"), ordering="output_per_million")
    def output(self, price: Price) -> str:
        return _plain(price.output_per_million)

    @admin.display(description=gettext_lazy("request"), ordering="per_request")
    def per_call(self, price: Price) -> str:
        return _plain(price.per_request)

    @admin.display(description=gettext_lazy("from"), ordering="effective_from")
    def begins(self, price: Price) -> str:
        return short_time(price.effective_from)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self._in_force = set(prices_in_force(timezone.now()).values_list("pk", flat=True))
        return super().changelist_view(request, extra_context)

    def create(self, request: HttpRequest, values: dict[str, Any]) -> Price:
        rates: Any = {name: values.pop(name) for name in RATES}
        server_id = values.pop("server").pk
        return prices.price_set(actor=actor_of(request), server_id=server_id, rates=rates, **values)

    @page_action(gettext_lazy("Take back"), "undo")
    def withdraw(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Take back a price that has not begun."""
        price = prices_for_display().get(pk=object_id)
        if request.method != "POST":
            return self.ask(
                request,
                price,
                form=forms.Form(),
                title=_("Take back a price to come"),
                text=_("The price that holds before it goes on holding."),
                label=_("Take back"),
            )
        try:
            prices.price_withdraw(actor=actor_of(request), price_id=price.pk)
        except InferAdminError as exc:
            messages.error(request, exc.message)
        else:
            messages.success(request, _("The price is taken back."))
        return redirect("admin:billing_price_changelist")


def _plain(amount: Decimal) -> str:
    """The amount without zeros at its end."""
    return f"{amount.normalize():f}"


def _cost(price: Price, inputs: int, outputs: int, *, without_request: bool = False) -> str:
    picos = cost_picos(price_row(price), Quantities(inputs, outputs))
    amount = from_picos(picos) - (price.per_request if without_request else Decimal(0))
    return f"{_plain(amount)} {price.currency}"


@admin.register(UsageRecord)
class UsageRecordAdmin(ReadOnlyAdmin[UsageRecord]):
    """Requests; the console's page explains them better."""

    permission = Permission.ADMINISTER
    list_display = ["at", "status", "team", "key", "route_name", "server_name", "cost", "currency"]
    list_select_related = ["team", "key"]
    list_filter = ["status", "at"]
    search_fields = ["request_id"]


@admin.register(DailyUsage)
class DailyUsageAdmin(ReadOnlyAdmin[DailyUsage]):
    """Sums of UTC days."""

    permission = Permission.ADMINISTER
    list_display = ["day", "team", "key", "route_name", "server_name", "requests", "errors"]
    list_select_related = ["team", "key"]
    list_filter = ["day"]
