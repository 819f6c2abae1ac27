"""Triton's control API: the only module that speaks it.

Facts this rests on, measured on Triton 2.51: a load over HTTP holds one of the server's few HTTP
threads until it ends, a load over gRPC disturbs nobody; giving up waiting does not cancel a load;
an unload answers at once and goes on by itself; errors come as JSON with a text type.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

import grpc
import httpx
from tritonclient.grpc import service_pb2, service_pb2_grpc

from apps.core.names import MODEL_NAME_PATTERN
from apps.fleet.asking import Answer, AskError, ask, asking
from apps.fleet.reasons import stripped
from apps.fleet.sightings import UNAVAILABLE, ModelSeen, VersionSeen

LOOK_SECONDS = 3.0
# How long a command may keep the worker that sent it. What takes longer is watched in the index.
COMMAND_SECONDS = 2.0
# Unloading what nobody has tells whether we may unload at all: it is answered with 200.
_PROBE_NAME = "inferadmin-control-check"
_SAFE_NAME = re.compile(MODEL_NAME_PATTERN)
_MAX_VERSION = 2**31 - 1
# A proxy of the environment is for the way out, not for our own machines.
_GRPC_OPTIONS = (("grpc.enable_http_proxy", 0),)
_GRPC_AS_HTTP = {
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
    grpc.StatusCode.CANCELLED: 504,
    grpc.StatusCode.INTERNAL: 500,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.UNAUTHENTICATED: 401,
}

Command = Literal["load", "unload"]


class Outcome(StrEnum):
    """What became of a command.

    NOT_SENT: the server cannot have seen it. UNKNOWN: it may have, only looking will tell.
    POLL_FAILED: the model's folder or config could not be read; Triton does not say why.
    """

    ACCEPTED = "accepted"
    REFUSED = "refused"
    POLL_FAILED = "poll_failed"
    READ_ONLY = "read_only"
    ACCESS_REFUSED = "access_refused"
    NOT_SENT = "not_sent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """The outcome of a command and the server's own words, stripped."""

    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Metadata:
    """What the server says of itself."""

    version: str
    extensions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Triton:
    """Where one Triton is; `grpc_address` (host:port) is empty where gRPC is closed."""

    url: str
    grpc_address: str = ""
    api_key: str = field(default="", repr=False)

    async def metadata(self, http: httpx.AsyncClient) -> Metadata:
        """Version and extensions; raises AskError."""
        found = _object(_required(await self._ask(http, "GET", "/v2")))
        extensions = found.get("extensions")
        return Metadata(
            version=str(found.get("version", ""))[:60],
            extensions=tuple(map(str, extensions)) if isinstance(extensions, list) else (),
        )

    async def index(self, http: httpx.AsyncClient) -> dict[str, ModelSeen]:
        """The models of the repository by name; names that are not safe in a URL are left out.

        Raises AskError, with code `access_refused` where this part of the API is closed.
        """
        answer = await self._ask(http, "POST", "/v2/repository/index", body={"ready": False})
        return index_parsed(_required(answer).json())

    async def may_control(self, http: httpx.AsyncClient) -> bool:
        """Whether the server loads and unloads on demand; raises AskError."""
        answer = await self._ask(http, "POST", f"/v2/repository/models/{_PROBE_NAME}/unload")
        return answer.is_ok

    async def config(self, http: httpx.AsyncClient, name: str) -> dict[str, Any]:
        """The configuration that is live; raises AskError."""
        return _object(_required(await self._ask(http, "GET", f"/v2/models/{_safe(name)}/config")))

    async def is_ready(self, http: httpx.AsyncClient, name: str, version: int) -> bool:
        """Whether a version says that it is ready; raises AskError."""
        path = f"/v2/models/{_safe(name)}/versions/{version}/ready"
        return (await self._ask(http, "GET", path)).is_ok

    async def command(self, command: Command, name: str) -> CommandAnswer:
        """Load or unload a model, waiting two seconds at most. Never raises.

        Goes over gRPC where there is one, else over an HTTP connection of its own.
        """
        if self.grpc_address:
            answer = await asyncio.to_thread(self._command_by_grpc, command, _safe(name))
            if answer.outcome != Outcome.NOT_SENT:
                return answer
        return await self._command_by_http(command, _safe(name))

    async def _command_by_http(self, command: Command, name: str) -> CommandAnswer:
        path = f"/v2/repository/models/{name}/{command}"
        try:
            async with asking() as http:
                answer = await self._ask(http, "POST", path, seconds=COMMAND_SECONDS, body={})
        except AskError as exc:
            return CommandAnswer(Outcome.UNKNOWN if exc.was_sent else Outcome.NOT_SENT)
        return _answer_of(answer.status, answer.text)

    def _command_by_grpc(self, command: Command, name: str) -> CommandAnswer:
        """Over a channel of its own: a kept one would sit out its back-off after a restart."""
        metadata = tuple(self._headers().items())
        with grpc.insecure_channel(self.grpc_address, options=_GRPC_OPTIONS) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            try:
                if command == "load":
                    load = service_pb2.RepositoryModelLoadRequest(model_name=name)
                    stub.RepositoryModelLoad(load, timeout=COMMAND_SECONDS, metadata=metadata)
                else:
                    unload = service_pb2.RepositoryModelUnloadRequest(model_name=name)
                    stub.RepositoryModelUnload(unload, timeout=COMMAND_SECONDS, metadata=metadata)
            except grpc.RpcError as exc:
                return _answer_of(_status_of_grpc(exc), str(exc.details()))
        return CommandAnswer(Outcome.ACCEPTED)

    async def _ask(
        self,
        http: httpx.AsyncClient,
        method: str,
        path: str,
        *,
        seconds: float = LOOK_SECONDS,
        body: object = None,
    ) -> Answer:
        return await ask(
            http, method, self.url + path, seconds=seconds, headers=self._headers(), body=body
        )

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.api_key}"} if self.api_key else {}


