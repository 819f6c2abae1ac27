from rest_framework.routers import SimpleRouter

from apps.core.api.audit import AuditViews
from apps.core.api.tokens import TokenViews

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("audit", AuditViews, basename="audit")
router.register("tokens", TokenViews, basename="token")

urlpatterns = router.urls
