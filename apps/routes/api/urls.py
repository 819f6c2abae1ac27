from rest_framework.routers import SimpleRouter

from apps.routes.api import views

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("routes", views.RouteViews, basename="route")

urlpatterns = router.urls
