"""The page for an address that leads nowhere."""

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext as _

from apps.core.errors import NotFoundError
from apps.core.models import User


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """404 in the console's look; who is not signed in learns nothing of what there is."""
    del exception
    if not isinstance(request.user, User):
        return redirect_to_login(request.get_full_path())
    error = NotFoundError(_("There is no such page. Search with Ctrl-K, or use the menu."))
    return render(request, "core/error.html", {"error": error}, status=404)
