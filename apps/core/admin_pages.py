"""What the admin pages of all apps share: they read rows, and write through services only."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from django import forms
from django.contrib import messages
from django.contrib.admin.models import LogEntry
from django.db.models import Model
from django.forms.formsets import BaseFormSet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from apps.core.audit import history_of
from apps.core.errors import InferAdminError
from apps.core.models import User
from apps.core.roles import Permission

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin, TabularInline
else:  # Unfold has no types, and Django's classes take their parameter for the type checker only
    from unfold import admin as unfold_admin

    class ModelAdmin(unfold_admin.ModelAdmin):
        """Unfold's, with a type parameter."""

        __class_getitem__ = classmethod(lambda cls, _type: cls)

    class TabularInline(unfold_admin.TabularInline):
        """Unfold's, with type parameters."""

        __class_getitem__ = classmethod(lambda cls, _types: cls)


M = TypeVar("M", bound=Model)
F = TypeVar("F", bound=Callable[..., object])

__all__ = ["ModelAdmin", "TabularInline"]


def may(request: HttpRequest, permission: Permission) -> bool:
    """True when the signed-in person holds the permission."""
    return isinstance(request.user, User) and request.user.may(permission)


class ReadOnlyAdmin(ModelAdmin[M]):
    """Rows to look at, for who holds `permission`; the history is the audit log's."""

    permission = Permission.ADMINISTER
    show_full_result_count = False
    list_per_page = 50

    def has_module_permission(self, request: HttpRequest) -> bool:
        return may(request, self.permission)

    def has_view_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        del obj
        return may(request, self.permission)

    def has_add_permission(self, request: HttpRequest) -> bool:
        del request
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        del request, obj
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        del request, obj
        return False

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """What the audit log knows of the row; Django's own log is not written."""
        row = self.get_object(request, object_id)
        if row is None or not self.has_view_permission(request, row):
            return redirect(f"{self.admin_site.name}:index")
        context = self._page(request, row, title=_("History"), entries=history_of(row))
        return TemplateResponse(request, "admin_pages/history.html", context)

    def _page(self, request: HttpRequest, row: Model, **values: object) -> dict[str, Any]:
        """Context of a page about one row."""
        return {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": row,
            "object": row,
            **values,
        }


class ServiceAdmin(ReadOnlyAdmin[M]):
    """Forms whose writes are services: `create` and `update` get what the form holds.

    A service that refuses is shown as a message, and nothing is written.
    """

    permission = Permission.MANAGE_KEYS

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may(request, self.permission)

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        del obj
        return may(request, self.permission)

    def create(self, request: HttpRequest, values: dict[str, Any]) -> M:
        """Make the row by its service."""
        raise NotImplementedError

    def update(self, request: HttpRequest, row: M, values: dict[str, Any]) -> None:
        """Change the row by its service; `values` are those that the person changed."""
        raise NotImplementedError

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except InferAdminError as exc:
            messages.error(request, exc.message)
            return redirect(request.get_full_path())

    def save_model(self, request: HttpRequest, obj: M, form: Any, change: bool) -> None:
        if change:
            changed = {name: form.cleaned_data[name] for name in form.changed_data}
            self.update(request, obj, changed)
        else:
            obj.pk = self.create(request, dict(form.cleaned_data)).pk
            obj.refresh_from_db()

    def save_related(
        self,
        request: HttpRequest,
        form: "forms.ModelForm[M]",
        formsets: "Sequence[BaseFormSet[Any]]",
        change: bool,
    ) -> None:
        """Nothing: services write what belongs to a row with the row."""

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> list[dict[str, Any]]:
        del request, form, formsets, add
        return []

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> LogEntry:
        """Nothing: the service has written the audit entry."""
        return LogEntry()

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> LogEntry:
        """Nothing: the service has written the audit entry."""
        return LogEntry()

    def ask(
        self, request: HttpRequest, row: Model, *, form: forms.Form, **texts: object
    ) -> TemplateResponse:
        """Page that asks before something is done: `title`, `text` and the button's `label`."""
        context = self._page(request, row, form=form, **texts)
        return TemplateResponse(request, "admin_pages/ask.html", context)

    def show_secret(
        self, request: HttpRequest, row: Model, secret: str, **texts: object
    ) -> TemplateResponse:
        """Page with a secret just made; it is nowhere else, and no cache keeps the page."""
        context = self._page(request, row, secret=secret, **texts)
        response = TemplateResponse(request, "admin_pages/secret.html", context)
        response["Cache-Control"] = "no-store"
        return response


def each_row(
    request: HttpRequest, rows: Sequence[M], act: Callable[[M], object], done: Promise | str
) -> None:
    """Do `act` to each row of a list's selection and say how many it was done to."""
    count = 0
    for row in rows:
        try:
            act(row)
            count += 1
        except InferAdminError as exc:
            messages.error(request, f"{row}: {exc.message}")
    if count:
        messages.success(request, f"{done}: {count}")


def badge(description: Promise, colours: dict[str, str]) -> Callable[[F], F]:
    """Column whose value is `(code, text)`; `colours` gives success, warning, danger or info."""

    def decorate(column: F) -> F:
        column.label = colours  # type: ignore[attr-defined]  # Unfold looks for it
        column.short_description = description  # type: ignore[attr-defined]
        return column

    return decorate


def short_time(moment: datetime | None) -> str:
    """Cell of a list: minutes are enough there; a dash for `None`."""
    if moment is None:
        return "-"
    text = f"{timezone.localtime(moment):%Y-%m-%d %H:%M}"
    return format_html('<span class="whitespace-nowrap">{}</span>', text)


def page_action(
    description: Promise, icon: str, *, variant: Literal["default", "danger"] = "default"
) -> Callable[[F], F]:
    """Button on a row's page that opens a page of its own."""

    def decorate(action: F) -> F:
        action.short_description = description  # type: ignore[attr-defined]  # Unfold looks for it
        action.icon = icon  # type: ignore[attr-defined]
        action.attrs = {}  # type: ignore[attr-defined]
        action.variant = variant  # type: ignore[attr-defined]
        return action

    return decorate
