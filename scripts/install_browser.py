"""Make sure there is a chromium for the browser stories: by apt, as root on Debian or Ubuntu.

Where none can be had, it says so loudly and ends well: the other tests run all the same.
"""

import os
import shutil
import subprocess
import sys

PACKAGES = ["chromium", "fonts-dejavu-core", "fonts-noto-cjk"]
NAMES = ["chromium", "chromium-browser", "google-chrome"]


def find() -> str | None:
    """Path of a chromium, `None` when there is none."""
    chosen = os.environ.get("INFERADMIN_CHROMIUM") or ""
    return next(filter(None, map(shutil.which, [chosen, *NAMES] if chosen else NAMES)), None)


def install() -> str | None:
    """Install it by apt; gives what went wrong, `None` when nothing did."""
    if os.geteuid() != 0:
        return "not root, so apt-get cannot be used"
    if shutil.which("apt-get") is None:
        return "there is no apt-get"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES],
    ):
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode:
            return f"{' '.join(command)} failed: {done.stdout.strip()[-500:]}"
    return None


def main() -> None:
    """Install a browser unless there is one."""
    if find():
        return
    print("  No chromium here: installing it", flush=True)
    problem = install()
    if find() is None:
        line = "*" * 78
        print(
            f"{line}\nBROWSER STORIES ARE SKIPPED: there is no chromium ({problem}).\n"
            f"Install one ({', '.join(NAMES)}) or set INFERADMIN_CHROMIUM to its path.\n{line}",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
