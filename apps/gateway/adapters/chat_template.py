"""Prompts out of chat messages, for servers that continue a text and know no messages."""

from functools import lru_cache
from typing import Any, NoReturn

from jinja2 import Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from apps.core.errors import InvalidRequestError

# The format of SmolLM2, Qwen and many more.
CHATML = (
    "{% for message in messages %}"
    "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def render_chat(messages: list[dict[str, Any]], template: str = CHATML) -> str:
    """The prompt that asks for the next message. Raises InvalidRequestError.

    Templates are those of Hugging Face tokenizers: they get `messages` and
    `add_generation_prompt`, and run in a sandbox.
    """
    plain = [_plain(message, index) for index, message in enumerate(messages)]
    try:
        return _compiled(template).render(messages=plain, add_generation_prompt=True)
    except TemplateError as exc:
        raise InvalidRequestError(
            f"the chat template of this model does not take these messages: {exc}",
            code="chat_template_refused",
            fields={"messages": [str(exc)]},
        ) from exc


@lru_cache(maxsize=256)
def _compiled(template: str) -> Template:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = _raise
    return environment.from_string(template)


def _raise(message: str) -> NoReturn:
    """What templates call to refuse messages."""
    raise TemplateError(message)


def _plain(message: dict[str, Any], index: int) -> dict[str, Any]:
    return {**message, "content": _text(message.get("content"), index)}


def _text(content: Any, index: int) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [None]
    texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
    found = [text for text in texts if isinstance(text, str)]
    if len(found) != len(texts):
        field = f"messages.{index}.content"
        raise InvalidRequestError(
            f"{field}: this model reads text only",
            code="content_not_supported",
            fields={field: ["this model reads text only"]},
        )
    return "".join(found)
