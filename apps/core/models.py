"""People, their management tokens, and the record of what they did."""

from collections.abc import Iterable

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.core.roles import ROLE_PERMISSIONS, Permission, Role


class UserManager(BaseUserManager["User"]):
    """Makes users; there is no self sign-up."""

    def create_user(self, username: str, password: str | None, **fields: object) -> "User":
        """New saved user; without a password nobody can sign in as it."""
        user = self.model(username=username, **fields)
        user.set_password(password)
        user.full_clean(exclude=["password"])
        user.save(using=self._db)
        return user

    def create_superuser(self, username: str, password: str | None, **fields: object) -> "User":
        """New saved user with the admin role (for `manage.py createsuperuser`)."""
        return self.create_user(username, password, role=Role.ADMIN, **fields)


class User(AbstractBaseUser):
    """A person of the ops staff; what they may do follows from their role alone."""

    username = models.CharField(
        _("username"),
        max_length=150,
        unique=True,
        validators=[UnicodeUsernameValidator()],
        error_messages={"unique": _("There is a user of this name already.")},
    )
    full_name = models.CharField(_("full name"), max_length=150, blank=True)
    email = models.EmailField(_("email"), blank=True)
    role = models.CharField(_("role"), max_length=20, choices=Role, default=Role.VIEWER)
    time_zone = models.CharField(_("time zone"), max_length=64, blank=True)
    is_active = models.BooleanField(_("active"), default=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = UserManager()

    USERNAME_FIELD = "username"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS = []

    class Meta:
        verbose_name = _("user")
        verbose_name_plural = _("users")
        ordering = ["username"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="user_role_is_known"
            ),
        ]

    def __str__(self) -> str:
        return self.full_name or self.username

    @property
    def is_staff(self) -> bool:
        """True for who may open the admin pages."""
        return self.may(Permission.MANAGE_KEYS)

    @property
    def is_superuser(self) -> bool:
        """True for the admin role (Django's admin asks)."""
        return self.may(Permission.ADMINISTER)

    def may(self, permission: Permission) -> bool:
        """True when the user is active and its role holds the permission."""
        return self.is_active and permission in ROLE_PERMISSIONS[self.role]

    def has_perm(self, perm: str, obj: object = None) -> bool:
        """Django's question `app.verb_model`; the admin classes answer it more finely."""
        del obj
        app_label, _dot, action = perm.partition(".")
        if action.startswith("view_"):
            return self.is_staff
        if app_label in {"keys", "billing"}:
            return self.may(Permission.MANAGE_KEYS)
        return self.may(Permission.ADMINISTER)

    def has_perms(self, perms: Iterable[str], obj: object = None) -> bool:
        """True when every one of the permissions is held."""
        return all(self.has_perm(perm, obj) for perm in perms)

    def has_module_perms(self, app_label: str) -> bool:
        """True when the app has a place in this user's admin menu."""
        del app_label
        return self.is_staff


class ManagementToken(models.Model):
    """A token for the REST API; only its digest is kept. Acts with the rights of its user."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="management_tokens")
    name = models.CharField(_("name"), max_length=100)
    prefix = models.CharField(_("prefix"), max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("management token")
        verbose_name_plural = _("management tokens")

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class AuditEntry(models.Model):
    """Who did what to which object, written in the transaction that did it. Never changed."""

    at = models.DateTimeField(default=timezone.now, db_index=True)
    actor = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    actor_label = models.CharField(max_length=150)
    action = models.CharField(max_length=60)
    object_type = models.CharField(max_length=60)
    object_id = models.CharField(max_length=64)
    object_label = models.CharField(max_length=200)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    request_id = models.CharField(max_length=64, blank=True)
    source_ip = models.GenericIPAddressField(null=True, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["object_type", "object_id", "-at"])]
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")

    def __str__(self) -> str:
        return f"{self.actor_label} {self.action} {self.object_label}"
