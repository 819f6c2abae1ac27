"""Which models and versions exist."""

from django.core.validators import MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.core.names import MODEL_NAME_PATTERN, model_name_validator


class ServedModel(models.Model):
    """A model by the name that its server knows it under (Triton: the folder's name)."""

    class Kind(models.TextChoices):
        """What goes in and comes out."""

        LLM = "llm", _("Language model")
        EMBEDDING = "embedding", _("Embedding")
        CLASSIFIER = "classifier", _("Classifier")
        VISION = "vision", _("Vision")
        SPEECH = "speech", _("Speech")
        OTHER = "other", _("Other")

    name = models.CharField(
        _("name"),
        max_length=128,
        unique=True,
        validators=[model_name_validator],
        error_messages={"unique": _("There is a model of this name already.")},
    )
    kind = models.CharField(_("kind"), max_length=20, choices=Kind, default=Kind.OTHER)
    description = models.TextField(_("description"), blank=True)
    # How long one load may take before it counts as stalled.
    load_deadline_seconds = models.PositiveIntegerField(
        _("load deadline (seconds)"), default=300, validators=[MinValueValidator(1)]
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]
        verbose_name = _("model")
        verbose_name_plural = _("models")
        constraints = [
            models.CheckConstraint(
                condition=models.Q(name__regex=MODEL_NAME_PATTERN), name="model_name_is_safe"
            ),
            models.CheckConstraint(
                condition=models.Q(load_deadline_seconds__gte=1), name="load_deadline_is_positive"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ModelVersion(models.Model):
    """One numbered version of a model."""

    model = models.ForeignKey(ServedModel, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(_("number"))
    note = models.TextField(_("note"), blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["model", "-number"]
        verbose_name = _("model version")
        verbose_name_plural = _("model versions")
        constraints = [
            models.UniqueConstraint(fields=["model", "number"], name="version_once_a_model"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="version_from_one"),
        ]

    def __str__(self) -> str:
        return f"{self.model} v{self.number}"
