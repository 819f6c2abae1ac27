"""One factory a model, each the smallest valid object."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import factory
from django.utils import timezone
from factory.django import DjangoModelFactory

from apps.billing.models import DailyUsage, Price, UsageRecord
from apps.catalog.models import ModelVersion, ServedModel
from apps.core.models import User
from apps.core.roles import Role
from apps.core.secrets import digest_of
from apps.fleet.models import Operation, Placement, Server
from apps.keys.models import ApiKey, Budget, Limit, Team
from apps.routes.models import Route, Target


class UserFactory(DjangoModelFactory[User]):
    class Meta:
        model = User

    username = factory.Sequence(lambda n: f"person-{n}")
    role = Role.VIEWER


class ServedModelFactory(DjangoModelFactory[ServedModel]):
    class Meta:
        model = ServedModel

    name = factory.Sequence(lambda n: f"model-{n}")


class ModelVersionFactory(DjangoModelFactory[ModelVersion]):
    class Meta:
        model = ModelVersion

    model = factory.SubFactory(ServedModelFactory)
    number = 1


class ServerFactory(DjangoModelFactory[Server]):
    class Meta:
        model = Server

    name = factory.Sequence(lambda n: f"server-{n}")
    kind = Server.Kind.TRITON
    url = "http://127.0.0.1:1"


class PlacementFactory(DjangoModelFactory[Placement]):
    class Meta:
        model = Placement

    server = factory.SubFactory(ServerFactory)
    model = factory.SubFactory(ServedModelFactory)


class OperationFactory(DjangoModelFactory[Operation]):
    class Meta:
        model = Operation

    placement = factory.SubFactory(PlacementFactory)
    kind = Operation.Kind.LOAD
    generation = 1
    requested_by_label = "tests"
    deadline_at = factory.LazyFunction(lambda: timezone.now() + timedelta(minutes=5))


class RouteFactory(DjangoModelFactory[Route]):
    class Meta:
        model = Route

    name = factory.Sequence(lambda n: f"route-{n}")


class TargetFactory(DjangoModelFactory[Target]):
    class Meta:
        model = Target

    route = factory.SubFactory(RouteFactory)
    server = factory.SubFactory(ServerFactory, kind=Server.Kind.OPENAI_COMPATIBLE)
    upstream_model = "upstream"
    protocol = Target.Protocol.OPENAI


class TeamFactory(DjangoModelFactory[Team]):
    class Meta:
        model = Team

    name = factory.Sequence(lambda n: f"team-{n}")


class ApiKeyFactory(DjangoModelFactory[ApiKey]):
    """`secret=` is what a client sends; the row keeps its digest."""

    class Meta:
        model = ApiKey

    class Params:
        secret = factory.Sequence(lambda n: f"sk-ia-tests-{n}")

    team = factory.SubFactory(TeamFactory)
    name = factory.Sequence(lambda n: f"key-{n}")
    prefix = factory.LazyAttribute(lambda o: o.secret[:12])
    digest = factory.LazyAttribute(lambda o: digest_of(o.secret))


class LimitFactory(DjangoModelFactory[Limit]):
    class Meta:
        model = Limit

    key: Any = None
    kind = Limit.Kind.RPM
    value = 60


class BudgetFactory(DjangoModelFactory[Budget]):
    class Meta:
        model = Budget

    key: Any = None
    amount = 1


class PriceFactory(DjangoModelFactory[Price]):
    class Meta:
        model = Price

    server = factory.SubFactory(ServerFactory, kind=Server.Kind.OPENAI_COMPATIBLE)
    upstream_model = "upstream"
    input_per_million = 1
    output_per_million = 2
    effective_from = factory.LazyFunction(lambda: timezone.now() - timedelta(days=1))


class UsageRecordFactory(DjangoModelFactory[UsageRecord]):
    """A finished chat request; its team is the key's."""

    class Meta:
        model = UsageRecord

    id = factory.LazyFunction(uuid.uuid4)
    at = factory.LazyFunction(timezone.now)
    endpoint = "chat.completions"
    status = UsageRecord.Status.OK
    http_status = 200
    key = factory.SubFactory(ApiKeyFactory)
    team = factory.LazyAttribute(lambda o: o.key.team)
    route_name = "route"
    duration_seconds = 0.5


class DailyUsageFactory(DjangoModelFactory[DailyUsage]):
    """One request today; its team is the key's."""

    class Meta:
        model = DailyUsage

    day = factory.LazyFunction(lambda: datetime.now(UTC).date())
    key = factory.SubFactory(ApiKeyFactory)
    team = factory.LazyAttribute(lambda o: o.key.team)
    route_name = "route"
    requests = 1
