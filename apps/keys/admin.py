"""Admin pages of teams and keys, with their limits and budgets."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.forms.formsets import BaseFormSet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.core.actors import Actor
from apps.core.admin_pages import (
    ServiceAdmin,
    TabularInline,
    badge,
    each_row,
    may,
    page_action,
    short_time,
)
from apps.core.edges import actor_of
from apps.core.errors import InferAdminError
from apps.core.roles import Permission
from apps.keys import quotas, services
from apps.keys.admin_forms import BudgetFormSet, GraceForm, KeyForm, LimitFormSet, OnePerName
from apps.keys.models import ApiKey, Budget, Limit, Team
from apps.keys.selectors import keys_for_display, keys_in_state, teams_with_key_counts


class _QuotaInline(TabularInline[Any, Any]):
    extra = 0

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        del obj
        return may(request, Permission.MANAGE_KEYS)

    has_change_permission = has_view_permission
    has_delete_permission = has_view_permission

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        del obj
        return may(request, Permission.MANAGE_KEYS)


class LimitInline(_QuotaInline):
    """Limits of the page's team or key."""

    model = Limit
    formset = LimitFormSet
    fields = ["kind", "value"]


class BudgetInline(_QuotaInline):
    """Budgets of the page's team or key."""

    model = Budget
    formset = BudgetFormSet
    fields = ["period", "amount", "currency", "is_hard", "time_zone", "week_start"]


class _QuotaHolderAdmin(ServiceAdmin[Any]):
    """A page with limits and budgets; a new holder is saved before it gets any."""

    scope_field: ClassVar[str]

    def get_inlines(self, request: HttpRequest, obj: Model | None) -> list[Any]:
        del request
        return [LimitInline, BudgetInline] if obj else []

    def save_related(
        self,
        request: HttpRequest,
        form: "forms.ModelForm[Any]",
        formsets: "Sequence[BaseFormSet[Any]]",
        change: bool,
    ) -> None:
        scope: Any = {self.scope_field: form.instance.pk}
        for formset in formsets:
            if isinstance(formset, OnePerName):
                _quotas_save(actor_of(request), scope, formset)


def _quotas_save(actor: Actor, scope: quotas.Scope, formset: OnePerName) -> None:
    """Lift what is gone or has another kind now; set what is new or changed."""
    deleted = formset.deleted_forms
    changed = [form for form in formset.forms if form.has_changed() and form not in deleted]
    moved = [form for form in changed if formset.name_field in form.changed_data]
    for form in [*deleted, *moved]:
        if form.instance.pk:
            _quota_clear(actor, form.instance)
    for form in changed:
        fields = {name: form.cleaned_data[name] for name in form.base_fields if name != "id"}
        values = {name: value for name, value in fields.items() if name in _QUOTA_FIELDS}
        set_quota: Any = quotas.limit_set if formset.model is Limit else quotas.budget_set
        set_quota(actor=actor, scope=scope, **values)


_QUOTA_FIELDS = {"kind", "value", *BudgetInline.fields}


def _quota_clear(actor: Actor, quota: Limit | Budget) -> None:
    if isinstance(quota, Limit):
        quotas.limit_clear(actor=actor, limit_id=quota.pk)
    else:
        quotas.budget_clear(actor=actor, budget_id=quota.pk)


@admin.register(Team)
class TeamAdmin(_QuotaHolderAdmin):
    """Teams; they are switched off, never deleted."""

    scope_field = "team_id"
    list_display = ["name", "is_active", "active_keys", "note", "created"]
    list_filter = ["is_active"]
    search_fields = ["name", "note"]

    def get_fields(self, request: HttpRequest, obj: Team | None = None) -> list[Any]:
        first = ["name", "is_active"] if obj else ["name"]
        return [*first, "note", "data_class", "priority"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Team]:
        return teams_with_key_counts()

    @admin.display(description=gettext_lazy("keys in use"), ordering="active_keys")
    def active_keys(self, team: Any) -> int:
        return int(team.active_keys)

    @admin.display(description=gettext_lazy("created"), ordering="created_at")
    def created(self, team: Team) -> str:
        return short_time(team.created_at)

    def create(self, request: HttpRequest, values: dict[str, Any]) -> Team:
        return services.team_create(actor=actor_of(request), **values)

    def update(self, request: HttpRequest, row: Team, values: dict[str, Any]) -> None:
        changes: Any = values
        services.team_update(actor=actor_of(request), team_id=row.pk, changes=changes)


