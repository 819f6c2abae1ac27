"""Telling the person at the console how something went."""

from typing import Literal

from django.http import HttpResponse
from django_htmx.http import trigger_client_event


def toast(
    response: HttpResponse, text: str, tone: Literal["ok", "bad", "info"] = "ok"
) -> HttpResponse:
    """Show `text` at the corner of the page when htmx has taken `response`."""
    return trigger_client_event(response, "toast", {"text": text, "tone": tone})
