"""Checking what people type as the address or key of a model server.

We call these addresses from inside the network, so a URL must not become a way to reach what its
author could not: link-local and cloud metadata addresses are always refused, and the setting
ALLOWED_TARGET_NETWORKS narrows the rest. Redirects are followed nowhere.
"""

import re
import socket
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from apps.core.errors import InvalidRequestError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Link-local, and the metadata services that live outside it (AWS over IPv6, Alibaba); multicast.
_NEVER: tuple[Network, ...] = tuple(
    ip_network(text)
    for text in (
        "169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "100.100.100.200/32",
        "224.0.0.0/4", "ff00::/8",
    )
)  # fmt: skip
_UNSAFE_TEXT = re.compile(r"[\s\x00-\x20\x7f\\<>\"'`{}|^]")
_UNSAFE_PATH = re.compile(r"\.\.|//|%2e|%2f|%5c", re.IGNORECASE)
_HOST_AND_PORT = re.compile(r"^(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})$")
_PRINTABLE = re.compile(r"^[\x21-\x7e]+$")
_MAX_KEY_CHARACTERS = 1000
_VERSIONED = re.compile(r"/v[0-9]+(?:alpha|beta)?[0-9]*(?:/|$)")


def url_checked(field: str, url: str) -> str:
    """The URL without a trailing slash; raises InvalidRequestError that names `field`."""
    url = url.strip()
    parts = _split(field, url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidRequestError.of(field, "start it with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise InvalidRequestError.of(field, "leave user and password out; use the API key field")
    if parts.query or parts.fragment or "?" in url or "#" in url:
        raise InvalidRequestError.of(field, "leave out everything from ? or # on")
    if _UNSAFE_PATH.search(parts.path):
        raise InvalidRequestError.of(
            field, "use a plain path, without .., // or encoded characters"
        )
    _require_allowed(field, parts.hostname)
    return url.rstrip("/")


def api_root_checked(field: str, url: str) -> str:
    """As `url_checked`, and without the `/v1` that people copy along."""
    return url_checked(field, url).removesuffix("/v1").rstrip("/")


def api_base(url: str, version: str) -> str:
    """Where the paths of an API begin: its root and the version, unless the root names one.

    `https://api.z.ai/api/paas/v4` and `…/v1beta/openai` stay as they are.
    """
    url = url.rstrip("/")
    return url if _VERSIONED.search(urlsplit(url).path) else f"{url}/{version}"


def host_and_port_checked(field: str, address: str) -> str:
    """`host:port`, or empty; raises InvalidRequestError that names `field`."""
    address = address.strip()
    if not address:
        return ""
    found = _HOST_AND_PORT.match(address)
    if found is None or not 1 <= int(found["port"]) <= 65535:
        raise InvalidRequestError.of(field, "write it as host:port, for example gpu-1:8001")
    _require_allowed(field, found["host"].strip("[]"))
    return address


def api_key_checked(field: str, key: str) -> str:
    """The key alone: no spaces around it, no quotes, no `Bearer `. Empty stays empty.

    Raises InvalidRequestError when what is left cannot be a key.
    """
    key = key.strip().strip("\"'`").strip()
    if key.lower().startswith("bearer "):
        key = key[len("bearer ") :].strip()
    if not key:
        return ""
    if not _PRINTABLE.match(key):
        raise InvalidRequestError.of(
            field, "a key has no spaces, line breaks or special characters: copy it again"
        )
    if len(key) > _MAX_KEY_CHARACTERS:
        raise InvalidRequestError.of(field, f"a key has {_MAX_KEY_CHARACTERS} characters at most")
    return key


def origin_of(url: str) -> tuple[str, str]:
    """Scheme and host with port: who is spoken to."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def may_call(address: Address) -> bool:
    """Whether a connection may be made to an address (`unmapped`)."""
    allowed = _parsed_once(tuple(settings.ALLOWED_TARGET_NETWORKS))
    return not _is_in(address, _NEVER) and _is_in(address, allowed)


def networks_parsed(texts: Iterable[str]) -> tuple[Network, ...]:
    """Networks such as `10.0.0.0/8`; raises ValueError for what is none."""
    return tuple(ip_network(text, strict=False) for text in texts)


_parsed_once = lru_cache(maxsize=4)(networks_parsed)


def _split(field: str, url: str) -> SplitResult:
    if not url or _UNSAFE_TEXT.search(url):
        raise InvalidRequestError.of(field, "write it without spaces, quotes and backslashes")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as exc:
        raise InvalidRequestError.of(field, "the host or port cannot be read") from exc
    return parts


def _require_allowed(field: str, host: str) -> None:
    """Raise when the host is, or is found under, an address that we must not call.

    A name that cannot be resolved passes: the server may not be there yet.
    """
    allowed = _parsed_once(tuple(settings.ALLOWED_TARGET_NETWORKS))
    for address in _addresses_of(host):
        if _is_in(address, _NEVER):
            raise InvalidRequestError.of(field, "link-local and metadata addresses are not allowed")
        if not _is_in(address, allowed):
            raise InvalidRequestError.of(
                field, f"{address} is outside of INFERADMIN_ALLOWED_TARGET_NETWORKS"
            )


def _addresses_of(host: str) -> list[Address]:
    """IP addresses of a host, also when it is written as a number (`0xa9fea9fe`)."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [unmapped(ip_address(str(item[4][0]).partition("%")[0])) for item in found]


def unmapped(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one such as `::ffff:169.254.169.254`."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _is_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks if network.version == address.version)
