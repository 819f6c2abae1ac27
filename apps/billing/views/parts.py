"""Parts of other apps' pages that speak of use and money; pages fetch them by URL.

Apps below billing must not import it, so their pages leave named places for these numbers and
htmx fills them in (out of band: one answer fills the places of a whole list).
"""

from dataclasses import dataclass
from datetime import date

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from apps.billing import spend
from apps.billing.allowance import budgets_used, limits_used
from apps.billing.models import DailyUsage
from apps.billing.spend import Used
from apps.core.edges import requires
from apps.core.errors import InvalidRequestError
from apps.core.roles import Permission
from apps.keys.models import ApiKey, Team
from apps.routes.models import Route

_CHART_DAYS = 30
_MOST_IDS = 200


@dataclass(frozen=True, slots=True)
class _Bar:
    """One day of a chart that is 100 high and ten wide a day."""

    day: date
    used: Used
    x: int
    height: int

    @classmethod
    def of(cls, index: int, day: date, used: Used, highest: int) -> "_Bar":
        # What is not zero stays visible.
        height = max(2, round(100 * used.requests / highest)) if used.requests else 0
        return cls(day=day, used=used, x=10 * index + 1, height=height)

    @property
    def y(self) -> int:
        return 100 - self.height


def _ids(request: HttpRequest) -> list[int]:
    """The numbers in `?ids=1,2,3`; raises InvalidRequestError for anything else."""
    texts = [text for text in request.GET.get("ids", "").split(",") if text]
    if len(texts) > _MOST_IDS or not all(text.isdecimal() for text in texts):
        raise InvalidRequestError(f"ids: up to {_MOST_IDS} numbers, divided by commas")
    return [int(text) for text in texts]


def _month_start(day: date) -> date:
    return day.replace(day=1)


@require_GET
@requires(Permission.VIEW)
def routes_today(request: HttpRequest) -> HttpResponse:
    """Requests and cost of each route today; fills `route-{pk}-requests` and `-cost`."""
    used = spend.routes_used_on(spend.today())
    rows = [(route, used.get(route.name, Used())) for route in Route.objects.all()]
    return render(request, "billing/_routes_today.html", {"rows": rows})


@require_GET
@requires(Permission.VIEW)
def keys_month(request: HttpRequest) -> HttpResponse:
    """Cost this month and last use of keys `?ids=`; fills `key-{pk}-cost` and `-last-used`."""
    key_ids = _ids(request)
    used = spend.keys_used_since(_month_start(spend.today()), key_ids)
    last_used = spend.keys_last_used(key_ids)
    rows = [(pk, used.get(pk, Used()), last_used.get(pk)) for pk in key_ids]
    return render(request, "billing/_keys_month.html", {"rows": rows})


@require_GET
@requires(Permission.VIEW)
def teams_month(request: HttpRequest) -> HttpResponse:
    """Cost and requests this month of teams `?ids=`; fills `team-{pk}-cost` and `-requests`."""
    team_ids = _ids(request)
    used = spend.teams_used_since(_month_start(spend.today()), team_ids)
    rows = [(pk, used.get(pk, Used())) for pk in team_ids]
    return render(request, "billing/_teams_month.html", {"rows": rows})


@require_GET
@requires(Permission.VIEW)
def usage_by_day(request: HttpRequest) -> HttpResponse:
    """Bars of the last thirty days for one of `?key=`, `?team=` (ids) or `?route=` (a name)."""
    days = spend.usage_by_day(_rows_of(request), days=_CHART_DAYS)
    highest = max(used.requests for _day, used in days)
    context = {
        "bars": [_Bar.of(index, day, used, highest) for index, (day, used) in enumerate(days)],
        "total": sum((used for _day, used in days), Used()),
        "chart_days": _CHART_DAYS,
    }
    return render(request, "billing/_usage_by_day.html", context)


def _rows_of(request: HttpRequest) -> QuerySet[DailyUsage]:
    """Daily sums of the one thing that the query string names; raises InvalidRequestError."""
    columns = {"key": "key_id", "team": "team_id", "route": "route_name"}
    named = [
        (columns[name], value) for name, value in request.GET.dict().items() if name in columns
    ]
    if len(named) != 1 or (named[0][0] != "route_name" and not named[0][1].isdecimal()):
        raise InvalidRequestError("name one of key (id), team (id) and route (name)")
    return DailyUsage.objects.filter(named[0])


@require_GET
@requires(Permission.VIEW)
def allowance(request: HttpRequest) -> HttpResponse:
    """Use of the limits and budgets that hold for `?key=` or `?team=` (ids)."""
    holder = _holder(request)
    context = {"limits": limits_used(holder), "budgets": budgets_used(holder), "holder": holder}
    return render(request, "billing/_allowance.html", context)


def _holder(request: HttpRequest) -> ApiKey | Team:
    """The one thing that the query string names; raises InvalidRequestError."""
    key, team = request.GET.get("key", ""), request.GET.get("team", "")
    if key.isdecimal() and not team:
        return get_object_or_404(ApiKey, pk=key)
    if team.isdecimal() and not key:
        return get_object_or_404(Team, pk=team)
    raise InvalidRequestError("name one of key and team by id")
