"""Requests in the format of Anthropic's Messages API, put into OpenAI's words."""

from collections.abc import Mapping
from typing import Any

import orjson

from apps.core.errors import InvalidRequestError

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
# Blocks that only tell how an earlier answer was found; no other server reads them.
_DROPPED = {"thinking", "redacted_thinking"}
_SAME = ("temperature", "top_p", "top_k", "stream")


def openai_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a chat completion that asks for the same. Raises InvalidRequestError."""
    found: dict[str, Any] = {
        "model": body.get("model"),
        "messages": [*_system(body.get("system")), *_messages(body.get("messages"))],
        **{name: body[name] for name in _SAME if body.get(name) is not None},
    }
    if body.get("max_tokens") is not None:
        found["max_tokens"] = body["max_tokens"]
    if body.get("stream"):
        found["stream_options"] = {"include_usage": True}
    if body.get("stop_sequences"):
        found["stop"] = body["stop_sequences"]
    if isinstance(user := _object(body, "metadata").get("user_id"), str):
        found["user"] = user
    if body.get("tools"):
        found["tools"] = _tools(body["tools"])
        found |= _choice(_object(body, "tool_choice"))
    return found


def _system(system: Any) -> list[dict[str, Any]]:
    if not system:
        return []
    return [{"role": "system", "content": _text(system, "system")}]


def _messages(messages: Any) -> list[dict[str, Any]]:
    if not isinstance(messages, list) or not messages:
        raise _wrong("messages", "must be a list of at least one message")
    found: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        field = f"messages.{index}"
        role = message.get("role") if isinstance(message, dict) else None
        if role not in {"user", "assistant"}:
            raise _wrong(f"{field}.role", "must be “user” or “assistant”")
        content = message.get("content")
        if isinstance(content, str):
            found.append({"role": role, "content": content})
            continue
        blocks = _blocks(content, f"{field}.content")
        if role == "user":
            found += _of_user(blocks, f"{field}.content")
        else:
            found.append(_of_assistant(blocks, f"{field}.content"))
    return found


def _of_user(blocks: list[dict[str, Any]], field: str) -> list[dict[str, Any]]:
    """Results of tools become messages of their own, before what the user says."""
    results: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    for index, block in enumerate(blocks):
        kind, name = block["type"], f"{field}.{index}"
        if kind == "text":
            parts.append({"type": "text", "text": _string(block, "text", name)})
        elif kind == "image":
            parts.append(_image(block, name))
        elif kind == "tool_result":
            text = _text(block.get("content") or "", f"{name}.content")
            results.append(
                {
                    "role": "tool",
                    "tool_call_id": _string(block, "tool_use_id", name),
                    "content": f"Error: {text}" if block.get("is_error") else text,
                }
            )
        elif kind not in _DROPPED:
            raise _wrong(f"{name}.type", f"“{kind[:40]}” is not read by this model")
    if not parts:
        return results
    # Plain text as plain text: not every server reads parts.
    is_plain = len(parts) == 1 and parts[0]["type"] == "text"
    content = parts[0]["text"] if is_plain else parts
    return [*results, {"role": "user", "content": content}]


def _of_assistant(blocks: list[dict[str, Any]], field: str) -> dict[str, Any]:
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for index, block in enumerate(blocks):
        kind, name = block["type"], f"{field}.{index}"
        if kind == "text":
            texts.append(_string(block, "text", name))
        elif kind == "tool_use":
            function = {
                "name": _string(block, "name", name),
                "arguments": orjson.dumps(block.get("input") or {}).decode(),
            }
            calls.append(
                {"id": _string(block, "id", name), "type": "function", "function": function}
            )
        elif kind not in _DROPPED:
            raise _wrong(f"{name}.type", f"“{kind[:40]}” is not read by this model")
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) or None}
    return {**message, "tool_calls": calls} if calls else {**message, "content": "".join(texts)}


def _image(block: Mapping[str, Any], field: str) -> dict[str, Any]:
    source = _object(block, "source", f"{field}.")
    if source.get("type") == "base64":
        kind = _string(source, "media_type", f"{field}.source")
        data = _string(source, "data", f"{field}.source")
        url = f"data:{kind};base64,{data}"
    elif source.get("type") == "url":
        url = _string(source, "url", f"{field}.source")
    else:
        raise _wrong(f"{field}.source.type", "must be “base64” or “url”")
    return {"type": "image_url", "image_url": {"url": url}}


def _tools(tools: Any) -> list[dict[str, Any]]:
    if not isinstance(tools, list):
        raise _wrong("tools", "must be a list of objects")
    found: list[dict[str, Any]] = []
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict):
            raise _wrong(f"tools.{index}", "must be an object")
        if tool.get("type") not in {None, "custom"}:
            raise _wrong(f"tools.{index}.type", "tools that run at Anthropic are not offered here")
        function = {
            "name": _string(tool, "name", f"tools.{index}"),
            "parameters": _object(tool, "input_schema", f"tools.{index}."),
        }
        if isinstance(tool.get("description"), str):
            function["description"] = tool["description"]
        found.append({"type": "function", "function": function})
    return found


def _choice(choice: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    kind = choice.get("type")
    if kind == "tool":
        name = _string(choice, "name", "tool_choice")
        found["tool_choice"] = {"type": "function", "function": {"name": name}}
    elif kind is not None:
        if not isinstance(kind, str) or kind not in _CHOICES:
            raise _wrong("tool_choice.type", "must be “auto”, “any”, “tool” or “none”")
        found["tool_choice"] = _CHOICES[kind]
    if choice.get("disable_parallel_tool_use") is True:
        found["parallel_tool_calls"] = False
    return found


def _text(content: Any, field: str) -> str:
    """Text, or blocks of text, as one text."""
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for index, block in enumerate(_blocks(content, field)):
        if block["type"] != "text":
            raise _wrong(f"{field}.{index}.type", "must be “text”: this model reads no other here")
        texts.append(_string(block, "text", f"{field}.{index}"))
    return "\n\n".join(texts)


def _blocks(content: Any, field: str) -> list[dict[str, Any]]:
    if not isinstance(content, list):
        raise _wrong(field, "must be a text or a list of blocks")
    for index, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise _wrong(f"{field}.{index}", "must be an object with a type")
    return content


def _object(holder: Mapping[str, Any], name: str, within: str = "") -> Mapping[str, Any]:
    """The object of that name; empty when it is left out."""
    value = holder.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _wrong(f"{within}{name}", "must be an object")
    return value


def _string(holder: Mapping[str, Any], name: str, within: str) -> str:
    value = holder.get(name)
    if not isinstance(value, str):
        raise _wrong(f"{within}.{name}", "must be a text")
    return value


def _wrong(field: str, message: str) -> InvalidRequestError:
    return InvalidRequestError(f"{field} {message}", fields={field: [message]})
