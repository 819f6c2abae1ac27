"""The page that holds the budget counters of Redis against the ledger."""

import redis
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from apps.billing.counters import CounterCheck, counters_checked
from apps.billing.services import counters
from apps.core.edges import actor_of, requires
from apps.core.roles import Permission


@require_GET
@requires(Permission.VIEW)
def counter_list(request: HttpRequest) -> HttpResponse:
    """Counter and ledger of every budget that has been used lately."""
    checks: list[CounterCheck] | None
    try:
        checks = counters_checked()
    except redis.RedisError:
        checks = None
    return render(request, "billing/counter_list.html", {"checks": checks})


@require_POST
@requires(Permission.MANAGE_KEYS)
def counter_repair(request: HttpRequest) -> HttpResponse:
    """Correct one counter."""
    key = request.POST.get("key", "")
    if counters.counter_repair(actor=actor_of(request), key=key):
        messages.success(request, _("The counter is what the ledger says."))
    else:
        messages.info(request, _("The counter was right already."))
    return redirect("billing:counter-list")
