from django.urls import path

from apps.routes import views

app_name = "routes"

urlpatterns = [
    path("", views.route_list, name="route-list"),
    path("export.csv", views.route_export, name="route-export"),
    path("new/", views.route_create, name="route-create"),
    path("<int:pk>/", views.route_detail, name="route-detail"),
    path("<int:pk>/edit/", views.route_edit, name="route-edit"),
    path("<int:pk>/switch/", views.route_switch, name="route-switch"),
    path("<int:pk>/delete/", views.route_delete, name="route-delete"),
]
