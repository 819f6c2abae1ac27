"""Settings of inferadmin. The environment decides; `docs/settings.md` lists every variable."""

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _
from servestatic.compress import Compressor

from inferadmin import logs
from inferadmin.env import env_bool, env_int, env_list, env_secret, env_str

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(env_str("VAR_DIR", str(BASE_DIR / "var")))

DEBUG = env_bool("DEBUG", default=False)
SECRET_KEY = env_secret("SECRET_KEY", "debug-only-not-a-secret" if DEBUG else None)
# Encrypts upstream API keys at rest; derived from SECRET_KEY unless it is set by itself.
ENCRYPTION_KEY = env_secret("ENCRYPTION_KEY", SECRET_KEY)
# Earlier ones, read but never written with, until `rotate_secrets` has run.
OLD_ENCRYPTION_KEYS = [
    key.strip() for key in env_secret("OLD_ENCRYPTION_KEYS", "").split(",") if key.strip()
]
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS", "")
# True when a proxy in front speaks TLS: cookies are then secure only.
HTTPS_ONLY = env_bool("HTTPS_ONLY", default=False)


def _database(url: str) -> dict[str, Any]:
    """Django's settings of one PostgreSQL URL; `?host=` names a unix socket's folder."""
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured("INFERADMIN_DATABASE_URL must start with postgresql://")
    query = dict(item.split("=", 1) for item in parts.query.split("&") if "=" in item)
    host = unquote(query.get("host", "")) or parts.hostname or ""
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or "postgres",
        "USER": unquote(parts.username or "postgres"),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(parts.port or query.get("port", "")),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": 5},
    }


DATABASES = {"default": _database(env_secret("DATABASE_URL"))}
REDIS_URL = env_secret("REDIS_URL")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "channels",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "csp",
    "apps.core",
    "apps.catalog",
    "apps.fleet",
    "apps.routes",
    "apps.keys",
    "apps.metrics",
    "apps.billing",
    "apps.gateway",
    "inferadmin",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "apps.core.middleware.request_id",
    "csp.middleware.CSPMiddleware",
    "apps.core.middleware.admin_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "apps.core.middleware.time_zone",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "apps.core.middleware.console_errors",
]

ROOT_URLCONF = "inferadmin.urls"
ASGI_APPLICATION = "inferadmin.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "apps.core.context.console",
            ],
        },
    },
]

AUTH_USER_MODEL = "core.User"
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "core:login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "core:login"

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = HTTPS_ONLY
SESSION_COOKIE_AGE = 12 * 3600
CSRF_COOKIE_SECURE = HTTPS_ONLY
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_SSL_REDIRECT = HTTPS_ONLY
SECURE_HSTS_SECONDS = 31536000 if HTTPS_ONLY else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS_ONLY else None
X_FRAME_OPTIONS = "DENY"
# Whether subdomains and browsers' preload lists follow is for the owner of the domain to decide.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    },
}

# The admin's pages use Alpine, which evaluates texts, and styles in the page.
ADMIN_CONTENT_SECURITY_POLICY = CONTENT_SECURITY_POLICY["DIRECTIVES"] | {
    "script-src": [SELF, UNSAFE_EVAL],
    "style-src": [SELF, UNSAFE_INLINE],
}

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = env_str("TIME_ZONE", "UTC")
USE_TZ = True

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = VAR_DIR / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "inferadmin.static.StaticStorage"},
}
# Source maps are asked for by a developer's browser only, and are slow to compress.
SERVESTATIC_SKIP_COMPRESS_EXTENSIONS = (*Compressor.SKIP_COMPRESS_EXTENSIONS, "map")

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        "CONFIG": {
            "hosts": [REDIS_URL],
            "prefix": "inferadmin.live",
            "capacity": 200,
            "expiry": 10,
        },
    },
}

CELERY_BROKER_URL = REDIS_URL
CELERY_RESULT_BACKEND = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "control"
CELERY_TASK_ROUTES = {
    "metrics.*": {"queue": "telemetry"},
    "billing.*": {"queue": "ledger"},
    "fleet.*": {"queue": "control"},
}
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 120,
    "global_keyprefix": "inferadmin.jobs.",
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "apps.core.api.authentication.ManagementTokenAuthentication",
        "apps.core.api.authentication.ConsoleSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["apps.core.api.permissions.RolePermission"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["apps.core.api.parsers.StrictJSONParser"],
    "DEFAULT_PAGINATION_CLASS": "apps.core.api.pagination.PageNumbers",
    "DEFAULT_FILTER_BACKENDS": ["apps.core.api.filters.StrictFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "apps.core.api.errors.exception_handler",
    "COERCE_DECIMAL_TO_STRING": True,
    "UNAUTHENTICATED_USER": None,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "inferadmin",
    "DESCRIPTION": "Management API: servers, models, placements, operations, routes, keys, usage.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["apps.core.api.permissions.RolePermission"],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    # Names for choices whose fields are called alike.
    "ENUM_NAME_OVERRIDES": {
        "ModelKindEnum": "apps.catalog.models.ServedModel.Kind",
        "ServerKindEnum": "apps.fleet.models.Server.Kind",
        "ServerStateEnum": "apps.fleet.models.Server.State",
        "OperationKindEnum": "apps.fleet.models.Operation.Kind",
        "OperationStateEnum": "apps.fleet.models.Operation.State",
        "LimitKindEnum": "apps.keys.models.Limit.Kind",
    },
}

DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024 * 1024
MAX_BODY_BYTES = env_int("MAX_BODY_BYTES", 4 * 1024 * 1024)

# Gateway: defaults where a route does not set its own.
GATEWAY_CONNECT_TIMEOUT_SECONDS = env_int("GATEWAY_CONNECT_TIMEOUT_SECONDS", 5)
GATEWAY_FIRST_BYTE_TIMEOUT_SECONDS = env_int("GATEWAY_FIRST_BYTE_TIMEOUT_SECONDS", 60)
GATEWAY_IDLE_TIMEOUT_SECONDS = env_int("GATEWAY_IDLE_TIMEOUT_SECONDS", 30)
GATEWAY_TOTAL_TIMEOUT_SECONDS = env_int("GATEWAY_TOTAL_TIMEOUT_SECONDS", 600)
GATEWAY_MAX_REQUESTS = env_int("GATEWAY_MAX_REQUESTS", 2000)
# How long Redis may take to admit or settle a request before it counts as away; requests are then
# refused at once until it answers again.
GATEWAY_REDIS_TIMEOUT_MILLISECONDS = env_int("GATEWAY_REDIS_TIMEOUT_MILLISECONDS", 1000)
# Networks of the proxies in front of us, whose X-Forwarded-For is believed.
TRUSTED_PROXIES = env_list("TRUSTED_PROXIES", "")
# What a web process serves: `all`, `gateway` (/v1 and the probes) or `console` (all but /v1).
SERVE = env_str("SERVE", "all")

# Model servers: networks that their addresses may lie in, and threads that a Triton loads with
# (its --model-load-thread-count). Link-local and metadata addresses are refused in any case.
ALLOWED_TARGET_NETWORKS = env_list("ALLOWED_TARGET_NETWORKS", "0.0.0.0/0,::/0")
TRITON_LOAD_THREADS = env_int("TRITON_LOAD_THREADS", 4)

# Telemetry: days that samples and usage details are kept.
SAMPLE_RETENTION_DAYS = env_int("SAMPLE_RETENTION_DAYS", 30)
# Seconds between two sweeps over all servers.
SWEEP_INTERVAL_SECONDS = env_int("SWEEP_INTERVAL_SECONDS", 2)

# Opens /metrics to other machines; empty: only this machine may read it.
METRICS_TOKEN = env_secret("METRICS_TOKEN", "")

LOG_FORMAT = env_str("LOG_FORMAT", "console" if DEBUG else "json")
LOG_LEVEL = env_str("LOG_LEVEL", "INFO")
LOGGING_CONFIG = None
logs.configure(log_format=LOG_FORMAT, level=LOG_LEVEL)

# Admin pages: the console's palette (frontend/src/css/tokens.css), its mark and its radius.
UNFOLD = {
    "SITE_TITLE": "inferadmin",
    "SITE_HEADER": "inferadmin",
    "SITE_SUBHEADER": _("Keys, limits, prices"),
    "SITE_URL": "/",
    "SITE_ICON": "inferadmin.admin_theme.favicon",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": "inferadmin.admin_theme.favicon"}
    ],
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "ENVIRONMENT": "inferadmin.admin_theme.environment",
    "BORDER_RADIUS": "6px",
    "COLORS": {
        "base": {
            "50": "#f6f7f9",
            "100": "#f1f3f6",
            "200": "#e4e7ec",
            "300": "#cfd4dd",
            "400": "#8791a3",
            "500": "#646d7e",
            "600": "#4b5465",
            "700": "#323a49",
            "800": "#222834",
            "900": "#12151c",
            "950": "#0b0d12",
        },
        "primary": {
            "50": "#eef0ff",
            "100": "#e0e3ff",
            "200": "#c6caff",
            "300": "#a8aeff",
            "400": "#8b93ff",
            "500": "#6a72ee",
            "600": "#5058da",
            "700": "#4248b8",
            "800": "#363b96",
            "900": "#2c3076",
            "950": "#1c2040",
        },
    },
    "SIDEBAR": {
        "show_search": False,
        "show_all_applications": False,
        "navigation": "inferadmin.admin_theme.navigation",
    },
}