def index_parsed(rows: object) -> dict[str, ModelSeen]:
    """Triton's list of versions as models by name; raises AskError for what is no index."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise AskError("bad_answer")
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        name = row.get("name")
        if isinstance(name, str) and _SAFE_NAME.match(name):
            grouped.setdefault(name, []).append(row)
    return {name: _model(name, found) for name, found in grouped.items()}


def _model(name: str, rows: Sequence[dict[str, Any]]) -> ModelSeen:
    versions = [version for row in rows if (version := _version(row)) is not None]
    whole = next((row for row in rows if "version" not in row and row.get("reason")), {})
    return ModelSeen(
        name=name,
        versions=tuple(sorted(versions, key=lambda version: -version.number)),
        reason=stripped(str(whole.get("reason", ""))),
    )


def _version(row: dict[str, Any]) -> VersionSeen | None:
    """`None` for a row without a usable number: the folder alone."""
    text = str(row.get("version", ""))
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= _MAX_VERSION:
        return None
    state = str(row.get("state") or UNAVAILABLE)[:20]
    return VersionSeen(int(text), state, stripped(str(row.get("reason", ""))))


def _answer_of(status: int, text: str) -> CommandAnswer:
    """Triton's words decide where its status codes do not; the two protocols share the words."""
    reason = stripped(text)
    if status == httpx.codes.OK:
        return CommandAnswer(Outcome.ACCEPTED)
    if "is not allowed" in text and "explicit" in text:
        return CommandAnswer(Outcome.READ_ONLY, reason)
    if status in {401, 403} or "is restricted" in text:
        return CommandAnswer(Outcome.ACCESS_REFUSED, reason)
    if "failed to poll" in text:
        return CommandAnswer(Outcome.POLL_FAILED, reason)
    if status in _UNSURE:
        return CommandAnswer(_UNSURE[status])
    return CommandAnswer(Outcome.REFUSED, reason)


# Statuses that say nothing about the command itself.
_UNSURE = {408: Outcome.UNKNOWN, 502: Outcome.UNKNOWN, 503: Outcome.NOT_SENT, 504: Outcome.UNKNOWN}


def _status_of_grpc(error: grpc.RpcError) -> int:
    if error.code() == grpc.StatusCode.UNAVAILABLE:
        # Told by the library before anything was sent, or after the connection has broken.
        return 503 if "failed to connect" in str(error.details()).lower() else 502
    return _GRPC_AS_HTTP.get(error.code(), 400)


def _required(answer: Answer) -> Answer:
    """The answer if it is a 200; raises AskError."""
    if answer.status in {401, 403}:
        raise AskError("access_refused", status=answer.status)
    if not answer.is_ok:
        raise AskError("bad_status", status=answer.status)
    return answer


def _object(answer: Answer) -> dict[str, Any]:
    found = answer.json()
    if not isinstance(found, dict):
        raise AskError("bad_answer")
    return found


def _safe(name: str) -> str:
    """The name, which goes into a path; Triton does not decode it."""
    if not _SAFE_NAME.match(name):
        raise ValueError(f"not a model name: {name!r}")
    return name
