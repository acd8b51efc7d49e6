"""How long do producers hear nothing while a broker restarts, with its leaders taken off before and without?

    python -m benchmarks.demotion --rounds 5

A real cluster (three brokers, three controllers, KRaft mode) takes idempotent records, ten a second to each partition,
with acks=all. By turns, broker after broker is stopped and started again, as a rolling restart does: without more, and
with its leaders off before and back once every replica is in sync (docs/demotion.md). Measured is the longest time
without an acknowledgement, of the worst partition, from before the demotion until the leaders are back. ``stop``: by
SIGTERM, where Kafka hands leaders over itself; ``kill``: by SIGKILL, as where a host fails or a stop takes too long.
``none``: no fault.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kraft_runbook.cluster.modes import BrokerMode
from kraft_runbook.io.kafka.drill_probes import Probes, make_topic, own_partitions, topic_of
from kraft_runbook.io.local import supervision
from kraft_runbook.procedures.demote_broker import demote_broker, give_orders_back
from kraft_runbook.quorum.silences import longest_silence
from lab import ROOT
from lab.checkout import commit
from lab.health import wait_until_healthy
from lab.layout import layout

sys.path.insert(0, str(ROOT / "tests" / "integration"))
from labs import Lab, lab_of

MODES = {"kraft": BrokerMode.KRAFT, "zookeeper": BrokerMode.ZOOKEEPER}
CHANGES = "changes"
SETTLES = 5.0
"""Seconds before and after each, so that what one leaves is not counted to the next."""
WAYS = ("none", "stop", "stop, demoted", "kill", "kill, demoted")


def longest(probes: Probes, began: float, ended: float) -> float:
    """Of the partition that was worst off, in seconds."""
    return max(longest_silence(list(found), began, ended) for name, found in probes.answers.items() if name != CHANGES)


@contextmanager
def writing(lab: Lab) -> Iterator[Probes]:
    """Records go to two partitions a broker leads, until it ends."""
    topic = topic_of("demotion")
    make_topic(lab.spec, topic, secrets=lab.secrets)
    time.sleep(SETTLES)
    partitions = own_partitions(lab.spec, topic)
    with Probes(lab.spec, topic, CHANGES, partitions=partitions, key="demotion", secrets=lab.secrets) as probes:
        time.sleep(SETTLES)
        yield probes


def restart(lab: Lab, broker: int, signal: str) -> None:
    """Stop its process by this signal and start it again; ends once every replica is in sync."""
    service, here = lab.spec.broker(broker).service, layout(lab.spec)
    supervision.begin_stop(here, service, signal=signal)
    while supervision.processes(here)[service].runs:
        time.sleep(0.2)
    supervision.start(here, service)
    wait_until_healthy(lab.spec, say=lambda _: None)


def measured(lab: Lab, probes: Probes, broker: int, way: str, kept: Path) -> float:
    """The longest silence around one restart."""
    signal, demoted = way.removesuffix(", demoted"), way.endswith("demoted")
    time.sleep(SETTLES)
    began = probes.now()
    if way == "none":
        time.sleep(15)
    else:
        if demoted:
            demote_broker(lab.spec, broker, kept, secrets=lab.secrets)
        restart(lab, broker, {"stop": "TERM", "kill": "KILL"}[signal])
        if demoted:
            give_orders_back(lab.spec, kept, secrets=lab.secrets)
    time.sleep(SETTLES)
    return longest(probes, began, probes.now())


def render(found: dict[str, list[float]], mode: str) -> str:
    """The table, with the ratio of medians."""
    rows = [f"{commit()}, {mode} mode, longest time without an acknowledgement, seconds", ""]
    rows += ["| restart | median | least | most | without demotion ÷ with |", "|---|---:|---:|---:|---:|"]
    for way, seconds in found.items():
        with_it = found.get(f"{way}, demoted")
        ratio = f"{statistics.median(seconds) / statistics.median(with_it):.1f}" if with_it else ""
        rows.append(f"| {way} | {statistics.median(seconds):.2f} | {min(seconds):.2f} | {max(seconds):.2f} | {ratio} |")
    return "\n".join(rows)


def run(rounds: int, mode: str, ways: Sequence[str], say: Callable[[str], object] = print) -> dict[str, list[float]]:
    """Every way once a round, the brokers by turns."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as kept:
        racks = ("rack-a", "rack-b", "rack-c")
        with lab_of(racks, mode=MODES[mode], clusters=Path(kept) / "clusters") as lab, writing(lab) as probes:
            for number in range(rounds):
                broker = lab.spec.broker_ids[number % len(racks)]
                for way in ways:
                    found[way].append(measured(lab, probes, broker, way, Path(kept) / "kept" / "orders.json"))
                    say(f"round {number + 1}: broker {broker}: {way}: {found[way][-1]:.2f} s")
    return found


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.demotion", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mode", choices=list(MODES), default="kraft")
    parser.add_argument("--ways", default=None, help="some of them, separated by semicolons")
    given = parser.parse_args()
    ways = [each.strip() for each in given.ways.split(";")] if given.ways else list(WAYS)
    print(render(run(given.rounds, given.mode, ways), given.mode))
    return 0


if __name__ == "__main__":
    sys.exit(main())
