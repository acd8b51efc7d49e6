"""The ZooKeeper side: a ZooKeeper that loads the same assignments as a snapshot, stand-ins that have a znode and answer
the controller's calls, and two real brokers that hold nothing and control.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kafka.protocol.admin import CreateTopicsRequest
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.metadata import MetadataRequest

from benchmarks.quorum.measured import FAILOVER, SHUTDOWN, ZOOKEEPER, Run, Took, timed, until
from benchmarks.scale.cluster import Plan, write_cluster_file
from benchmarks.scale.processes import Processes
from benchmarks.scale.start import LOG4J, sockets, start_stand_ins, start_zookeeper
from benchmarks.scale.start import ZOOKEEPER as SERVER
from benchmarks.scale.tree import write_snapshot
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.properties_text import render_properties
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed, Unreachable
from kraft_runbook.io.kafka.connection import KafkaConnection
from kraft_runbook.io.local.ports import require_free
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.depose import depose
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from lab.installation import fetch_jars, install, java

REAL = (201, 202)
"""The ids of the two brokers that control; a stand-in has a lower one."""
ONE_ABOVE = 500_000
"""Partitions above which one broker is all that the memory of a small machine holds: it is deposed, and elected again.
"""
TOO_LONG = 3600.0
SECRETS = environment_secrets({})


class ControlledShutdownRequest(ApiMessage, load_json="benchmarks.quorum.schemas"):  # type: ignore[misc, call-arg]
    """ControlledShutdown (api 7), version 3."""


class ControlledShutdownResponse(ApiMessage, load_json="benchmarks.quorum.schemas"):  # type: ignore[misc, call-arg]
    """The answer: the partitions that it still leads or follows."""


class Zookeeper:
    """Made by ``zookeeper_side``."""

    def __init__(self, plan: Plan, spec: ClusterSpec, processes: Processes) -> None:
        self.plan, self.spec, self.processes = plan, spec, processes
        self.real = REAL if plan.partitions <= ONE_ABOVE else REAL[:1]
        self._made = 0

    @property
    def names(self) -> list[str]:
        return [SERVER, *(f"broker-{each}" for each in self.real)]

    def begin(self, say: Callable[[str], None]) -> None:
        """Load the tree, announce the stand-ins, and only then start the brokers: a controller that finds no broker
        takes every partition's leader away.
        """
        write_snapshot(self.plan.zookeeper_data, self.plan.shape, self.spec.cluster_id or "")
        loaded = start_zookeeper(self.plan, self.spec, self.processes)
        start_stand_ins(self.plan, self.processes, BrokerMode.ZOOKEEPER)
        with ZookeeperReader(self.spec.ensemble, secrets=SECRETS) as reader:
            until(
                "the stand-ins' znodes",
                lambda: len(reader.children("/brokers/ids") or ()) == self.plan.brokers,
                within=120,
            )
        began = time.monotonic()
        for each in self.real:
            self._start_broker(each)
        until("a controller", lambda: self._controller() is not None, within=TOO_LONG)
        self._make_one()
        say(f"ZooKeeper: tree loaded in {loaded:.0f} s, a controller served {time.monotonic() - began:.0f} s later")

    def shut_down(self, broker: int) -> Run:
        """A stand-in asks the controller to be shut down; measured is the answer, which comes when its partitions have
        other leaders and it has left the ISRs.
        """

        def act() -> Took:
            with ZookeeperReader(self.spec.ensemble, secrets=SECRETS) as reader:
                znode = reader.get(f"/brokers/ids/{broker}")
            if znode is None:
                raise StepFailed(f"stand-in {broker} has no znode", way_out="read the stand-ins' log")
            with self._to_controller() as connection:
                began = time.monotonic()
                request = ControlledShutdownRequest(version=3, broker_id=broker, broker_epoch=znode.czxid)
                answer = connection.send(request, timeout=TOO_LONG)
                seconds = time.monotonic() - began
            if answer.error_code:
                raise StepFailed(f"stand-in {broker} was refused with {answer.error_code}", way_out="read the logs")
            return Took(seconds, note=f"{len(answer.remaining_partitions)} partitions remain")

        return timed(ZOOKEEPER, SHUTDOWN, self.plan.partitions, self.processes, self.names, act)

    def fail_over(self) -> Run:
        """/controller is deleted; measured is the time until the next controller has answered CreateTopics."""

        def act() -> Took:
            began = time.monotonic()
            before = depose(self.spec, secrets=SECRETS)
            self._make_one()
            return Took(time.monotonic() - began, note=f"{before} was deposed, {self._controller()} controls")

        return timed(ZOOKEEPER, FAILOVER, self.plan.partitions, self.processes, self.names, act)

    # -- the two brokers -----------------------------------------------------------------------------------------------

    def _address(self, broker: int) -> str:
        return f"{self.plan.network}.{broker}"

    def _start_broker(self, broker: int) -> None:
        listener = f"PLAINTEXT://{self._address(broker)}:9092"
        properties = {
            "broker.id": broker,
            "listeners": listener,
            "advertised.listeners": listener,
            "zookeeper.connect": self.spec.ensemble.connect,
            "zookeeper.session.timeout.ms": 60000,
            "log.dirs": self.plan.directory / f"data-{broker}",
            "auto.leader.rebalance.enable": "false",
            "unclean.leader.election.enable": "false",
            # A request with every partition is 200 MB at 2,000,000, one to each broker: Kafka's own 30 s would end it,
            # and send it again, as long as this one machine is all of them.
            "request.timeout.ms": "600000",
        }
        config = self.plan.directory / f"broker-{broker}.properties"
        text = render_properties({key: str(each) for key, each in properties.items()}, header="Of benchmarks.quorum")
        config.write_text(text)
        arguments = ["kafka.Kafka", str(config)]
        self.processes.start_java(f"broker-{broker}", arguments, heap=self.plan.controller_heap, log4j=LOG4J)

    def _connection(self, broker: int) -> KafkaConnection:
        address = f"{self._address(broker)}:9092"
        return KafkaConnection(
            address, f"broker {broker}", self.spec.broker_security, secrets=SECRETS, timeout=TOO_LONG
        )

    def _controller(self) -> int | None:
        """Whom the brokers name; a stand-in answers no client."""
        for each in self.real:
            try:
                with self._connection(each) as connection:
                    found = connection.send(MetadataRequest(version=8, topics=[]), timeout=10).controller_id
            except Unreachable:
                self.processes.require(f"broker-{each}")
                continue
            if found in self.real:
                return int(found)
        return None

    def _to_controller(self) -> KafkaConnection:
        until("a controller", lambda: self._controller() is not None, within=TOO_LONG)
        return self._connection(self._controller() or self.real[0])

    def _make_one(self) -> None:
        """A topic on the real brokers, tried with another name until one is made."""
        began = time.monotonic()
        asked = CreateTopicsRequest.CreatableTopic
        while True:
            self._made += 1
            topic = asked(
                name=f"probe-{self._made}",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[asked.CreatableReplicaAssignment(partition_index=0, broker_ids=list(self.real))],
                configs=[],
            )
            request = CreateTopicsRequest(
                version=5, topics=[topic], timeout_ms=int(TOO_LONG * 1000), validate_only=False
            )
            try:
                with self._to_controller() as connection:
                    code = connection.send(request, timeout=TOO_LONG).topics[0].error_code
            except Unreachable:
                code = -1
            if code == 0:
                return
            if time.monotonic() - began > TOO_LONG:
                raise StepFailed(f"no topic was made: error {code}", way_out="read the brokers' logs")
            time.sleep(0.1)


@contextmanager
def zookeeper_side(plan: Plan, say: Callable[[str], None]) -> Iterator[Zookeeper]:
    """A cluster of this size. Everything is stopped at the end."""
    processes = Processes(plan.directory)
    spec = write_cluster_file(plan)
    plan.save()
    install(spec, jars=fetch_jars(spec.kafka.version), java_command=java())
    require_free({name: each for name, each in sockets(plan, spec).items() if not name.startswith("controller")})
    side = Zookeeper(plan, spec, processes)
    try:
        side.begin(say)
        yield side
    finally:
        for name in reversed(processes.names()):
            processes.stop(name)
