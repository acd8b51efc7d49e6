"""A file that is written whole or not at all, and that only its owner may read. The one writer of this project's own
files.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

ABANDONED_SECONDS = 3600.0
"""Seconds after which an unchanged draft counts as left by a killed writer; the next writer removes it."""


@contextmanager
def private_file(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """What the block writes takes the place of ``path`` when it ends without an error; with one, ``path`` stays as it
    was.

    Each writer has a draft of its own: of two that write at once, the last to end wins, with a whole file. Mode 0600;
    directories that are missing are made, 0700. ``durable``: the file is on disk (fsync) when this returns. Raises
    OSError.
    """
    make_private_directory(path.parent)
    with draft_of(path) as draft:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
    if durable:
        sync_directory(path.parent)


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """The path of a file beside ``path`` that is not there yet. What the block puts there takes the place of ``path``
    when it ends without an error; with one, ``path`` stays as it was. Raises OSError.
    """
    _remove_abandoned_drafts(path)
    draft = path.with_name(f"{_draft_prefix(path)}{secrets.token_hex(8)}.new")
    try:
        yield draft
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_private(path: Path, text: str, *, durable: bool = True) -> None:
    """Write a whole text as ``private_file`` does."""
    with private_file(path, durable=durable) as file:
        file.write(text.encode())


def make_private_directory(path: Path) -> None:
    """Make a directory, and those above it that are missing, for their owner alone. One that is there is
    left as it is.
    """
    if path.is_dir():
        return
    make_private_directory(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


def _draft_prefix(path: Path) -> str:
    return f".{path.name}."


def _remove_abandoned_drafts(path: Path) -> None:
    prefix, oldest = _draft_prefix(path), time.time() - ABANDONED_SECONDS
    for draft in [
        each for each in path.parent.iterdir() if each.name.startswith(prefix) and each.name.endswith(".new")
    ]:
        with contextlib.suppress(FileNotFoundError):
            if draft.lstat().st_mtime < oldest:
                draft.unlink()


def sync_directory(path: Path) -> None:
    """Sync the names in a directory to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
