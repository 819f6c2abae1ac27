"""Who may do what: four roles, a few permissions, one table."""

from enum import StrEnum

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Role(TextChoices):
    """What a person is here for."""

    VIEWER = "viewer", _("Viewer")
    OPERATOR = "operator", _("Operator")
    KEY_MANAGER = "key_manager", _("Key manager")
    ADMIN = "admin", _("Admin")


class Permission(StrEnum):
    """What an edge asks for before it does something."""

    VIEW = "view"  # read everything but secrets
    OPERATE = "operate"  # load, unload, reload; routes; playground
    MANAGE_KEYS = "manage_keys"  # teams, keys, limits, budgets, prices
    ADMINISTER = "administer"  # servers, users, settings


ROLE_PERMISSIONS: dict[str, frozenset[Permission]] = {
    Role.VIEWER: frozenset({Permission.VIEW}),
    Role.OPERATOR: frozenset({Permission.VIEW, Permission.OPERATE}),
    Role.KEY_MANAGER: frozenset({Permission.VIEW, Permission.MANAGE_KEYS}),
    Role.ADMIN: frozenset(Permission),
}
