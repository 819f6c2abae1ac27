"""One web process, on a listening socket that it inherits.

Run as `python -m inferadmin.embedded.web FD`, with the number of the socket's file descriptor.
The socket outlives the process. While a killed web process is started again, clients wait in the
socket's queue and are not refused.
"""

import socket
import sys

import uvicorn

_GRACEFUL_SECONDS = 5
_BACKLOG = 512


def serve(descriptor: int) -> None:
    """Serve until SIGTERM; requests that are running then get a few seconds to end."""
    listening = socket.socket(fileno=descriptor)
    config = uvicorn.Config(
        "inferadmin.asgi:application",
        loop="uvloop",
        http="httptools",
        lifespan="auto",
        log_config=None,  # inferadmin.logs speaks for all
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing stands before it, and the middleware costs every request
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_GRACEFUL_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    serve(int(sys.argv[1]))
