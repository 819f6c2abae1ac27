"""Admin pages of servers and what is loaded, to look at; they are changed in the console."""

from django.contrib import admin

from apps.core.admin_pages import ReadOnlyAdmin
from apps.fleet.models import Gpu, Operation, Placement, Server


@admin.register(Server)
class ServerAdmin(ReadOnlyAdmin[Server]):
    """Servers; the API keys that we send them are not among the fields."""

    list_display = ["name", "kind", "url", "is_external", "is_enabled", "state", "last_seen_at"]
    list_filter = ["kind", "state", "is_external", "is_enabled"]
    search_fields = ["name", "url"]
    exclude = ["api_key_encrypted"]


@admin.register(Gpu)
class GpuAdmin(ReadOnlyAdmin[Gpu]):
    """GPUs that servers have reported."""

    list_display = ["uuid", "server", "memory_total_bytes", "last_seen_at"]
    list_select_related = ["server"]
    search_fields = ["uuid", "server__name"]


@admin.register(Placement)
class PlacementAdmin(ReadOnlyAdmin[Placement]):
    """Models on servers."""

    list_display = ["model", "server", "desired", "observed", "since"]
    list_select_related = ["model", "server"]
    list_filter = ["desired", "observed"]
    search_fields = ["model__name", "server__name"]


@admin.register(Operation)
class OperationAdmin(ReadOnlyAdmin[Operation]):
    """Loads and unloads, asked for and ended."""

    list_display = ["created_at", "kind", "placement", "state", "requested_by_label"]
    list_select_related = ["placement__model", "placement__server"]
    list_filter = ["kind", "state"]
    search_fields = ["placement__model__name", "placement__server__name", "requested_by_label"]
