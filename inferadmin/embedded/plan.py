"""What the supervisor tells the preparation: where the model servers of this run are."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from inferadmin.embedded.llamacpp import MODEL_NAME, LlamaCpp
from inferadmin.embedded.triton import Triton


@dataclass(frozen=True, slots=True)
class ModelServer:
    """Addresses of a server as a server record wants them; empty where there is none."""

    url: str
    metrics_url: str
    grpc_address: str = ""
    api_key: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """One run. `triton` is `None` where `triton_obstacle` says why it cannot run."""

    url: str
    triton: ModelServer | None
    triton_obstacle: str
    llama_cpp: ModelServer
    llama_cpp_model: str
    # Folder of the installation, see `var.py`.
    folder: Path

    @classmethod
    def of(
        cls, *, url: str, folder: Path, triton: Triton | None, obstacle: str | None, llama: LlamaCpp
    ) -> "Plan":
        """The plan of engines that have been started."""
        return cls(
            url=url,
            folder=folder,
            triton=None
            if triton is None
            else ModelServer(triton.url, triton.metrics_url, grpc_address=triton.grpc_address),
            triton_obstacle=obstacle or "",
            llama_cpp=ModelServer(llama.url, llama.metrics_url, api_key=llama.api_key),
            llama_cpp_model=MODEL_NAME,
        )

    def to_json(self) -> bytes:
        """For the standard input of the preparation: it holds a key, so it is in no argument."""
        return json.dumps(asdict(self), default=str).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "Plan":
        """The plan that `to_json` wrote."""
        values = json.loads(text)
        triton = values.pop("triton")
        return cls(
            **{
                **values,
                "folder": Path(values["folder"]),
                "triton": None if triton is None else ModelServer(**triton),
                "llama_cpp": ModelServer(**values["llama_cpp"]),
            }
        )
