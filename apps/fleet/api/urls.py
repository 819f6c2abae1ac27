from rest_framework.routers import SimpleRouter

from apps.fleet.api import views

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("servers", views.ServerViews, basename="server")
router.register("placements", views.PlacementViews, basename="placement")
router.register("operations", views.OperationViews, basename="operation")

urlpatterns = router.urls
