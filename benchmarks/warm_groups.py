"""How long is a partition silent while the new members of a moved group start, with the group kept warm and without?

    python -m benchmarks.warm_groups --rounds 5

A real cluster (three brokers, ZooKeeper mode, Kafka's defaults) takes 20 records a second to each of 12 partitions. A
group without members gets its offsets, then its members start: KafkaConsumers of librdkafka, with the default assignors
of Java. Measured is the longest time in which a partition hands out nothing, of the worst partition, from the start of
the first member to 10 s after that of the last. ``cold``: nobody is in the group, as after a commit. ``warm``: an
anchor is in it (docs/moving-groups.md). ``left``: an anchor that was killed there is in it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kraft_runbook.cluster.modes import BrokerMode
from kraft_runbook.io.kafka.group_anchor import Anchor
from kraft_runbook.io.kafka.group_commits import commit_offsets
from lab import ROOT, lifecycle
from lab.checkout import commit
from lab.cluster_file import write_cluster_file

sys.path.insert(0, str(ROOT / "tests" / "integration"))
from labs import Lab, described_in

TOPIC, PARTITIONS, APART = "warm", 12, 0.05
STARTS = {"one member": (0.0,), "three at once": (0.0, 0.0, 0.0), "three, 2 s apart": (0.0, 2.0, 4.0)}
"""By name, when each member starts, in seconds after the first one."""
WAYS = ("cold", "warm", "left")
AFTER = 10.0
DELAY = "group.initial.rebalance.delay.ms"
ASSIGNORS = "range,roundrobin"
"""librdkafka takes no list of an eager and a cooperative one."""


class Killed(Anchor):
    """It ends without leaving."""

    def _leave(self, send: Any) -> bool:
        return False


@contextmanager
def lab_with_defaults(clusters: Path) -> Iterator[Lab]:
    """Three brokers in ZooKeeper mode that wait as Kafka's do: those of the lab let first members in at once."""
    file = write_cluster_file(clusters, racks=("rack-a", "rack-b", "rack-c"))
    text = file.read_text()
    assert text.count(f"{DELAY}: 0") == 1
    file.write_text(text.replace(f"{DELAY}: 0", f"{DELAY}: 3000"))
    lab = described_in(clusters)
    try:
        lifecycle.up(lab.spec, new_in=BrokerMode.ZOOKEEPER)
        yield lab
    finally:
        lifecycle.down(lab.spec, purge=True)


@contextmanager
def producing(brokers: str) -> Iterator[None]:
    """Records come to every partition until the block ends."""
    ended = threading.Event()

    def produce() -> None:
        producer = Producer({"bootstrap.servers": brokers, "linger.ms": 0})
        while not ended.wait(APART):
            for number in range(PARTITIONS):
                producer.produce(TOPIC, b"x", partition=number)
            producer.poll(0)
        producer.flush(30)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class Members:
    """``handed_out``: by partition, when."""

    def __init__(self, brokers: str, group: str) -> None:
        self.brokers, self.group = brokers, group
        self.handed_out: dict[int, list[float]] = defaultdict(list)
        self.ended = threading.Event()

    def start(self, number: int) -> threading.Thread:
        thread = threading.Thread(target=self._consume, args=(number,))
        thread.start()
        return thread

    def _consume(self, number: int) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.brokers,
                "group.id": self.group,
                "client.id": f"member-{number}",
                "partition.assignment.strategy": ASSIGNORS,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 50,
            }
        )
        consumer.subscribe([TOPIC])
        while not self.ended.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.handed_out[message.partition() or 0].append(time.monotonic())
        consumer.close()


def measured(lab: Lab, group: str, way: str, start: str) -> float:
    """The longest silence of a partition, in seconds."""
    brokers = ",".join(lab.spec.bootstrap_servers)
    given: Any = {"secrets": lab.secrets}
    reader = Consumer({"bootstrap.servers": brokers, "group.id": "none"})
    ends = {(TOPIC, n): reader.get_watermark_offsets(_partition(n))[1] for n in range(PARTITIONS)}
    reader.close()
    commit_offsets(lab.spec, group, ends, **given)
    kind = {"cold": None, "warm": Anchor, "left": Killed}[way]
    with ExitStack() as stack:
        anchor = stack.enter_context(kind(lab.spec, group, ASSIGNORS.split(","), **given) if kind else nullcontext())
        while anchor is not None and anchor.said != "it is in the group":
            time.sleep(0.05)
        if way == "left":
            stack.close()
        members = Members(brokers, group)
        began = time.monotonic()
        threads = []
        for number, at in enumerate(STARTS[start]):
            time.sleep(max(0.0, began + at - time.monotonic()))
            threads.append(members.start(number))
        time.sleep(AFTER)
        ended = time.monotonic()
        members.ended.set()
        for each in threads:
            each.join()
        if anchor is not None and way == "warm":
            assert anchor.said == "it left when the first member came", anchor.said
    return max(_longest(members.handed_out[n], began, ended) for n in range(PARTITIONS))


def _partition(number: int) -> Any:
    from confluent_kafka import TopicPartition

    return TopicPartition(TOPIC, number)


def _longest(times: list[float], began: float, ended: float) -> float:
    every = [began, *(each for each in sorted(times) if began <= each <= ended), ended]
    return max(later - earlier for earlier, later in pairwise(every))


def main() -> int:
    """Prints each round, then the table with the ratio of medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as kept, lab_with_defaults(Path(kept) / "clusters") as lab:
        brokers = ",".join(lab.spec.bootstrap_servers)
        admin = AdminClient({"bootstrap.servers": brokers})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result()
        with producing(brokers):
            time.sleep(3)
            for number in range(rounds):
                for start in STARTS:
                    for way in WAYS:
                        group = f"{way}-{start.replace(' ', '-').replace(',', '')}-{number}"
                        found[start, way].append(measured(lab, group, way, start))
                        print(f"round {number + 1}: {start}: {way}: {found[start, way][-1]:.2f} s", flush=True)
    print(f"\n{commit()}, longest silence of a partition, seconds: median (least to most) of {rounds}\n")
    print("| members | cold | warm | left by a killed task | cold ÷ warm |\n|---|---:|---:|---:|---:|")
    for start in STARTS:
        cells = [
            f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})"
            for each in (found[start, way] for way in WAYS)
        ]
        ratio = statistics.median(found[start, "cold"]) / statistics.median(found[start, "warm"])
        print(f"| {start} | {' | '.join(cells)} | {ratio:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
