from django.urls import path

from apps.gateway.views import generation, messages, models
from apps.gateway.views.dispatch import as_awaitable

# Resolved by `asgi.py` alone: none of these passes through Django's handler.
urlpatterns = [
    path("v1/chat/completions", as_awaitable(generation.ChatCompletions)),
    path("v1/completions", as_awaitable(generation.Completions)),
    path("v1/embeddings", as_awaitable(generation.Embeddings)),
    path("v1/messages", as_awaitable(messages.Messages)),
    path("v1/messages/count_tokens", as_awaitable(messages.CountTokens)),
    path("v1/models", as_awaitable(models.ModelList)),
    path("v1/models/<path:name>", as_awaitable(models.ModelDetail)),
]
