"""ASGI applications on a real port of loopback, in a thread with an event loop of its own."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import uvicorn


@contextlib.contextmanager
def serving(application: Any, *, lifespan: str = "auto") -> Iterator[str]:
    """Root URL of the application while the block runs."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        application,
        lifespan=lifespan,  # type: ignore[arg-type]  # one of uvicorn's words
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=_run, args=(server, listener), daemon=True)
    thread.start()
    try:
        _wait_until_started(server, thread)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=15)
        listener.close()


def _run(server: uvicorn.Server, listener: socket.socket) -> None:
    # A handle of a connection that broke may still be closing when uvloop closes itself.
    with contextlib.suppress(OSError):
        server.run(sockets=[listener])


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread) -> None:
    while not server.started:
        if not thread.is_alive():
            raise RuntimeError("the server has not started; its log says why")
        time.sleep(0.005)
