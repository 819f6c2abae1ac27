"""Console pages that make, change and delete server records."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from apps.core.edges import actor_of, requires
from apps.core.errors import ConflictError, InvalidRequestError
from apps.core.roles import Permission
from apps.fleet import selectors
from apps.fleet.forms import ServerForm
from apps.fleet.models import Server
from apps.fleet.services import servers

_get_or_post = require_http_methods(["GET", "POST"])


@_get_or_post
@requires(Permission.ADMINISTER)
def server_create(request: HttpRequest) -> HttpResponse:
    """Add a server; it is looked at within seconds."""
    return _edit(request, server=None)


@_get_or_post
@requires(Permission.ADMINISTER)
def server_edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Change a server's record."""
    return _edit(request, server=selectors.server_get(pk))


def _edit(request: HttpRequest, *, server: Server | None) -> HttpResponse:
    """The form; what the service refuses is said at its field."""
    # The form works on its own copy, so that a refused name does not show as the title.
    instance = Server.objects.get(pk=server.pk) if server else None
    form = ServerForm(request.POST or None, instance=instance)
    if form.is_valid():
        try:
            saved = _save(request, form, server)
        except (InvalidRequestError, ConflictError) as exc:
            _show_refusal(form, exc)
        else:
            messages.success(request, _("Server %(name)s is saved.") % {"name": saved.name})
            return redirect("fleet:server-detail", saved.pk)
    status = 400 if form.is_bound else 200
    return render(
        request, "fleet/server_form.html", {"form": form, "server": server}, status=status
    )


def _save(request: HttpRequest, form: ServerForm, server: Server | None) -> Server:
    values: dict[str, Any] = form.values
    if server is None:
        return servers.server_create(actor=actor_of(request), **values)
    return servers.server_update(actor=actor_of(request), server_id=server.pk, **values)


def _show_refusal(form: ServerForm, error: InvalidRequestError | ConflictError) -> None:
    fields = error.fields if isinstance(error, InvalidRequestError) else {}
    for name, problems in fields.items():
        form.add_error(name if name in form.fields else None, problems)
    if not fields:
        form.add_error(None, error.message)


@_get_or_post
@requires(Permission.ADMINISTER)
def server_delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask, then delete the record; refused while routes point to it."""
    server = selectors.server_get(pk)
    if request.method == "GET":
        return render(request, "fleet/server_delete.html", {"server": server})
    servers.server_delete(actor=actor_of(request), server_id=pk)
    messages.success(request, _("Server %(name)s is deleted.") % {"name": server.name})
    return redirect("fleet:server-list")
