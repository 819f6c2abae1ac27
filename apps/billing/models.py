"""What requests cost."""

from decimal import Decimal

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.core.money import CURRENCY_PATTERN, currency_validator, from_picos
from apps.fleet.models import Server
from apps.keys.models import ApiKey, Team
from apps.routes.models import Route

# More than this is a slip of units: one unit of the currency for every single token.
MAX_PRICE = 1_000_000
_PRICE_BOUNDS = [MinValueValidator(0), MaxValueValidator(MAX_PRICE)]
# All that a price consists of.
RATES = (
    "input_per_million", "output_per_million", "cached_input_per_million",
    "cache_write_per_million", "reasoning_per_million", "per_request", "per_image",
    "per_compute_second",
)  # fmt: skip


class Price(models.Model):
    """What a model of a server costs from a day on. Prices are per million tokens."""

    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="+")
    upstream_model = models.CharField(_("upstream model"), max_length=200)
    currency = models.CharField(
        _("currency"), max_length=3, default="USD", validators=[currency_validator]
    )
    input_per_million = models.DecimalField(
        _("input, per million tokens"),
        max_digits=14,
        decimal_places=6,
        validators=_PRICE_BOUNDS,
    )
    output_per_million = models.DecimalField(
        _("output, per million tokens"),
        max_digits=14,
        decimal_places=6,
        validators=_PRICE_BOUNDS,
    )
    # None: cached input costs what other input costs.
    cached_input_per_million = models.DecimalField(
        _("cached input, per million tokens"),
        max_digits=14,
        decimal_places=6,
        null=True,
        blank=True,
        validators=_PRICE_BOUNDS,
    )
    # None: input that is written to a cache costs what other input costs.
    cache_write_per_million = models.DecimalField(
        _("cache write, per million tokens"),
        max_digits=14,
        decimal_places=6,
        null=True,
        blank=True,
        validators=_PRICE_BOUNDS,
    )
    # None: reasoning costs what other output costs.
    reasoning_per_million = models.DecimalField(
        _("reasoning, per million tokens"),
        max_digits=14,
        decimal_places=6,
        null=True,
        blank=True,
        validators=_PRICE_BOUNDS,
    )
    per_request = models.DecimalField(
        _("per request"),
        max_digits=14,
        decimal_places=6,
        default=0,
        validators=_PRICE_BOUNDS,
    )
    # An image in the prompt, beside the tokens that it takes.
    per_image = models.DecimalField(
        _("per image"),
        max_digits=14,
        decimal_places=6,
        default=0,
        validators=_PRICE_BOUNDS,
    )
    # A second that the target is busy with a request, as the gateway measures it.
    per_compute_second = models.DecimalField(
        _("per second of compute"),
        max_digits=14,
        decimal_places=6,
        default=0,
        validators=_PRICE_BOUNDS,
    )
    effective_from = models.DateTimeField(_("effective from"), default=timezone.now)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["server", "upstream_model", "-effective_from"]
        verbose_name = _("price")
        verbose_name_plural = _("prices")
        constraints = [
            models.UniqueConstraint(
                fields=["server", "upstream_model", "effective_from"],
                name="price_once_a_moment",
                violation_error_message=_("There is a price from this moment already."),
            ),
            *(
                models.CheckConstraint(
                    condition=Q(**{f"{rate}__isnull": True})
                    | Q(**{f"{rate}__gte": 0, f"{rate}__lte": MAX_PRICE}),
                    name=f"price_{rate}_is_bounded",
                )
                for rate in RATES
            ),
            models.CheckConstraint(
                condition=Q(currency__regex=CURRENCY_PATTERN), name="price_currency_is_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.upstream_model} on {self.server} from {self.effective_from:%Y-%m-%d}"


class UsageRecord(models.Model):
    """One client request, whatever became of it. Written once, never changed."""

    class Status(models.TextChoices):
        """How it ended."""

        OK = "ok", _("OK")
        ERROR = "error", _("Error")
        CANCELLED = "cancelled", _("Cancelled")
        PARTIAL = "partial", _("Cut off")
        LOST = "lost", _("Lost")  # the worker died; tokens and cost are estimates

    # The gateway's request id: a second delivery of the same event meets it and is dropped.
    id = models.UUIDField(primary_key=True)
    at = models.DateTimeField()
    endpoint = models.CharField(max_length=40)
    status = models.CharField(max_length=20, choices=Status)
    http_status = models.PositiveSmallIntegerField()
    error_code = models.CharField(max_length=60, blank=True)
    is_stream = models.BooleanField(default=False)
    request_id = models.CharField(max_length=64, blank=True)

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="+")
    key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+")
    route = models.ForeignKey(Route, null=True, on_delete=models.SET_NULL, related_name="+")
    route_name = models.CharField(max_length=128)
    server = models.ForeignKey(Server, null=True, on_delete=models.SET_NULL, related_name="+")
    server_name = models.CharField(max_length=128, blank=True)
    upstream_model = models.CharField(max_length=200, blank=True)
    version = models.PositiveIntegerField(null=True)

    input_tokens = models.PositiveBigIntegerField(default=0)
    cached_input_tokens = models.PositiveBigIntegerField(default=0)
    cache_write_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    reasoning_tokens = models.PositiveBigIntegerField(default=0)
    images = models.PositiveIntegerField(default=0)
    # Only where the price counts it.
    compute_microseconds = models.PositiveBigIntegerField(default=0)
    # True where the server told no usage and the counts are our estimate.
    is_estimated = models.BooleanField(default=False)

    price = models.ForeignKey(Price, null=True, on_delete=models.SET_NULL, related_name="+")
    # None: no price was known. Integer pico-units (10⁻¹²) of `currency`.
    cost_picos = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, blank=True)

    duration_seconds = models.FloatField()
    first_token_seconds = models.FloatField(null=True)
    # One item a try: {"server", "model", "status", "error", "seconds"}.
    attempts = models.JSONField(default=list)
    # Why it went where it went: {"limits": […], "targets": […], "chosen": …}.
    decision = models.JSONField(default=dict)

    class Meta:
        ordering = ["-at", "-id"]
        verbose_name = _("request")
        verbose_name_plural = _("requests")
        indexes = [
            models.Index(fields=["-at", "-id"]),
            models.Index(fields=["request_id"]),
            models.Index(fields=["key", "-at"]),
            models.Index(fields=["team", "-at"]),
            models.Index(fields=["route", "-at"]),
            models.Index(fields=["server", "-at"]),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(cost_picos__isnull=True) | Q(cost_picos__gte=0),
                name="cost_is_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(status__in=("ok", "error", "cancelled", "partial", "lost")),
                name="usage_status_is_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.status}"

    @property
    def cost(self) -> Decimal | None:
        """Exact amount of `currency`; `None` when no price was known."""
        return None if self.cost_picos is None else from_picos(self.cost_picos)


class DailyUsage(models.Model):
    """Sums of a UTC day, kept up with each batch of the ledger."""

    day = models.DateField()
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="+")
    key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+")
    route_name = models.CharField(max_length=128)
    server_name = models.CharField(max_length=128, blank=True)
    upstream_model = models.CharField(max_length=200, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    requests = models.PositiveBigIntegerField(default=0)
    errors = models.PositiveBigIntegerField(default=0)
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    # Sum of pico-units; beyond 64 bits for a large company, so a decimal of scale 0.
    cost_picos = models.DecimalField(max_digits=38, decimal_places=0, default=0)

    class Meta:
        ordering = ["-day"]
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "day",
                    "key",
                    "route_name",
                    "server_name",
                    "upstream_model",
                    "currency",
                ],
                name="daily_usage_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.key_id} {self.route_name}"
