"""What it costs to keep what a MATCH proved (``kraft_runbook.parity.proven``): writing the file, and reading it again
for a look at what changed since.

``python -m benchmarks.proven``. Topics that are made up, as those of ``benchmarks.fingerprints``; no cluster is needed.
The best of five each, in seconds of the processor: how long the file takes to be on disk tells of the disk.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.fingerprints import CONFIGS, SALT, columns
from kraft_runbook.metadata.canonical_rows import whole_topic
from kraft_runbook.metadata.image.frozen_topics import FrozenTopics
from kraft_runbook.metadata.image.log_replay import StateAt
from kraft_runbook.parity.proven import Head, read_rows, read_state, write_proven
from lab.checkout import commit

HEAD = Head("made-up", "made-up", 1, 2, 2, 1, "digest", SALT, datetime(2026, 1, 2, tzinfo=UTC), 1)


def seconds(work: Callable[[], object], rounds: int) -> float:
    """Of the processor, the best of so many rounds."""
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def main() -> None:
    """One line a size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print(f"{commit()}\n| topics | partitions | written | the log's state read | ZooKeeper's rows read | file |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="krb-proven-") as directory:
        file = Path(directory, "proven")
        for topics in (20_000, 200_000):
            print(line(file, topics, rounds), flush=True)


def line(file: Path, topics: int, rounds: int) -> str:
    """The row of so many topics, of ten partitions each."""
    made = columns(topics, 10, out_of_sync=False)
    configs = {name: dict(CONFIGS) for name in made.names}
    state = StateAt(FrozenTopics(made.names, range(topics), made.partitions, configs), {}, {}, {}, None)
    rows = [whole_topic(name, f"10 {at:032x}") for at, name in enumerate(made.names)]
    written = seconds(lambda: write_proven(file, HEAD, rows, state), rounds)
    log = seconds(lambda: read_state(file), rounds)
    zookeeper = seconds(lambda: list(read_rows(file)), rounds)
    size = f"{file.stat().st_size / 1e6:.0f} MB"
    return f"| {topics} | {topics * 10} | {written:.2f} s | {log:.2f} s | {zookeeper:.2f} s | {size} |"


if __name__ == "__main__":
    main()
