"""Checking the targets of a route; what is wrong is named by index and field: `targets.0.tier`."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NotRequired, TypedDict

from django.core.exceptions import ValidationError

from apps.core.errors import InvalidRequestError
from apps.core.names import MODEL_NAME_PATTERN
from apps.fleet.models import Server
from apps.routes.models import Route, Target

MAX_TARGETS = 50
_OPENAI: tuple[str, ...] = (Target.Protocol.OPENAI,)
# What kinds of servers speak, the usual protocol first; others speak OpenAI's.
_PROTOCOLS: Mapping[str, tuple[str, ...]] = {
    Server.Kind.TRITON: (Target.Protocol.TRITON_GENERATE, Target.Protocol.TRITON_INFER),
    Server.Kind.ANTHROPIC: (Target.Protocol.ANTHROPIC,),
    Server.Kind.GEMINI: (Target.Protocol.GEMINI,),
    # These answer `/v1/messages` besides.
    Server.Kind.VLLM: (Target.Protocol.OPENAI, Target.Protocol.ANTHROPIC),
    Server.Kind.LLAMA_CPP: (Target.Protocol.OPENAI, Target.Protocol.ANTHROPIC),
    Server.Kind.OPENAI_COMPATIBLE: (Target.Protocol.OPENAI, Target.Protocol.ANTHROPIC),
}
_MODEL_NAME = re.compile(MODEL_NAME_PATTERN)
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f]")

Problems = dict[str, list[str]]


class TargetValues(TypedDict):
    """One target as it is asked for."""

    server_id: int
    upstream_model: str
    version: NotRequired[int | None]
    protocol: str
    tier: NotRequired[int]
    weight: NotRequired[int]
    is_enabled: NotRequired[bool]
    max_in_flight: NotRequired[int | None]


_KNOWN = TargetValues.__required_keys__ | TargetValues.__optional_keys__


def targets_checked(route: Route, values: Sequence[Mapping[str, Any]]) -> list[Target]:
    """Unsaved targets in the given order; raises InvalidRequestError that names every problem."""
    if len(values) > MAX_TARGETS:
        raise InvalidRequestError.of("targets", f"a route has {MAX_TARGETS} targets at most")
    problems = _shape_problems(values)
    if not problems:
        targets = [Target(route=route, **item) for item in values]
        servers = Server.objects.in_bulk({target.server_id for target in targets})
        problems = _target_problems(targets, servers) or _whole_problems(targets)
    if problems:
        text = "; ".join(f"{name}: {' '.join(found)}" for name, found in problems.items())
        raise InvalidRequestError(text, fields=problems)
    return targets


def _shape_problems(values: Sequence[Mapping[str, Any]]) -> Problems:
    """Fields that are unknown or missing."""
    problems: Problems = {}
    for index, item in enumerate(values):
        for name in sorted(set(item) - _KNOWN):
            known = ", ".join(sorted(_KNOWN))
            problems[f"targets.{index}.{name}"] = [f"unknown field; known are {known}"]
        for name in sorted(TargetValues.__required_keys__ - set(item)):
            problems[f"targets.{index}.{name}"] = ["this field is required"]
    return problems


def _target_problems(targets: Sequence[Target], servers: Mapping[int, Server]) -> Problems:
    """What is wrong with targets by themselves."""
    problems: Problems = {}
    for index, target in enumerate(targets):
        server = servers.get(target.server_id)
        if server is None:
            found = {"server_id": [f"there is no server {target.server_id}"]}
        else:
            target.server = server
            found = _field_problems(target) or _fit_problems(target)
        problems |= {f"targets.{index}.{name}": texts for name, texts in found.items()}
    return problems


def _field_problems(target: Target) -> Problems:
    try:
        target.clean_fields(exclude=["route", "server"])
    except ValidationError as exc:
        return exc.message_dict
    if target.version == 0:
        return {"version": ["versions count from 1; leave it empty for the highest ready one"]}
    return {}


def _fit_problems(target: Target) -> Problems:
    """Whether protocol, name, version and policy fit the server."""
    server, route = target.server, target.route
    spoken = protocols_of(server.kind)
    if target.protocol not in spoken:
        kind = server.get_kind_display()
        return {"protocol": [f"{server.name} is a server of {kind}; use {' or '.join(spoken)}"]}
    if not server.is_triton and target.version is not None:
        return {"version": ["only Triton servers have numbered versions; leave it empty"]}
    if server.is_external and route.data_class == Route.DataClass.ON_PREM:
        return {"server_id": [f"{server.name} is external and the route is on-prem only"]}
    return _name_problems(target)


def protocols_of(kind: str) -> tuple[str, ...]:
    """Values of `Target.Protocol` that a kind of server speaks, the usual one first."""
    return _PROTOCOLS.get(kind, _OPENAI)


def _name_problems(target: Target) -> Problems:
    name = target.upstream_model
    if target.server.is_triton and not _MODEL_NAME.match(name):
        return {"upstream_model": ["Triton's names have letters, digits, dot, dash, underscore"]}
    if _CONTROL_CHARACTERS.search(name) or name != name.strip():
        return {"upstream_model": ["leave out line breaks and spaces around the name"]}
    return {}


def _whole_problems(targets: Sequence[Target]) -> Problems:
    """What is wrong with the targets together."""
    return _repetition_problems(targets) or _weight_problems(targets)


def _repetition_problems(targets: Sequence[Target]) -> Problems:
    first: dict[tuple[object, ...], int] = {}
    problems: Problems = {}
    for index, target in enumerate(targets):
        earlier = first.setdefault(target_identity(target), index)
        if earlier != index:
            problems[f"targets.{index}.upstream_model"] = [f"the same target as number {earlier}"]
    return problems


def _weight_problems(targets: Sequence[Target]) -> Problems:
    """Tiers whose enabled targets have no weight between them would never be chosen."""
    enabled = sorted((t for t in targets if t.is_enabled), key=lambda target: target.tier)
    empty = [
        str(tier)
        for tier, members in groupby(enabled, key=lambda target: target.tier)
        if not any(target.weight for target in members)
    ]
    if not empty:
        return {}
    return {
        "targets": [
            f"the weights of tier {', '.join(empty)} add up to 0; "
            "give a target a weight, or disable them"
        ]
    }


def target_identity(target: Target) -> tuple[object, ...]:
    """What makes two targets of a route the same."""
    return target.server_id, target.upstream_model, target.version
