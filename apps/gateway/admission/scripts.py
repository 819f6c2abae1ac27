"""The Lua scripts of admission; `shared.lua` stands before each."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

ScriptName = Literal["admit", "swap", "settle", "seed", "renew", "reap", "rewind"]

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Script:
    """Source of a script and the digest that Redis knows it by."""

    source: str
    digest: str


@lru_cache
def script(name: ScriptName) -> Script:
    """The script of that name, read once."""
    source = "\n".join(
        (_FOLDER / f"{part}.lua").read_text(encoding="utf-8") for part in ("shared", name)
    )
    digest = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    return Script(source, digest)
