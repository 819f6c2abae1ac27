"""Which front writes the errors of a path, also where no view was found."""

from apps.gateway.fronts.anthropic import AnthropicFront
from apps.gateway.fronts.contract import Front
from apps.gateway.fronts.openai import OpenAiFront

_OPENAI = OpenAiFront("chat.completions")
# By how the path starts; OpenAI's format for the others.
_BY_PREFIX: tuple[tuple[str, Front], ...] = (("/v1/messages", AnthropicFront()),)


def front_of(path: str) -> Front:
    """The front whose clients call that path."""
    for prefix, front in _BY_PREFIX:
        if path.startswith(prefix):
            return front
    return _OPENAI
