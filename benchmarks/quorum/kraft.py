"""The KRaft side: three controllers born in KRaft, a static quorum, and stand-ins that register and send heartbeats."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import uuid4

from kafka.protocol.admin import CreateTopicsRequest

from benchmarks.quorum.measured import COLD, FAILOVER, KILL, KRAFT, SHUTDOWN, Run, timed, until
from benchmarks.scale.cluster import Plan, write_cluster_file
from benchmarks.scale.processes import Processes
from benchmarks.scale.start import await_leader, run_controller, sockets, start_controller
from benchmarks.scale.tree import partition_facts, topic_name
from kraft_runbook.cluster.observation import ControllerMode, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed, Unreachable
from kraft_runbook.io.kafka.leader import Leader
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from kraft_runbook.io.kafka.registrations import CAUGHT_UP, BrokerHeartbeatRequest, beat, register
from kraft_runbook.io.local.ports import require_free
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures.see_quorum import see_quorum
from kraft_runbook.runbook.warm import Warmth
from lab.installation import fetch_jars, install, java

AT_ONCE = 50
"""Topics a request."""
BEAT = 2.0
TOO_LONG = 600.0
SECRETS = environment_secrets({})


class Kraft:
    """Made by ``kraft_side``."""

    def __init__(self, plan: Plan, spec: ClusterSpec, processes: Processes) -> None:
        self.plan, self.spec, self.processes = plan, spec, processes
        self.epochs: dict[int, int] = {}
        self._unfenced: set[int] = set()
        self._leaving: set[int] = set()
        self._over = threading.Event()
        self._beating = threading.Thread(target=self._beat_on, daemon=True)
        self._made = 0

    @property
    def names(self) -> list[str]:
        return [each.service for each in self.spec.controllers]

    def begin(self, say: Callable[[str], None]) -> None:
        """Start the controllers, register the stand-ins, and make the partitions."""
        for controller in self.spec.controllers:
            start_controller(self.plan, self.spec, self.processes, controller.id, ControllerMode.KRAFT)
        await_leader(self.spec, self.processes)
        leader = Leader(self.spec, SECRETS)
        cluster_id = self.spec.cluster_id or ""
        try:
            for broker in self.spec.brokers:
                self.epochs[broker.id] = register(
                    leader, broker, cluster_id=cluster_id, incarnation=uuid4(), migrating=False
                )
            self._beating.start()
            until("the stand-ins' first heartbeats", lambda: len(self._unfenced) == len(self.epochs), within=120)
            began = time.monotonic()
            for first in range(0, self.plan.shape.topics, AT_ONCE):
                self._make_some(leader, range(first, min(first + AT_ONCE, self.plan.shape.topics)))
        finally:
            leader.close()
        say(f"KRaft: {self.plan.partitions} partitions made in {time.monotonic() - began:.0f} s")
        self.until_warm()

    def end(self) -> None:
        self._over.set()
        if self._beating.is_alive():
            self._beating.join(30)

    # -- what is measured ----------------------------------------------------------------------------------------------

    def shut_down(self, broker: int) -> Run:
        """A stand-in asks to be shut down, until the controller lets it go. Measured is its first answer: by then the
        records are committed. When it may go is told besides: that waits for the others' heartbeats.
        """

        def act() -> tuple[float, str]:
            self._leaving.add(broker)
            leader = Leader(self.spec, SECRETS)
            try:
                leader.send(self._wants_to_go(broker, False))  # connected, and found
                began = time.monotonic()
                answer = leader.send(self._wants_to_go(broker, True))
                answered = time.monotonic() - began
                while not answer.should_shut_down:
                    if answer.error_code or time.monotonic() - began > TOO_LONG:
                        raise StepFailed(
                            f"stand-in {broker} was not let go: error {answer.error_code}", way_out="read the logs"
                        )
                    time.sleep(0.1)
                    answer = leader.send(self._wants_to_go(broker, True))
                return answered, f"let go after {time.monotonic() - began:.1f} s"
            finally:
                leader.close()

        return timed(KRAFT, SHUTDOWN, self.plan.partitions, self.processes, self.names, act)

    def fail_over(self, kind: str) -> Run:
        """The leader ends; measured is the time until another has answered CreateTopics."""
        self.until_warm()
        cold = None
        if kind == COLD:
            cold = self._make_cold()

        def act() -> tuple[float, str]:
            before = describe_quorum(self.spec, secrets=SECRETS).leader_id
            pid = self.processes.require(self.spec.controller(before).service)
            began = time.monotonic()
            os.kill(pid, signal.SIGTERM if kind == FAILOVER else signal.SIGKILL)
            # the old leader still answers while it ends: what it does then is no failover
            until("another leader", lambda: self._leader() not in (None, before), within=TOO_LONG, every=0.01)
            leader = Leader(self.spec, SECRETS)
            try:
                self._make_one(leader)
            finally:
                leader.close()
            seconds = time.monotonic() - began
            after = describe_quorum(self.spec, secrets=SECRETS).leader_id
            note = "" if cold is None else f"the {'cold' if after == cold else 'warm'} one was elected"
            until("the old leader's end", lambda: self.processes.pid(self._service(before)) is None, within=60)
            run_controller(self.plan, self.spec, self.processes, before)
            return seconds, note

        found = timed(KRAFT, kind, self.plan.partitions, self.processes, self.names, act)
        self.until_warm()
        return found

    def until_warm(self) -> None:
        """Until every controller runs and has applied the log."""

        def warm() -> bool:
            look = see_quorum(self.spec, secrets=SECRETS)
            return was_read(look.quorum) and all(each.warm is Warmth.WARM for each in look.controllers.values())

        until("warm controllers", warm, within=TOO_LONG, every=0.5)

    def _make_cold(self) -> int:
        """Restart a standby; it is cold until it has applied the log, which it has fetched soon. Returns who."""
        leads = describe_quorum(self.spec, secrets=SECRETS).leader_id
        cold = next(each.id for each in self.spec.controllers if each.id != leads)
        self.processes.stop(self._service(cold))
        run_controller(self.plan, self.spec, self.processes, cold)

        def fetched() -> bool:
            found = describe_quorum(self.spec, secrets=SECRETS)
            return any(v.id == cold and v.log_end_offset >= found.high_watermark > 0 for v in found.voters)

        until("the restarted standby's fetch", fetched, within=TOO_LONG)
        return cold

    def _leader(self) -> int | None:
        """Who leads; None where nobody says so."""
        try:
            return describe_quorum(self.spec, secrets=SECRETS).leader_id
        except Unreachable:
            return None

    def _service(self, controller: int) -> str:
        return self.spec.controller(controller).service

    # -- requests ------------------------------------------------------------------------------------------------------

    def _make_some(self, leader: Leader, topics: range) -> None:
        shape = self.plan.shape
        self._create(
            leader,
            {
                topic_name(t): [list(partition_facts(shape, t, n).replicas) for n in range(shape.a_topic)]
                for t in topics
            },
        )

    def _make_one(self, leader: Leader) -> None:
        self._made += 1
        staying = [each for each in self.epochs if each not in self._leaving][:2]
        self._create(leader, {f"probe-{self._made}": [staying]})

    def _create(self, leader: Leader, topics: dict[str, list[list[int]]]) -> None:
        asked = CreateTopicsRequest.CreatableTopic
        wanted = [
            asked(
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    asked.CreatableReplicaAssignment(partition_index=n, broker_ids=ids) for n, ids in enumerate(each)
                ],
                configs=[],
            )
            for name, each in topics.items()
        ]
        answer = leader.send(
            CreateTopicsRequest(version=5, topics=wanted, timeout_ms=int(TOO_LONG * 1000), validate_only=False),
            within=TOO_LONG,
        )
        codes = {each.error_code for each in answer.topics} - {0}
        if codes == {41}:  # NOT_CONTROLLER: it was elected, and has not begun to lead
            time.sleep(0.02)
            leader.close()
            self._create(leader, topics)
        elif codes - {36}:  # TOPIC_ALREADY_EXISTS: an earlier try was answered by nobody
            raise StepFailed(f"CreateTopics was refused with {sorted(codes)}", way_out="read the controllers' logs")

    def _wants_to_go(self, broker: int, wants: bool) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(
            version=1,
            broker_id=broker,
            broker_epoch=self.epochs[broker],
            current_metadata_offset=CAUGHT_UP,
            want_fence=False,
            want_shut_down=wants,
            offline_log_dirs=[],
        )

    def _beat_on(self) -> None:
        shares = [list(self.epochs)[first::6] for first in range(6)]
        with ThreadPoolExecutor(len(shares)) as pool:
            list(pool.map(self._beat_some, shares))

    def _beat_some(self, share: list[int]) -> None:
        leader = Leader(self.spec, SECRETS)
        try:
            while not self._over.is_set():
                for each in share:
                    if each in self._leaving:
                        continue
                    try:
                        if beat(leader, each, self.epochs[each], within=3.0):
                            self._unfenced.add(each)
                    except StepFailed:  # nobody leads now: that is what is measured elsewhere
                        leader.close()
                self._over.wait(BEAT)
        finally:
            leader.close()


@contextmanager
def kraft_side(plan: Plan, say: Callable[[str], None]) -> Iterator[Kraft]:
    """A cluster of this size. Everything is stopped at the end."""
    processes = Processes(plan.directory)
    spec = write_cluster_file(plan)
    install(spec, jars=fetch_jars(spec.kafka.version), java_command=java())
    require_free({name: each for name, each in sockets(plan, spec).items() if name.startswith("controller")})
    side = Kraft(plan, spec, processes)
    try:
        side.begin(say)
        yield side
    finally:
        side.end()
        for name in processes.names():
            processes.stop(name)


PLANNED = (FAILOVER, KILL, COLD)
