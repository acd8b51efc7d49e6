"""A workload that runs through a whole migration: producers and a consumer group until SIGTERM, then an account of
every record.
"""

from __future__ import annotations

import json
import secrets
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaException

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.private_file import write_private
from lab.account import Account, Tally, acknowledgements_of, settle
from lab.clients import client_settings
from lab.health import admin
from lab.readers import consume, read_back
from lab.seed.topics import Topic, ensure
from lab.writers import RECORDS_A_SECOND, write, write_in_transactions

PLAIN, TRANSACTIONS = "workload", "workload-transactions"
TOPICS = (Topic(PLAIN, 12), Topic(TRANSACTIONS, 6))
GROUP = "workload"
WRITERS, MEMBERS = 2, 2
READ_BACK_SECONDS = 90.0


def run(spec: ClusterSpec, *, report: Path, status: Path | None, rate: float = RECORDS_A_SECOND) -> int:
    """Work until SIGTERM or SIGINT, then write the account to ``report`` (all of it or nothing). Exit code 0 when the
    account is good.

    ``status``: one line, rewritten each second. ``rate``: records a second of each producer.
    """
    stop_asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop_asked.set())
    account = work(spec, stop_asked, status=status, rate=rate)
    write_private(report, json.dumps(asdict(account), indent=2) + "\n")
    print(
        f"acknowledged {account.acknowledged}, lost {account.lost}, duplicated {account.duplicated}, failed"
        f" {account.failed}; {report}"
    )
    return 0 if account.good else 1


def work(
    spec: ClusterSpec, stop_asked: threading.Event, *, status: Path | None, rate: float = RECORDS_A_SECOND
) -> Account:
    """Produce and consume until ``stop_asked`` is set; then settle, read everything back with a fresh reader, and
    compare.
    """
    servers = client_settings(spec)
    ensure(admin(spec, answers_within=120), spec, TOPICS)
    run_id = secrets.token_hex(4)
    writers = [Tally(f"{run_id}-writer-{n + 1}") for n in range(WRITERS)]
    transactional = Tally(f"{run_id}-transactions")
    members = [Tally(f"{run_id}-member-{n + 1}") for n in range(MEMBERS)]
    broken: list[str] = []
    no_more_records, no_more_reading = threading.Event(), threading.Event()
    producing = [
        _thread(partial(write, PLAIN, servers, tally, no_more_records, rate), tally, broken) for tally in writers
    ]
    in_transactions = partial(write_in_transactions, TRANSACTIONS, servers, transactional, no_more_records, rate)
    producing.append(_thread(in_transactions, transactional, broken))
    topics = [PLAIN, TRANSACTIONS]
    reading = [
        _thread(partial(consume, topics, GROUP, servers, tally, no_more_reading), tally, broken) for tally in members
    ]
    began = time.monotonic()
    while not stop_asked.wait(1):
        if status:
            told = describe([*writers, transactional], members, seconds=time.monotonic() - began, broken=broken)
            write_private(status, told + "\n", durable=False)
    ended = time.monotonic()
    no_more_records.set()
    for tally in (*writers, transactional, *members):
        tally.progress(ended)  # a stall that still lasts counts
    for thread in producing:
        thread.join()
    no_more_reading.set()
    for thread in reading:
        thread.join()
    try:
        read = read_back(topics, servers, run_id, within=READ_BACK_SECONDS)
    except (KafkaException, TimeoutError) as error:
        broken.append(f"the topics could not be read back: {error}")
        read = None
    came = acknowledgements_of([*writers, transactional], now=time.monotonic(), at=datetime.now(UTC))
    return settle(
        [*writers, transactional], members, read, seconds=ended - began, problems=broken, acknowledgements=came
    )


def describe(producers: Sequence[Tally], members: Sequence[Tally], *, seconds: float, broken: Sequence[str]) -> str:
    """How it goes, in a line."""
    now = time.monotonic()
    acknowledged = sum(len(t.acknowledged) for t in producers)
    quiet = max(now - (t.last_progress or now) for t in producers)
    parts = [
        f"{seconds:.0f} s",
        f"acknowledged {acknowledged}",
        f"failed {sum(len(t.failed) for t in producers)}",
        f"consumed {sum(t.consumed for t in members)}",
        (
            f"longest stall: producer {max(t.longest_stall for t in producers):.1f} s, consumer"
            f" {max(t.longest_stall for t in members):.1f} s"
        ),
    ]
    if quiet > 2:
        parts.append(f"a producer has had no acknowledgement for {quiet:.0f} s")
    return ", ".join([*parts, *broken])


def _thread(work_of: Callable[[], None], tally: Tally, broken: list[str]) -> threading.Thread:
    """Run it in a thread; an error that ends it is part of the account, never lost with its thread."""

    def guarded() -> None:
        try:
            work_of()
        except Exception as error:
            broken.append(f"{tally.name} ended early: {type(error).__name__}: {error}")

    thread = threading.Thread(target=guarded, name=tally.name, daemon=True)
    thread.start()
    return thread
