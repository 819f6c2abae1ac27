from rest_framework.routers import SimpleRouter

from apps.catalog.api import views

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("models", views.ModelViews, basename="model")

urlpatterns = router.urls
