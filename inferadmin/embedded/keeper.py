"""Keeping children alive: what ends is started again, ever more slowly while it keeps ending."""

import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from inferadmin.embedded.processes import Child

_FIRST_DELAY_SECONDS = 0.5
_MAX_DELAY_SECONDS = 30.0
# A child that has run this long has got over what made it end.
_HEALTHY_SECONDS = 60.0


@dataclass(slots=True)
class _Ward:
    child: Child
    started_at: float
    failures: int = 0
    # Monotonic time of the next start; None while it runs.
    restart_at: float | None = None


@dataclass(slots=True)
class Keeper:
    """The children of a supervisor. `tick` is to be called a few times a second."""

    # Told what happened, in a sentence.
    say: Callable[[str], None]
    # Told that the set of processes is another one.
    changed: Callable[[], None]
    _wards: list[_Ward] = field(default_factory=list)

    @property
    def children(self) -> list[Child]:
        """In the order of their start."""
        return [ward.child for ward in self._wards]

    def start(self, child: Child) -> None:
        """Start a child and keep it."""
        child.start()
        self._wards.append(_Ward(child, time.monotonic()))
        self.changed()

    def tick(self) -> None:
        """Look at every child once, and start again what is due."""
        for ward in self._wards:
            self._look_at(ward, time.monotonic())

    def _look_at(self, ward: _Ward, now: float) -> None:
        if ward.child.is_running:
            if now - ward.started_at > _HEALTHY_SECONDS:
                ward.failures = 0
        elif ward.restart_at is None:
            self._schedule(ward, now)
        elif now >= ward.restart_at:
            ward.child.start()
            ward.started_at, ward.restart_at = now, None
            self.changed()

    def _schedule(self, ward: _Ward, now: float) -> None:
        delay = min(_FIRST_DELAY_SECONDS * 2**ward.failures, _MAX_DELAY_SECONDS)
        ward.failures += 1
        ward.restart_at = now + delay
        name, ending = ward.child.command.name, _ending(ward.child.exit_code)
        ward.child.stop()  # whatever it has started itself must not outlive it
        self.say(f"{name} {ending}; starting it again in {delay:g} s (log: {ward.child.log_path})")

    def stop(self, *groups: Iterable[str]) -> None:
        """End the children: those of the first group of names together, then the next, the rest."""
        for names in groups:
            _stop_together(child for child in self.children if child.command.name in set(names))
        _stop_together(self.children)


def _stop_together(children: Iterable[Child]) -> None:
    found = list(children)
    for child in found:
        child.ask_to_stop()
    for child in found:
        child.stop()


def _ending(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"was ended by {signal.Signals(-exit_code).name}"
    return f"ended with exit code {exit_code}"
