"""The REST API: one line an app, the schema and its page."""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

urlpatterns = [
    path("v1/", include("apps.core.api.urls")),
    path("v1/", include("apps.catalog.api.urls")),
    path("v1/", include("apps.fleet.api.urls")),
    path("v1/", include("apps.routes.api.urls")),
    path("v1/", include("apps.keys.api.urls")),
    path("v1/", include("apps.billing.api.urls")),
    path("schema", SpectacularAPIView.as_view(), name="schema"),
    path("docs", SpectacularSwaggerView.as_view(url_name="schema"), name="api-docs"),
]
