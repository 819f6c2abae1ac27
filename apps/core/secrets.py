"""Secrets: making keys, keeping their digests, encrypting what must be read again."""

import base64
import hashlib
import secrets
from dataclasses import dataclass
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

_PREFIX_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class NewSecret:
    """A secret just made: `value` is shown once, `prefix` and `digest` are kept."""

    value: str
    prefix: str
    digest: str


def new_secret(kind: str) -> NewSecret:
    """Random secret of 256 bits that starts with `kind` (`sk-ia-` or `mt-ia-`)."""
    value = kind + secrets.token_urlsafe(32)
    return NewSecret(value=value, prefix=value[:_PREFIX_CHARACTERS], digest=digest_of(value))


def digest_of(secret: str) -> str:
    """SHA-256 in hex: enough for secrets of 256 random bits, and fast to look up."""
    return hashlib.sha256(secret.encode()).hexdigest()


@lru_cache(maxsize=4)
def _fernet(key: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest()))


def encrypt(text: str) -> str:
    """Encrypted form for the database; empty stays empty."""
    return _fernet(settings.ENCRYPTION_KEY).encrypt(text.encode()).decode() if text else ""


def decrypt(stored: str) -> str:
    """What `encrypt` was given, by this key or an old one; raises ImproperlyConfigured."""
    if not stored:
        return ""
    try:
        return _all_keys().decrypt(stored.encode()).decode()
    except InvalidToken as exc:
        raise ImproperlyConfigured(
            "a stored secret cannot be read: neither INFERADMIN_ENCRYPTION_KEY nor one of "
            "INFERADMIN_OLD_ENCRYPTION_KEYS is the one it was written with"
        ) from exc


def is_current(stored: str) -> bool:
    """True when the key of today reads it; an empty secret needs no key."""
    if not stored:
        return True
    try:
        _fernet(settings.ENCRYPTION_KEY).decrypt(stored.encode())
    except InvalidToken:
        return False
    return True


def _all_keys() -> MultiFernet:
    """The key of today first."""
    keys = (settings.ENCRYPTION_KEY, *settings.OLD_ENCRYPTION_KEYS)
    return MultiFernet([_fernet(key) for key in keys])
