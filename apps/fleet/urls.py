from django.urls import path

from apps.fleet.views import editing, placements, servers

app_name = "fleet"

urlpatterns = [
    path("", servers.server_list, name="server-list"),
    path("export.csv", servers.server_export, name="server-export"),
    path("new/", editing.server_create, name="server-create"),
    path("<int:pk>/", servers.server_detail, name="server-detail"),
    path("<int:pk>/edit/", editing.server_edit, name="server-edit"),
    path("<int:pk>/delete/", editing.server_delete, name="server-delete"),
    path("placements/<int:pk>/row/", placements.placement_row, name="placement-row"),
    path("placements/<int:pk>/operations/", placements.operation_request, name="operation-request"),
    # Parts of the models' pages, fetched by URL.
    path("parts/model-states/", placements.model_states, name="model-states"),
    path("parts/models/<int:pk>/placements/", placements.model_placements, name="model-placements"),
    path("parts/models/<int:pk>/operations/", placements.model_operations, name="model-operations"),
]
