"""What looks have counted of clients that Kafka 4 answers no more, in the state directory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.io.private_file import private_file
from kraft_runbook.software.old_client_days import OldClientDays, from_json, to_json, with_look

AT_LEAST_EVERY = timedelta(minutes=1)
"""Looks that saw nothing new are kept so often."""


def file_of(state: Path, cluster: str) -> Path:
    """Where it lies."""
    return state / "old-clients" / f"{cluster}.json"


def read_old_clients(state: Path, cluster: str) -> OldClientDays | Unread | None:
    """None where nobody has counted yet."""
    path = file_of(state, cluster)
    try:
        found = from_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return Unread(f"{path}: {error}")
    return found if found.cluster == cluster else Unread(f"{path}: it holds counts of another cluster")


def keep_old_clients(state: Path, seen: ClusterObservation, warn: Callable[[str], object]) -> None:
    """Add this look. Of two that write at once one is lost, and the next look adds what it saw: each file is whole, and
    goes by its own totals. ``warn`` hears where that can't be done; what can't be read is never written over.
    """
    try:
        kept = read_old_clients(state, seen.cluster)
        if isinstance(kept, Unread):
            raise ValueError(kept.reason)
        now = with_look(kept, seen)
        if now is None or now is kept or (kept and now.kinds == kept.kinds and now.last - kept.last < AT_LEAST_EVERY):
            return
        with private_file(file_of(state, seen.cluster), durable=False) as file:
            file.write(to_json(now))
    except Exception as error:  # whatever is wrong with it, the step goes on
        warn(f"Clients that Kafka 4 does not answer are not counted by day: {error}")
