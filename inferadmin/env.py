"""The only reader of `os.environ`; every variable's name starts with `INFERADMIN_`."""

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

_PREFIX = "INFERADMIN_"
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}


def env_str(name: str, default: str | None = None) -> str:
    """Value of `INFERADMIN_<name>`; raises ImproperlyConfigured when missing and no default."""
    value = os.environ.get(_PREFIX + name, "").strip()
    if value:
        return value
    if default is None:
        raise ImproperlyConfigured(f"set {_PREFIX}{name}: it has no default")
    return default


def env_int(name: str, default: int) -> int:
    """Whole number from `INFERADMIN_<name>`; raises ImproperlyConfigured when it is not one."""
    text = env_str(name, str(default))
    try:
        return int(text)
    except ValueError as exc:
        raise ImproperlyConfigured(f"{_PREFIX}{name} must be a whole number, got {text!r}") from exc


def env_bool(name: str, *, default: bool) -> bool:
    """Switch from `INFERADMIN_<name>`: 1/true/yes/on or 0/false/no/off."""
    text = env_str(name, "1" if default else "0").lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ImproperlyConfigured(f"{_PREFIX}{name} must be one of 1, 0, true, false, got {text!r}")


def env_list(name: str, default: str) -> list[str]:
    """Comma-separated values of `INFERADMIN_<name>`, blanks dropped."""
    return [item.strip() for item in env_str(name, default).split(",") if item.strip()]


def env_secret(name: str, default: str | None = None) -> str:
    """Secret from `INFERADMIN_<name>`, or from the file that `INFERADMIN_<name>_FILE` names."""
    path = os.environ.get(f"{_PREFIX}{name}_FILE", "").strip()
    if not path:
        return env_str(name, default)
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as exc:
        raise ImproperlyConfigured(f"{_PREFIX}{name}_FILE: cannot read {path}") from exc
