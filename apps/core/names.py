"""Names that go into URLs, paths and Triton's repository."""

from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _

# Triton does not decode its URL path and, on old lines, takes ".." for a model.
MODEL_NAME_PATTERN = r"^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"

model_name_validator = RegexValidator(
    MODEL_NAME_PATTERN,
    _("Use letters, digits, dot, dash and underscore, start with a letter or digit, no “..”."),
    code="invalid_name",
)

# Public model names may hold a slash and colon, as in "meta-llama/Llama-3.1-8B:free".
ROUTE_NAME_PATTERN = r"^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$"

route_name_validator = RegexValidator(
    ROUTE_NAME_PATTERN,
    _("Use letters, digits and . _ - : /, start with a letter or digit, no “..”."),
    code="invalid_name",
)
