"""Console pages of keys and teams. A secret is rendered once, right after it is made."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from apps.core.audit import history_of
from apps.core.edges import actor_of, requires
from apps.core.errors import ConflictError, InvalidRequestError
from apps.core.lists import PAGE_SIZES, Block, csv_response, page_of, page_size_of
from apps.core.roles import Permission
from apps.keys import selectors, services
from apps.keys.forms import KeyFilters, KeyForm, RotateForm, TeamFilters
from apps.keys.models import ApiKey, Team
from apps.routes.kinds import route_kinds


@require_GET
@requires(Permission.VIEW)
def key_list(request: HttpRequest) -> HttpResponse:
    """All keys; what they spent comes from billing by URL."""
    keys = selectors.keys_for_display().prefetch_related("limit_set")
    filters = KeyFilters(request.GET, queryset=keys)
    page = page_of(request, filters.qs)
    context = {
        "filters": filters,
        "sort": request.GET.get("sort", ""),
        "page": page,
        "rows": [(key, key.state_at(timezone.now())) for key in page],
        "ids": ",".join(str(key.pk) for key in page),
        "page_sizes": PAGE_SIZES,
        "page_size": page_size_of(request),
    }
    return render(request, "keys/key_list.html", context)


@require_GET
@requires(Permission.VIEW)
def key_export(request: HttpRequest) -> HttpResponseBase:
    """The narrowed list as CSV, without anything secret."""
    filters = KeyFilters(request.GET, queryset=selectors.keys_for_display())

    def next_block(after: object | None) -> Block:
        del after
        return [_csv_row(key) for key in filters.qs], None

    header = ("name", "team", "prefix", "state", "all_routes", "routes", "created_at",
              "expires_at", "revoked_at")  # fmt: skip
    return csv_response(request, name="keys", header=header, next_block=next_block)


def _csv_row(key: ApiKey) -> tuple[object, ...]:
    routes = " ".join(route.name for route in key.routes.all())
    return (
        key.name, key.team.name, key.prefix, key.state_at(timezone.now()), key.allows_all_routes,
        routes, key.created_at, key.expires_at, key.revoked_at,
    )  # fmt: skip


@require_GET
@requires(Permission.VIEW)
def key_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One key: what it may, what it used, what was done to it."""
    key = _key(pk)
    context = {
        "key": key,
        "state": key.state_at(timezone.now()),
        "rotated_to": getattr(key, "rotated_to", None),
        "history": history_of(key),
    }
    return render(request, "keys/key_detail.html", context)


def _key(pk: int) -> ApiKey:
    return get_object_or_404(selectors.keys_for_display(), pk=pk)


@never_cache
@require_http_methods(["GET", "POST"])
@requires(Permission.MANAGE_KEYS)
def key_create(request: HttpRequest) -> HttpResponse:
    """Make a key and show its secret, this once."""
    if request.method == "GET":
        initial = {"team": Team.objects.filter(name=request.GET.get("team", "")).first()}
        return render(request, "keys/key_form.html", {"form": KeyForm(initial=initial)})
    form = KeyForm(request.POST)
    issued = _issue(request, form) if form.is_valid() else None
    if issued is None:
        return render(request, "keys/key_form.html", {"form": form}, status=400)
    return _secret_page(request, *issued)


def _issue(request: HttpRequest, form: KeyForm) -> tuple[ApiKey, str] | None:
    """The new key and its secret; `None` when the service refused, which the form then says."""
    data = form.cleaned_data
    try:
        return services.key_issue(
            actor=actor_of(request),
            team_id=data["team"].pk,
            name=data["name"],
            expires_at=data["expires_at"],
            allows_all_routes=data["allows_all_routes"],
            route_ids=form.route_ids,
        )
    except (ConflictError, InvalidRequestError) as exc:
        form.add_error("name" if isinstance(exc, ConflictError) else None, exc.message)
        return None


def _secret_page(
    request: HttpRequest, key: ApiKey, secret: str, replaced: ApiKey | None = None
) -> HttpResponse:
    route = selectors.first_route_of(key)
    context = {
        "key": key,
        "secret": secret,
        "replaced": replaced,
        "base_url": request.build_absolute_uri("/v1"),
        "route": route,
        "route_kind": route_kinds([route])[route.pk] if route else "",
    }
    return render(request, "keys/key_secret.html", context)


@never_cache
@require_http_methods(["GET", "POST"])
@requires(Permission.MANAGE_KEYS)
def key_rotate(request: HttpRequest, pk: int) -> HttpResponse:
    """Replace a key by a new one; both work until the grace is over."""
    key = _key(pk)
    form = RotateForm(request.POST or None)
    if not form.is_valid():
        status = 400 if form.is_bound else 200
        return render(request, "keys/key_rotate.html", {"key": key, "form": form}, status=status)
    new, secret = services.key_rotate(
        actor=actor_of(request), key_id=pk, grace_seconds=form.cleaned_data["grace_seconds"]
    )
    return _secret_page(request, new, secret, replaced=_key(pk))


@require_http_methods(["GET", "POST"])
@requires(Permission.MANAGE_KEYS)
def key_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask, naming what stops; then end the key."""
    key = _key(pk)
    if request.method == "GET":
        return render(request, "keys/key_revoke.html", {"key": key})
    services.key_revoke(actor=actor_of(request), key_id=pk)
    messages.success(request, _("Key %(name)s is revoked.") % {"name": key.name})
    return redirect("keys:key-detail", pk)


@require_GET
@requires(Permission.VIEW)
def team_list(request: HttpRequest) -> HttpResponse:
    """All teams with how many keys work."""
    filters = TeamFilters(request.GET, queryset=selectors.teams_with_key_counts())
    page = page_of(request, filters.qs)
    context = {
        "filters": filters,
        "sort": request.GET.get("sort", ""),
        "page": page,
        "ids": ",".join(str(team.pk) for team in page),
        "page_sizes": PAGE_SIZES,
        "page_size": page_size_of(request),
    }
    return render(request, "keys/team_list.html", context)


@require_GET
@requires(Permission.VIEW)
def team_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One team: its keys, limits, budgets and spend."""
    team = get_object_or_404(Team, pk=pk)
    keys = selectors.keys_for_display().prefetch_related("limit_set").filter(team=team)
    context = {
        "team": team,
        "rows": [(key, key.state_at(timezone.now())) for key in keys],
        "ids": ",".join(str(key.pk) for key in keys[:100]),
        "history": history_of(team),
    }
    return render(request, "keys/team_detail.html", context)
