"""Servers, their GPUs, what is loaded where, and operations on that."""

import uuid
from datetime import datetime

from django.conf import settings
from django.core.validators import URLValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.catalog.models import ServedModel
from apps.core.names import MODEL_NAME_PATTERN, model_name_validator

_http_url = URLValidator(schemes=["http", "https"])


class Server(models.Model):
    """A process that serves models: a Triton, another engine, or a paid API."""

    class Kind(models.TextChoices):
        """Which dialect the server speaks."""

        TRITON = "triton", "Triton"
        VLLM = "vllm", "vLLM"
        SGLANG = "sglang", "SGLang"
        TGI = "tgi", "TGI"
        TENSORRT_LLM = "tensorrt_llm", "TensorRT-LLM"
        LLAMA_CPP = "llama_cpp", "llama.cpp"
        OPENAI = "openai", "OpenAI"
        ANTHROPIC = "anthropic", "Anthropic"
        GEMINI = "gemini", "Gemini"
        DEEPSEEK = "deepseek", "DeepSeek"
        OPENAI_COMPATIBLE = "openai_compatible", _("OpenAI-compatible")

    class State(models.TextChoices):
        """What the last look at the server said."""

        UNKNOWN = "unknown", _("Unknown")
        ONLINE = "online", _("Online")
        DEGRADED = "degraded", _("Degraded")
        UNREACHABLE = "unreachable", _("Unreachable")

    class ControlMode(models.TextChoices):
        """Whether Triton lets us load and unload."""

        UNKNOWN = "unknown", _("Unknown")
        EXPLICIT = "explicit", _("Explicit")
        READ_ONLY = "read_only", _("Read-only")

    name = models.CharField(
        _("name"),
        max_length=128,
        unique=True,
        validators=[model_name_validator],
        error_messages={"unique": _("There is a server of this name already.")},
    )
    kind = models.CharField(_("kind"), max_length=20, choices=Kind)
    # Root of the HTTP interface: "http://gpu-1:8000" for Triton, ".../v1" left off for OpenAI's.
    url = models.CharField(_("URL"), max_length=300, validators=[_http_url])
    # host:port of Triton's gRPC; empty where it is closed.
    grpc_address = models.CharField(_("gRPC address"), max_length=200, blank=True)
    # Prometheus text; empty where there is none.
    metrics_url = models.CharField(
        _("metrics URL"), max_length=300, blank=True, validators=[_http_url]
    )
    # External servers are never used for what is marked on-prem only.
    is_external = models.BooleanField(_("external"), default=False)
    is_enabled = models.BooleanField(_("enabled"), default=True)
    api_key_encrypted = models.TextField(blank=True, editable=False)
    note = models.TextField(_("note"), blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    # Observed.
    state = models.CharField(max_length=20, choices=State, default=State.UNKNOWN, editable=False)
    # Code and parameters of what is wrong, as {"code": "connect_failed", …}; {} when nothing is.
    state_reason = models.JSONField(default=dict, blank=True, editable=False)
    state_since = models.DateTimeField(default=timezone.now, editable=False)
    last_seen_at = models.DateTimeField(null=True, blank=True, editable=False)
    engine_version = models.CharField(max_length=60, blank=True, editable=False)
    extensions = models.JSONField(default=list, blank=True, editable=False)
    control_mode = models.CharField(
        max_length=20, choices=ControlMode, default=ControlMode.UNKNOWN, editable=False
    )
    # None: not asked yet, or to be asked again.
    control_checked_at = models.DateTimeField(null=True, editable=False)
    # When the last look began, and how many have failed since one succeeded.
    looked_at = models.DateTimeField(null=True, editable=False)
    failed_looks = models.PositiveIntegerField(default=0, editable=False)
    # Names of the models that an engine other than Triton offers, sorted.
    offered_models = models.JSONField(default=list, blank=True, editable=False)

    class Meta:
        ordering = ["name"]
        verbose_name = _("server")
        verbose_name_plural = _("servers")
        constraints = [
            models.CheckConstraint(
                condition=Q(name__regex=MODEL_NAME_PATTERN), name="server_name_is_safe"
            ),
            models.CheckConstraint(
                condition=Q(url__regex=r"^https?://[^\s/]"), name="server_url_is_http"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_triton(self) -> bool:
        """True where models are loaded and unloaded by us."""
        return self.kind == Server.Kind.TRITON


class Gpu(models.Model):
    """A GPU that a server has reported; Triton tells only its uuid."""

    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="gpus")
    uuid = models.CharField(max_length=80)
    # None: unknown, which is what a reported total of 0 means.
    memory_total_bytes = models.BigIntegerField(null=True)
    first_seen_at = models.DateTimeField(default=timezone.now)
    last_seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["server", "uuid"]
        constraints = [
            models.UniqueConstraint(fields=["server", "uuid"], name="gpu_once_a_server"),
        ]

    def __str__(self) -> str:
        return self.uuid


class Placement(models.Model):
    """A model on a server: what is wanted, and what was last seen."""

    class Desired(models.TextChoices):
        """What an operator wants; UNMANAGED takes what it finds."""

        UNMANAGED = "unmanaged", _("Unmanaged")
        LOADED = "loaded", _("Loaded")
        UNLOADED = "unloaded", _("Unloaded")

    class Observed(models.TextChoices):
        """What the repository index says, in our words."""

        UNKNOWN = "unknown", _("Unknown")
        ABSENT = "absent", _("Absent")
        UNLOADED = "unloaded", _("Unloaded")
        LOADING = "loading", _("Loading")
        READY = "ready", _("Ready")
        DEGRADED = "degraded", _("Degraded")
        UNLOADING = "unloading", _("Unloading")
        UNAVAILABLE = "unavailable", _("Unavailable")
        STALLED = "stalled", _("Stalled")

    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="placements")
    model = models.ForeignKey(ServedModel, on_delete=models.PROTECT, related_name="placements")
    desired = models.CharField(max_length=20, choices=Desired, default=Desired.UNMANAGED)
    # Counts changes of what is wanted; an operation carries the number it works for.
    generation = models.PositiveIntegerField(default=0)
    observed = models.CharField(max_length=20, choices=Observed, default=Observed.UNKNOWN)
    # One item a version that the server's process knows, highest first:
    # {"number": 2, "state": "READY", "reason": ""}. As last seen where `observed` is UNKNOWN.
    versions = models.JSONField(default=list)
    # Server's own words for a failure, paths and tracebacks stripped; "" when there is none.
    reason = models.TextField(blank=True)
    # When versions or reason were last seen to change; None before the first look.
    observed_at = models.DateTimeField(null=True)
    # Since when `observed` is what it is.
    since = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["server__name", "model__name"]
        verbose_name = _("placement")
        verbose_name_plural = _("placements")
        constraints = [
            models.UniqueConstraint(fields=["server", "model"], name="model_once_a_server"),
        ]

    def __str__(self) -> str:
        return f"{self.model} on {self.server}"

    @property
    def ready_versions(self) -> list[int]:
        """Numbers of the versions that answer requests, highest first."""
        return [item["number"] for item in self.versions if item["state"] == "READY"]

    @property
    def latest_operation(self) -> "Operation | None":
        """The newest operation; free of charge on rows of `selectors.placements_of`."""
        found = getattr(self, "latest_operations", None)
        return next(iter(self.operations.all()[:1] if found is None else found), None)

    @property
    def open_operation(self) -> "Operation | None":
        """The operation that is under way; there is at most one, and it is the newest."""
        latest = self.latest_operation
        return latest if latest is not None and latest.is_open else None


class Operation(models.Model):
    """One load, unload or reload: asked for, sent, watched, ended. Never deleted."""

    class Kind(models.TextChoices):
        """What is done."""

        LOAD = "load", _("Load")
        UNLOAD = "unload", _("Unload")
        RELOAD = "reload", _("Reload")

    class State(models.TextChoices):
        """How far it is; the first four are open."""

        PENDING = "pending", _("Pending")
        DISPATCHED = "dispatched", _("Dispatched")
        OBSERVING = "observing", _("Observing")
        VERIFYING = "verifying", _("Verifying")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")
        STALLED = "stalled", _("Stalled")
        SUPERSEDED = "superseded", _("Superseded")
        NEEDS_RESTART = "needs_restart", _("Needs restart")

    class Step(models.TextChoices):
        """The command that is next or under way; a reload is an unload and then a load."""

        UNLOAD = "unload", _("Unload")
        LOAD = "load", _("Load")

    OPEN_STATES = ("pending", "dispatched", "observing", "verifying")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    placement = models.ForeignKey(Placement, on_delete=models.CASCADE, related_name="operations")
    kind = models.CharField(max_length=20, choices=Kind)
    state = models.CharField(max_length=20, choices=State, default=State.PENDING)
    generation = models.PositiveIntegerField()
    # Code of how it ended and its parameters, rendered in the reader's language; {} while open.
    verdict = models.JSONField(default=dict)
    # Server's own words, stripped of paths and tracebacks.
    reason = models.TextField(blank=True)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    requested_by_label = models.CharField(max_length=150)
    # How often the command of this step was sent.
    attempts = models.PositiveSmallIntegerField(default=0)
    step = models.CharField(max_length=20, choices=Step, default=Step.LOAD)
    created_at = models.DateTimeField(default=timezone.now)
    # When the first command was sent, and the last one of this step.
    dispatched_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    # True: the server said yes. None: no answer (yet), so only what is seen counts.
    is_accepted = models.BooleanField(null=True)
    # The placement's `versions` just before the command; True once they were seen in motion.
    versions_before = models.JSONField(default=list)
    has_moved = models.BooleanField(default=False)
    # A worker that works on it sets this; another adopts the operation when it is old.
    heartbeat_at = models.DateTimeField(null=True)
    # Not to be looked at before: the back-off after a server that does not answer.
    due_at = models.DateTimeField(default=timezone.now)
    # Of this step: beyond it the operation is stalled, or failed when nothing was sent.
    deadline_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("operation")
        verbose_name_plural = _("operations")
        constraints = [
            models.UniqueConstraint(
                fields=["placement"],
                condition=Q(state__in=("pending", "dispatched", "observing", "verifying")),
                name="one_open_operation_a_placement",
            ),
            models.CheckConstraint(
                condition=Q(
                    state__in=("pending", "dispatched", "observing", "verifying"),
                    finished_at__isnull=True,
                )
                | (
                    ~Q(state__in=("pending", "dispatched", "observing", "verifying"))
                    & Q(finished_at__isnull=False)
                ),
                name="operation_is_finished_or_open",
            ),
        ]
        indexes = [models.Index(fields=["state", "created_at"])]

    def __str__(self) -> str:
        return f"{self.kind} {self.placement}"

    @property
    def is_open(self) -> bool:
        """True until it has ended in one way or another."""
        return self.state in self.OPEN_STATES

    @property
    def sent_since(self) -> datetime:
        """When the last command was sent; while there was none, when it was asked for."""
        return self.sent_at or self.created_at
