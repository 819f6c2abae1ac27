"""Every URL prefix of the product, on one screen."""

from django.contrib import admin
from django.urls import include, path

from inferadmin import probes
from inferadmin.console import figures, overview, palette, unload

urlpatterns = [
    path("", overview.home, name="home"),
    path("overview/summary/", overview.summary, name="overview-summary"),
    path("figures/", figures.figures, name="figures"),
    path("search/", palette.search, name="search"),
    path("healthz", probes.healthz, name="healthz"),
    path("readyz", probes.readyz, name="readyz"),
    path("metrics", probes.metrics, name="metrics"),
    path("account/", include("apps.core.urls")),
    path("fleet/placements/<int:pk>/unload/", unload.placement_unload, name="console-unload"),
    path("fleet/", include("apps.fleet.urls")),
    path("models/", include("apps.catalog.urls")),
    path("routes/", include("apps.routes.urls")),
    path("keys/", include("apps.keys.urls")),
    path("requests/", include("apps.billing.urls")),
    path("live/", include("apps.metrics.urls")),
    path("playground/", include("apps.gateway.console_urls")),
    path("api/", include("inferadmin.api_urls")),
    path("admin/", admin.site.urls),
]

handler404 = "inferadmin.console.missing.not_found"
handler500 = "inferadmin.outage.server_error"
