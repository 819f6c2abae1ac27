"""Language of a text by py3langid, which carries its own weights."""

import numpy as np
import triton_python_backend_utils as pb_utils
from py3langid.langid import MODEL_FILE, LanguageIdentifier


class TritonPythonModel:
    """Naive Bayes over byte n-grams, 97 languages."""

    def initialize(self, args):
        """Unpack the weights; `norm_probs` makes scores that lie between 0 and 1."""
        del args
        self.identifier = LanguageIdentifier.from_pickled_model(MODEL_FILE, norm_probs=True)

    def execute(self, requests):
        """One response a request, in the same order."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Classify every text of a request; input and outputs have the shape [n, 1]."""
        texts = pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy()
        found = [self.identifier.classify(text.decode(errors="replace")) for text in texts.flat]
        labels = np.array([label.encode() for label, _ in found], dtype=np.object_)
        scores = np.array([score for _, score in found], dtype=np.float32)
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("LABEL", labels.reshape(texts.shape)),
                pb_utils.Tensor("SCORE", scores.reshape(texts.shape)),
            ]
        )
