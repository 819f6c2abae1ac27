"""A Triton that does as it is told: its control API over HTTP and gRPC, with scripted models.

    with FakeTriton() as triton:
        triton.models["slow"] = FakeModel(load_seconds=5)
        triton.models["broken"] = FakeModel(load_error="Internal: ValueError: no weights")

What it answers was measured on Triton 2.51. It speaks real HTTP and gRPC on free ports.
"""

import json
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, ClassVar, Literal

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

Mood = Literal[
    "well", "garbage", "not_a_list", "redirect", "huge", "silent", "failing", "restricted"
]
_HUGE_BYTES = 8 * 1024 * 1024
_POLL_FAILED = "failed to load '{}', failed to poll from model repository"
_NOT_EXPLICIT = "explicit model load / unload is not allowed if polling is enabled"


@dataclass
class FakeModel:
    """A folder of the repository and what happens when it is loaded or unloaded."""

    on_disk: list[int] = field(default_factory=lambda: [1])
    load_seconds: float = 0
    # 400 with this reason; the versions show it in the index.
    load_error: str = ""
    # 500 "failed to poll", which leaves no trace; `failing_polls` times, -1 for ever.
    failing_polls: int = 0
    # Stays LOADING and answers never, or UNLOADING.
    load_hangs: bool = False
    unload_hangs: bool = False
    unload_seconds: float = 0
    # 200, and nothing happens.
    lies: bool = False
    # The index says READY, the model itself does not.
    is_ready_itself: bool = True
    config: dict[str, Any] = field(default_factory=dict)
    # Number → (state, reason): what the process knows.
    known: dict[int, tuple[str, str]] = field(default_factory=dict)

    def show(self, state: str, reason: str = "") -> None:
        """Put every version on disk into a state."""
        self.known = dict.fromkeys(self.on_disk, (state, reason))


@dataclass(frozen=True)
class Refusal:
    """An error answer: HTTP status, gRPC code, text."""

    status: int
    code: grpc.StatusCode
    text: str


