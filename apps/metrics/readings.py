"""From the text of one scrape to numbers in our words."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from apps.metrics import exposition
from apps.metrics.engines import FAMILIES, TABLES, Rule

# Model and version as the engine names them; "" where it has only one or does not say.
ModelKey = tuple[str, str]
Numbers = dict[str, float]

_MODEL_LABELS = ("model", "model_name")


@dataclass(slots=True)
class Reading:
    """Everything that one scrape told: totals since the engine started, and momentary values."""

    counters: dict[ModelKey, Numbers] = field(default_factory=dict)
    gauges: dict[ModelKey, Numbers] = field(default_factory=dict)
    machine: Numbers = field(default_factory=dict)
    # By the GPU's uuid. A total memory of 0 means that the engine cannot tell: then it is missing.
    gpus: dict[str, Numbers] = field(default_factory=dict)


def reading_of(text: str) -> Reading:
    """Sum up a scrape; raises UpstreamProtocolError when it is no Prometheus text."""
    by_table: list[dict[str, dict[ModelKey, Numbers]]] = [
        {"counter": defaultdict(dict), "gauge": defaultdict(dict)} for _table in TABLES
    ]
    reading = Reading()
    for sample, position, rule in _matching(text):
        if rule.kind == "machine":
            _add(reading.machine, rule, sample.value)
        elif rule.kind == "gpu":
            gpu = reading.gpus.setdefault(sample.labels.get("gpu_uuid", ""), {})
            _add(gpu, rule, sample.value)
        else:
            _add(by_table[position][rule.kind][_model_of(sample)], rule, sample.value)
    for tables in by_table:
        _overlay(reading.counters, tables["counter"])
        _overlay(reading.gauges, tables["gauge"])
    reading.gpus = {uuid: _known(gpu) for uuid, gpu in reading.gpus.items() if uuid}
    return reading


def _matching(text: str) -> Iterator[tuple[exposition.Sample, int, Rule]]:
    for sample in exposition.samples(text, FAMILIES):
        position, rule = FAMILIES[sample.name]
        if rule.where is None or sample.labels.get(rule.where[0]) == rule.where[1]:
            yield sample, position, rule


def _add(numbers: Numbers, rule: Rule, value: float) -> None:
    for name in rule.names:
        numbers[name] = numbers.get(name, 0.0) + value * rule.scale


def _overlay(under: dict[ModelKey, Numbers], above: dict[ModelKey, Numbers]) -> None:
    for key, numbers in above.items():
        under.setdefault(key, {}).update(numbers)


def _model_of(sample: exposition.Sample) -> ModelKey:
    model = next((sample.labels[label] for label in _MODEL_LABELS if label in sample.labels), "")
    return model, sample.labels.get("version", "")


def _known(gpu: Numbers) -> Numbers:
    """Without what Triton sets to 0 when it could not read it."""
    if gpu.get("memory_total_bytes"):
        return gpu
    return {name: value for name, value in gpu.items() if not name.startswith("memory_") and value}
