from django.urls import path

from apps.catalog import views

app_name = "catalog"

urlpatterns = [
    path("", views.model_list, name="model-list"),
    path("export.csv", views.model_export, name="model-export"),
    path("<int:pk>/", views.model_detail, name="model-detail"),
]
