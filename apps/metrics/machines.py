"""All servers' machines summed up for the overview."""

from collections.abc import Callable, Iterable, Mapping
from statistics import fmean

Values = Mapping[str, float | None]


_JOINED: dict[str, Callable[[list[float]], float]] = {
    "cpu_ratio": fmean,
    "memory_used_bytes": sum,
    "memory_total_bytes": sum,
    "gpu_utilization_ratio": fmean,
    "gpu_memory_used_bytes": sum,
    "gpu_memory_total_bytes": sum,
}


def machine_totals(servers: Iterable[Values]) -> dict[str, float | None]:
    """CPU and GPU load as means, memory as sums, over the servers and GPUs that report them.

    What nobody reports is missing.
    """
    known = [
        (_short(name), value)
        for values in servers
        for name, value in values.items()
        if value is not None
    ]
    totals: dict[str, float | None] = {}
    for name, join in _JOINED.items():
        parts = [value for short, value in known if short == name]
        if parts:
            totals[name] = join(parts)
    return totals


def _short(name: str) -> str:
    """`gpu/<uuid>/utilization_ratio` as `gpu_utilization_ratio`."""
    return f"gpu_{name.rsplit('/', 1)[-1]}" if name.startswith("gpu/") else name
