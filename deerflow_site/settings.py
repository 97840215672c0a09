"""Settings, in sections. What an operator chooses about agents belongs in config.yaml, not here."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from django.urls import reverse_lazy
from django.utils.translation import gettext_lazy as _

from deerflow_site.env import env_bool, env_choice, env_int, env_list, env_prefix, env_text, env_time_zone
from deerflow_site.secrets import kept_secret

# --- Places -----------------------------------------------------------------------------------------------------
BASE_DIR = Path(__file__).resolve().parent.parent
DEER_FLOW_HOME = Path(env_text("DEER_FLOW_HOME") or BASE_DIR / ".deer-flow").absolute()
DEER_FLOW_HOME.mkdir(mode=0o700, parents=True, exist_ok=True)
CONFIG_FILE_NAMED = bool(env_text("DEER_FLOW_CONFIG"))  # a file somebody named has to be there
CONFIG_FILE = Path(env_text("DEER_FLOW_CONFIG") or BASE_DIR / "config.yaml").absolute()

# --- Secrets and hosts ------------------------------------------------------------------------------------------
DEBUG = env_bool("DEBUG", default=False)
SECRET_KEY = env_text("SECRET_KEY") or kept_secret(DEER_FLOW_HOME, "secret-key")
# Signs what webhooks are told: whsec_… as receivers take it, or any text.
WEBHOOK_SECRET = env_text("WEBHOOK_SECRET") or kept_secret(DEER_FLOW_HOME, "webhook-secret")
FIELD_KEY = env_text("FIELD_KEY") or kept_secret(DEER_FLOW_HOME, "field-key")  # encrypts stored headers
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", default=("127.0.0.1", "localhost", "[::1]"))
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS")
BEHIND_TLS = env_bool("BEHIND_TLS", default=False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = BEHIND_TLS
SESSION_COOKIE_NAME = "deerflow_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_TLS else None
SECURE_SSL_REDIRECT = False  # the reverse proxy redirects; the health check asks in plain HTTP
SECURE_HSTS_SECONDS = 31_536_000 if BEHIND_TLS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = False
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
FORCE_SCRIPT_NAME = env_prefix("SCRIPT_NAME") or None
# SECURE_SSL_REDIRECT: see above. Sub-domains and the preload list belong to whoever owns the domain, not to us.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W008", "security.W021"]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "style-src": ["'self'", "'unsafe-inline'"],  # widths of progress bars are set in style attributes
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "script-src": ["'self'"],  # the admin's exception: deerflow_site.middleware
    }
}

# --- Applications -----------------------------------------------------------------------------------------------
ADMIN_SKIN = env_choice("SUBAGENTS_ADMIN", default="unfold", choices=("unfold", "stock"))
INSTALLED_APPS = [
    "deerflow_site",
    "runs",  # before django_q: our `qcluster` installs the worker and then calls django-q2's own
    "subagents",
    "access",
    *(["unfold"] if ADMIN_SKIN == "unfold" else []),
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "csp",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_q",
    "channels",
]
MIDDLEWARE = [
    "deerflow_site.health.answer_probes",
    "access.middleware.give_request_id",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "deerflow_site.middleware.PolicyByArea",
]
ROOT_URLCONF = "deerflow_site.urls"
ASGI_APPLICATION = "deerflow_site.asgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Database ---------------------------------------------------------------------------------------------------
SQLITE_OPTIONS = {
    # IMMEDIATE: a deferred transaction that reads and then writes fails at once with "database is locked".
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=20000;"
        "PRAGMA cache_size=-20000; PRAGMA journal_size_limit=67108864;"
    ),
}
_default_database = f"sqlite:///{DEER_FLOW_HOME / 'db.sqlite3'}"
try:
    DATABASES = {"default": dj_database_url.parse(env_text("DATABASE_URL") or _default_database)}
except ValueError as fault:
    raise ImproperlyConfigured(f"DATABASE_URL: {fault}") from None
if DATABASES["default"]["ENGINE"] not in {"django.db.backends.sqlite3", "django.db.backends.postgresql"}:
    raise ImproperlyConfigured("DATABASE_URL: only sqlite:// and postgres:// are supported")
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = SQLITE_OPTIONS
    # A file, because worker processes share it; one per test process, because several may run at once.
    DATABASES["default"]["TEST"] = {"NAME": str(DEER_FLOW_HOME / f"test-{os.getpid()}.sqlite3")}
else:
    # Statements that come again and again are parsed and planned once for each connection.
    DATABASES["default"].setdefault("OPTIONS", {}).update(server_side_binding=True, prepare_threshold=5)
DATABASES["default"]["CONN_MAX_AGE"] = 60
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True

# --- Work -------------------------------------------------------------------------------------------------------
LEASE_SECONDS = env_int("LEASE_SECONDS", default=8, minimum=2, maximum=10)
Q_CLUSTER: dict[str, Any] = {
    "name": "runs",
    "orm": "default",
    # How many processes; `up` sets the variable from config.yaml's runs.workers.
    "workers": env_int("RUN_WORKERS", default=2, minimum=1, maximum=64),
    "timeout": 86_400,  # plain tasks only: a run has its own deadline
    "retry": 86_500,
    "max_attempts": 1,
    "ack_failures": True,
    "save_limit": 0,  # any other value selects all successes on each save
    "poll": 0.5,
    "guard_cycle": 0.5,
    "catch_up": False,
    "log_level": "WARNING",
    "label": _("Queue"),
}
# Functions of (now, dry_run) that remove what is of no use any more; they answer {what: how many rows}.
HOUSEKEEPING = [
    "access.idempotency.prune",
    "deerflow_site.setup_link.prune",
    "runs.agent_protocol.store_items.prune_expired",
    "runs.keeping.prune_expired",
    "runs.webhooks.prune",
]
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

# --- Users ------------------------------------------------------------------------------------------------------
AUTHENTICATION_BACKENDS = [
    "deerflow_site.login.ThrottleBackend",
    "django.contrib.auth.backends.ModelBackend",
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "chat"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

# --- API ------------------------------------------------------------------------------------------------------
API_REQUESTS_PER_MINUTE = {  # by scope, for each key, and for each person's browsers together
    "read": env_int("API_READS_PER_MINUTE", default=600, minimum=1, maximum=1_000_000),
    "run": env_int("API_RUNS_PER_MINUTE", default=300, minimum=1, maximum=1_000_000),
    "admin": env_int("API_CHANGES_PER_MINUTE", default=120, minimum=1, maximum=1_000_000),
}
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "access.api.authentication.KeyAuthentication",
        "access.api.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["access.api.permissions.MeetsNeed"],
    "DEFAULT_THROTTLE_CLASSES": ["access.api.throttling.ScopeThrottle"],
    "DEFAULT_PARSER_CLASSES": ["access.api.bodies.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["access.api.rendering.SafeJSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "access.api.rendering.AlwaysJSON",
    "DEFAULT_SCHEMA_CLASS": "access.api.schema.ApiSchema",
    "EXCEPTION_HANDLER": "access.api.problems.exception_handler",
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Subagents",
    "DESCRIPTION": "Subagents and custom agents; conversations, runs and what happens on them.",
    "VERSION": "1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "DEFAULT_GENERATOR_CLASS": "access.api.schema.Generator",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "persistAuthorization": False, "validatorUrl": None},
    "ENUM_NAME_OVERRIDES": {
        "ProblemCode": "access.api.schema.PROBLEM_CODES",
        "Source": "subagents.api.serializers.SOURCES",
        "State": "subagents.api.serializers.STATES",
        "RunStatus": "runs.api.serializers.RUN_STATUSES",
        "ThreadStatus": "runs.api.serializers.THREAD_STATUSES",
        "EventType": "runs.api.serializers.EVENT_TYPES",
        "RunAction": "runs.api.serializers.ACTIONS",
        "StoppedKind": "runs.api.serializers.STOPPED_KINDS",
    },
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
}

# --- Admin ------------------------------------------------------------------------------------------------
UNFOLD = {
    "SITE_TITLE": _("Subagents"),
    "SITE_HEADER": _("Subagents"),
    "SITE_SYMBOL": "account_tree",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": "deerflow_site.admin.favicon"}],
    "SITE_URL": reverse_lazy("chat"),
    "SHOW_HISTORY": True,
    "SHOW_LANGUAGES": True,
    "STYLES": ["deerflow_site.admin.stylesheet"],
    "COLORS": {
        "primary": {
            "50": "#f0fdfa",
            "100": "#ccfbf1",
            "200": "#99f6e4",
            "300": "#5eead4",
            "400": "#2dd4bf",
            "500": "#0d9488",
            "600": "#0f766e",
            "700": "#115e59",
            "800": "#134e4a",
            "900": "#0f3f3c",
            "950": "#042f2e",
        }
    },
    "SIDEBAR": {"show_search": False, "navigation": "deerflow_site.admin.navigation"},
}

# --- Languages --------------------------------------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = USE_TZ = True
TIME_ZONE = env_time_zone("TZ", default="UTC")

# --- Static files -----------------------------------------------------------------------------------------------
STATIC_URL = f"{FORCE_SCRIPT_NAME or ''}/static/"
WHITENOISE_USE_FINDERS = True  # serves straight from the packages: nothing to collect before the first start
WHITENOISE_AUTOREFRESH = DEBUG
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 << 20  # 400.html names it
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5_000  # a form may offer three lists of 500 names, a list may have all rows ticked

# --- Logs -------------------------------------------------------------------------------------------------------
LOG_LEVEL = env_choice("LOG_LEVEL", default="warning", choices=("debug", "info", "warning", "error")).upper()
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "stream": sys.stderr}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    # django-q2 adds a handler of its own when it finds none.
    "loggers": {"django-q": {"handlers": ["stderr"], "level": "WARNING", "propagate": False}},
}
os.environ.setdefault("LANGSMITH_TRACING", "false")  # traces leave the house only when somebody says so
