"""Talking to servers for operations: many at once, and nothing here touches the database."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from apps.fleet.asking import AskError, asking
from apps.fleet.looks import triton_of
from apps.fleet.models import Operation
from apps.fleet.sightings import ModelSeen
from apps.fleet.triton import Command, CommandAnswer, Triton


@dataclass(frozen=True, slots=True)
class Talk:
    """What is to be said: the command of the operation's step, or questions to the model.

    `model`: as the index has just shown it.
    """

    operation: Operation
    what: Literal["send", "verify"]
    model: ModelSeen | None


@dataclass(frozen=True, slots=True)
class Verification:
    """What a model said when it was asked itself."""

    are_ready: bool
    # Versions that its config names one by one and that are not ready.
    missing: list[int]


Reply = CommandAnswer | Verification | AskError


async def talk_all(talks: Sequence[Talk]) -> list[Reply]:
    """The replies in order; AskError where a server could not be asked."""
    return await asyncio.gather(*map(_talk, talks))


async def _talk(talk: Talk) -> Reply:
    try:
        triton = triton_of(talk.operation.placement.server)
        name = talk.operation.placement.model.name
        if talk.what == "verify":
            return await _verify(triton, name, talk.model)
        command: Command = "load" if talk.operation.step == Operation.Step.LOAD else "unload"
        return await triton.command(command, name)
    except AskError as exc:
        return exc


async def _verify(triton: Triton, name: str, model: ModelSeen | None) -> Verification:
    """Ask each version whether it is ready, and the config which ones there should be."""
    versions = [] if model is None else model.ready_versions
    async with asking() as http:
        answers = await asyncio.gather(
            *(triton.is_ready(http, name, version) for version in versions)
        )
        config = await triton.config(http, name)
    missing = sorted(set(_named_versions(config)) - set(versions))
    return Verification(are_ready=bool(versions) and all(answers), missing=missing)


def _named_versions(config: dict[str, Any]) -> list[int]:
    """Versions that the config names one by one; Triton drops those it does not find silently."""
    policy = config.get("version_policy")
    specific = policy.get("specific") if isinstance(policy, dict) else None
    versions = specific.get("versions") if isinstance(specific, dict) else None
    return [int(item) for item in versions] if isinstance(versions, list) else []
