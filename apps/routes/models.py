"""Public model names and where their requests go."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.core.names import ROUTE_NAME_PATTERN, route_name_validator
from apps.fleet.models import Server


class Route(models.Model):
    """A public model name: what clients write into `model`."""

    class DataClass(models.TextChoices):
        """Where its requests may go."""

        ANY = "any", _("Anywhere")
        ON_PREM = "on_prem", _("On-prem only")

    name = models.CharField(
        _("name"),
        max_length=128,
        unique=True,
        validators=[route_name_validator],
        error_messages={"unique": _("There is a route of this name already.")},
    )
    description = models.TextField(_("description"), blank=True)
    is_enabled = models.BooleanField(_("enabled"), default=True)
    data_class = models.CharField(
        _("data class"), max_length=20, choices=DataClass, default=DataClass.ANY
    )
    # None: the installation's default (settings GATEWAY_…_TIMEOUT_SECONDS).
    connect_timeout_seconds = models.PositiveIntegerField(null=True, blank=True)
    first_byte_timeout_seconds = models.PositiveIntegerField(null=True, blank=True)
    idle_timeout_seconds = models.PositiveIntegerField(null=True, blank=True)
    total_timeout_seconds = models.PositiveIntegerField(null=True, blank=True)
    # Completion tokens held on budgets and TPM when a request names no maximum.
    default_max_tokens = models.PositiveIntegerField(
        _("default max tokens"), default=1024, validators=[MinValueValidator(1)]
    )
    # Tries of one request, the first included.
    max_attempts = models.PositiveSmallIntegerField(
        _("tries"), default=3, validators=[MinValueValidator(1), MaxValueValidator(10)]
    )
    # How long a request waits while every target is full or cools down, and how many may.
    wait_seconds = models.PositiveSmallIntegerField(
        _("wait, seconds"), default=5, validators=[MaxValueValidator(300)]
    )
    max_waiting = models.PositiveIntegerField(
        _("requests that wait"), default=100, validators=[MaxValueValidator(10_000)]
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]
        verbose_name = _("route")
        verbose_name_plural = _("routes")
        constraints = [
            models.CheckConstraint(
                condition=Q(name__regex=ROUTE_NAME_PATTERN), name="route_name_is_safe"
            ),
            models.CheckConstraint(
                condition=Q(default_max_tokens__gte=1), name="default_max_tokens_is_positive"
            ),
            models.CheckConstraint(
                condition=Q(max_attempts__gte=1, max_attempts__lte=10),
                name="max_attempts_is_bounded",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Target(models.Model):
    """One place that a route's requests may go to."""

    class Protocol(models.TextChoices):
        """How a request is put to the server."""

        OPENAI = "openai", _("OpenAI-compatible")
        ANTHROPIC = "anthropic", _("Anthropic Messages")
        GEMINI = "gemini", _("Gemini")
        TRITON_GENERATE = "triton_generate", _("Triton generate")
        TRITON_INFER = "triton_infer", _("Triton infer")

    route = models.ForeignKey(Route, on_delete=models.CASCADE, related_name="targets")
    server = models.ForeignKey(Server, on_delete=models.PROTECT, related_name="targets")
    # Name under which the server knows the model.
    upstream_model = models.CharField(_("upstream model"), max_length=200)
    # Pinned version; None lets the server choose (Triton: the highest ready one).
    version = models.PositiveIntegerField(_("version"), null=True, blank=True)
    protocol = models.CharField(_("protocol"), max_length=20, choices=Protocol)
    # Lower tiers are tried first; a higher one only when no lower can answer.
    tier = models.PositiveSmallIntegerField(_("tier"), default=0, validators=[MaxValueValidator(9)])
    # Share of the tier's traffic; 0 takes the target out.
    weight = models.PositiveIntegerField(
        _("weight"), default=100, validators=[MaxValueValidator(10_000)]
    )
    is_enabled = models.BooleanField(_("enabled"), default=True)
    # Requests of all workers that it may serve at once; None: as many as come.
    max_in_flight = models.PositiveIntegerField(
        _("requests at once"), null=True, blank=True, validators=[MinValueValidator(1)]
    )

    class Meta:
        ordering = ["route", "tier", "-weight", "id"]
        verbose_name = _("target")
        verbose_name_plural = _("targets")
        constraints = [
            models.UniqueConstraint(
                fields=["route", "server", "upstream_model", "version"],
                nulls_distinct=False,
                name="target_once_a_route",
            ),
            models.CheckConstraint(condition=Q(weight__lte=10_000), name="weight_is_bounded"),
            models.CheckConstraint(condition=Q(tier__lte=9), name="tier_is_bounded"),
        ]

    def __str__(self) -> str:
        version = f" v{self.version}" if self.version else ""
        return f"{self.upstream_model}{version} on {self.server}"
