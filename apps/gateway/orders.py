"""A request as the gateway understands it: what it must know, and the rest untouched."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from apps.core.errors import InvalidRequestError
from apps.gateway.sampling import check_sampling
from apps.gateway.tokens import images_in, message_tokens_held, prompt_tokens_held

# What adapters serve. A client may have asked in another format: see `Order.native`.
Endpoint = Literal["chat.completions", "completions", "embeddings", "rerank", "infer", "generate"]
# Formats of requests and answers; `kserve` is Triton's own.
Format = Literal["openai", "anthropic", "responses", "kserve"]

_MAX_CHOICES = 128
# The last ones are llama.cpp's own names. It lets them win over OpenAI's.
_MAXIMA = ("max_completion_tokens", "max_tokens", "n_predict")
_NUMBERS_OF_CHOICES = ("n", "best_of", "n_cmpl")


@dataclass(frozen=True, slots=True)
class Native:
    """A client's request in a format of its own, for targets that speak the same.

    `headers` are those that belong to the format, names in lower case. `raw` is the body where it
    is no JSON object, or too dear to be read (`body` is empty then).
    """

    format: Format
    body: dict[str, Any] = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    raw: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Order:
    """One client's request.

    `body` is OpenAI's JSON, unknown fields included; nobody changes it. It is the client's own
    unless `native` says in which format that was.
    `max_output_tokens` is `None` when the client named no maximum.
    """

    endpoint: Endpoint
    model: str
    body: dict[str, Any]
    is_stream: bool
    # The client asked for the usage chunk of a stream.
    wants_usage: bool
    input_tokens_held: int
    max_output_tokens: int | None
    choices: int
    # Images in the prompt, for prices that count them.
    images: int = 0
    # The maximum is ours: servers must be told it, since money or tokens are held by it.
    imposes_maximum: bool = False
    native: Native | None = None
    # What the client called, for the record; "" for `endpoint` itself.
    called: str = ""

    def output_tokens_held(self, default: int) -> int:
        """Completion tokens to hold; `default` stands in where no maximum was named."""
        if self.endpoint == "embeddings":
            return 0
        return (self.max_output_tokens or default) * self.choices


def order_of(endpoint: Endpoint, body: Any) -> Order:
    """Understand the body of a request. Raises InvalidRequestError naming the field."""
    if not isinstance(body, dict):
        raise InvalidRequestError("the body must be a JSON object", code="invalid_body")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise _wrong("model", "must be the name of a model, as GET /v1/models lists them")
    is_stream = endpoint != "embeddings" and _flag(body, "stream")
    options = body.get("stream_options")
    if options is not None and not isinstance(options, dict):
        raise _wrong("stream_options", "must be an object")
    if endpoint != "embeddings":
        check_sampling(body)
    return Order(
        endpoint=endpoint,
        model=model,
        body=body,
        is_stream=is_stream,
        wants_usage=is_stream
        and options is not None
        and _flag(options, "include_usage", "stream_options."),
        input_tokens_held=_INPUTS[endpoint](body),
        max_output_tokens=_max_tokens(body),
        choices=_choices(body),
        images=images_in(body["messages"]) if endpoint == "chat.completions" else 0,
    )


def _chat_input(body: dict[str, Any]) -> int:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _wrong("messages", "must be a list of at least one message")
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise _wrong(f"messages.{index}", "must be an object with a role")
        _check_content(message.get("content"), f"messages.{index}.content")
    tools = body.get("tools")
    _check_tools(tools)
    return message_tokens_held(messages, tools)


def _check_content(content: Any, field: str) -> None:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise _wrong(field, "must be a text or a list of parts")
    for index, part in enumerate(content):
        if not isinstance(part, dict):
            raise _wrong(f"{field}.{index}", "must be an object with a type")
        kind = part.get("type")
        if not isinstance(kind, str):
            raise _wrong(f"{field}.{index}.type", "must be the kind of the part, such as “text”")
        if kind == "text" and not isinstance(part.get("text"), str):
            raise _wrong(f"{field}.{index}.text", "must be a text")


def _check_tools(tools: Any) -> None:
    if tools is None:
        return
    if not isinstance(tools, list):
        raise _wrong("tools", "must be a list of objects")
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict):
            raise _wrong(f"tools.{index}", "must be an object")


def _prompt_input(body: dict[str, Any]) -> int:
    return _text_input(body, "prompt")


def _embedding_input(body: dict[str, Any]) -> int:
    return _text_input(body, "input")


def _text_input(body: dict[str, Any], name: str) -> int:
    value = body.get(name)
    if not isinstance(value, (str, list)) or not value:
        raise _wrong(name, "must be a text, a list of texts, or token numbers; it is empty")
    return prompt_tokens_held(value)


_INPUTS: dict[str, Callable[[dict[str, Any]], int]] = {
    "chat.completions": _chat_input,
    "completions": _prompt_input,
    "embeddings": _embedding_input,
}


def _max_tokens(body: dict[str, Any]) -> int | None:
    """The maximum by which money and tokens are held; all names that a server may go by agree."""
    found: int | None = None
    for name in _MAXIMA:
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
            raise _wrong(name, "must be a whole number from 1 to 2147483647")
        if found is not None and value != found:
            raise _wrong(name, "differs from another maximum of tokens; name only one of them")
        found = value
    return found


def _choices(body: dict[str, Any]) -> int:
    """Answers that are generated, and paid: the most that any of the names asks for."""
    found = 1
    for name in _NUMBERS_OF_CHOICES:
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MAX_CHOICES:
            raise _wrong(name, f"must be a whole number from 1 to {_MAX_CHOICES}")
        found = max(found, value)
    prompt = body.get("prompt")
    is_batch = isinstance(prompt, list) and not all(isinstance(item, int) for item in prompt)
    return found * len(prompt) if is_batch and isinstance(prompt, list) else found


def _flag(holder: dict[str, Any], name: str, within: str = "") -> bool:
    value = holder.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise _wrong(f"{within}{name}", "must be true or false")


def _wrong(field: str, message: str) -> InvalidRequestError:
    return InvalidRequestError(f"{field} {message}", fields={field: [message]})
