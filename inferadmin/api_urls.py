"""The REST API: one line an app, the schema and its page."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.urls import include, path, re_path
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView


@csrf_exempt
@login_not_required
def no_such_path(request: HttpRequest) -> JsonResponse:
    """404 in the envelope of all other errors, also where an id is not a number."""
    message = f"there is nothing at {request.path[:100]}; /api/docs lists what there is"
    return JsonResponse({"error": {"code": "unknown_url", "message": message}}, status=404)


urlpatterns = [
    path("v1/", include("apps.core.api.urls")),
    path("v1/", include("apps.catalog.api.urls")),
    path("v1/", include("apps.fleet.api.urls")),
    path("v1/", include("apps.routes.api.urls")),
    path("v1/", include("apps.keys.api.urls")),
    path("v1/", include("apps.billing.api.urls")),
    path("schema", SpectacularAPIView.as_view(), name="schema"),
    path("docs", SpectacularSwaggerView.as_view(url_name="schema"), name="api-docs"),
    re_path("", no_such_path),
]
