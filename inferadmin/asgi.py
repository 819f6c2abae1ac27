"""ASGI entry point: sockets, the gateway, and everything else through Django."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inferadmin.settings")
django_application = get_asgi_application()  # loads the apps, so it stands before their imports

from inferadmin.routing import build_application  # noqa: E402

application = build_application(django_application)
