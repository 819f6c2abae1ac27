from django.urls import URLPattern

app_name = "gateway"

urlpatterns: list[URLPattern] = []
