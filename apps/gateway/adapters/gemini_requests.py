"""OpenAI's chat and embedding requests put into the words of Gemini's API.

https://ai.google.dev/api/generate-content and https://ai.google.dev/api/embeddings
"""

from typing import Any

from apps.core.errors import InvalidRequestError
from apps.gateway.adapters import chats
from apps.gateway.adapters.completions import not_supported
from apps.gateway.orders import Order

_NOT_SUPPORTED = (
    "logit_bias", "logprobs", "top_logprobs", "functions", "function_call", "audio", "prediction",
    "web_search_options",
)  # fmt: skip
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY", "function": "ANY"}
# Tokens to think with; they are part of the maximum.
_THINKING = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24576}


def generate_body(order: Order) -> dict[str, Any]:
    """The body that asks for the same. Raises InvalidRequestError."""
    chats.refuse(order, _NOT_SUPPORTED)
    if order.body.get("parallel_tool_calls") is False:
        raise not_supported("parallel_tool_calls", "must be true for this model")
    system, contents = _contents(order)
    optional: dict[str, Any] = {
        "systemInstruction": {"parts": system} if system else None,
        "generationConfig": _config(order),
        **_tools(order),
    }
    found = {name: value for name, value in optional.items() if value not in (None, {}, [])}
    return {"contents": contents, **found}


def embed_body(order: Order, model: str) -> dict[str, Any]:
    """The body of a batch of embeddings, one a text. Raises InvalidRequestError."""
    if order.body.get("encoding_format") not in (None, "float", "base64"):
        raise InvalidRequestError.of("encoding_format", "must be “float” or “base64”")
    given = order.body["input"]
    texts = [given] if isinstance(given, str) else given
    if not all(isinstance(text, str) for text in texts):
        raise not_supported("input", "must be a text or a list of texts for this model")
    size = order.body.get("dimensions")
    more = {} if size is None else {"outputDimensionality": size}
    return {
        "requests": [
            {"model": f"models/{model}", "content": {"parts": [{"text": text}]}, **more}
            for text in texts
        ]
    }


def _config(order: Order) -> dict[str, Any]:
    kind, schema = chats.answer_schema(order)
    config: dict[str, Any] = {
        "maxOutputTokens": order.max_output_tokens,
        "candidateCount": order.choices if order.choices > 1 else None,
        "temperature": order.body.get("temperature"),
        "topP": order.body.get("top_p"),
        "topK": order.body.get("top_k"),
        "seed": order.body.get("seed"),
        "presencePenalty": order.body.get("presence_penalty"),
        "frequencyPenalty": order.body.get("frequency_penalty"),
        "stopSequences": chats.stops_of(order) or None,
        "responseMimeType": None if kind == "text" else "application/json",
        "responseJsonSchema": schema or None,
        "thinkingConfig": _thinking(order),
    }
    return {name: value for name, value in config.items() if value is not None}


def _thinking(order: Order) -> dict[str, Any] | None:
    effort = order.body.get("reasoning_effort")
    if effort is None:
        return None
    if effort not in _THINKING:
        raise InvalidRequestError.of("reasoning_effort", f"must be one of {', '.join(_THINKING)}")
    return {"thinkingBudget": _THINKING[effort]}


def _contents(order: Order) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Parts of the system's word, and the others in turns of one role each."""
    system: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for index, message in enumerate(order.body["messages"]):
        field = f"messages.{index}"
        role = message["role"]
        if role in ("system", "developer"):
            system += _parts(message, field)
            continue
        if role == "tool":
            role, parts = "user", [_response(message, field, names)]
        elif role == "assistant":
            role, parts = "model", [*_parts(message, field), *_calls(message, field, names)]
        elif role == "user":
            parts = _parts(message, field)
        else:
            raise InvalidRequestError.of(f"{field}.role", "is not known to this model")
        if turns and turns[-1]["role"] == role:
            turns[-1]["parts"] += parts
        elif parts:
            turns.append({"role": role, "parts": parts})
    return system, turns


def _parts(message: dict[str, Any], field: str) -> list[dict[str, Any]]:
    return [
        _part(part, f"{field}.content.{index}")
        for index, part in enumerate(chats.parts_of(message.get("content")))
    ]


def _part(part: dict[str, Any], field: str) -> dict[str, Any]:
    if part["type"] == "text":
        return {"text": part["text"]}
    if part["type"] != "image_url":
        raise not_supported(f"{field}.type", "must be “text” or “image_url” for this model")
    inline = chats.inline_image(chats.image_url(part, field))
    if inline is None:
        raise not_supported(
            f"{field}.image_url.url", "must be a data: URL with base64 for this model"
        )
    return {"inlineData": {"mimeType": inline[0], "data": inline[1]}}


def _calls(message: dict[str, Any], field: str, names: dict[str, str]) -> list[dict[str, Any]]:
    parts = []
    for identity, name, arguments in chats.calls_of(message, field):
        names[identity] = name
        parts.append({"functionCall": {"name": name, "args": arguments}})
    return parts


def _response(message: dict[str, Any], field: str, names: dict[str, str]) -> dict[str, Any]:
    """What a tool has answered; Gemini goes by the tool's name, not by the call's id."""
    name = names.get(str(message.get("tool_call_id")))
    if name is None:
        raise InvalidRequestError.of(
            f"{field}.tool_call_id", "must be the id of a call in an earlier message"
        )
    texts = [part.get("text", "") for part in _parts(message, field)]
    return {"functionResponse": {"name": name, "response": {"result": "".join(texts)}}}


def _tools(order: Order) -> dict[str, Any]:
    declarations = [
        {
            "name": function["name"],
            **({"description": text} if (text := function.get("description")) else {}),
            **({"parametersJsonSchema": schema} if (schema := function.get("parameters")) else {}),
        }
        for function in chats.functions_of(order)
    ]
    if not declarations:
        return {}
    found: dict[str, Any] = {"tools": [{"functionDeclarations": declarations}]}
    kind, name = chats.chosen_tool(order)
    if kind:
        calling: dict[str, Any] = {"mode": _MODES[kind]}
        if name:
            calling["allowedFunctionNames"] = [name]
        found["toolConfig"] = {"functionCallingConfig": calling}
    return found
