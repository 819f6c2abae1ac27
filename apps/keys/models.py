"""Who calls the gateway, and how much they may."""

from datetime import datetime

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.core.money import CURRENCY_PATTERN, currency_validator
from apps.core.names import MODEL_NAME_PATTERN, model_name_validator
from apps.routes.models import Route


class Team(models.Model):
    """People who share keys, limits and a bill."""

    name = models.CharField(
        _("name"),
        max_length=128,
        unique=True,
        validators=[model_name_validator],
        error_messages={"unique": _("There is a team of this name already.")},
    )
    is_active = models.BooleanField(_("active"), default=True)
    note = models.TextField(_("note"), blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]
        verbose_name = _("team")
        verbose_name_plural = _("teams")
        constraints = [
            models.CheckConstraint(
                condition=Q(name__regex=MODEL_NAME_PATTERN), name="team_name_is_safe"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ApiKey(models.Model):
    """A key of the gateway. The secret is shown once; only its digest is kept."""

    class State(models.TextChoices):
        """What the key is good for now."""

        ACTIVE = "active", _("Active")
        EXPIRED = "expired", _("Expired")
        REVOKED = "revoked", _("Revoked")
        SUSPENDED = "suspended", _("Team suspended")

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="keys")
    name = models.CharField(_("name"), max_length=128, validators=[model_name_validator])
    prefix = models.CharField(_("prefix"), max_length=16, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    allows_all_routes = models.BooleanField(_("all routes"), default=True)
    routes = models.ManyToManyField(
        Route, blank=True, related_name="+", verbose_name=_("allowed routes")
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True, editable=False)
    # The key that this one replaced; both work until the old one's `expires_at`.
    rotated_from = models.OneToOneField(
        "self",
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="rotated_to",
    )

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        constraints = [
            models.UniqueConstraint(
                fields=["team", "name"],
                condition=Q(revoked_at__isnull=True, rotated_from__isnull=True),
                name="key_name_once_a_team",
                violation_error_message=_("The team has a key of this name already."),
            ),
            models.CheckConstraint(
                condition=Q(name__regex=MODEL_NAME_PATTERN), name="key_name_is_safe"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def state_at(self, moment: datetime) -> str:
        """`ApiKey.State` at a moment; the team must be loaded."""
        if self.revoked_at is not None and self.revoked_at <= moment:
            return ApiKey.State.REVOKED
        if self.expires_at is not None and self.expires_at <= moment:
            return ApiKey.State.EXPIRED
        return ApiKey.State.ACTIVE if self.team.is_active else ApiKey.State.SUSPENDED


_ONE_SCOPE = (
    Q(team__isnull=False, key__isnull=True, route__isnull=True)
    | Q(team__isnull=True, key__isnull=False, route__isnull=True)
    | Q(team__isnull=True, key__isnull=True, route__isnull=False)
)


class Scoped(models.Model):
    """Holds for a team, a key or a route: exactly one of them."""

    team = models.ForeignKey(Team, null=True, blank=True, on_delete=models.CASCADE)
    key = models.ForeignKey(ApiKey, null=True, blank=True, on_delete=models.CASCADE)
    route = models.ForeignKey(Route, null=True, blank=True, on_delete=models.CASCADE)

    class Meta:
        abstract = True

    @property
    def scope(self) -> Team | ApiKey | Route:
        """What it holds for."""
        found = self.team or self.key or self.route
        if found is None:
            raise ValueError("a limit without a scope")
        return found


class Limit(Scoped):
    """A cap on a rate or on requests at once."""

    class Kind(models.TextChoices):
        """What is counted."""

        RPM = "rpm", _("Requests per minute")
        TPM = "tpm", _("Tokens per minute")
        CONCURRENCY = "concurrency", _("Requests at once")

    # A script in Redis counts with doubles, which are exact far beyond this.
    MAX_VALUE = 10**12

    kind = models.CharField(_("kind"), max_length=20, choices=Kind)
    value = models.PositiveBigIntegerField(
        _("value"), validators=[MinValueValidator(1), MaxValueValidator(MAX_VALUE)]
    )

    class Meta:
        ordering = ["kind", "id"]
        verbose_name = _("limit")
        verbose_name_plural = _("limits")
        constraints = [
            models.CheckConstraint(condition=_ONE_SCOPE, name="limit_has_one_scope"),
            models.UniqueConstraint(
                fields=["team", "key", "route", "kind"],
                nulls_distinct=False,
                name="limit_once_a_scope_and_kind",
                violation_error_message=_("There is a limit of this kind already."),
            ),
            models.CheckConstraint(
                condition=Q(value__gte=1, value__lte=10**12), name="limit_is_bounded"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.value} for {self.scope}"


class Budget(Scoped):
    """Money that may be spent in a period."""

    class Period(models.TextChoices):
        """When spending starts again from zero."""

        HOUR = "hour", _("Hour")
        DAY = "day", _("Day")
        WEEK = "week", _("Week")
        MONTH = "month", _("Month")
        NEVER = "never", _("Never")

    # Up to nine million, so that pico-units fit 64 bits.
    amount = models.DecimalField(
        _("amount"),
        max_digits=15,
        decimal_places=6,
        validators=[MinValueValidator(0), MaxValueValidator(9_000_000)],
    )
    currency = models.CharField(
        _("currency"), max_length=3, default="USD", validators=[currency_validator]
    )
    period = models.CharField(_("period"), max_length=10, choices=Period, default=Period.MONTH)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["period", "id"]
        verbose_name = _("budget")
        verbose_name_plural = _("budgets")
        constraints = [
            models.CheckConstraint(condition=_ONE_SCOPE, name="budget_has_one_scope"),
            models.UniqueConstraint(
                fields=["team", "key", "route", "period"],
                nulls_distinct=False,
                name="budget_once_a_scope_and_period",
                violation_error_message=_("There is a budget for this period already."),
            ),
            models.CheckConstraint(
                condition=Q(amount__gte=0, amount__lte=9_000_000), name="budget_is_bounded"
            ),
            models.CheckConstraint(
                condition=Q(currency__regex=CURRENCY_PATTERN), name="budget_currency_is_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency} a {self.period} for {self.scope}"
