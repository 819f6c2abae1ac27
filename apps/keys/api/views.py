"""REST: teams, keys, limits and budgets."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.api.serializers import validated
from apps.core.edges import actor_of
from apps.core.roles import Permission
from apps.keys import quotas, selectors, services
from apps.keys.api import filters
from apps.keys.api import serializers as shapes
from apps.keys.models import ApiKey, Budget, Limit, Team


@extend_schema_view(
    list=extend_schema(summary="Teams by name"), retrieve=extend_schema(summary="One team")
)
class TeamViews(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Team]):
    """Teams share keys, limits and a bill. They are switched off, never deleted."""

    queryset = Team.objects.all()
    serializer_class = shapes.TeamSerializer
    filterset_class = filters.TeamFilters
    write_permission = Permission.MANAGE_KEYS
    lookup_value_converter = "int"

    def get_queryset(self) -> QuerySet[Team]:
        return selectors.teams_with_key_counts()

    @extend_schema(
        summary="Make a team", request=shapes.TeamInput, responses={201: shapes.TeamSerializer}
    )
    def create(self, request: Request) -> Response:
        values = validated(shapes.TeamInput, request)
        team = services.team_create(actor=actor_of(request), **values)
        return self._answer(team, status=201)

    @extend_schema(
        summary="Change a team", request=shapes.TeamChangesInput, responses=shapes.TeamSerializer
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        values = validated(shapes.TeamChangesInput, request, partial=True)
        team = services.team_update(
            actor=actor_of(request), team_id=self.get_object().pk, changes=values
        )
        return self._answer(team)

    def _answer(self, team: Team, status: int = 200) -> Response:
        return Response(shapes.TeamSerializer(self.get_queryset().get(pk=team.pk)).data, status)


@extend_schema_view(
    list=extend_schema(summary="Keys, newest first"), retrieve=extend_schema(summary="One key")
)
class KeyViews(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[ApiKey]):
    """Keys of the gateway. A secret is in the answer that makes it and nowhere else."""

    queryset = ApiKey.objects.all()
    serializer_class = shapes.KeySerializer
    filterset_class = filters.KeyFilters
    write_permission = Permission.MANAGE_KEYS
    lookup_value_converter = "int"

    def get_queryset(self) -> QuerySet[ApiKey]:
        return selectors.keys_for_display()

    @extend_schema(
        summary="Issue a key", request=shapes.KeyInput, responses={201: shapes.IssuedKeySerializer}
    )
    def create(self, request: Request) -> Response:
        """Answers with the secret, this once."""
        values = validated(shapes.KeyInput, request)
        key, secret = services.key_issue(actor=actor_of(request), **values)
        return self._issued(key, secret)

    @extend_schema(
        summary="Change a key", request=shapes.KeyChangesInput, responses=shapes.KeySerializer
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        values = validated(shapes.KeyChangesInput, request, partial=True)
        key = services.key_update(
            actor=actor_of(request), key_id=self.get_object().pk, changes=values
        )
        return self._answer(key)

    @extend_schema(
        summary="Replace a key by a new one",
        request=shapes.RotationInput,
        responses={201: shapes.IssuedKeySerializer},
    )
    @action(detail=True, methods=["post"])
    def rotate(self, request: Request, pk: int) -> Response:
        """The new key has the same name, routes, limits and budgets; answers with its secret."""
        values = validated(shapes.RotationInput, request)
        key, secret = services.key_rotate(
            actor=actor_of(request), key_id=self.get_object().pk, **values
        )
        return self._issued(key, secret)

    @extend_schema(summary="Revoke a key", request=None, responses=shapes.KeySerializer)
    @action(detail=True, methods=["post"])
    def revoke(self, request: Request, pk: int) -> Response:
        """Refused by every worker within two seconds; safe to repeat."""
        key = services.key_revoke(actor=actor_of(request), key_id=self.get_object().pk)
        return self._answer(key)

    def _answer(self, key: ApiKey) -> Response:
        return Response(shapes.KeySerializer(self.get_queryset().get(pk=key.pk)).data)

    def _issued(self, key: ApiKey, secret: str) -> Response:
        key.secret = secret  # type: ignore[attr-defined]  # for this answer only
        body = shapes.IssuedKeySerializer(key).data
        return Response(body, status=201, headers={"Cache-Control": "no-store"})


@extend_schema_view(
    list=extend_schema(summary="Limits of teams, keys and routes"),
    retrieve=extend_schema(summary="One limit"),
    destroy=extend_schema(summary="Lift a limit"),
)
class LimitViews(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Limit]):
    """Caps on rates and on requests at once."""

    queryset = selectors.limits_for_display()
    serializer_class = shapes.LimitSerializer
    filterset_class = filters.LimitFilters
    write_permission = Permission.MANAGE_KEYS
    lookup_value_converter = "int"

    @extend_schema(
        summary="Set a limit", request=shapes.LimitInput, responses=shapes.LimitSerializer
    )
    def create(self, request: Request) -> Response:
        """Replaces the limit of the same kind for the same team, key or route."""
        values = validated(shapes.LimitInput, request)
        limit = quotas.limit_set(actor=actor_of(request), scope=_scope(values), **values)
        return Response(shapes.LimitSerializer(limit).data)

    def destroy(self, request: Request, pk: int) -> Response:
        quotas.limit_clear(actor=actor_of(request), limit_id=self.get_object().pk)
        return Response(status=204)


@extend_schema_view(
    list=extend_schema(summary="Budgets of teams, keys and routes"),
    retrieve=extend_schema(summary="One budget"),
    destroy=extend_schema(summary="Lift a budget"),
)
class BudgetViews(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Budget]
):
    """Money that may be spent in a period."""

    queryset = selectors.budgets_for_display()
    serializer_class = shapes.BudgetSerializer
    filterset_class = filters.BudgetFilters
    write_permission = Permission.MANAGE_KEYS
    lookup_value_converter = "int"

    @extend_schema(
        summary="Set a budget", request=shapes.BudgetInput, responses=shapes.BudgetSerializer
    )
    def create(self, request: Request) -> Response:
        """Replaces the budget of the same period for the same team, key or route."""
        values = validated(shapes.BudgetInput, request)
        budget = quotas.budget_set(actor=actor_of(request), scope=_scope(values), **values)
        return Response(shapes.BudgetSerializer(budget).data)

    def destroy(self, request: Request, pk: int) -> Response:
        quotas.budget_clear(actor=actor_of(request), budget_id=self.get_object().pk)
        return Response(status=204)

    @extend_schema(
        summary="Raise a budget for a time",
        request=shapes.RaiseInput,
        responses=shapes.BudgetSerializer,
    )
    @action(detail=True, methods=["post"], url_path="raise", url_name="raise")
    def raise_amount(self, request: Request, pk: int) -> Response:
        """Binds within two seconds and falls back by itself."""
        values = validated(shapes.RaiseInput, request)
        budget = quotas.budget_raise(
            actor=actor_of(request), budget_id=self.get_object().pk, **values
        )
        return Response(shapes.BudgetSerializer(budget).data)

    @extend_schema(summary="End a budget's raise", request=None, responses=shapes.BudgetSerializer)
    @action(detail=True, methods=["post"], url_path="end-raise")
    def end_raise(self, request: Request, pk: int) -> Response:
        """Safe to repeat."""
        budget = quotas.budget_raise_end(actor=actor_of(request), budget_id=self.get_object().pk)
        return Response(shapes.BudgetSerializer(budget).data)

    @extend_schema(
        summary="Let a budget's period begin anew", request=None, responses=shapes.BudgetSerializer
    )
    @action(detail=True, methods=["post"])
    def reset(self, request: Request, pk: int) -> Response:
        """What was spent before counts no more; the ledger stays as it is."""
        budget = quotas.budget_reset(actor=actor_of(request), budget_id=self.get_object().pk)
        return Response(shapes.BudgetSerializer(budget).data)


def _scope(values: dict[str, Any]) -> quotas.Scope:
    """Takes what it holds for out of the values."""
    return quotas.Scope(
        team_id=values.pop("team_id", None),
        key_id=values.pop("key_id", None),
        route_id=values.pop("route_id", None),
    )
