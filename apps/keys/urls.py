from django.urls import path

from apps.keys import views

app_name = "keys"

urlpatterns = [
    path("", views.key_list, name="key-list"),
    path("export.csv", views.key_export, name="key-export"),
    path("new/", views.key_create, name="key-create"),
    path("<int:pk>/", views.key_detail, name="key-detail"),
    path("<int:pk>/rotate/", views.key_rotate, name="key-rotate"),
    path("<int:pk>/revoke/", views.key_revoke, name="key-revoke"),
    path("teams/", views.team_list, name="team-list"),
    path("teams/<int:pk>/", views.team_detail, name="team-detail"),
]
