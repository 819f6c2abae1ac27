"""The first records: a person, the model servers of this machine, models, routes, a key, prices.

Safe to run at every start. The servers' addresses follow the run; models, routes and prices are
made once, together with the server they belong to, and then belong to the people who use them.
"""

import secrets
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import TypedDict, Unpack

from django.db import transaction

from apps.billing.models import Price
from apps.billing.services.prices import Rates, price_set
from apps.catalog.models import ModelVersion, ServedModel
from apps.catalog.services import model_create
from apps.core.actors import SYSTEM
from apps.core.errors import ConflictError
from apps.core.models import ManagementToken, User
from apps.core.roles import Role
from apps.core.secrets import digest_of
from apps.core.services import token_issue
from apps.fleet.models import Operation, Placement, Server
from apps.fleet.services.operations import operation_request
from apps.fleet.services.servers import server_create, server_update
from apps.keys.models import ApiKey, Budget, Limit, Team
from apps.keys.quotas import Scope, budget_set, limit_set
from apps.keys.services import key_issue, team_create
from apps.routes.models import Route, Target
from apps.routes.services import route_create
from apps.routes.targets import TargetValues
from inferadmin.embedded.plan import Plan
from inferadmin.embedded.var import Credentials

TRITON = "triton-local"
LLAMA_CPP = "llamacpp-local"
# Triton's usual address, for the record of one that does not run.
_NOWHERE = "http://127.0.0.1:8000"
_USERNAME = "admin"
_TEAM = "demo"
_TEAM_BUDGET = Decimal(10)
_TEAM_CONCURRENCY = 64


class _ServerFacts(TypedDict, total=False):
    grpc_address: str
    metrics_url: str
    is_external: bool
    is_enabled: bool
    api_key: str
    note: str


class _Model(TypedDict):
    kind: ServedModel.Kind
    description: str
    # Number → note.
    versions: dict[int, str]


_MODELS: dict[str, _Model] = {
    "smollm2": {
        "kind": ServedModel.Kind.LLM,
        "description": "SmolLM2-135M-Instruct, streaming",
        "versions": {1: "4-bit weights, llama.cpp"},
    },
    "language-id": {
        "kind": ServedModel.Kind.CLASSIFIER,
        "description": "Which language is a text written in?",
        "versions": {1: "py3langid, 97 languages", 2: "fastText lid.176, 176 languages"},
    },
    "minilm": {
        "kind": ServedModel.Kind.EMBEDDING,
        "description": "all-MiniLM-L6-v2, vectors of 384 numbers",
        "versions": {1: "NumPy"},
    },
}

# USD for a million input tokens, and for a million output tokens.
_TRITON_PRICES = {"smollm2": ("0.05", "0.20"), "minilm": ("0.02", "0")}
_LLAMA_CPP_PRICE = ("0.15", "0.60")


@dataclass(frozen=True, slots=True)
class Seeded:
    """What a start has made: the way in, and the models that Triton has been asked to load."""

    credentials: Credentials
    loading: list[str]


@transaction.atomic
def seed(plan: Plan, known: Credentials) -> Seeded:
    """Make what is missing. Of `known`, what still works is kept; the rest is made anew."""
    user, password = _admin(known.get("password"))
    triton, llama_cpp = _triton(plan), _llama_cpp(plan)
    if not Route.objects.exists():
        _routes(triton, llama_cpp, plan.llama_cpp_model)
    credentials = Credentials(
        url=plan.url,
        username=_USERNAME,
        password=password,
        api_key=_api_key(known.get("api_key")),
        management_token=_management_token(user, known.get("management_token")),
    )
    return Seeded(credentials, loading=_load(triton) if plan.triton else [])


def _admin(password: str | None) -> tuple[User, str]:
    """The first user. Without a known password it gets a new one: the way back in."""
    user = User.objects.filter(username=_USERNAME).first()
    if user is not None and password:
        return user, password
    password = password or secrets.token_urlsafe(15)
    if user is None:
        return User.objects.create_user(_USERNAME, password, role=Role.ADMIN), password
    user.set_password(password)
    user.save(update_fields=["password"])
    return user, password


def _management_token(user: User, known: str | None) -> str:
    usable = ManagementToken.objects.filter(user=user, revoked_at=None)
    if known and usable.filter(digest=digest_of(known)).exists():
        return known
    return token_issue(actor=SYSTEM, user=user, name="made at first start")[1]


def _api_key(known: str | None) -> str:
    if known and ApiKey.objects.filter(digest=digest_of(known), revoked_at=None).exists():
        return known
    team = Team.objects.filter(name=_TEAM).first() or _team()
    taken = ApiKey.objects.filter(team=team).count()
    return key_issue(actor=SYSTEM, team_id=team.pk, name=f"first-steps-{taken + 1}")[1]


