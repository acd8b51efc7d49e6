"""How long the fingerprints of all topics take.

``python -m benchmarks.fingerprints``. The best of five, in seconds of the processor, since a shared machine's clock
tells of its neighbours. No cluster is needed.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from kraft_runbook.metadata.topic_columns import ConfigColumns, Lists, PartitionColumns, TopicColumns, offsets_of
from kraft_runbook.metadata.topic_prints import topic_prints

SALT = b"0123456789abcdef"
CONFIGS = (("cleanup.policy", "delete"), ("retention.ms", "86400000"))


def columns(topics: int, partitions: int, *, out_of_sync: bool) -> TopicColumns:
    """So many topics of so many partitions, replication factor 3, two configs each; ``out_of_sync``: of every seventh
    partition one replica is not in the ISR.
    """
    count = topics * partitions
    replicas = np.random.default_rng(1).integers(1, 100, (count, 3)).astype(np.int32)
    in_sync = np.full(count, 3)
    in_sync[:: 7 if out_of_sync else count] = 2
    offsets = offsets_of(in_sync)
    none, zeros = Lists.empty(count), np.zeros(count, np.int32)
    return TopicColumns(
        [f"topic-{at}" for at in range(topics)],
        [f"{at:022}" for at in range(topics)],
        PartitionColumns(
            topic=np.repeat(np.arange(topics, dtype=np.int32), partitions),
            partition=np.tile(np.arange(partitions, dtype=np.int32), topics),
            replicas=Lists(offsets_of(np.full(count, 3)), replicas.ravel()),
            adding=none,
            removing=none,
            leader=replicas[:, 0].copy(),
            leader_epoch=zeros,
            isr=Lists(offsets, replicas.ravel()[: int(offsets[-1])]),
            recovery=zeros,
            epoch=zeros,
        ),
        ConfigColumns(
            np.repeat(np.arange(topics, dtype=np.int32), len(CONFIGS)),
            [name for name, _ in CONFIGS] * topics,
            [value for _, value in CONFIGS] * topics,
        ),
    )


def seconds(topics: TopicColumns) -> float:
    """Of the processor, for all fingerprints once."""
    began = time.process_time()
    for _ in topic_prints(topics, SALT):
        pass
    return time.process_time() - began


def main() -> None:
    """One line a shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print("| topics | partitions each | ISR | time |\n|---|---|---|---|")
    for topics, partitions in ((200_000, 1), (200_000, 10), (4_000, 500)):
        for out_of_sync in (False, True):
            given = columns(topics, partitions, out_of_sync=out_of_sync)
            taken = min(seconds(given) for _ in range(rounds))
            isr = "one replica out, every seventh" if out_of_sync else "full"
            print(f"| {topics} | {partitions} | {isr} | {taken:.2f} s |", flush=True)


if __name__ == "__main__":
    main()
