"""What is said where a host's disk takes no file any more, so that a record of it can't be kept."""

from __future__ import annotations

import errno
import logging
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kraft_runbook.errors import RunbookError, StepFailed
from kraft_runbook.evidence.store import evidence_directory

log = logging.getLogger(__name__)

CLEAR = "then clear this task: it looks at the cluster first, and what is done by now is left alone"
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
NOT_WRITABLE = NO_ROOM | {errno.EROFS}
"""What the kernel says of a disk on which nothing can be written."""
DENIED = frozenset({errno.EACCES, errno.EPERM})
"""What it says of a file that this user may not use. Of a connection it says the same, and names no file."""


@contextmanager
def disk_in_words() -> Iterator[None]:
    """Raise StepFailed, with the way out, where this host's disk takes no file any more, or this user may not use one.
    The kernel names the file only where it was opened.
    """
    try:
        yield
    except OSError as error:
        denied = error.errno in DENIED and bool(error.filename)
        if error.errno not in NOT_WRITABLE and not denied:
            raise
        log.warning("Where it came from:", exc_info=True)
        if denied:
            raise StepFailed(
                f"{socket.gethostname()} could not read or write {error.filename}: {error.strerror}",
                way_out=f"let this task's user (uid {os.geteuid()}) use it, and make files beside it, {CLEAR}",
            ) from error
        places = (
            f"this task writes below {evidence_directory(os.environ)}, the state directory, and {tempfile.gettempdir()}"
        )
        mend = "make room there" if error.errno in NO_ROOM else "let it be mounted for writing"
        raise StepFailed(
            f"{socket.gethostname()} could not write {error.filename or 'a file'}:"
            f" {error.strerror}{'' if error.filename else f' ({places})'}",
            way_out=f"{mend}, {CLEAR}",
        ) from error


@contextmanager
def said_where_unwritten(told: Any) -> Iterator[None]:
    """For a record of an error: where it can't be written, that is said beside the error, and does not take
    its place.
    """
    try:
        with disk_in_words():
            yield
    except RunbookError as unwritten:
        told.error("That is not in the evidence: %s", unwritten.problem)
