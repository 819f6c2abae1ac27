"""What adapters read out of OpenAI's chat requests. Each raises InvalidRequestError."""

import re
from collections.abc import Iterable
from typing import Any

import orjson

from apps.core.errors import InvalidRequestError
from apps.gateway.adapters.completions import not_supported
from apps.gateway.orders import Order

_DATA_URL = re.compile(r"data:(?P<kind>[a-z0-9.+-]+/[a-z0-9.+-]+);base64,", re.IGNORECASE)
# Values by which a parameter asks for nothing.
_NOTHING: tuple[Any, ...] = (None, False, 0, "", [], {})


def refuse(order: Order, names: Iterable[str]) -> None:
    """Raise for parameters that ask for something, and that the server has no words for."""
    for name in names:
        if order.body.get(name) not in _NOTHING:
            raise not_supported(name, "is not supported by this model; leave it out")


def within(order: Order, name: str, lowest: float, highest: float) -> float | None:
    """A number of the request that the server takes; `None` where it is left out."""
    value = order.body.get(name)
    if value is not None and not lowest <= value <= highest:
        raise not_supported(name, f"must be a number from {lowest:g} to {highest:g} for this model")
    return None if value is None else float(value)


def stops_of(order: Order) -> list[str]:
    """Texts at which the answer ends."""
    stop = order.body.get("stop")
    return [stop] if isinstance(stop, str) else list(stop or [])


def parts_of(content: Any) -> list[dict[str, Any]]:
    """The parts of a message; empty texts are left out."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return [part for part in content or [] if part["type"] != "text" or part["text"]]


def inline_image(url: str) -> tuple[str, str] | None:
    """Media type and base64 of a `data:` URL; `None` for any other."""
    found = _DATA_URL.match(url)
    return None if found is None else (found["kind"].lower(), url[found.end() :])


def image_url(part: dict[str, Any], field: str) -> str:
    """The address of an image part."""
    holder = part.get("image_url")
    url = holder.get("url") if isinstance(holder, dict) else holder
    if not isinstance(url, str):
        raise InvalidRequestError.of(f"{field}.image_url.url", "must be a text")
    return url


def calls_of(message: dict[str, Any], field: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Id, name and arguments of the tools that an earlier answer called."""
    found = []
    calls = message.get("tool_calls") or []
    for index, call in enumerate(calls if isinstance(calls, list) else [None]):
        name = f"{field}.tool_calls.{index}"
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise InvalidRequestError.of(name, "must be an object with a function and its name")
        arguments = _arguments(function.get("arguments"), f"{name}.function.arguments")
        found.append((str(call.get("id") or ""), function["name"], arguments))
    return found


def functions_of(order: Order) -> list[dict[str, Any]]:
    """The functions that may be called, each with a name."""
    found = []
    for index, tool in enumerate(order.body.get("tools") or []):
        function = tool.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise InvalidRequestError.of(f"tools.{index}", "must be a function with a name")
        found.append(function)
    return found


def chosen_tool(order: Order) -> tuple[str, str]:
    """ "", "auto", "none", "required", or "function" with the name of the one to call."""
    choice = order.body.get("tool_choice")
    if choice is None:
        return "", ""
    if choice in ("auto", "none", "required"):
        return choice, ""
    function = choice.get("function") if isinstance(choice, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise InvalidRequestError.of("tool_choice", "must be a known word or name a function")
    return "function", function["name"]


def answer_schema(order: Order) -> tuple[str, dict[str, Any]]:
    """Kind of `response_format` ("text", "json_object" or "json_schema"), and its schema."""
    wanted = order.body.get("response_format")
    if wanted is None:
        return "text", {}
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind not in ("text", "json_object", "json_schema"):
        raise InvalidRequestError.of(
            "response_format.type", "must be “text”, “json_object” or “json_schema”"
        )
    if kind != "json_schema":
        return kind, {}
    holder = wanted.get("json_schema")
    schema = holder.get("schema") if isinstance(holder, dict) else None
    if not isinstance(schema, dict):
        raise InvalidRequestError.of("response_format.json_schema.schema", "must be an object")
    return kind, schema


def _arguments(value: Any, field: str) -> dict[str, Any]:
    try:
        found = orjson.loads(value or "{}")
    except (orjson.JSONDecodeError, TypeError):
        found = None
    if not isinstance(found, dict):
        raise InvalidRequestError.of(field, "must be a JSON object, written as a text")
    return found
