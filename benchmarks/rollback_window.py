"""How long can no metadata be changed while a cluster leaves KRaft, and is anything lost? Ours beside Kafka's
documented order, on the same lab.

    python -m benchmarks.rollback_window --runs 10

A real cluster (three brokers, three controllers, the lab's seed and 50 topics of 10 partitions) is brought to dual
write, every broker in migration mode, and stopped cleanly; each run begins with a copy of it, started anew. Topics are
created through each broker, one after the other; then it leaves KRaft. The window is the time from the last topic
acknowledged by the quorum until one was acknowledged through every broker afterwards. Afterwards every acknowledged
topic and each of its partitions' states must be in ZooKeeper.

``burst``: 300 topics of 3 partitions are created and acknowledged first, and the leaving begins the moment the last is.
``documented``: all controllers are stopped by SIGTERM at once, then /controller and /migration are deleted (Kafka 3.9,
"Reverting to ZooKeeper mode").
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kafka.protocol.admin import CreateTopicsRequest

from kraft_runbook.cluster.observation import was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import RunbookError, StepFailed, Unreachable
from kraft_runbook.io.hosts.host_facts import gather_host_facts
from kraft_runbook.io.kafka.connection import KafkaConnection
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from kraft_runbook.io.local import supervision
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.handover import await_election, delete_controller_znodes, read_controller_znodes
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.migration.controller_threads import cut_off
from kraft_runbook.migration.leaving import fence_plan
from kraft_runbook.procedures.leave_kraft import leave_kraft
from kraft_runbook.procedures.look_at_nodes import accepts
from kraft_runbook.procedures.observe import observe
from lab import ROOT, lifecycle
from lab.layout import layout

sys.path.insert(0, str(ROOT / "tests" / "integration"))
import by_hand
import kept_states

THERE = 50
"""Topics of 10 partitions besides the seeded ones."""
BURST = 300
PARTITIONS = 3
EVERY = 0.25
NOTICE = 30.0
"""Seconds after which the brokers' threads are looked at, once, where not every broker takes topics."""
PATIENCE = 120.0
WITHIN_MS = 30_000
TRIES = 5


