"""How far a comparison is, told on standard error, which is where a task's log in Airflow takes it from."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

EVERY = 2.0
"""Seconds between two lines."""


@dataclass(slots=True)
class LogProgress:
    """Of one reader of the log."""

    _began: float = field(default_factory=time.monotonic)
    _next: float = field(default_factory=lambda: time.monotonic() + EVERY)

    def told(self, offset: int, records: int) -> None:
        """Say where the reader is, now and then."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY
            tell(
                f"metadata log: {records:,} records read, {records / (now - self._began):,.0f} a second; at offset"
                f" {offset:,}"
            )


@contextmanager
def reading_topics(spark: SparkSession, topics: int) -> Iterator[None]:
    """While the block reads ``topics`` topics of ZooKeeper: how many parts of the work are done, from Spark's own count
    of the running stage.
    """
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, topics, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _watch(spark: SparkSession, topics: int, ended: threading.Event) -> None:
    began, tracker = time.monotonic(), spark.sparkContext.statusTracker()
    while not ended.wait(EVERY):
        for number in tracker.getActiveStageIds():
            stage = tracker.getStageInfo(number)
            if stage is None:  # one that has just begun, or just ended, is not told of
                continue
            done, of = stage.numCompletedTasks, stage.numTasks
            read = topics * done // of
            tell(
                f"ZooKeeper: {100 * done // of} %, {done} of {of} parts read; about {read:,} of {topics:,} topics,"
                f" {read / (time.monotonic() - began):,.0f} a second"
            )


def tell(line: str) -> None:
    """One line to whoever watches."""
    print(line, file=sys.stderr, flush=True)
