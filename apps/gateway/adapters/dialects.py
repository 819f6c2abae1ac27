"""Which adapter speaks which protocol."""

from apps.gateway.adapters.contract import Adapter
from apps.gateway.adapters.openai import OpenAiAdapter
from apps.gateway.adapters.triton_generate import TritonGenerateAdapter
from apps.gateway.adapters.triton_infer import TritonInferAdapter

ADAPTERS: dict[str, Adapter] = {
    "openai": OpenAiAdapter(),
    "triton_generate": TritonGenerateAdapter(),
    "triton_infer": TritonInferAdapter(),
}
