from rest_framework.routers import SimpleRouter

from apps.keys.api import views

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("teams", views.TeamViews, basename="team")
router.register("keys", views.KeyViews, basename="key")
router.register("limits", views.LimitViews, basename="limit")
router.register("budgets", views.BudgetViews, basename="budget")

urlpatterns = router.urls
