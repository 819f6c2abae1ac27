"""What the live socket carries, and the groups that it comes through.

Ticks travel to the sockets in groups of their own; `changed` comes from `apps.core.live`.
"""

from typing import Literal, TypedDict

from apps.metrics.names import Topic


class Snapshot(TypedDict):
    """History of a topic. Each array of `series` is as long as `t`; `None` fills the gaps."""

    type: Literal["snapshot"]
    topic: str
    # Seconds between two points.
    step: int
    # Seconds since 1970, oldest first.
    t: list[int]
    series: dict[str, list[float | None]]


class Tick(TypedDict):
    """One second of a topic. A series that nobody reports is missing, an unknown value `None`."""

    type: Literal["tick"]
    topic: str
    t: int
    values: dict[str, float | None]


class Changed(TypedDict):
    """An object has changed; the page fetches its part again."""

    type: Literal["changed"]
    kind: str
    id: str
    server_id: int | None


class Heartbeat(TypedDict):
    """The socket is alive though there may be nothing to tell."""

    type: Literal["heartbeat"]
    t: int


Frame = Snapshot | Tick | Changed | Heartbeat


class TickEvent(TypedDict):
    """A tick on its way through the channel layer."""

    type: Literal["live.tick"]
    tick: Tick


def group_of(topic: Topic) -> str:
    """Channels group of a topic: `live.overview` or `live.server.<id>`."""
    return f"live.{str(topic).replace(':', '.')}"