class FakeTriton:
    """The server; a context manager. `commands` are those it was given, in order."""

    def __init__(self, *, has_grpc: bool = True) -> None:
        self.models: dict[str, FakeModel] = {}
        self.commands: list[tuple[str, str]] = []
        self.mood: Mood = "well"
        # Called when a command has come in, before anything is done about it.
        self.on_command: Callable[[], None] = lambda: None
        self.is_explicit = True
        self.grpc_address = ""
        self._has_grpc = has_grpc
        self._lock = Lock()
        self._end = Event()
        self._http: ThreadingHTTPServer | None = None
        self._grpc: grpc.Server | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> "FakeTriton":
        self.start()
        if self._has_grpc:
            self._start_grpc()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._end.set()
        self.stop()
        if self._grpc is not None:
            self._grpc.stop(None).wait()

    def start(self) -> None:
        """Listen for HTTP, at first on a free port, later on the same one."""
        fake = self

        class Handler(_Handler):
            triton = fake

        self._http = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._http.daemon_threads = True
        self._port = self._http.server_address[1]
        Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """HTTP is gone: connections are refused."""
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http = None

    def restart(self) -> None:
        """A new process: it knows nothing of what was loaded."""
        for model in self.models.values():
            model.known = {}

    @contextmanager
    def down(self) -> Iterator[None]:
        """Without HTTP for a while."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def sent(self, command: str) -> int:
        """How often a command was given."""
        return sum(given == command for given, _name in self.commands)

    # The control API

    def index(self) -> list[dict[str, str]]:
        rows: list[dict[str, str]] = []
        with self._lock:
            for name, model in self.models.items():
                if not model.known:
                    rows.append({"name": name})
                for number, (state, reason) in model.known.items():
                    row = {"name": name, "version": str(number), "state": state}
                    rows.append(row | ({"reason": reason} if reason else {}))
        return rows

    def control(self, command: str, name: str) -> Refusal | None:
        """Do a command; it takes as long as the model says."""
        if not self.is_explicit:
            return Refusal(503, grpc.StatusCode.UNAVAILABLE, _NOT_EXPLICIT)
        self.commands.append((command, name))
        self.on_command()
        model = self.models.get(name)
        if command == "load":
            return self._load(name, model)
        self._unload(model)
        return None

    def _load(self, name: str, model: FakeModel | None) -> Refusal | None:
        if model is None or model.failing_polls:
            if model is not None:
                model.failing_polls -= 1
            return Refusal(500, grpc.StatusCode.INTERNAL, _POLL_FAILED.format(name))
        if model.lies:
            return None
        model.show("LOADING")
        if model.load_hangs:
            self._end.wait()
        self._end.wait(model.load_seconds)
        if model.load_error:
            model.show("UNAVAILABLE", model.load_error)
            text = f"load failed for model '{name}': version 1 is at UNAVAILABLE state: "
            return Refusal(400, grpc.StatusCode.INVALID_ARGUMENT, text + model.load_error)
        model.show("READY")
        return None

    def _unload(self, model: FakeModel | None) -> None:
        """Always yes, and at once; the rest happens by itself."""
        if model is None or model.lies:
            return
        model.known = {
            number: ("UNLOADING", "") if state == "READY" else (state, reason)
            for number, (state, reason) in model.known.items()
        }
        if not model.unload_hangs:
            Thread(target=self._drain, args=(model,), daemon=True).start()

    def _drain(self, model: FakeModel) -> None:
        time.sleep(model.unload_seconds)
        model.known = {
            number: ("UNAVAILABLE", "unloaded") if state == "UNLOADING" else (state, reason)
            for number, (state, reason) in model.known.items()
        }

    def _start_grpc(self) -> None:
        self._grpc = grpc.server(futures.ThreadPoolExecutor(8))
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(_Grpc(self), self._grpc)
        self.grpc_address = f"127.0.0.1:{self._grpc.add_insecure_port('127.0.0.1:0')}"
        self._grpc.start()


class _Grpc(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]  # generated
    def __init__(self, triton: FakeTriton) -> None:
        self._triton = triton

    def RepositoryModelLoad(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        self._answer(self._triton.control("load", request.model_name), context)
        return service_pb2.RepositoryModelLoadResponse()

    def RepositoryModelUnload(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        self._answer(self._triton.control("unload", request.model_name), context)
        return service_pb2.RepositoryModelUnloadResponse()

    def _answer(self, refusal: Refusal | None, context: grpc.ServicerContext) -> None:
        if refusal is not None:
            context.abort(refusal.code, refusal.text)


class _Handler(BaseHTTPRequestHandler):
    triton: ClassVar[FakeTriton]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if not self._is_moody():
            self._get()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self._is_moody():
            self._post()

    def log_message(self, *_args: object) -> None:
        """Silence."""

    def _is_moody(self) -> bool:
        """Answer as the server's mood is, unless it is well."""
        match self.triton.mood:
            case "well":
                return False
            case "garbage":
                self._send(200, b"<html>not json")
            case "not_a_list":
                self._send(200, b'{"models": 1}')
            case "redirect":
                self._send(302, b"", location="http://127.0.0.1:9/elsewhere")
            case "huge":
                self._send(200, b" " * _HUGE_BYTES)
            case "silent":
                self.triton._end.wait()
            case "failing":
                self._send(500, b'{"error": "no"}')
            case "restricted":
                if self.path == "/v2":
                    return False
                self._send(403, b"This API is restricted, expecting header 'x-admin'")
        return True

    def _get(self) -> None:
        parts = self.path.strip("/").split("/")
        model = self.triton.models.get(parts[2]) if len(parts) > 2 else None
        if parts == ["v2"]:
            self._send_json({"name": "triton", "version": "2.51.0", "extensions": ["statistics"]})
        elif model is not None and parts[-1] == "config":
            self._send_json({"name": parts[2], **model.config})
        elif model is not None and parts[-1] == "ready":
            state, _reason = model.known.get(int(parts[4]), ("", ""))
            is_ready = state == "READY" and model.is_ready_itself
            self._send(200 if is_ready else 400, b"")
        else:
            self._send(404, b'{"error": "not found"}')

    def _post(self) -> None:
        parts = self.path.strip("/").split("/")
        if parts == ["v2", "repository", "index"]:
            self._send_json(self.triton.index())
            return
        refusal = self.triton.control(parts[4], parts[3])
        if refusal is None:
            self._send(200, b"")
        else:
            self._send(refusal.status, json.dumps({"error": refusal.text}).encode())

    def _send_json(self, value: object) -> None:
        self._send(200, json.dumps(value).encode())

    def _send(self, status: int, body: bytes, *, location: str = "") -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if location:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True
