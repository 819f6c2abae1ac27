"""Noting the GPUs that servers report."""

from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone

from apps.core import live
from apps.fleet.models import Gpu
from apps.metrics.readings import Numbers


@transaction.atomic
def gpus_note(*, server_id: int, gpus: Mapping[str, Numbers]) -> None:
    """Make or refresh a row for each GPU; safe to run twice.

    `gpus` is by uuid, as a reading has it. A total that is unknown now does not erase a known one.
    """
    known = dict(Gpu.objects.filter(server_id=server_id).values_list("uuid", "memory_total_bytes"))
    now = timezone.now()
    Gpu.objects.bulk_create(
        [
            Gpu(
                server_id=server_id,
                uuid=uuid,
                memory_total_bytes=_total_of(numbers, known.get(uuid)),
                last_seen_at=now,
            )
            for uuid, numbers in sorted(gpus.items())
        ],
        update_conflicts=True,
        unique_fields=["server", "uuid"],
        update_fields=["memory_total_bytes", "last_seen_at"],
    )
    if not gpus.keys() <= known.keys():
        live.changed_on_commit("server", server_id, server_id=server_id)


def _total_of(numbers: Numbers, known: int | None) -> int | None:
    total = numbers.get("memory_total_bytes")
    return known if total is None else int(total)
