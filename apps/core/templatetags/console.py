"""What templates of the console write with: icons, badges, times, numbers, money, sorting.

Filters give a dash for `None`, so that a cell never has to ask.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from babel.numbers import format_currency
from django import template
from django.http import HttpRequest, QueryDict
from django.template import Context
from django.template.base import Parser, Token
from django.template.loader_tags import BLOCK_CONTEXT_KEY, BlockContext
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from apps.core.audit import Change, changes_in
from apps.core.models import AuditEntry

register = template.Library()

DASH = "–"  # noqa: RUF001 - a missing value is an en dash
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_CENTS = Decimal("0.01")
_MOST_DECIMALS = 12


@register.simple_tag
def icon(name: str) -> SafeString:
    """A Lucide icon out of the sprite, hidden from screen readers: a word stands beside it."""
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>',
        static("dist/icons.svg"),
        name,
    )


@register.inclusion_tag("components/badge.html")
def badge(tone: str, icon: str, text: str, *, busy: bool = False) -> dict[str, object]:
    """A state as icon, word and colour; `tone`: ok, warn, bad, info or idle."""
    return {"tone": tone, "icon": icon, "text": text, "busy": busy}


@register.simple_tag
def ago(moment: datetime | None) -> SafeString:
    """`moment` as "3 min ago" with the exact time on hover; scripts keep it true."""
    if moment is None:
        return SafeString(DASH)
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}" title="{}" data-relative>{}</time>',
        local.isoformat(timespec="seconds"),
        exact(moment),
        relative(moment),
    )


@register.filter
def changes(entry: AuditEntry) -> list[Change]:
    """What an audit entry says of each field."""
    return changes_in(entry)


@register.filter
def exact(moment: datetime | None) -> str:
    """`moment` to the second, with its zone."""
    if moment is None:
        return DASH
    local = timezone.localtime(moment)
    return f"{date_format(local, 'Y-m-d H:i:s')} {local.tzname()}"


@register.filter
def relative(moment: datetime) -> str:
    """How long ago (or ahead) `moment` is, in its largest whole unit."""
    seconds = (timezone.now() - moment).total_seconds()
    words = _("{0} ago") if seconds >= 0 else _("in {0}")
    return words.format(_span(abs(seconds)))


def _span(seconds: float) -> str:
    steps: list[tuple[int, str]] = [(86400, _("{0} d")), (3600, _("{0} h")), (60, _("{0} min"))]
    for size, words in steps:
        if seconds >= size:
            return words.format(int(seconds // size))
    return _("{0} s").format(int(seconds))


@register.filter
def number(value: float | Decimal | None, decimals: int | None = None) -> str:
    """`value` with thousands separators; a fraction gets one decimal, below 10 two."""
    if value is None:
        return DASH
    places = decimals if decimals is not None else _decimals_of(value)
    # Rounded here: Django cuts off.
    return number_format(round(float(value), places), decimal_pos=places, force_grouping=True)


def _decimals_of(value: float | Decimal) -> int:
    size = abs(float(value))
    if size.is_integer() or size >= 100:
        return 0
    return 1 if size >= 10 else 2


@register.filter
def seconds(value: float | None) -> str:
    """A duration in seconds as "8.4 ms", "812 ms", "1.92 s" or "2 min 3 s"."""
    if value is None:
        return DASH
    if value < 1:
        return milliseconds(value * 1000)
    if value < 60:
        return f"{number(value, 2)} s"
    minutes, rest = divmod(round(value), 60)
    return f"{number(minutes)} min {rest} s"


@register.filter
def milliseconds(value: float | None) -> str:
    """A duration in milliseconds, as `seconds` writes it."""
    if value is None:
        return DASH
    if value >= 1000:
        return seconds(value / 1000)
    return f"{number(value, 1 if value < 10 else 0)} ms"


@register.filter(name="bytes")
def in_bytes(value: float | None) -> str:
    """A size in the largest binary unit that leaves at least 1: "3.4 GiB"."""
    if value is None:
        return DASH
    size, unit = float(value), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{number(size, 0 if unit == 0 or size >= 100 else 1)} {_UNITS[unit]}"


@register.filter
def percent(ratio: float | None) -> str:
    """A share from 0 to 1 as "37 %", below ten with a decimal."""
    if ratio is None:
        return DASH
    value = ratio * 100
    return f"{number(value, 1 if 0 < value < 10 else 0)} %"


@register.filter
def money(amount: Decimal | None, currency: str) -> str:
    """`amount` with its currency: cents from one on, below that three significant digits."""
    if amount is None:
        return DASH
    decimals = _money_decimals(Decimal(amount))
    return format_currency(
        amount,
        currency,
        format="¤#,##0." + "0" * decimals,
        currency_digits=False,
        locale=(get_language() or "en").replace("-", "_"),
    )


@register.filter
def exact_money(amount: Decimal | None, currency: str) -> str:
    """`amount` unrounded with its currency's code, for a derivation: "0.0000036 USD"."""
    if amount is None:
        return DASH
    digits = number_format(amount, max(2, _places_of(amount)), force_grouping=True)
    return f"{digits} {currency}"


def _places_of(amount: Decimal) -> int:
    exponent = Decimal(amount).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _money_decimals(amount: Decimal) -> int:
    if amount == 0 or abs(amount) >= 1 or amount == amount.quantize(_CENTS):
        return 2
    return min(2 - amount.adjusted(), _MOST_DECIMALS)


@register.inclusion_tag("components/sort_th.html", takes_context=True)
def sort_th(context: Context, field: str, label: str, css: str = "") -> dict[str, object]:
    """A column head that sorts by `field`: up, then down; the view gives `sort`."""
    request: HttpRequest = context["request"]
    current = str(context.get("sort", ""))
    query = QueryDict(request.GET.urlencode(), mutable=True)
    query.pop("page", None)
    query["sort"] = f"-{field}" if current == field else field
    direction = {field: "ascending", f"-{field}": "descending"}.get(current, "none")
    return {"label": label, "css": css, "query": query.urlencode(), "direction": direction}


@register.inclusion_tag("components/menu_item.html", takes_context=True)
def menu_item(context: Context, name: str, icon: str, label: str, key: str) -> dict[str, object]:
    """An entry of the menu: the page `name`; `g` and then `key` goes there."""
    url = reverse(name)
    path = context["request"].path
    is_current = path == url or (name != "home" and path.startswith(url))
    return {"url": url, "icon": icon, "label": label, "key": key, "is_current": is_current}


class _RepeatedBlock(template.Node):
    def __init__(self, name: str) -> None:
        self.name = name

    def render(self, context: Context) -> SafeString:
        blocks: BlockContext | None = context.render_context.get(BLOCK_CONTEXT_KEY)
        block = blocks.get_block(self.name) if blocks else None
        return block.render(context) if block is not None else SafeString("")


@register.tag
def repeat_block(parser: Parser, token: Token) -> template.Node:
    """`{% repeat_block title %}`: what the page put into that block, once more."""
    del parser
    _tag, name = token.split_contents()
    return _RepeatedBlock(name)


@register.filter
def page_numbers(page: object) -> Sequence[int | str]:
    """Page numbers around the current one, with "…" for gaps."""
    paginator, current = page.paginator, page.number  # type: ignore[attr-defined]  # any Page
    return list(paginator.get_elided_page_range(current, on_each_side=1, on_ends=1))


@register.filter
def pips(count: int) -> range:
    """Something to loop over once a thing, 40 at most: more do not fit into a tile."""
    return range(min(count, 40))
