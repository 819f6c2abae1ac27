from django.urls import path

from apps.billing.views import counters, parts, requests

app_name = "billing"

urlpatterns = [
    path("", requests.request_list, name="request-list"),
    path("news/", requests.request_news, name="request-news"),
    path("export.csv", requests.request_export, name="request-export"),
    path("lookup/", requests.request_lookup, name="request-lookup"),
    path("<uuid:pk>/", requests.request_detail, name="request-detail"),
    path("counters/", counters.counter_list, name="counter-list"),
    path("counters/repair/", counters.counter_repair, name="counter-repair"),
    # Parts of other apps' pages, fetched by URL.
    path("parts/routes-today/", parts.routes_today, name="routes-today"),
    path("parts/keys-month/", parts.keys_month, name="keys-month"),
    path("parts/teams-month/", parts.teams_month, name="teams-month"),
    path("parts/usage-by-day/", parts.usage_by_day, name="usage-by-day"),
    path("parts/allowance/", parts.allowance, name="allowance"),
]
