"""What the fields of keys and budgets may hold: networks, zones, percentages."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

Network = IPv4Network | IPv6Network

MAX_NETWORKS = 100
MAX_WARNINGS = 10
MAX_WARNING_PERCENT = 1000
DEFAULT_WARN_PERCENTS = (80, 100)


def networks_of(texts: Sequence[str]) -> tuple[Network, ...]:
    """The networks that `texts` write, as in `10.0.0.0/8` or `2001:db8::1`.

    Raises ValueError for one that is none, or whose address has bits beyond its length.
    """
    return tuple(ip_network(text.strip()) for text in texts)


def networks_validator(value: Any) -> None:
    """A list of up to MAX_NETWORKS networks."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValidationError(_("Give a list of networks, such as 10.0.0.0/8."))
    if len(value) > MAX_NETWORKS:
        raise ValidationError(_("Name at most %(most)s networks."), params={"most": MAX_NETWORKS})
    for item in value:
        try:
            ip_network(item.strip())
        except ValueError as exc:
            raise ValidationError(
                _("%(item)s is no network: write an address or a range, such as 10.0.0.0/8."),
                params={"item": item[:60]},
            ) from exc


def time_zone_validator(value: str) -> None:
    """A name of the tz database."""
    if value not in available_timezones():
        raise ValidationError(
            _("There is no time zone of this name; write it as in Europe/Berlin.")
        )


def zone_of(name: str, default: str) -> ZoneInfo:
    """The zone of that name; "" stands for `default`."""
    return ZoneInfo(name or default)


def default_warn_percents() -> list[int]:
    """A fresh list for a new budget."""
    return list(DEFAULT_WARN_PERCENTS)


def warn_percents_validator(value: Any) -> None:
    """Up to MAX_WARNINGS whole percentages."""
    is_list = isinstance(value, list) and len(value) <= MAX_WARNINGS
    if not is_list or not all(_is_percentage(item) for item in value):
        raise ValidationError(
            _("Give up to %(most)s whole numbers from 1 to %(high)s."),
            params={"most": MAX_WARNINGS, "high": MAX_WARNING_PERCENT},
        )


def _is_percentage(item: object) -> bool:
    return type(item) is int and 1 <= item <= MAX_WARNING_PERCENT
