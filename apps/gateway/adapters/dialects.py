"""Which adapter speaks which protocol."""

from apps.gateway.adapters.anthropic import AnthropicAdapter
from apps.gateway.adapters.contract import Adapter
from apps.gateway.adapters.gemini import GeminiAdapter, GeminiEmbeddingsAdapter
from apps.gateway.adapters.openai import OpenAiAdapter
from apps.gateway.adapters.triton_generate import TritonGenerateAdapter
from apps.gateway.adapters.triton_infer import TritonInferAdapter
from apps.gateway.orders import Endpoint
from apps.gateway.snapshot import TargetRow

_ADAPTERS: dict[str, tuple[Adapter, ...]] = {
    "openai": (OpenAiAdapter(),),
    "anthropic": (AnthropicAdapter(),),
    "gemini": (GeminiAdapter(), GeminiEmbeddingsAdapter()),
    "triton_generate": (TritonGenerateAdapter(),),
    "triton_infer": (TritonInferAdapter(),),
}


def adapter_for(target: TargetRow, endpoint: Endpoint) -> Adapter | None:
    """What puts that kind of request to the target; `None` when nothing can."""
    for adapter in _ADAPTERS[target.protocol]:
        if endpoint in adapter.endpoints:
            return adapter
    return None


def endpoints_of(target: TargetRow) -> frozenset[Endpoint]:
    """What can be asked of a target."""
    return frozenset().union(*(adapter.endpoints for adapter in _ADAPTERS[target.protocol]))
