"""What machines ask: is it alive, is it ready, what does it measure."""

import secrets
from ipaddress import ip_address

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_GET

from apps.metrics import exporter
from apps.metrics.health import SystemState
from apps.metrics.selectors.system import system_state

_NO_STORE = {"Cache-Control": "no-store"}


@login_not_required
@require_GET
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while the process answers at all."""
    del request
    return JsonResponse({"status": "ok"}, headers=_NO_STORE)


@login_not_required
@require_GET
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when Postgres and Redis answer and all migrations are there, else 503 with what is not.

    What the worker and the ledger do stands beside it: they do not make this process unready.
    """
    del request
    state = system_state()
    body = {
        "status": "ok" if state.is_ready else "unavailable",
        "checks": {
            "postgres": state.postgres_error or "ok",
            "redis": state.redis_error or "ok",
            "migrations": _migrations(state),
        },
        "problems": state.problems,
        "information": {
            "worker_heartbeat_age_seconds": state.age_seconds("fold"),
            "sweep_age_seconds": state.age_seconds("sweep"),
            "ledger_events_waiting": state.ledger.waiting,
            "ledger_lag_seconds": state.ledger.oldest_seconds,
        },
    }
    return JsonResponse(body, status=200 if state.is_ready else 503, headers=_NO_STORE)


def _migrations(state: SystemState) -> str:
    if state.postgres_error:
        return "unknown"
    return f"missing: {', '.join(state.missing_migrations)}" if state.missing_migrations else "ok"


@login_not_required
@require_GET
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus text, for this machine itself and for who has INFERADMIN_METRICS_TOKEN."""
    if not (_has_token(request) or _is_from_here(request)):
        message = "send “Authorization: Bearer” with the value of INFERADMIN_METRICS_TOKEN\n"
        return HttpResponse(
            message,
            status=401,
            content_type="text/plain; charset=utf-8",
            headers={"WWW-Authenticate": 'Bearer realm="metrics"'},
        )
    page = exporter.prometheus_page(system_state())
    return HttpResponse(page, content_type=exporter.CONTENT_TYPE, headers=_NO_STORE)


def _has_token(request: HttpRequest) -> bool:
    scheme, _space, token = request.headers.get("Authorization", "").partition(" ")
    wanted = settings.METRICS_TOKEN
    is_same = secrets.compare_digest(token.strip().encode(), wanted.encode())
    return bool(wanted) and scheme.lower() == "bearer" and is_same


def _is_from_here(request: HttpRequest) -> bool:
    """True for a direct call over loopback; a proxy on this machine calls for somebody else."""
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False
    try:
        return ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
