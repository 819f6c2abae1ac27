"""Questions about models and their versions."""

from django.db.models import QuerySet

from apps.catalog.models import ServedModel
from apps.core.errors import NotFoundError


def models_with_versions() -> QuerySet[ServedModel]:
    """All models by name with their versions, highest first: two queries."""
    return ServedModel.objects.prefetch_related("versions").order_by("name")


def model_get(pk: int) -> ServedModel:
    """The model with its versions; raises NotFoundError."""
    model = models_with_versions().filter(pk=pk).first()
    if model is None:
        raise NotFoundError(f"there is no model {pk}")
    return model
