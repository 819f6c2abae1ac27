"""Exact money: decimals for people, integer pico-units (10⁻¹² of the currency) for sums."""

from decimal import ROUND_HALF_EVEN, Decimal

from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _

PICOS = 10**12
CURRENCY_PATTERN = r"^[A-Z]{3}$"

currency_validator = RegexValidator(
    CURRENCY_PATTERN,
    _("Use the three capital letters of a currency, such as USD, EUR or CNY."),
    code="invalid_currency",
)
_PICOS_PER_TOKEN_UNIT = PICOS // 10**6


def to_picos(amount: Decimal) -> int:
    """`amount` of currency in pico-units; below one pico-unit it is rounded half to even."""
    return int((amount * PICOS).to_integral_value(rounding=ROUND_HALF_EVEN))


def from_picos(picos: int) -> Decimal:
    """Exact amount of currency."""
    return Decimal(picos).scaleb(-12)


def per_million_to_picos(price: Decimal) -> int:
    """Pico-units for one token at `price` per million tokens (six decimals are exact)."""
    return int((price * _PICOS_PER_TOKEN_UNIT).to_integral_value(rounding=ROUND_HALF_EVEN))


def plain(amount: Decimal) -> str:
    """Exact digits without exponent and trailing zeros, as files and JSON carry an amount."""
    return f"{amount.normalize():f}"
