"""Questions about teams, keys and what they may."""

from datetime import datetime

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from apps.keys.models import ApiKey, Budget, Limit, Team
from apps.routes.models import Route


def keys_for_display() -> QuerySet[ApiKey]:
    """All keys, newest first, with team, maker and allowed routes: two queries."""
    return ApiKey.objects.select_related("team", "created_by").prefetch_related("routes")


def teams_with_key_counts() -> QuerySet[Team]:
    """All teams by name; `active_keys` counts the keys that are not revoked and not expired."""
    works = Q(keys__revoked_at=None) & (
        Q(keys__expires_at=None) | Q(keys__expires_at__gt=timezone.now())
    )
    return Team.objects.annotate(active_keys=Count("keys", filter=works)).order_by("name")


def keys_in_state(keys: QuerySet[ApiKey], state: str, moment: datetime) -> QuerySet[ApiKey]:
    """Those of `keys` whose `state_at(moment)` is `state`."""
    is_revoked = Q(revoked_at__lte=moment)
    is_expired = Q(expires_at__lte=moment)
    is_in_time = ~is_revoked & ~is_expired
    conditions = {
        ApiKey.State.REVOKED: is_revoked,
        ApiKey.State.EXPIRED: ~is_revoked & is_expired,
        ApiKey.State.ACTIVE: is_in_time & Q(team__is_active=True),
        ApiKey.State.SUSPENDED: is_in_time & Q(team__is_active=False),
    }
    return keys.filter(conditions[ApiKey.State(state)])


def first_route_of(key: ApiKey) -> Route | None:
    """An enabled route that the key may call, the first by name; `None` when there is none."""
    routes = Route.objects.filter(is_enabled=True)
    if not key.allows_all_routes:
        routes = routes.filter(pk__in=key.routes.values("pk"))
    return routes.first()


def limits_for_display() -> QuerySet[Limit]:
    """All limits with what they hold for, in one query."""
    return Limit.objects.select_related("team", "key", "route").order_by("id")


def budgets_for_display() -> QuerySet[Budget]:
    """All budgets with what they hold for, in one query."""
    return Budget.objects.select_related("team", "key", "route").order_by("id")


def ancestry_of(key_id: int) -> list[int]:
    """The key and those that it replaced by rotation, newest first: they share a spend."""
    found: list[int] = []
    current: int | None = key_id
    while current is not None and current not in found:
        found.append(current)
        current = (
            ApiKey.objects.filter(pk=current).values_list("rotated_from_id", flat=True).first()
        )
    return found
