"""When ZooKeeper notices that the broker in /controller is gone: its session has ended, and with it the znode."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType

from kazoo.exceptions import KazooException

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.znodes.cluster_rows import parse_controller

REST = 0.1
"""Seconds between two looks."""


class HolderGone:
    """A context manager: a thread reads /controller until it names another than this broker, or nobody, or until its
    end. ``gone_at``: that moment (``time.monotonic``); None where it was not seen. Raises Unreachable, SecretMissing at
    its begin.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        broker: int,
        *,
        secrets: Secrets,
        reader: Callable[..., ZookeeperReader] = ZookeeperReader,
        rest: float = REST,
    ) -> None:
        self.gone_at: float | None = None
        self._reader = reader(spec.ensemble, secrets=secrets)
        self._broker, self._rest = broker, rest
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="drill-controller", daemon=True)

    def __enter__(self) -> HolderGone:
        self._reader.__enter__()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(30.0)
        self._reader.__exit__(kind, error, trace)

    def _look_on(self) -> None:
        while not self._over.wait(self._rest):
            try:
                znode = self._reader.get("/controller")
                holder = None if znode is None else parse_controller(znode.data)
            except (RunbookError, KazooException):
                continue  # ZooKeeper is asked again
            if holder is None or holder.broker_id != self._broker:
                self.gone_at = time.monotonic()
                return
