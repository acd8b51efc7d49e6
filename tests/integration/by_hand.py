"""The migration's steps without playbooks or Airflow, for tests that need a lab in a certain phase."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from confluent_kafka import ElectionType, KafkaError, Producer
from confluent_kafka import TopicPartition as ElectedPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, TopicPartition
from kazoo.client import KazooClient

from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode, ZkMigrationState
from kraft_runbook.cluster.properties_text import render_properties
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.io.kafka.metadata_quorum import controller_mode, describe_quorum, read_cluster_records
from kraft_runbook.io.local import supervision
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.znodes.cluster_rows import parse_migration
from kraft_runbook.procedures.quorum_fence import QuorumFence
from lab.layout import Layout, layout

SLOWER = 4.0
"""How much slower than ours a machine may be, before a wait of a test is taken for one in vain."""


def answered(asked: Mapping[Any, Future[Any]]) -> None:
    """Wait until each request of an admin client was answered; what was refused raises."""
    for each in asked.values():
        each.result(30 * SLOWER)


@contextmanager
def beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """``work`` goes on in a thread while the block runs; it is given what says that the block has ended, and is waited
    for.
    """
    ended = threading.Event()
    thread = threading.Thread(target=work, args=(ended,))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def wait_until(
    what: str, done: Callable[[], bool], *, within: float = 120, shows: Callable[[], str] = lambda: ""
) -> None:
    """Poll until ``done``; what the cluster can't answer yet counts as not done. ``within``: seconds, as a machine of
    our own needs at most; one may be slower, so several times as many are given. ``shows``: what the failure tells
    besides, for whoever can't look at the cluster any more.
    """
    within *= SLOWER
    deadline = time.monotonic() + within
    last = ""
    while time.monotonic() < deadline:
        try:
            if done():
                return
            last = "not yet so"
        except Unreachable as error:
            last = error.problem
        time.sleep(0.3)
    raise AssertionError(f"{what}: not within {within:g} s; {last}\n{shows()}")


def provision_controllers(spec: ClusterSpec, cluster_id: str, *, secrets: Secrets, only: tuple[int, ...] = ()) -> None:
    """Format every controller (side by side) and start it in migration mode, then wait for a leader that all follow.
    ``only``: these alone, without a leader.
    """

    def format_storage(controller: Controller) -> None:
        write(controller, controller_properties(spec, controller, ControllerMode.MIGRATION))
        subprocess.run(
            [
                f"{spec.kafka.home}/bin/kafka-storage.sh",
                "format",
                f"--cluster-id={cluster_id}",
                "-c",
                controller.config_file,
            ],
            check=True,
            capture_output=True,
        )

    wanted = [c for c in spec.controllers if not only or c.id in only]
    with ThreadPoolExecutor(len(wanted)) as pool:
        list(pool.map(format_storage, wanted))
    for controller in wanted:
        supervision.start(layout(spec), controller.service)

    def quorum_stands() -> bool:
        quorum = describe_quorum(spec, secrets=secrets)
        return len(quorum.voters) == len(spec.controllers) and all(v.log_end_offset > 0 for v in quorum.voters)

    if not only:
        wait_until("the controllers elect a leader", quorum_stands)


def roll_brokers(spec: ClusterSpec, mode: BrokerMode, *, secrets: Secrets, only: tuple[int, ...] = ()) -> None:
    """Restart each broker (or ``only`` these) in ``mode``, one by one, each once the one before is registered and
    unfenced.
    """
    here = layout(spec)
    for broker in (b for b in spec.brokers if not only or b.id in only):
        before = read_cluster_records(spec, secrets=secrets).registrations.get(broker.id)
        write(broker, broker_properties(spec, broker, mode))
        _restart(here, broker.service)

        def registered(broker: Broker = broker, old: str | None = before.incarnation_id if before else None) -> bool:
            now = read_cluster_records(spec, secrets=secrets).registrations.get(broker.id)
            return (
                now is not None
                and now.incarnation_id != old
                and not now.fenced
                and now.is_migrating_zk_broker == (mode is BrokerMode.HYBRID)
            )

        # Before the copy a migrating broker stays fenced: nothing unfences it until the quorum is in charge.
        def appeared(broker: Broker = broker, old: str | None = before.incarnation_id if before else None) -> bool:
            now = read_cluster_records(spec, secrets=secrets).registrations.get(broker.id)
            return now is not None and now.incarnation_id != old

        wait_until(f"broker {broker.id} registers", registered if mode is BrokerMode.KRAFT else appeared)


def await_dual_write(spec: ClusterSpec, *, secrets: Secrets) -> None:
    """Wait until the copy is done and /migration advances."""
    offsets: list[int] = []

    def advancing() -> bool:
        if read_cluster_records(spec, secrets=secrets).migration_state_record is not ZkMigrationState.MIGRATION:
            return False
        with ZookeeperReader(spec.zookeeper, secrets=secrets) as zookeeper:
            znode = zookeeper.get("/migration")
        if znode is not None:
            offsets.append(parse_migration(znode.data).kraft_metadata_offset)
        return len(offsets) > 1 and offsets[-1] > offsets[0] > 0

    wait_until("dual write", advancing, within=180)


UNREADABLE = "/latest_producer_id_block"
"""The copy chokes on it when it is no JSON; a broker that starts does not read it, as it reads every configuration and
ACL.
"""


@contextmanager
def zookeeper_of(spec: ClusterSpec) -> Iterator[KazooClient]:
    """A client of the cluster's ensemble, which may write what it likes."""
    client = KazooClient(hosts=spec.ensemble.connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def await_death_of_the_majority(spec: ClusterSpec, *, within: float) -> None:
    """Wait until the controllers have died of the copy, one after the other, so that none can lead any more."""
    here = layout(spec)

    def no_majority_runs() -> bool:
        running = supervision.processes(here)
        return sum(running[c.service].runs for c in spec.controllers) <= len(spec.controllers) // 2

    wait_until("the controllers die of the copy", no_majority_runs, within=within)


def die_in_the_copy(spec: ClusterSpec, zookeeper: KazooClient, *, last: tuple[int, ...], secrets: Secrets) -> bytes:
    """Plant a znode that the copy can't read and bring the ``last`` brokers into migration mode: every controller that
    leads dies, until none can.

    Returns what the znode (``UNREADABLE``) held.
    """
    held = bytes(zookeeper.get(UNREADABLE)[0])
    zookeeper.set(UNREADABLE, b"{ no JSON")
    let_the_copy_fail(spec, last=last, secrets=secrets)
    return held


def let_the_copy_fail(spec: ClusterSpec, *, last: tuple[int, ...], secrets: Secrets) -> None:
    """Bring the ``last`` brokers into migration mode where something in ZooKeeper ends the copy, and wait until nobody
    leads.
    """
    here = layout(spec)
    for broker in (spec.broker(each) for each in last):
        write(broker, broker_properties(spec, broker, BrokerMode.HYBRID))
        _restart(here, broker.service)

    await_death_of_the_majority(spec, within=240)

    def nobody_leads() -> bool:
        try:
            describe_quorum(spec, secrets=secrets)
        except Unreachable:
            return True
        return False

    wait_until("nobody leads any more", nobody_leads)


def finalize(spec: ClusterSpec, *, secrets: Secrets) -> None:
    """Restart the controllers without the migration flag, the leader last."""
    here = layout(spec)
    leader = describe_quorum(spec, secrets=secrets).leader_id
    for controller in sorted(spec.controllers, key=lambda c: c.id == leader):
        write(controller, controller_properties(spec, controller, ControllerMode.KRAFT))
        _restart(here, controller.service)

        def without_the_flag(controller: Controller = controller) -> bool:
            return controller_mode(spec, controller, secrets=secrets) is ControllerMode.KRAFT

        wait_until(f"controller {controller.id} answers without the flag", without_the_flag)
    wait_until(
        "finalization",
        lambda: read_cluster_records(spec, secrets=secrets).migration_state_record is ZkMigrationState.POST_MIGRATION,
        within=120,
    )


@contextmanager
def just_before_the_fence(act: Callable[[], None]) -> Iterator[None]:
    """While the block leaves KRaft: ``act`` once all is ready, before the brokers are let catch up."""
    ready = QuorumFence.ready

    def ready_then_act(fence: QuorumFence) -> None:
        ready(fence)
        act()

    with patch.object(QuorumFence, "ready", ready_then_act):
        yield


def cluster_id(spec: ClusterSpec, *, secrets: Secrets) -> str:
    """The id in /cluster/id."""
    with ZookeeperReader(spec.zookeeper, secrets=secrets) as zookeeper:
        znode = zookeeper.get("/cluster/id")
    if znode is None:
        raise RunbookError("/cluster/id is missing", way_out="start a broker first")
    return str(json.loads(znode.data)["id"])


def to_dual_write(spec: ClusterSpec, *, secrets: Secrets) -> None:
    """From ZooKeeper mode to dual write with every broker hybrid."""
    provision_controllers(spec, cluster_id(spec, secrets=secrets), secrets=secrets)
    roll_brokers(spec, BrokerMode.HYBRID, secrets=secrets)
    await_dual_write(spec, secrets=secrets)


def restart(node: Broker | Controller, spec: ClusterSpec) -> None:
    """Restart one node with the configuration it has."""
    _restart(layout(spec), node.service)


def make_state_anew(zookeeper: KazooClient, topic: str, partition: int) -> int:
    """Delete a partition's state znode and create it with the same bytes: its version is 0 then. Returns
    what it was.
    """
    path = f"/brokers/topics/{topic}/partitions/{partition}/state"
    data, stat = zookeeper.get(path)
    zookeeper.delete(path)
    zookeeper.create(path, data)
    return int(stat.version)


def reorder(spec: ClusterSpec, topic: str, partition: int, replicas: list[int]) -> None:
    """Give a partition's replicas another order; its leader stays."""
    admin = KafkaAdminClient(bootstrap_servers=list(spec.bootstrap_servers))
    try:
        admin.alter_partition_reassignments({TopicPartition(topic, partition): replicas})
    finally:
        admin.close()


def change_leader(spec: ClusterSpec, topic: str, partition: int, replicas: list[int]) -> None:
    """Give a partition's replicas another order, and make the first of them its leader."""
    reorder(spec, topic, partition, replicas)
    electing = AdminClient({"bootstrap.servers": ",".join(spec.bootstrap_servers)})

    def elected() -> bool:
        answers = electing.elect_leaders(ElectionType.PREFERRED, [ElectedPartition(topic, partition)]).result(10)
        return all(error is None or error.code() == KafkaError.ELECTION_NOT_NEEDED for error in answers.values())

    wait_until(f"{topic}-{partition} has leader {replicas[0]}", elected, within=30)


def produced(spec: ClusterSpec, topic: str, partition: int) -> str:
    """Why a record sent with acks=all to this very partition was not acknowledged within 15 seconds; empty: it was."""
    producer = Producer(
        {"bootstrap.servers": ",".join(spec.bootstrap_servers), "acks": "all", "message.timeout.ms": 15_000}
    )
    answers: list[str] = []
    producer.produce(
        topic,
        b"is it led",
        key=b"probe",
        partition=partition,
        on_delivery=lambda error, _: answers.append(str(error or "")),
    )
    producer.flush(20)
    return answers[0] if answers else "no answer"


def _restart(here: Layout, service: str) -> None:
    supervision.begin_stop(here, service)
    wait_until(f"{service} stops", lambda: not supervision.processes(here)[service].runs, within=330)
    supervision.start(here, service)


def write(node: Broker | Controller, properties: dict[str, str]) -> None:
    """Write one node's configuration file, and let a playbook write over it."""
    file = Path(node.config_file)
    file.write_text(render_properties(properties, header="written by a test"))
    file.with_name(f".{file.name}.kraft-runbook").unlink(missing_ok=True)
