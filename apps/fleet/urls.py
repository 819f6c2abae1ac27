from django.urls import path

from apps.fleet import views

app_name = "fleet"

urlpatterns = [
    path("", views.server_list, name="server-list"),
    path("export.csv", views.server_export, name="server-export"),
    path("<int:pk>/", views.server_detail, name="server-detail"),
    path("placements/<int:pk>/row/", views.placement_row, name="placement-row"),
    path("placements/<int:pk>/operations/", views.operation_request, name="operation-request"),
    # Parts of the models' pages, fetched by URL.
    path("parts/model-states/", views.model_states, name="model-states"),
    path("parts/models/<int:pk>/placements/", views.model_placements, name="model-placements"),
    path("parts/models/<int:pk>/operations/", views.model_operations, name="model-operations"),
]
