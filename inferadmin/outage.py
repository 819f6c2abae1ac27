"""What a page answers when the database is away: 503 and what goes on, instead of a bare 500."""

import sys
from time import time

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.views import defaults

from apps.metrics.health import SystemState
from apps.metrics.problems import problems_of

_RETRY_AFTER_SECONDS = "5"


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500. Needs neither a session nor a user: both lie in the database."""
    error = sys.exc_info()[1]
    if not isinstance(error, OperationalError | InterfaceError):
        return _our_fault(request)
    response: HttpResponse
    if request.path == reverse("metrics:system-banner"):
        return _banner()
    if request.path.startswith("/api/") or "json" in request.headers.get("Accept", ""):
        response = JsonResponse(_BODY, status=503)
    else:
        texts = {"language": settings.LANGUAGE_CODE, "is_part": "HX-Request" in request.headers}
        response = HttpResponse(render_to_string("core/database_away.html", texts), status=503)
    response["Retry-After"] = _RETRY_AFTER_SECONDS
    return response


def _our_fault(request: HttpRequest) -> HttpResponse:
    if not request.path.startswith("/api/"):
        return defaults.server_error(request)
    message = f"our fault; the log holds the request {request.META.get('inferadmin.request_id')}"
    return JsonResponse({"error": {"code": "internal_error", "message": message}}, status=500)


def _banner() -> HttpResponse:
    """The banner itself, with status 200: an open page puts nothing else in."""
    state = SystemState(at=time(), postgres_error="away")
    problems = [item for item in problems_of(state) if item.code == "postgres_away"]
    return HttpResponse(render_to_string("metrics/system_banner.html", {"problems": problems}))


_BODY = {
    "error": {
        "code": "database_away",
        "message": "PostgreSQL does not answer; the gateway keeps serving, try again in a moment",
    }
}