class StateFilter(admin.SimpleListFilter):
    """Keys by what they are good for now."""

    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, Any]]:
        del request, model_admin
        return list(ApiKey.State.choices)

    def queryset(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
        del request
        state = self.value()
        if state not in ApiKey.State.values:
            return queryset
        return keys_in_state(queryset, state, timezone.now())


_KEY_FIELDS = [
    "name", "expires_at", "allows_all_routes", "routes", "allowed_networks", "data_class",
    "priority",
]  # fmt: skip


@admin.register(ApiKey)
class ApiKeyAdmin(_QuotaHolderAdmin):
    """Keys: made, limited, rotated, ended. Never deleted, since the ledger refers to them."""

    scope_field = "key_id"
    form = KeyForm
    list_display = ["name", "team", "prefix_text", "state", "routes_text", "created", "expires"]
    list_filter = [StateFilter, ("team", admin.RelatedOnlyFieldListFilter)]
    search_fields = ["name", "prefix", "team__name"]
    actions = ["revoke_chosen", "expire_chosen"]
    actions_detail = ["rotate", "revoke"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        return keys_for_display()

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> list[str]:
        return ["team", "prefix_text", "state_text", "created_by", "created_at"] if obj else []

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> list[Any]:
        fields = ["team", *_KEY_FIELDS]
        return [*fields, *self.get_readonly_fields(request, obj)[1:]] if obj else fields

    def has_change_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        is_over = obj is not None and obj.revoked_at is not None
        return not is_over and super().has_change_permission(request, obj)

    @badge(
        gettext_lazy("state"),
        {"active": "success", "expired": "warning", "revoked": "danger", "suspended": "info"},
    )
    def state(self, key: ApiKey) -> tuple[str, str]:
        state = ApiKey.State(key.state_at(timezone.now()))
        return state.value, str(state.label)

    @admin.display(description=gettext_lazy("state"))
    def state_text(self, key: ApiKey) -> str:
        return self.state(key)[1]

    @admin.display(description=gettext_lazy("prefix"), ordering="prefix")
    def prefix_text(self, key: ApiKey) -> str:
        return format_html('<span class="font-mono whitespace-nowrap">{}…</span>', key.prefix)

    @admin.display(description=gettext_lazy("created"), ordering="created_at")
    def created(self, key: ApiKey) -> str:
        return short_time(key.created_at)

    @admin.display(description=gettext_lazy("expires"), ordering="expires_at")
    def expires(self, key: ApiKey) -> str:
        return short_time(key.expires_at)

    @admin.display(description=gettext_lazy("routes"))
    def routes_text(self, key: ApiKey) -> str:
        if key.allows_all_routes:
            return _("all")
        return ", ".join(route.name for route in key.routes.all())

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if "routes" in form.cleaned_data:
            form.cleaned_data["route_ids"] = [route.pk for route in form.cleaned_data["routes"]]
        super().save_model(request, obj, form, change)

    def create(self, request: HttpRequest, values: dict[str, Any]) -> ApiKey:
        key, secret = services.key_issue(
            actor=actor_of(request),
            team_id=values["team"].pk,
            name=values["name"],
            expires_at=values["expires_at"],
            allows_all_routes=values["allows_all_routes"],
            route_ids=values["route_ids"],
            allowed_networks=values["allowed_networks"],
            data_class=values["data_class"],
            priority=values["priority"],
        )
        request.META["inferadmin.secret"] = secret
        return key

    def update(self, request: HttpRequest, row: ApiKey, values: dict[str, Any]) -> None:
        changes: Any = {name: value for name, value in values.items() if name != "routes"}
        if "routes" in values or "allows_all_routes" in values:
            changes["route_ids"] = [route.pk for route in values.get("routes", row.routes.all())]
            if values.get("allows_all_routes", row.allows_all_routes):
                changes["route_ids"] = []
        services.key_update(actor=actor_of(request), key_id=row.pk, changes=changes)

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        """The secret, instead of the list."""
        return self._secret_page(request, obj, request.META.pop("inferadmin.secret"))

    def _secret_page(self, request: HttpRequest, key: ApiKey, secret: str) -> HttpResponse:
        base_url = request.build_absolute_uri("/v1")
        return self.show_secret(
            request,
            key,
            secret,
            title=_("Your new key"),
            usage=_("OpenAI clients take it as their API key, with the base URL %(url)s.")
            % {"url": base_url},
        )

    @page_action(gettext_lazy("Rotate"), "autorenew")
    def rotate(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Ask for the grace, then show the new key's secret."""
        key = keys_for_display().get(pk=object_id)
        form = GraceForm(request.POST or None)
        if not form.is_valid():
            return self.ask(
                request,
                key,
                form=form,
                title=_("Rotate the key %(name)s") % {"name": key.name},
                text=_("A new key with the same routes, limits and budgets takes its place."),
                label=_("Rotate"),
            )
        try:
            new, secret = services.key_rotate(
                actor=actor_of(request), key_id=key.pk, **form.cleaned_data
            )
        except InferAdminError as exc:
            return self._refused(request, key, exc)
        return self._secret_page(request, new, secret)

    @page_action(gettext_lazy("Revoke"), "block", variant="danger")
    def revoke(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Ask, naming what stops; then end the key."""
        key = keys_for_display().get(pk=object_id)
        if request.method != "POST":
            return self.ask(
                request,
                key,
                form=forms.Form(),
                title=_("Revoke the key %(name)s") % {"name": key.name},
                text=_("All requests with %(prefix)s… are refused within two seconds, for good.")
                % {"prefix": key.prefix},
                label=_("Revoke"),
            )
        services.key_revoke(actor=actor_of(request), key_id=key.pk)
        messages.success(request, _("The key %(name)s is revoked.") % {"name": key.name})
        return redirect("admin:keys_apikey_changelist")

    def _refused(self, request: HttpRequest, key: ApiKey, exc: InferAdminError) -> HttpResponse:
        messages.error(request, exc.message)
        return redirect("admin:keys_apikey_change", key.pk)

    @admin.action(
        description=gettext_lazy("Revoke the chosen keys for good"), permissions=["change"]
    )
    def revoke_chosen(self, request: HttpRequest, chosen: QuerySet[ApiKey]) -> None:
        self._each(request, chosen, services.key_revoke, gettext_lazy("Revoked"))

    @admin.action(
        description=gettext_lazy("Let the chosen keys expire now"), permissions=["change"]
    )
    def expire_chosen(self, request: HttpRequest, chosen: QuerySet[ApiKey]) -> None:
        self._each(request, chosen, services.key_expire, gettext_lazy("Expired"))

    def _each(
        self, request: HttpRequest, chosen: QuerySet[ApiKey], service: Any, done: Promise
    ) -> None:
        actor = actor_of(request)
        each_row(request, list(chosen), lambda key: service(actor=actor, key_id=key.pk), done)
