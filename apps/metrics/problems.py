"""Problems of the product itself, in words: what is wrong, what goes on, what to do."""

from dataclasses import dataclass
from typing import Literal

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.metrics.health import SystemState

Text = str | Promise


@dataclass(frozen=True, slots=True)
class Problem:
    """A code of `SystemState.problems` as people read it; `tone` is the banner's."""

    code: str
    tone: Literal["bad", "warn"]
    title: Text
    advice: Text


_PROBLEMS = (
    Problem(
        "postgres_away",
        "bad",
        _("PostgreSQL does not answer."),
        _(
            "The gateway keeps serving the keys and routes it knows, and usage waits in Redis. "
            "Nothing can be changed here until it is back: check the database process and "
            "INFERADMIN_DATABASE_URL."
        ),
    ),
    Problem(
        "redis_away",
        "bad",
        _("Redis does not answer."),
        _(
            "The gateway refuses requests with 503, and numbers on pages stand still. Nothing is "
            "lost: check the Redis process and INFERADMIN_REDIS_URL."
        ),
    ),
    Problem(
        "migrations_missing",
        "bad",
        _("The database is older than this release."),
        _("Run “python manage.py migrate”, then restart."),
    ),
    Problem(
        "worker_silent",
        "warn",
        _("The background worker has gone silent."),
        _(
            "Requests are served, but loads, charts and usage stand still. Check that the Celery "
            "worker and beat are running."
        ),
    ),
    Problem(
        "ledger_late",
        "warn",
        _("Usage is being written late."),
        _(
            "Requests are counted against their limits, but records and costs lag behind. "
            "Check the worker of the queue “ledger” and PostgreSQL."
        ),
    ),
)


def problems_of(state: SystemState) -> list[Problem]:
    """The problems of a state in words, the worst first."""
    codes = set(state.problems)
    return [problem for problem in _PROBLEMS if problem.code in codes]
