"""Middleware of the console and the REST API (the gateway does not pass through Django's)."""

import re
from collections.abc import Callable
from uuid import uuid4
from zoneinfo import ZoneInfo, available_timezones

import structlog
from csp.decorators import csp_replace
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from apps.core.errors import InferAdminError
from apps.core.models import User

GetResponse = Callable[[HttpRequest], HttpResponse]
_SAFE_ID = re.compile(r"^[A-Za-z0-9._-]{8,64}$")


def request_id(get_response: GetResponse) -> GetResponse:
    """Read or make `X-Request-ID`, bind it to the log and return it."""

    def middleware(request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        chosen = given if _SAFE_ID.match(given) else uuid4().hex
        request.META["inferadmin.request_id"] = chosen
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=chosen)
        response = get_response(request)
        response["X-Request-ID"] = chosen
        return response

    return middleware


def admin_policy(get_response: GetResponse) -> GetResponse:
    """Give the admin's pages their own content security policy; stands inside CSPMiddleware."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if request.path.startswith(reverse("admin:index")):
            csp_replace(settings.ADMIN_CONTENT_SECURITY_POLICY)(lambda _request: response)(request)
        return response

    return middleware


def time_zone(get_response: GetResponse) -> GetResponse:
    """Show times in the signed-in person's zone."""

    def middleware(request: HttpRequest) -> HttpResponse:
        user = request.user
        if isinstance(user, User) and user.time_zone in available_timezones():
            with timezone.override(ZoneInfo(user.time_zone)):
                return get_response(request)
        return get_response(request)

    return middleware


class ConsoleErrors:
    """Turns an InferAdminError of a page into a page that says what to do."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answer for our own errors; unknown ones stay unknown (500 and a traceback)."""
        if not isinstance(exception, InferAdminError):
            return None
        return render(request, "core/error.html", {"error": exception}, status=exception.status)


console_errors = ConsoleErrors
