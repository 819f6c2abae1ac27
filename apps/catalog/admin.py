"""Admin pages of models and versions, to look at; they are changed in the console."""

from django.contrib import admin

from apps.catalog.models import ModelVersion, ServedModel
from apps.core.admin_pages import ReadOnlyAdmin


@admin.register(ServedModel)
class ServedModelAdmin(ReadOnlyAdmin[ServedModel]):
    """Models."""

    list_display = ["name", "kind", "description", "load_deadline_seconds"]
    list_filter = ["kind"]
    search_fields = ["name", "description"]


@admin.register(ModelVersion)
class ModelVersionAdmin(ReadOnlyAdmin[ModelVersion]):
    """Versions of models."""

    list_display = ["model", "number", "note", "created_at"]
    list_select_related = ["model"]
    search_fields = ["model__name", "note"]
