"""What a set of files is known by: their names and what they hold."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path


def prints_of(root: Path, files: Iterable[Path]) -> Iterator[bytes]:
    """Of each file its name below ``root`` and a digest, in the order of their paths. Raises OSError."""
    for file in sorted(files):
        yield f"\0{file.relative_to(root)}\0{hashlib.sha256(file.read_bytes()).hexdigest()}".encode()
