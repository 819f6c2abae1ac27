"""OpenAI's chat requests put into the words of Anthropic's Messages API.

https://docs.claude.com/en/api/messages
"""

from typing import Any

from apps.core.errors import InvalidRequestError
from apps.gateway.adapters import chats
from apps.gateway.adapters.completions import not_supported
from apps.gateway.orders import Order

_NOT_SUPPORTED = (
    "frequency_penalty", "presence_penalty", "seed", "logit_bias", "logprobs", "top_logprobs",
    "functions", "function_call", "audio", "prediction", "web_search_options",
)  # fmt: skip
_CHOICES = {"auto": "auto", "none": "none", "required": "any", "function": "tool"}
# Tokens to think with; they are part of the maximum.
_THINKING = {"minimal": 1024, "low": 1024, "medium": 4096, "high": 16384, "xhigh": 32768}
_LEAST_THINKING = 1024
_DEFAULT_MAX_TOKENS = 1024


def messages_body(order: Order) -> dict[str, Any]:
    """The body that asks for the same, without its model. Raises InvalidRequestError."""
    chats.refuse(order, _NOT_SUPPORTED)
    if order.choices > 1:
        raise not_supported("n", "must be 1 for this model")
    maximum = order.max_output_tokens or _DEFAULT_MAX_TOKENS
    system, messages = _messages(order)
    found: dict[str, Any] = {"max_tokens": maximum, "messages": messages}
    optional: dict[str, Any] = {
        "system": system,
        "temperature": chats.within(order, "temperature", 0, 1),
        "top_p": chats.within(order, "top_p", 0, 1),
        "top_k": order.body.get("top_k"),
        "stop_sequences": chats.stops_of(order),
        "thinking": _thinking(order, maximum),
        "metadata": _metadata(order),
        "output_config": _format(order),
        **_tools(order),
    }
    found |= {name: value for name, value in optional.items() if value not in (None, [], {})}
    return {**found, "stream": True} if order.is_stream else found


def _messages(order: Order) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """System blocks, and the others in turns: neighbours of one role become one message."""
    system: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    for index, message in enumerate(order.body["messages"]):
        field = f"messages.{index}"
        role = message["role"]
        if role in ("system", "developer"):
            system += _blocks(message, field)
            continue
        if role == "tool":
            role, blocks = "user", [_result(message, field)]
        elif role == "assistant":
            blocks = [*_blocks(message, field), *_uses(message, field)]
        elif role == "user":
            blocks = _blocks(message, field)
        else:
            raise InvalidRequestError.of(f"{field}.role", "is not known to this model")
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    return system, turns


def _blocks(message: dict[str, Any], field: str) -> list[dict[str, Any]]:
    return [
        _block(part, f"{field}.content.{index}")
        for index, part in enumerate(chats.parts_of(message.get("content")))
    ]


def _block(part: dict[str, Any], field: str) -> dict[str, Any]:
    """Text or an image; what it says of the cache stays."""
    kept = {"cache_control": part["cache_control"]} if part.get("cache_control") else {}
    if part["type"] == "text":
        return {"type": "text", "text": part["text"], **kept}
    if part["type"] != "image_url":
        raise not_supported(f"{field}.type", "must be “text” or “image_url” for this model")
    url = chats.image_url(part, field)
    inline = chats.inline_image(url)
    source = (
        {"type": "url", "url": url}
        if inline is None
        else {"type": "base64", "media_type": inline[0], "data": inline[1]}
    )
    return {"type": "image", "source": source, **kept}


def _uses(message: dict[str, Any], field: str) -> list[dict[str, Any]]:
    return [
        {"type": "tool_use", "id": identity, "name": name, "input": arguments}
        for identity, name, arguments in chats.calls_of(message, field)
    ]


def _result(message: dict[str, Any], field: str) -> dict[str, Any]:
    identity = message.get("tool_call_id")
    if not isinstance(identity, str):
        raise InvalidRequestError.of(f"{field}.tool_call_id", "must be a text")
    return {"type": "tool_result", "tool_use_id": identity, "content": _blocks(message, field)}


def _tools(order: Order) -> dict[str, Any]:
    """`tools` and `tool_choice`; nothing where no tool is offered."""
    tools = [
        {
            "name": function["name"],
            "input_schema": function.get("parameters") or {"type": "object", "properties": {}},
            **({"description": text} if (text := function.get("description")) else {}),
        }
        for function in chats.functions_of(order)
    ]
    if not tools:
        return {}
    kind, name = chats.chosen_tool(order)
    choice: dict[str, Any] = {"type": _CHOICES[kind]} if kind else {}
    if name:
        choice["name"] = name
    if order.body.get("parallel_tool_calls") is False and kind != "none":
        choice = {"type": "auto", **choice, "disable_parallel_tool_use": True}
    return {"tools": tools, "tool_choice": choice}


def _thinking(order: Order, maximum: int) -> dict[str, Any] | None:
    effort = order.body.get("reasoning_effort")
    if effort in (None, "none"):
        return None
    if effort not in _THINKING:
        known = ", ".join(_THINKING)
        raise InvalidRequestError.of("reasoning_effort", f"must be one of none, {known}")
    if maximum <= _LEAST_THINKING:
        raise not_supported(
            "reasoning_effort", f"needs a max_tokens above {_LEAST_THINKING} for this model"
        )
    return {"type": "enabled", "budget_tokens": min(_THINKING[effort], maximum - 1)}


def _metadata(order: Order) -> dict[str, Any]:
    user = order.body.get("user")
    return {"user_id": user} if isinstance(user, str) else {}


def _format(order: Order) -> dict[str, Any]:
    kind, schema = chats.answer_schema(order)
    if kind == "json_object":
        raise not_supported("response_format.type", "must be “json_schema” for this model")
    return {"format": {"type": "json_schema", "schema": schema}} if schema else {}
