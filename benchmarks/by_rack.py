"""How long does a roll take, broker by broker and with the brokers of a rack together?

    python -m benchmarks.by_rack --racks 2 --brokers 4 --rounds 3
    python -m benchmarks.by_rack --turns docs/forty-brokers.yaml   # the turns of its brokers, without a cluster

A real cluster in KRaft mode, with so many brokers in each rack and one topic spread over the racks. By turns all
brokers are restarted one by one, and each rack together (docs/by-rack.md), by the playbooks and the waits of the
rolling restart, without Airflow. On two cores the processes that start together also wait for each other.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kraft_runbook.cluster.broker_batches import Roll
from kraft_runbook.cluster.cluster_file import parse_cluster
from kraft_runbook.cluster.modes import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.restart.conditions import BROKER_BACK, BROKER_IN_SYNC
from kraft_runbook.restart.plays import restart_node
from kraft_runbook.steps.handle import Cluster
from lab import ROOT
from lab.checkout import commit

sys.path.insert(0, str(ROOT / "tests" / "integration"))
from labs import Lab, lab_of
from replicas import Ground

SIZES = (2, 4)
"""Of batches, whose turns are counted."""


def restart(lab: Lab, spec: ClusterSpec, broker: int) -> None:
    """One broker, until it is registered and in every ISR."""
    cluster = Cluster(spec, lab.secrets, lambda _: None)
    cluster.play(restart_node(broker, Phase.KRAFT, older_than=time.time()))
    cluster.wait_for(BROKER_BACK, deadline=spec.deadlines.registration, node_id=broker)
    cluster.wait_for(BROKER_IN_SYNC, deadline=spec.deadlines.in_sync, node_id=broker)


def roll(lab: Lab, spec: ClusterSpec) -> float:
    """Seconds until every broker of ``spec.batches`` is back."""
    began = time.monotonic()
    for batch in spec.batches:
        with ThreadPoolExecutor(len(batch)) as pool:
            list(pool.map(lambda broker: restart(lab, spec, broker.id), batch))
    return time.monotonic() - began


def run(racks: int, brokers: int, rounds: int, say: Callable[[str], object] = print) -> dict[str, list[float]]:
    """Both ways once a round."""
    names = [f"rack-{number % racks}" for number in range(racks * brokers)]
    found: dict[str, list[float]] = {"one by one": [], "by rack": []}
    with tempfile.TemporaryDirectory() as made, lab_of(names, mode=BrokerMode.KRAFT, clusters=Path(made)) as lab:
        ids = lab.spec.broker_ids
        Ground(lab, BrokerMode.KRAFT).topic(*((one, ids[at - racks + 1]) for at, one in enumerate(ids)))
        together = lab.spec.model_copy(update={"roll": Roll(by="rack", at_once=brokers)})
        for number in range(rounds):
            for way, spec in (("one by one", lab.spec), ("by rack", together)):
                found[way].append(roll(lab, spec))
                say(f"round {number + 1}: {way}: {found[way][-1]:.1f} s")
    return found


def render(found: dict[str, list[float]], racks: int, brokers: int) -> str:
    """The table, with the ratio of medians."""
    slow, fast = (statistics.median(found[way]) for way in ("one by one", "by rack"))
    rows = [f"{commit()}, {racks} racks of {brokers} brokers, seconds of a roll", ""]
    rows += ["| roll | median | least | most | one by one ÷ by rack |", "|---|---:|---:|---:|---:|"]
    for way, seconds in found.items():
        ratio = f"{slow / fast:.1f}" if way == "by rack" else ""
        rows.append(f"| {way} | {statistics.median(seconds):.1f} | {min(seconds):.1f} | {max(seconds):.1f} | {ratio} |")
    return "\n".join(rows)


def turns_of(spec: ClusterSpec) -> str:
    """How many turns the brokers of a cluster file take, by the batches of a roll (``ClusterSpec.batches``)."""
    ways = [
        ("one by one", None),
        *((f"by rack, {at_once} at once", Roll(by="rack", at_once=at_once)) for at_once in SIZES),
    ]
    rows = [f"{len(spec.brokers)} brokers in {len({each.rack for each in spec.brokers})} racks, computed", ""]
    rows += ["| roll | turns |", "|---|---:|"]
    rows += [f"| {way} | {len(spec.model_copy(update={'roll': roll}).batches)} |" for way, roll in ways]
    return "\n".join(rows)


def main() -> int:
    """Prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.by_rack", description=__doc__)
    parser.add_argument("--racks", type=int, default=2)
    parser.add_argument("--brokers", type=int, default=4, help="in each rack")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=Path, metavar="FILE", help="a cluster file: count the turns, measure nothing")
    given = parser.parse_args()
    if given.turns:
        print(turns_of(parse_cluster(given.turns.read_text(), source=str(given.turns), environment={})))
        return 0
    print(render(run(given.racks, given.brokers, given.rounds), given.racks, given.brokers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
