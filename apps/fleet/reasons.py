"""A server's own words for a failure, cut to what a person may and wants to read."""

import re

_MAX_CHARACTERS = 600
# Python's traceback follows after "At:" in Triton's reasons, one frame a line.
_TRACEBACK = re.compile(
    r"\s*\n+\s*At:\s*\n.*|Traceback \(most recent call last\):.*?\n(?=\S)", re.S
)
_FRAME = re.compile(r'^\s*File ".*", line \d+.*$', re.M)
# Absolute paths of files; the file's name alone stays. URLs are left alone.
_PATH = re.compile(r"(?<![\w:/.])/(?:[^\s/:'\"()]+/)+([^\s/:'\"()]*)")
_BLANKS = re.compile(r"\s+")


def stripped(text: str) -> str:
    """The text without tracebacks, folders and line breaks, 600 characters at most."""
    text = _FRAME.sub("", _TRACEBACK.sub("", text))
    text = _PATH.sub(lambda found: found[1] or "…", text)
    text = _BLANKS.sub(" ", text).strip(" ;")
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"
