"""Where a caller sits, as far as the proxies in front of us can be believed."""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from django.conf import settings

from apps.keys.rules import Network, networks_of

Address = IPv4Address | IPv6Address


def address_of(meta: Mapping[str, Any]) -> Address | None:
    """The nearest address that is not of a trusted proxy; `None` when it cannot be read.

    `X-Forwarded-For` is read from its end, and only as far as each sender is a trusted proxy: what
    stands further left may be the caller's own invention.
    """
    proxies = _proxies(tuple(settings.TRUSTED_PROXIES))
    hops = [str(meta.get("REMOTE_ADDR", ""))]
    if proxies:
        forwarded = str(meta.get("HTTP_X_FORWARDED_FOR", ""))
        hops += [hop.strip() for hop in reversed(forwarded.split(",")) if hop.strip()]
    found: Address | None = None
    for hop in hops:
        found = _parsed(hop)
        if found is None or not is_within(found, proxies):
            return found
    return found


def is_within(address: Address, networks: tuple[Network, ...]) -> bool:
    """True when one of the networks holds the address."""
    return any(address in network for network in networks)


def _parsed(text: str) -> Address | None:
    """An address; one of IPv4 that is written as IPv6 is one of IPv4."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


@lru_cache(maxsize=4)
def _proxies(texts: tuple[str, ...]) -> tuple[Network, ...]:
    return networks_of(texts)
