"""Makes `.venv` and what is built: `python3.11 scripts/bootstrap.py base engines weights [dev]`.

Needs nothing but Python 3.11. Each argument names a file of `requirements/`; one that has not
changed since it was installed is skipped. The packages come from wherever this machine's pip is
told to look.
"""

import hashlib
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
# One file a requirements file, with the digest of what was installed.
STAMPS = VENV / "installed"
FRONT_END = ROOT / "scripts" / "build_front.py"
WANTED_PYTHON = (3, 11)


class BootstrapError(Exception):
    """A step failed; the message says what to do."""


def main(groups: list[str]) -> None:
    """Make the environment, install what has changed, build."""
    require_python()
    make_environment()
    for group in groups:
        install(group)
    build_front_end()
    compile_catalogues()


def require_python() -> None:
    """Refuse other lines of Python: the lock files hold the wheels of one."""
    if sys.version_info[:2] != WANTED_PYTHON:
        wanted = ".".join(map(str, WANTED_PYTHON))
        raise BootstrapError(
            f"Python {wanted} is needed, this is {sys.version.split()[0]}. Install it (Debian: "
            f"apt-get install python{wanted} python{wanted}-venv) or say where it is: "
            "make PYTHON=/path/to/python3.11 …"
        )


def make_environment() -> None:
    """`.venv`, made again where it does not work (moved, interrupted, its Python gone)."""
    if PYTHON.exists() and runs(PYTHON, "-c", "import pip"):
        return
    with step("Python environment .venv"):
        shutil.rmtree(VENV, ignore_errors=True)
        try:
            venv.create(VENV, with_pip=True, symlinks=True)
        except (subprocess.CalledProcessError, OSError) as exc:
            shutil.rmtree(VENV, ignore_errors=True)
            raise BootstrapError(
                f"cannot make {VENV}: {exc}. On Debian: apt-get install python3.11-venv"
            ) from exc


def install(group: str) -> None:
    """Install `requirements/<group>.txt`, exactly what its hashes allow."""
    requirements = ROOT / "requirements" / f"{group}.txt"
    stamp = STAMPS / group
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    with step(f"Packages: {group}"):
        run(
            *(PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-input", "--require-hashes", "--no-deps", "-r", requirements),
            hint="Is a package index within reach? pip's own settings say where it looks "
            "(pip config list). Then run the same command again.",
        )
    STAMPS.mkdir(exist_ok=True)
    stamp.write_text(digest)


def build_front_end() -> None:
    """Scripts and styles into `static/dist`; the script itself skips what is up to date."""
    with step("Front end"):
        run(PYTHON, FRONT_END, hint="The lines above say what is missing.")


def compile_catalogues() -> None:
    """Translations, where their sources are newer."""
    sources = list(ROOT.glob("locale/*/LC_MESSAGES/*.po"))
    if all(is_newer(po.with_suffix(".mo"), po) for po in sources):
        return
    with step("Translations"):
        for po in sources:
            run(
                *(PYTHON, "-m", "babel.messages.frontend", "compile"),
                *("--input-file", po, "--output-file", po.with_suffix(".mo")),
                hint=f"Mend {po}.",
            )


def is_newer(built: Path, source: Path) -> bool:
    """True when `built` was made after the last change of `source`."""
    return built.exists() and built.stat().st_mtime >= source.stat().st_mtime


def runs(*command: object) -> bool:
    """True when the command ends well."""
    return subprocess.run([*map(str, command)], capture_output=True).returncode == 0


def run(*command: object, hint: str) -> None:
    """Run a command in the repository; its output is shown when it fails."""
    done = subprocess.run(
        [*map(str, command)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise BootstrapError(f"{' '.join(map(str, command))}\n\n{done.stdout.strip()}\n\n{hint}")


@contextmanager
def step(what: str) -> Iterator[None]:
    """A line with the step's name and, when it has ended, its time."""
    print(f"  {what:<44}", end="", flush=True)
    began = time.monotonic()
    try:
        yield
    except BaseException:
        print("failed", flush=True)
        raise
    print(f"{time.monotonic() - began:6.1f} s", flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BootstrapError as problem:
        sys.exit(f"\nbootstrap: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
