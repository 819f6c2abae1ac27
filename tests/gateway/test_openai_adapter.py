"""OpenAI's own format, read without a server: what llama.cpp counts of several choices."""

from typing import Any

import orjson
import pytest

from apps.gateway.adapters.openai import OpenAiAdapter
from apps.gateway.orders import order_of
from apps.gateway.snapshot import ServerRow, TargetRow
from apps.gateway.sse import Event

ADAPTER = OpenAiAdapter()
ASK = {"model": "chat", "messages": [{"role": "user", "content": "Hi"}], "n": 3}
TEXT = "Once upon a time, there was a young and adventurous warrior"


def target(kind: str) -> TargetRow:
    server = ServerRow(1, "server", kind, "http://server:8000", False, secret="")
    return TargetRow(1, server, "llm", None, "openai", 0, 1, True, None)


def counted(completion: int) -> dict[str, Any]:
    return {"prompt_tokens": 34, "completion_tokens": completion, "total_tokens": 34 + completion}


@pytest.mark.parametrize(
    ("kind", "choices", "told", "counts"),
    [
        ("llama_cpp", 3, 12, (42, True)),  # the first one's 12, and 15 for each of the others
        ("llama_cpp", 3, 36, (36, False)),
        ("llama_cpp", 1, 12, (12, False)),
        ("vllm", 3, 12, (12, False)),
    ],
)
def test_choices_that_llama_cpp_leaves_out_are_estimated(
    kind: str, choices: int, told: int, counts: tuple[int, bool]
) -> None:
    items = [{"index": index, "message": {"content": TEXT}} for index in range(choices)]
    body = orjson.dumps({"choices": items, "usage": counted(told)})

    answer = ADAPTER.answer_of(order_of("chat.completions", ASK), target(kind), body)

    assert (answer.usage.output_tokens, answer.usage.is_estimated) == counts
    assert answer.usage.input_tokens == 34
    assert orjson.loads(answer.body)["usage"] == counted(counts[0])


@pytest.mark.parametrize(("kind", "counts"), [("llama_cpp", (6, True)), ("vllm", (2, False))])
def test_in_a_stream_the_chunks_of_all_choices_count(kind: str, counts: tuple[int, bool]) -> None:
    order = order_of("chat.completions", {**ASK, "stream": True})
    reader = ADAPTER.reader_for(order, target(kind))

    for index in (0, 1, 2, 0, 1, 2):
        choice = {"index": index, "delta": {"content": "a"}}
        reader.take(Event(orjson.dumps({"choices": [choice]})))
    for _choice in range(3):  # llama.cpp tells it of each choice
        reader.take(Event(orjson.dumps({"choices": [], "usage": counted(2)})))

    usage = reader.usage()
    assert (usage.output_tokens, usage.is_estimated) == counts
    assert usage.input_tokens == 34
