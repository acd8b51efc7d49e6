"""The looks of each cluster in the state directory: the latest, whole, and one short line for each of the last ones.

A look that can't be kept stops nothing: the step that looked goes on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.dashboard.kept_look import LOOK, LookKept, line_of, look_of, read_look
from kraft_runbook.dashboard.kept_moves import MOVES, MOVES_VERSION, MovesKept
from kraft_runbook.io.file_lock import lock_within
from kraft_runbook.io.private_file import make_private_directory, private_file

MOST_BYTES = 2_000_000
"""Of a cluster's lines: some 6,000 looks. A file that is longer loses its older half."""

PATIENCE = 1.0
"""Seconds for which a step waits for another writer of looks; then it goes on without keeping its own."""

AHEAD = timedelta(seconds=5)
"""By how much the clocks of two hosts may differ before a look's time is not believed."""


def latest_path(directory: Path, cluster: str) -> Path:
    """Where the latest look lies in the state directory."""
    return directory / "looks" / f"{cluster}.json"


def lines_path(directory: Path, cluster: str) -> Path:
    """Where the lines lie."""
    return directory / "looks" / f"{cluster}.jsonl"


def keep_look(
    directory: Path,
    seen: ClusterObservation,
    warn: Callable[[str], object],
    *,
    most: int = MOST_BYTES,
    patience: float = PATIENCE,
) -> None:
    """Keep this look, unless a later one is there. One whose time has not come yet, by this host's clock or by its
    file's, is of a clock that is ahead: it is overwritten. ``warn`` hears where that can't be done. ``most``: bytes
    that its lines may have; ``patience``: seconds that another writer is waited for.
    """
    try:
        look = look_of(seen)
        with _locked(directory, look.cluster, patience):
            before = read_latest(directory, look.cluster)
            if was_read(before) and before is not None and before.at >= look.at:
                written = written_at(directory, look.cluster)
                if before.at - min(datetime.now(UTC), written or before.at) <= AHEAD:
                    return
            with private_file(latest_path(directory, look.cluster), durable=False) as file:
                file.write(LOOK.dump_json(look))
            _append(lines_path(directory, look.cluster), line_of(look), most)
    except Exception as error:  # whatever is wrong with it, the step goes on
        warn(f"This look is not kept for the dashboard: {error}")


def read_latest(directory: Path, cluster: str) -> LookKept | Unread | None:
    """The latest look; None where nobody has looked yet; Unread where the file holds none, or another cluster's."""
    path = latest_path(directory, cluster)
    try:
        look = read_look(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return Unread(f"the file of the last look ({path.name}) can't be read: {error}")
    if look.cluster != cluster:
        return Unread(f"the file of the last look ({path.name}) holds one of another cluster")
    return look


def written_at(directory: Path, cluster: str) -> datetime | None:
    """When the latest look was written, by the clock of the file system; None where that can't be said."""
    try:
        return datetime.fromtimestamp(latest_path(directory, cluster).stat().st_mtime, UTC)
    except OSError:
        return None


def read_lines(directory: Path, cluster: str, *, last: int = MOST_BYTES) -> list[Mapping[str, Any]] | Unread:
    """The lines in the last ``last`` bytes, the oldest first; what is no line of a look is left out."""
    try:
        with lines_path(directory, cluster).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - last))
            lines = file.read().splitlines()[1 if size > last else 0 :]
    except FileNotFoundError:
        return []
    except OSError as error:
        return Unread(f"the earlier looks can't be read: {error}")
    return [found for line in lines if (found := _line(line))]


def moves_path(directory: Path, cluster: str) -> Path:
    """Where it lies in the state directory."""
    return directory / "looks" / f"{cluster}.moves.json"


def keep_moves(directory: Path, moves: MovesKept, warn: Callable[[str], object]) -> None:
    """``warn`` hears where that can't be done."""
    path = moves_path(directory, moves.cluster)
    try:
        make_private_directory(path.parent)
        with private_file(path, durable=False) as file:
            file.write(MOVES.dump_json(moves))
    except OSError as error:
        warn(f"What moves is not kept for the dashboard: {error}")


def read_moves(directory: Path, cluster: str) -> MovesKept | Unread | None:
    """None where nobody has looked; Unread where the file holds no look of this version, or another cluster's."""
    path = moves_path(directory, cluster)
    try:
        moves = MOVES.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        return Unread(f"what moves in the cluster ({path.name}) can't be read: {str(error).splitlines()[0]}")
    if moves.cluster != cluster or moves.version != MOVES_VERSION:
        return Unread(f"what moves in the cluster ({path.name}) can't be read: it is another cluster's or version's")
    return moves


def _line(line: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _append(path: Path, line: Mapping[str, Any], most: int) -> None:
    text = json.dumps(line, separators=(",", ":")).encode() + b"\n"
    if path.exists() and path.stat().st_size + len(text) > most:
        kept = path.read_bytes()
        with private_file(path, durable=False) as file:
            file.write(kept[kept.find(b"\n", len(kept) // 2) + 1 :])
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab") as file:
        file.write(text)


@contextmanager
def _locked(directory: Path, cluster: str, patience: float) -> Iterator[None]:
    """One writer at a time: each holds the lock for a few milliseconds. Raises TimeoutError where one holds it for
    longer than ``patience``: it may be stopped, or on a host that is gone.
    """
    path = latest_path(directory, cluster).with_suffix(".lock")
    make_private_directory(path.parent)
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not lock_within(lock, patience, every=0.02):
            raise TimeoutError(f"another writer has held {path.name} for {patience:.0f} s")
        yield
    finally:
        os.close(lock)
