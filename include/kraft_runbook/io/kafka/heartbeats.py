"""The heartbeats of brokers that are stood in for, in threads: without them the quorum fences a broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.kafka.leader import PATIENCE, Leader
from kraft_runbook.io.kafka.registrations import beat
from kraft_runbook.io.secrets import environment_secrets

HEARTBEAT_EVERY = 2.0
"""``broker.heartbeat.interval.ms``'s default, in seconds."""
CONNECTIONS = 6
"""So many heartbeats at a time: one behind the other, thirty would outlast a session where each waits for the copy's
next batch.
"""
A_TRY = 3.0
"""Seconds after which a heartbeat that nobody takes is begun anew, so that a change of mode is not kept waiting."""

T = TypeVar("T")


class Heartbeats:
    """A context manager: each broker of ``ids`` beats while ``epochs`` holds its broker epoch. Set ``epochs`` anew to
    change that.

    ``unfenced``: the brokers that the quorum has shown as unfenced. ``failures``: why threads ended: a heartbeat was
    refused, or no controller led for ``patience`` seconds. ``every``: seconds from one heartbeat to the next.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        ids: Sequence[int],
        *,
        beat: Callable[..., bool | None] = beat,
        every: float = HEARTBEAT_EVERY,
        look_every: float = 0.1,
        patience: float = PATIENCE,
    ) -> None:
        self.epochs: Mapping[int, int] = {}
        self.unfenced: set[int] = set()
        self.failures: list[Exception] = []
        self._spec, self._beat = spec, beat
        self._every, self._look_every, self._patience = every, look_every, patience
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._beat_on, args=(share,), name="heartbeats", daemon=True)
            for share in shares(ids)
        ]

    def __enter__(self) -> Heartbeats:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _beat_on(self, share: Sequence[int]) -> None:
        """The heartbeats of some, over one connection."""
        leader = Leader(self._spec, environment_secrets({}))
        last = time.monotonic()
        try:
            while not self._stop.is_set():
                began = time.monotonic()
                try:
                    for each in share:
                        epoch = self.epochs.get(each)
                        if epoch is not None and self._beat(leader, each, epoch, within=A_TRY):
                            self.unfenced.add(each)
                    last = time.monotonic()
                except StepFailed:
                    if self.epochs and not self._stop.is_set() and time.monotonic() - last > self._patience:
                        raise
                self._stop.wait(max(self._look_every, self._every - (time.monotonic() - began)))
        except Exception as error:
            self.failures.append(error)
        finally:
            leader.close()


def shares(of: Sequence[T]) -> list[list[T]]:
    """Brokers by connection."""
    return [list(of[first::CONNECTIONS]) for first in range(min(CONNECTIONS, len(of)))]