@dataclass
class Probes:
    """Creates topics through each broker, one thread a broker, until stopped. ``acknowledged``: (when answered, broker,
    topic).
    """

    spec: ClusterSpec
    secrets: Secrets
    acknowledged: list[tuple[float, int, str]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        self._threads = [
            threading.Thread(target=self._probe, args=(broker,), daemon=True) for broker in self.spec.brokers
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(15)

    def through_brokers_since(self, moment: float, *, but: Sequence[int]) -> float | None:
        """When a topic had been acknowledged through each broker after ``moment``, leaving some brokers out; None while
        one has not.
        """
        wanted = [broker.id for broker in self.spec.brokers if broker.id not in but]
        firsts = [
            min((t for t, i, _ in list(self.acknowledged) if i == each and t > moment), default=None) for each in wanted
        ]
        return None if None in firsts else max(t for t in firsts if t is not None)

    def stuck_since(self, moment: float) -> list[int]:
        """The brokers through which no topic was acknowledged since then."""
        return [
            broker.id
            for broker in self.spec.brokers
            if not any(i == broker.id and t > moment for t, i, _ in list(self.acknowledged))
        ]

    def _probe(self, broker: Broker) -> None:
        number = 0
        while not self._stop.is_set():
            try:
                with KafkaConnection(
                    self.spec.broker_address(broker),
                    f"broker {broker.id}",
                    self.spec.broker_security,
                    secrets=self.secrets,
                    timeout=2,
                ) as c:
                    while not self._stop.is_set():
                        number += 1
                        name = f"probe-{broker.id}-{number}"
                        if name in create(c, [name]):
                            self.acknowledged.append((time.time(), broker.id, name))
                        time.sleep(EVERY)
            except Unreachable:
                time.sleep(EVERY)


def create(connection: KafkaConnection, names: list[str]) -> list[str]:
    """The topics of these names that were acknowledged.

    Patient: a broker forwards one request at a time, so one that is given up and sent again would only queue behind
    itself.
    """
    topic = CreateTopicsRequest.CreatableTopic
    asked = [
        topic(name=name, num_partitions=PARTITIONS, replication_factor=3, assignments=[], configs=[]) for name in names
    ]
    answer = connection.send(
        CreateTopicsRequest(version=5, topics=asked, timeout_ms=WITHIN_MS, validate_only=False),
        timeout=WITHIN_MS / 1000 + 5,
    )
    return [each.name for each in answer.topics if each.error_code == 0]


@dataclass(frozen=True)
class Outcome:
    """One run. ``window``: seconds; ``lost``: acknowledged topics without their znodes and states afterwards;
    ``lifted``: how often the fence was lifted first because the drain was not over in time (nothing is lost then, and
    it is tried again); ``cut_off``: brokers that lost a thread to their controller, so that only a restart ends their
    window (the others' is given); ``stages``: when each moment of leaving came, in seconds after the fence.
    """

    way: str
    burst: bool
    window: float
    acknowledged: int
    lost: int
    lifted: int = 0
    cut_off: tuple[int, ...] = ()
    stages: dict[str, float] = field(default_factory=dict)


def run(way: str, burst: bool) -> Outcome:
    """One run, on a cluster of its own in dual write."""
    with kept_states.lab_in(Phase.HYBRID, topics=THERE) as lab:
        try:
            return measure(lab.spec, lab.secrets, way, burst)
        except RunbookError:
            lifecycle.down(lab.spec)
            print(f"the run's files are kept in {lab.directory.rename(f'{lab.directory}-failed')}", file=sys.stderr)
            raise


def measure(spec: ClusterSpec, secrets: Secrets, way: str, burst: bool) -> Outcome:
    probes = Probes(spec, secrets)
    acknowledged: list[str] = []
    began = [0.0]

    tries = [0]

    def just_before() -> None:
        tries[0] += 1
        if tries[0] == 1:
            probes.start()
            time.sleep(0.5)
        if burst:
            with KafkaConnection(
                spec.broker_address(spec.brokers[0]), "broker", spec.broker_security, secrets=secrets, timeout=30
            ) as connection:
                acknowledged.extend(create(connection, [f"burst-{tries[0]}-{n}" for n in range(BURST)]))
        began[0] = time.time()

    with ZookeeperReader(spec.zookeeper, secrets=secrets) as zookeeper:
        znodes = read_controller_znodes(zookeeper).written_to
        assert znodes is not None
        deleted_at, lifted, stages = (ours if way == "ours" else documented)(
            spec, secrets, zookeeper, znodes.kraft_metadata_offset, just_before
        )
        began_to_wait = time.monotonic()
        without: tuple[int, ...] | None = None
        while (usable := probes.through_brokers_since(deleted_at, but=without or ())) is None:
            waited = time.monotonic() - began_to_wait
            if waited > PATIENCE:
                stuck = probes.stuck_since(deleted_at)
                raise RunbookError(
                    f"no topic could be created through brokers {stuck} within {PATIENCE:.0f} s; {stages}",
                    way_out="look at the brokers' logs",
                )
            if without is None and waited > NOTICE:
                dead_threads = cut_off(observe(spec, secrets=secrets), gather_host_facts(spec, spec.broker_ids))
                without = tuple(broker for broker, dead in dead_threads.items() if was_read(dead))
            time.sleep(0.05)
        probes.stop()
        last = max((t for t, _, _ in probes.acknowledged if t <= deleted_at), default=began[0])
        before = [*acknowledged, *(name for t, _, name in probes.acknowledged if t <= usable)]
        time.sleep(1)
        return Outcome(
            way, burst, round(usable - last, 2), len(before), missing(zookeeper, before), lifted, without or (), stages
        )


Left = tuple[float, int, dict[str, float]]
"""When the znodes were deleted, how often the fence was lifted first, and the stages."""


def ours(
    spec: ClusterSpec, secrets: Secrets, zookeeper: ZookeeperReader, since: int, just_before: Callable[[], None]
) -> Left:
    """Fence, drain, prove, stop, delete. Returns when the znodes were deleted, and how often the fence was lifted
    first.
    """
    lifted = 0
    while True:
        plan = fence_plan(observe(spec, secrets=secrets))
        try:
            with by_hand.just_before_the_fence(just_before):
                done = leave_kraft(spec, plan, proven_since=since, secrets=secrets, tell=lambda line: None)
        except StepFailed as failed:
            print(failed.problem, flush=True)
            lifted += 1
            if lifted == TRIES:
                raise
            by_hand.await_dual_write(spec, secrets=secrets)
            continue
        assert done.deleted_at is not None
        assert done.fenced_at is not None
        moments = {
            name: getattr(done, f"{name}_at")
            for name in ("drained", "proven", "stopped", "deleted", "elected", "known")
        }
        return (
            done.deleted_at.timestamp(),
            lifted,
            {name: round((at - done.fenced_at).total_seconds(), 2) for name, at in moments.items() if at},
        )


def documented(
    spec: ClusterSpec, secrets: Secrets, zookeeper: ZookeeperReader, since: int, just_before: Callable[[], None]
) -> Left:
    """SIGTERM to all controllers at once, then the deletion by a session that is already open. Returns when the znodes
    were deleted.
    """
    here = layout(spec)
    describe_quorum(spec, secrets=secrets)
    just_before()
    stopping = [threading.Thread(target=supervision.begin_stop, args=(here, c.service)) for c in spec.controllers]
    for thread in stopping:
        thread.start()
    for thread in stopping:
        thread.join()
    while any(
        accepts(c.host, c.port) is not False or supervision.processes(here)[c.service].runs for c in spec.controllers
    ):
        time.sleep(0.02)
    delete_controller_znodes(zookeeper, read_controller_znodes(zookeeper))
    deleted_at = time.time()
    await_election(zookeeper, spec, within=30)
    return deleted_at, 0, {}


def missing(zookeeper: ZookeeperReader, topics: list[str]) -> int:
    """How many of these topics lack their znode or the state of a partition."""
    wanted = {
        t: [f"/brokers/topics/{t}", *(f"/brokers/topics/{t}/partitions/{p}/state" for p in range(PARTITIONS))]
        for t in topics
    }
    paths = [path for each in wanted.values() for path in each]
    there = {path for path, znode in zip(paths, zookeeper.get_many(paths), strict=True) if znode is not None}
    return sum(not there.issuperset(each) for each in wanted.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="of each kind")
    parser.add_argument("--ways", default="ours,documented")
    parser.add_argument("--json", type=Path, help="also write the runs here, after each")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends it: its cluster is ended first
    outcomes: list[Outcome] = []
    for number in range(asked.runs):
        for way in asked.ways.split(","):
            for burst in (False, True):
                outcomes.append(run(way, burst))
                print(f"{number + 1}/{asked.runs} {outcomes[-1]}", flush=True)
                if asked.json:
                    asked.json.write_text(json.dumps([vars(each) for each in outcomes], indent=1))
    print(table(outcomes))


def table(outcomes: list[Outcome]) -> str:
    lines = [
        "",
        (
            "| order | just before | runs | window median s | worst s | runs with a loss | acknowledged topics lost |"
            " fences lifted first | runs that cut a broker off |"
        ),
        "|---|---|---|---|---|---|---|---|---|",
    ]
    medians: dict[tuple[str, bool], float] = {}
    for way, burst in sorted({(o.way, o.burst) for o in outcomes}, reverse=True):
        these = [o for o in outcomes if (o.way, o.burst) == (way, burst)]
        windows = [o.window for o in these]
        medians[way, burst] = statistics.median(windows)
        lost = sum(o.lost for o in these)
        lines.append(
            f"| {way} | {f'{BURST} topics created' if burst else 'idle'} | {len(these)} | {medians[way, burst]:.2f} |"
            f" {max(windows):.2f} | {sum(o.lost > 0 for o in these)} | {lost} of {sum(o.acknowledged for o in these)} |"
            f" {sum(o.lifted for o in these)} | {sum(bool(o.cut_off) for o in these)} |"
        )
    for burst in (False, True):
        if ("ours", burst) in medians and ("documented", burst) in medians:
            lines.append(
                f"window, {'after a burst' if burst else 'idle'}: documented / ours ="
                f" {medians['documented', burst] / medians['ours', burst]:.1f}"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