def _team() -> Team:
    """The demo's team, with allowances that a first look can see being used."""
    team = team_create(actor=SYSTEM, name=_TEAM)
    scope: Scope = {"team_id": team.pk}
    budget_set(actor=SYSTEM, scope=scope, period=Budget.Period.MONTH, amount=_TEAM_BUDGET)
    limit_set(actor=SYSTEM, scope=scope, kind=Limit.Kind.CONCURRENCY, value=_TEAM_CONCURRENCY)
    return team


def _triton(plan: Plan) -> Server:
    """The Triton of this machine; where none can run, a record that says why."""
    if plan.triton is None:
        note = f"It does not run: {plan.triton_obstacle}"
        return _server(
            TRITON, Server.Kind.TRITON, url=_NOWHERE, is_enabled=False, is_external=False, note=note
        )
    server = _server(
        TRITON,
        Server.Kind.TRITON,
        url=plan.triton.url,
        grpc_address=plan.triton.grpc_address,
        metrics_url=plan.triton.metrics_url,
        is_enabled=True,
        is_external=False,
        note="CPU, Python backend; runs as a part of `make up`",
    )
    if not server.placements.exists():
        _models(server)
    return server


def _server(name: str, kind: str, url: str, **facts: Unpack[_ServerFacts]) -> Server:
    """The server with these facts, new or changed."""
    server = Server.objects.filter(name=name).first()
    if server is None:
        return server_create(actor=SYSTEM, name=name, kind=kind, url=url, **facts)
    return server_update(actor=SYSTEM, server_id=server.pk, url=url, **facts)


def _models(server: Server) -> None:
    """The example models: known, priced and wanted."""
    for name, facts in _MODELS.items():
        model = ServedModel.objects.filter(name=name).first() or model_create(
            actor=SYSTEM, name=name, kind=facts["kind"], description=facts["description"]
        )
        for number, note in facts["versions"].items():
            ModelVersion.objects.get_or_create(model=model, number=number, defaults={"note": note})
        Placement.objects.create(server=server, model=model, desired=Placement.Desired.LOADED)
    for name, prices in _TRITON_PRICES.items():
        _price(server, name, prices)


def _load(server: Server) -> list[str]:
    """Ask for what is wanted, as an operator would: the Triton of this run has nothing loaded."""
    wanted = server.placements.filter(desired=Placement.Desired.LOADED).select_related("model")
    for placement in wanted:
        with suppress(ConflictError):  # asked for already, when the last run was killed
            operation_request(actor=SYSTEM, placement_id=placement.pk, kind=Operation.Kind.LOAD)
    return [placement.model.name for placement in wanted]


def _llama_cpp(plan: Plan) -> Server:
    server = _server(
        LLAMA_CPP,
        Server.Kind.LLAMA_CPP,
        url=plan.llama_cpp.url,
        metrics_url=plan.llama_cpp.metrics_url,
        api_key=plan.llama_cpp.api_key,
        is_enabled=True,
        is_external=True,
        note="The same model behind OpenAI's protocol; plays a paid external API",
    )
    _price(server, plan.llama_cpp_model, _LLAMA_CPP_PRICE)
    return server


def _price(server: Server, upstream_model: str, prices: tuple[str, str]) -> None:
    """A first price, where there is none."""
    if Price.objects.filter(server=server, upstream_model=upstream_model).exists():
        return
    rates = Rates(
        input_per_million=Decimal(prices[0]),
        output_per_million=Decimal(prices[1]),
    )
    price_set(actor=SYSTEM, server_id=server.pk, upstream_model=upstream_model, rates=rates)


def _routes(triton: Server, llama_cpp: Server, llama_cpp_model: str) -> None:
    own = TargetValues(
        server_id=triton.pk, upstream_model="smollm2", protocol=Target.Protocol.TRITON_GENERATE
    )
    external = TargetValues(
        server_id=llama_cpp.pk, upstream_model=llama_cpp_model, protocol=Target.Protocol.OPENAI
    )
    vectors = TargetValues(
        server_id=triton.pk, upstream_model="minilm", protocol=Target.Protocol.TRITON_INFER
    )
    fallback = TargetValues({**external, "tier": 1})
    _route("smollm2", "Own hardware first, the external API when it fails", own, fallback)
    _route("smollm2-llamacpp", "The external API only", external)
    _route("minilm", "Embeddings", vectors)


def _route(name: str, description: str, *targets: TargetValues) -> None:
    route_create(actor=SYSTEM, name=name, targets=targets, description=description)
