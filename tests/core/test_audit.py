"""The audit trail, as people read it."""

import pytest

from apps.core.actors import Actor
from apps.core.audit import audit_write, changes_in
from tests.factories import TeamFactory


@pytest.mark.django_db
def test_changes_are_told_field_by_field(actor: Actor) -> None:
    team = TeamFactory.create()
    entry = audit_write(
        actor=actor,
        action="team.update",
        target=team,
        before={"is_active": True, "note": "", "weights": [1, 2]},
        after={"is_active": False, "note": None, "weights": [], "verdict": {"code": "loaded"}},
    )

    told = [(change.name, change.before, change.after) for change in changes_in(entry)]

    assert told == [
        ("is active", "yes", "no"),
        ("weights", "1, 2", ""),
        ("verdict", "", "loaded"),
    ]


@pytest.mark.django_db
def test_a_secret_is_starred_out(actor: Actor) -> None:
    entry = audit_write(
        actor=actor, action="team.update", target=TeamFactory.create(), after={"api_secret": "x"}
    )

    assert entry.after == {"api_secret": "***"}
