from django.urls import URLPattern

app_name = "keys"

urlpatterns: list[URLPattern] = []
