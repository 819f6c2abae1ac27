from django.urls import path
from rest_framework.routers import SimpleRouter

from apps.billing.api import views

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("prices", views.PriceViews, basename="price")
router.register("usage", views.UsageViews, basename="usage")

urlpatterns = [
    path("usage/daily", views.UsageSumView.as_view(), name="usage-daily"),
    *router.urls,
]
