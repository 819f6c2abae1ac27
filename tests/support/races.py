"""Doing several things at the same moment, each in a thread with a connection of its own."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from django.db import connection

from apps.core.errors import InferAdminError


def at_once(actions: Sequence[Callable[[], object]]) -> list[object]:
    """What each action gave or how it was refused, in order; other exceptions come through.

    The test needs `django_db(transaction=True)`.
    """
    gate = Barrier(len(actions), timeout=10)

    def run(action: Callable[[], object]) -> object:
        gate.wait()
        try:
            return action()
        except InferAdminError as exc:
            return exc
        finally:
            connection.close()

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(run, actions))
