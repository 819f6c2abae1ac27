from django.urls import path

from apps.gateway import console_views

app_name = "gateway"

urlpatterns = [
    path("", console_views.playground, name="playground"),
    path("key/", console_views.playground_key, name="playground-key"),
]
