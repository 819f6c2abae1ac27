from django.urls import path

from apps.metrics import views

app_name = "metrics"

urlpatterns = [
    path("history", views.history, name="history"),
    path("system", views.system_banner, name="system-banner"),
]
