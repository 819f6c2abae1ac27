"""Admin pages of routes and targets, to look at; they are changed in the console."""

from django.contrib import admin

from apps.core.admin_pages import ReadOnlyAdmin
from apps.routes.models import Route, Target


@admin.register(Route)
class RouteAdmin(ReadOnlyAdmin[Route]):
    """Public model names."""

    list_display = ["name", "description", "data_class", "is_enabled", "updated_at"]
    list_filter = ["is_enabled", "data_class"]
    search_fields = ["name", "description"]


@admin.register(Target)
class TargetAdmin(ReadOnlyAdmin[Target]):
    """Where requests of a route may go."""

    list_display = ["route", "server", "upstream_model", "version", "protocol", "tier", "weight"]
    list_select_related = ["route", "server"]
    list_filter = ["protocol", "is_enabled"]
    search_fields = ["route__name", "server__name", "upstream_model"]
