"""Fragments and numbers for pages: history without a socket, the state of the product."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from apps.core.edges import requires
from apps.core.errors import InferAdminError, InvalidRequestError
from apps.core.roles import Permission
from apps.metrics.names import topic_of
from apps.metrics.problems import problems_of
from apps.metrics.selectors import history as histories
from apps.metrics.selectors.system import system_state


@require_GET
@requires(Permission.VIEW)
def history(request: HttpRequest) -> JsonResponse:
    """`?topic=overview&minutes=15` as JSON of the socket's snapshot."""
    try:
        topic = topic_of(request.GET.get("topic", ""))
        minutes = _minutes_of(request.GET.get("minutes", str(histories.DEFAULT_MINUTES)))
        snapshot = histories.history(topic, minutes)
    except InferAdminError as exc:  # a script reads this: it gets JSON, not the console's page
        return _error(exc)
    return JsonResponse(snapshot, headers={"Cache-Control": "no-store"})


def _minutes_of(text: str) -> int:
    if text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= histories.MAX_MINUTES:
        return int(text[:9])
    message = f"give whole minutes, 1 to {histories.MAX_MINUTES}"
    raise InvalidRequestError(f"minutes: {message}", fields={"minutes": [message]})


def _error(exc: InferAdminError) -> JsonResponse:
    body: dict[str, object] = {"code": exc.code, "message": exc.message}
    if isinstance(exc, InvalidRequestError):
        body["fields"] = exc.fields
    return JsonResponse({"error": body}, status=exc.status)


@require_GET
@requires(Permission.VIEW)
def system_banner(request: HttpRequest) -> HttpResponse:
    """Banners about the product itself, empty when all is well; JSON for `Accept: …/json`."""
    problems = problems_of(system_state())
    if request.get_preferred_type(["text/html", "application/json"]) == "application/json":
        body = {
            "problems": [
                {
                    "code": item.code,
                    "tone": item.tone,
                    "title": str(item.title),
                    "advice": str(item.advice),
                }
                for item in problems
            ]
        }
        return JsonResponse(body, headers={"Cache-Control": "no-store"})
    return render(request, "metrics/system_banner.html", {"problems": problems})
