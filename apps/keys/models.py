"""Who calls the gateway, and how much they may."""

from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.core.money import CURRENCY_PATTERN, currency_validator
from apps.core.names import MODEL_NAME_PATTERN, model_name_validator
from apps.keys.rules import (
    default_warn_percents,
    networks_validator,
    time_zone_validator,
    warn_percents_validator,
)
from apps.routes.models import Route


class Priority(models.IntegerChoices):
    """Names for some of the priorities 0 to 9; whoever has more is served first when it is full."""

    LOW = 2, _("Low")
    NORMAL = 5, _("Normal")
    HIGH = 8, _("High")


MAX_PRIORITY = 9


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
    data_class = models.CharField(
        _("data class"),
        max_length=20,
        choices=Route.DataClass,
        default=Route.DataClass.ANY,
        help_text=_("On-prem only: none of its requests ever leaves the house."),
    )
    priority = models.PositiveSmallIntegerField(
        _("priority"), default=Priority.NORMAL, validators=[MaxValueValidator(MAX_PRIORITY)]
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]
        verbose_name = _("team")
        verbose_name_plural = _("teams")
        constraints = [
            models.CheckConstraint(
                condition=Q(name__regex=MODEL_NAME_PATTERN), name="team_name_is_safe"
            ),
            models.CheckConstraint(
                condition=Q(priority__lte=MAX_PRIORITY), name="team_priority_is_bounded"
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
    # Only from these; empty: from anywhere.
    allowed_networks = models.JSONField(
        _("allowed networks"), default=list, blank=True, validators=[networks_validator]
    )
    data_class = models.CharField(
        _("data class"),
        max_length=20,
        choices=Route.DataClass,
        default=Route.DataClass.ANY,
        help_text=_("On-prem only: none of its requests ever leaves the house."),
    )
    # None: its team's.
    priority = models.PositiveSmallIntegerField(
        _("priority"), null=True, blank=True, validators=[MaxValueValidator(MAX_PRIORITY)]
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
            models.CheckConstraint(
                condition=Q(priority__isnull=True) | Q(priority__lte=MAX_PRIORITY),
                name="key_priority_is_bounded",
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

    class Weekday(models.IntegerChoices):
        """The day on which a week begins, as `date.weekday` counts."""

        MONDAY = 0, _("Monday")
        TUESDAY = 1, _("Tuesday")
        WEDNESDAY = 2, _("Wednesday")
        THURSDAY = 3, _("Thursday")
        FRIDAY = 4, _("Friday")
        SATURDAY = 5, _("Saturday")
        SUNDAY = 6, _("Sunday")

    # Up to nine million, so that pico-units fit 64 bits.
    MAX_AMOUNT = 9_000_000

    amount = models.DecimalField(
        _("amount"),
        max_digits=15,
        decimal_places=6,
        validators=[MinValueValidator(0), MaxValueValidator(MAX_AMOUNT)],
    )
    currency = models.CharField(
        _("currency"), max_length=3, default="USD", validators=[currency_validator]
    )
    period = models.CharField(_("period"), max_length=10, choices=Period, default=Period.MONTH)
    # "": the installation's.
    time_zone = models.CharField(
        _("time zone"), max_length=64, blank=True, validators=[time_zone_validator]
    )
    week_start = models.PositiveSmallIntegerField(
        _("week begins on"), choices=Weekday, default=Weekday.MONDAY
    )
    is_hard = models.BooleanField(
        _("refuses"), default=True, help_text=_("Off: it only warns, and nothing is refused.")
    )
    warn_percents = models.JSONField(
        _("warn at percent"),
        default=default_warn_percents,
        blank=True,
        validators=[warn_percents_validator],
    )
    # Holds in place of `amount` until the moment has come.
    raised_amount = models.DecimalField(
        _("raised to"),
        max_digits=15,
        decimal_places=6,
        null=True,
        editable=False,
        validators=[MinValueValidator(0), MaxValueValidator(MAX_AMOUNT)],
    )
    raised_until = models.DateTimeField(_("raised until"), null=True, editable=False)
    # What was spent before counts no more in the running period.
    reset_at = models.DateTimeField(_("reset"), null=True, editable=False)
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
            models.CheckConstraint(condition=Q(week_start__lte=6), name="budget_week_has_a_day"),
            models.CheckConstraint(
                condition=Q(raised_amount__isnull=True, raised_until__isnull=True)
                | Q(raised_amount__gte=0, raised_amount__lte=9_000_000, raised_until__isnull=False),
                name="budget_raise_has_an_end",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency} a {self.period} for {self.scope}"

    def amount_at(self, moment: datetime) -> Decimal:
        """What may be spent: more while it is raised."""
        is_raised = self.raised_until is not None and moment < self.raised_until
        return self.raised_amount if is_raised and self.raised_amount is not None else self.amount


class BudgetWarning(models.Model):
    """A budget's spending passed one of its percentages; at most once a period."""

    budget = models.ForeignKey(Budget, on_delete=models.CASCADE, related_name="warnings")
    # When the period began, or was reset.
    since = models.DateTimeField()
    percent = models.PositiveSmallIntegerField()
    spent = models.DecimalField(max_digits=25, decimal_places=12)
    amount = models.DecimalField(max_digits=15, decimal_places=6)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-at", "-id"]
        verbose_name = _("budget warning")
        verbose_name_plural = _("budget warnings")
        constraints = [
            models.UniqueConstraint(
                fields=["budget", "since", "percent"], name="budget_warns_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.percent} % of budget {self.budget_id}"
