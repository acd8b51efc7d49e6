"""The KRaft side: three controllers born in KRaft, a static quorum, and stand-ins that register and send heartbeats."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import uuid4

from kafka.protocol.admin import CreateTopicsRequest

from benchmarks.quorum.measured import COLD, FAILOVER, KILL, KRAFT, SHUTDOWN, Run, Took, timed, until
from benchmarks.scale.cluster import Plan, write_cluster_file
from benchmarks.scale.processes import Processes
from benchmarks.scale.start import await_leader, run_controller, sockets, start_controller
from benchmarks.scale.tree import partition_facts, topic_name
from kraft_runbook.cluster.observation import ControllerMode, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed, Unreachable
from kraft_runbook.io.kafka.heartbeats import Heartbeats
from kraft_runbook.io.kafka.leader import NOT_CONTROLLER, Leader
from kraft_runbook.io.kafka.metadata_quorum import QuorumDescription, describe_elected, describe_quorum
from kraft_runbook.io.kafka.registrations import CAUGHT_UP, BrokerHeartbeatRequest, register
from kraft_runbook.io.local.ports import require_free
from kraft_runbook.io.metrics import MetricsClient
from kraft_runbook.io.node_metrics import controller_metrics
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures.part_read import part_read
from kraft_runbook.procedures.see_quorum import see_quorum
from kraft_runbook.runbook.warm import Warmth
from lab.installation import fetch_jars, install, java

AT_ONCE = 50
"""Topics a request."""
TOPIC_ALREADY_EXISTS = 36
TOO_LONG = 3600.0
SECRETS = environment_secrets({})


class Kraft:
    """Made by ``kraft_side``."""

    def __init__(self, plan: Plan, spec: ClusterSpec, processes: Processes) -> None:
        self.plan, self.spec, self.processes = plan, spec, processes
        self.epochs: dict[int, int] = {}
        self.beats = Heartbeats(spec, spec.broker_ids)
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
            self.beats.epochs = self.epochs
            until("the stand-ins' first heartbeats", lambda: len(self.beats.unfenced) == len(self.epochs), within=120)
            began = time.monotonic()
            for first in range(0, self.plan.shape.topics, AT_ONCE):
                self._make_some(leader, range(first, min(first + AT_ONCE, self.plan.shape.topics)))
        finally:
            leader.close()
        say(f"KRaft: {self.plan.partitions} partitions made in {time.monotonic() - began:.0f} s")
        self.until_warm()

    # -- what is measured ----------------------------------------------------------------------------------------------

    def shut_down(self, broker: int) -> Run:
        """A stand-in asks to be shut down, until the controller lets it go. Measured is its first answer: by then the
        records are committed. When it may go is told besides: that waits for the others' heartbeats.
        """

        def act() -> Took:
            self.beats.epochs = {i: each for i, each in self.beats.epochs.items() if i != broker}
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
                return Took(answered, note=f"let go after {time.monotonic() - began:.1f} s")
            finally:
                leader.close()

        return timed(KRAFT, SHUTDOWN, self.plan.partitions, self.processes, self.names, act)

    def fail_over(self, kind: str) -> Run:
        """The leader ends; measured is the time until another has answered CreateTopics. COLD: both standbys were
        restarted just before, so that whoever is elected may have the log still to apply.
        """
        self.until_warm()
        end = self._make_cold() if kind == COLD else None

        def act() -> Took:
            before = self._led().leader_id
            pid = self.processes.require(self._service(before))
            with ThreadPoolExecutor(len(self.names)) as pool:
                began = time.monotonic()
                os.kill(pid, signal.SIGTERM if kind == FAILOVER else signal.SIGKILL)
                others = [] if end is None else [i for i in self.spec.controller_ids if i != before]
                applied = {i: pool.submit(self._applied, i) for i in others}
                # the old leader still answers while it ends: what it does then is no failover
                until("another leader", lambda: self._leader() not in (None, before), within=TOO_LONG, every=0.01)
                detected = time.monotonic() - began
                leader = Leader(self.spec, SECRETS)
                try:
                    self._make_one(leader)
                finally:
                    leader.close()
                seconds = time.monotonic() - began
            after = self._led().leader_id
            had = applied[after].result() if after in applied else None
            until("the old leader's end", lambda: self.processes.pid(self._service(before)) is None, within=60)
            run_controller(self.plan, self.spec, self.processes, before)
            return Took(seconds, detected, None if end is None or had is None else max(0, end - had))

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
        """Restart one standby after the other, as a roll that waits for nothing would. Each has fetched the log soon,
        and is cold until it has applied it. Returns the offset up to which it is committed.
        """
        leads = self._led().leader_id
        for each in self.spec.controllers:
            if each.id != leads:
                self.processes.stop(each.service)
                run_controller(self.plan, self.spec, self.processes, each.id)
                self._until_fetched(each.id, since_ms=time.time() * 1000)
        return self._led().high_watermark - 1

    def _until_fetched(self, controller: int, *, since_ms: float) -> None:
        def fetched() -> bool:
            found = self._led()
            return any(
                v.id == controller and v.last_fetch_ms > since_ms and v.log_end_offset >= found.high_watermark > 0
                for v in found.voters
            )

        until("the restarted standby's fetch", fetched, within=TOO_LONG)

    def _applied(self, controller: int) -> int | None:
        """The last offset that it has applied, by its own metrics; None where it does not say."""
        node = self.spec.controller(controller)
        with MetricsClient(self.spec.metrics, secrets=SECRETS, timeout=4.0) as metrics:
            found = part_read(lambda: controller_metrics(metrics.read(node.host, node.metrics_port)))
        return found.last_applied_offset if was_read(found) else None

    def _led(self) -> QuorumDescription:
        """The quorum; an election that is under way, as a restart on a busy machine brings one about, is waited for."""
        return describe_elected(self.spec, secrets=SECRETS, looks=600, pause=0.1)

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
        self._create(leader, {f"probe-{self._made}": [list(self.beats.epochs)[:2]]})

    def _create(self, leader: Leader, topics: dict[str, list[list[int]]], within: float = TOO_LONG) -> None:
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
        request = CreateTopicsRequest(version=5, topics=wanted, timeout_ms=int(within * 1000), validate_only=False)
        deadline = time.monotonic() + within
        while True:
            codes = {each.error_code for each in leader.send(request, within=within).topics}
            if NOT_CONTROLLER not in codes:
                break
            # it was elected, and has not begun to lead
            if time.monotonic() > deadline:
                raise StepFailed(
                    f"nobody took CreateTopics for {within:g} s: each answered that it is not the controller",
                    way_out="read the controllers' logs",
                )
            time.sleep(0.02)
            leader.close()
        if wrong := codes - {0, TOPIC_ALREADY_EXISTS}:  # there: an earlier try was answered by nobody
            raise StepFailed(f"CreateTopics was refused with {sorted(wrong)}", way_out="read the controllers' logs")

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


@contextmanager
def kraft_side(plan: Plan, say: Callable[[str], None]) -> Iterator[Kraft]:
    """A cluster of this size. Everything is stopped at the end."""
    processes = Processes(plan.directory)
    spec = write_cluster_file(plan)
    install(spec, jars=fetch_jars(spec.kafka.version), java_command=java())
    require_free({name: each for name, each in sockets(plan, spec).items() if name.startswith("controller")})
    side = Kraft(plan, spec, processes)
    try:
        with side.beats:
            side.begin(say)
            yield side
        if side.beats.failures:
            raise side.beats.failures[0]
    finally:
        for name in processes.names():
            processes.stop(name)


PLANNED = (FAILOVER, KILL, COLD)
