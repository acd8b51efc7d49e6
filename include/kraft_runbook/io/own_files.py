"""This tool's own certificates and keys, looked at before a client is given them: the clients say of a file that is
not there that the server did not answer, or run out of time.
"""

from __future__ import annotations

from pathlib import Path

from kraft_runbook.cluster.client_security import ClientSecurity
from kraft_runbook.errors import Unreachable

KEYS = ("ca_file", "certificate_file", "key_file")


def require_own_files(security: ClientSecurity, block: str) -> None:
    """Every file that the block of the cluster file names can be read from here. Raises Unreachable, naming the key.

    ``block``: what the cluster file calls it (``broker_security``). What the files hold is not looked at, and without
    TLS none is asked for.
    """
    for key in KEYS if security.protocol.is_tls else ():
        require_own_file(getattr(security, key), f"{block}.{key}")


def require_own_file(path: str | None, key: str) -> None:
    """The same of one file; ``key``: with its block. None: the key is not set."""
    try:
        if path is not None:
            with Path(path).open("rb"):
                pass
    except OSError as error:
        raise Unreachable(
            f"{key} {path}: {error.strerror or error}",
            way_out=(
                "put the file there, on every machine where this tool runs (Airflow's workers and its triggerer), and"
                f" let its user read it; or correct {key} in the cluster file"
            ),
        ) from None
