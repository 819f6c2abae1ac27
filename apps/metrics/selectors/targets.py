"""Which metrics pages there are to read."""

from urllib.parse import urlsplit

from apps.core.secrets import decrypt
from apps.fleet.models import Server
from apps.metrics.scraping import Target


def scrape_targets() -> list[Target]:
    """The metrics page of every enabled server that has one, by the server's id."""
    servers = Server.objects.filter(is_enabled=True).exclude(metrics_url="").order_by("pk")
    return [Target(server.pk, server.metrics_url, _key_for(server)) for server in servers]


def _key_for(server: Server) -> str:
    """The server's key, but only for a page of the very same host and port."""
    if not server.api_key_encrypted or _origin(server.metrics_url) != _origin(server.url):
        return ""
    return decrypt(server.api_key_encrypted)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port
