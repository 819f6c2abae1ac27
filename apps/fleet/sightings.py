"""What a look at a server has seen, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from apps.fleet.models import Placement

# Code of what is wrong and its parameters, as {"code": "timed_out", "seconds": 3}.
Reason = dict[str, Any]

READY = "READY"
LOADING = "LOADING"
UNLOADING = "UNLOADING"
UNAVAILABLE = "UNAVAILABLE"
_UNLOADED_REASON = "unloaded"


class Standing(StrEnum):
    """A model as a whole, told from its versions; what moves is named first.

    LISTED: the folder is there, but this process of the server has never loaded it.
    """

    ABSENT = "absent"
    LISTED = "listed"
    UNLOADED = "unloaded"
    LOADING = "loading"
    READY = "ready"
    PARTLY_READY = "partly_ready"
    UNLOADING = "unloading"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class VersionSeen:
    """A version that the server's process knows; `state` in Triton's words."""

    number: int
    state: str
    # The server's own words, stripped; "" when there are none.
    reason: str = ""

    @property
    def has_failed(self) -> bool:
        """True when it is not there, and not because somebody unloaded it."""
        return self.state == UNAVAILABLE and self.reason != _UNLOADED_REASON


@dataclass(frozen=True, slots=True)
class ModelSeen:
    """A model of the repository; `versions` highest first."""

    name: str
    versions: tuple[VersionSeen, ...] = ()
    # Why the model as a whole cannot be used; "" when nothing is wrong with it.
    reason: str = ""

    @property
    def standing(self) -> Standing:
        """The model as a whole."""
        states = {version.state for version in self.versions}
        if LOADING in states:
            return Standing.LOADING
        has_failed = self.failure != ""
        if READY in states:
            return Standing.PARTLY_READY if has_failed else Standing.READY
        if UNLOADING in states:
            return Standing.UNLOADING
        if has_failed:
            return Standing.UNAVAILABLE
        return Standing.UNLOADED if states else Standing.LISTED

    @property
    def is_moving(self) -> bool:
        """True while a version is being loaded or unloaded."""
        return any(version.state in {LOADING, UNLOADING} for version in self.versions)

    @property
    def ready_versions(self) -> list[int]:
        """Numbers of the versions that answer, highest first."""
        return [version.number for version in self.versions if version.state == READY]

    @property
    def failure(self) -> str:
        """The server's words for what has failed, of the highest version first; "" for nothing."""
        failed = (version.reason for version in self.versions if version.has_failed)
        return next(failed, self.reason)

    @property
    def rows(self) -> list[dict[str, object]]:
        """The versions as a placement keeps them."""
        return [
            {"number": version.number, "state": version.state, "reason": version.reason}
            for version in self.versions
        ]


def standing_of(model: ModelSeen | None) -> Standing:
    """As `ModelSeen.standing`; `None` is a model that the repository does not have."""
    return Standing.ABSENT if model is None else model.standing


_OBSERVED = {
    Standing.ABSENT: Placement.Observed.ABSENT,
    Standing.LISTED: Placement.Observed.UNLOADED,
    Standing.UNLOADED: Placement.Observed.UNLOADED,
    Standing.LOADING: Placement.Observed.LOADING,
    Standing.READY: Placement.Observed.READY,
    Standing.PARTLY_READY: Placement.Observed.DEGRADED,
    Standing.UNLOADING: Placement.Observed.UNLOADING,
    Standing.UNAVAILABLE: Placement.Observed.UNAVAILABLE,
}


def observed_of(model: ModelSeen | None) -> Placement.Observed:
    """What a placement shows: a model that answers is ready, also while more of it is loading."""
    if model is not None and model.standing == Standing.LOADING and model.ready_versions:
        return Placement.Observed.READY
    return _OBSERVED[standing_of(model)]


@dataclass(frozen=True, slots=True)
class ServerSeen:
    """The outcome of one look at a server.

    `failure` says why it could not be looked at; then nothing else counts. `models` is `None`
    where the server has no repository, or does not show it.
    """

    server_id: int
    failure: Reason = field(default_factory=dict)
    # What is wrong with a server that does answer; empty when nothing is.
    complaint: Reason = field(default_factory=dict)
    engine_version: str = ""
    extensions: tuple[str, ...] = ()
    # None: not asked.
    may_control: bool | None = None
    models: Mapping[str, ModelSeen] | None = None
    offered_models: tuple[str, ...] = ()
