"""A cluster by mutual TLS alone, its three ZooKeeper servers too: into dual write, back, and to the end, while a client
that only ACLs let in writes and reads by its certificate.

The tests build on each other, in this order.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import by_hand
import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from cryptography.x509.oid import ExtendedKeyUsageOID
from kazoo.security import Permissions
from labs import Lab
from pyspark.sql import SparkSession

from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.session import ZookeeperSession
from kraft_runbook.migration.checks import CHECKS
from kraft_runbook.migration.leaving import fence_plan
from kraft_runbook.parity.comparison import Verdict
from kraft_runbook.parity.dual_write import read_migration
from kraft_runbook.parity.spark.full_comparison import run_parity
from kraft_runbook.procedures.leave_kraft import leave_kraft
from kraft_runbook.procedures.observe import Scope, observe
from kraft_runbook.runbook.check_results import Verdict as Judged
from lab.account import Account
from lab.clients import client_settings
from lab.health import wait_until_healthy
from lab.secured import OF_KEYSTORES
from lab.secured.certificates import Authority
from lab.workload import GROUP, PLAIN, work

pytestmark = pytest.mark.long


def client_of(lab: Lab, name: str) -> ClusterSpec:
    """The cluster as a client with this certificate reaches it."""
    file = str(lab.directory / "tls" / f"{name}.pem")
    changed = lab.spec.broker_security.model_copy(update={"certificate_file": file, "key_file": file})
    return lab.spec.model_copy(update={"broker_security": changed})


@pytest.fixture(scope="module")
def writing(mutual: Lab) -> Iterator[tuple[threading.Event, Future[Account]]]:
    """Producers and consumers as User:writer, whom ACLs alone let in, until the event is set."""
    kinds = (
        (ResourceType.TOPIC, PLAIN),
        (ResourceType.TRANSACTIONAL_ID, ""),
        (ResourceType.GROUP, GROUP),
        (ResourceType.BROKER, "kafka-cluster"),
    )
    may = [
        AclBinding(
            kind,
            name or "*",
            ResourcePatternType.PREFIXED if kind is ResourceType.TOPIC else ResourcePatternType.LITERAL,
            "User:writer",
            "*",
            AclOperation.ALL,
            AclPermissionType.ALLOW,
        )
        for kind, name in kinds
    ]
    admin = AdminClient(client_settings(mutual.spec))
    by_hand.answered(admin.create_acls(may))
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        account = pool.submit(work, client_of(mutual, "writer"), stop, status=None, rate=20)
        try:
            yield stop, account
        finally:
            stop.set()


def refused(lab: Lab, name: str) -> bool:
    """Whether a record of the client with this certificate is refused for want of rights."""
    answers: list[KafkaError | None] = []
    producer = Producer({**client_settings(client_of(lab, name)), "message.timeout.ms": 30_000})
    producer.produce(PLAIN, b"may it", on_delivery=lambda error, _: answers.append(error))
    producer.flush(40)
    return bool(answers and answers[0] and answers[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED)


def test_every_check_of_the_start_passes(mutual: Lab) -> None:
    for _ in range(3):  # a host of a busy machine may not answer in time, which is UNKNOWN
        seen = observe(mutual.spec, secrets=mutual.secrets, scope=Scope.FULL, with_hosts=True)
        results = CHECKS.run(seen, mutual.spec, Phase.ZOOKEEPER, gate="start", earlier=seen).results
        left = [f"{r.code} {r.verdict}: {r.evidence}" for r in results if r.verdict is not Judged.PASS]
        if not any(r.verdict is Judged.UNKNOWN for r in results):
            break
    told = {r.code: r.evidence for r in results}
    print(told["KRB-PRE-105"], told["KRB-PRE-106"], sep="\n")
    assert left == []
    assert detect_phase(seen).phase is Phase.ZOOKEEPER


def test_a_certificate_that_would_not_do_is_named(mutual: Lab) -> None:
    """Of controller 101: another authority signed it, it is a server's alone, and its name is no super user's."""
    spec, here = mutual.spec, mutual.directory / "other"
    password = mutual.environment[OF_KEYSTORES]
    host, servers = spec.controller(101).host, [ExtendedKeyUsageOID.SERVER_AUTH]
    Authority(here).keystore(here / "keys.p12", "mallory", password, host, usages=servers)
    first, *others = spec.controllers
    changed = first.model_copy(update={"properties": {"ssl.keystore.location": str(here / "keys.p12")}})
    spec = spec.model_copy(update={"controllers": (changed, *others)})
    seen = observe(spec, secrets=mutual.secrets, scope=Scope.FULL, with_hosts=True)
    told = {code: CHECKS[code].run(seen, spec) for code in ("KRB-PRE-106", "KRB-PRE-118", "KRB-PRE-116")}
    assert "controller 101 calls brokers as User:mallory, which is no super user" in told["KRB-PRE-106"].evidence
    assert "controller 101: " in told["KRB-PRE-118"].evidence and "lacks clientAuth" in told["KRB-PRE-118"].evidence
    assert "the certificate of controller 101 " in told["KRB-PRE-116"].evidence, told["KRB-PRE-116"]
    assert {each.verdict for each in told.values()} == {Judged.FAIL}
    assert not any("the certificate of controller 102" in each.evidence for each in told.values())


def test_it_gets_into_dual_write_and_holds_the_same_on_both_sides(
    mutual: Lab, writing: tuple[threading.Event, Future[Account]], spark: SparkSession
) -> None:
    spec = mutual.spec
    assert refused(mutual, "stranger")
    by_hand.to_dual_write(spec, secrets=mutual.secrets)
    by_hand.roll_brokers(spec, BrokerMode.KRAFT, secrets=mutual.secrets, only=(1,))
    report = run_parity(spec, secrets=mutual.secrets, spark=spark)
    assert report.verdict is Verdict.MATCH, report.render_text()
    by_hand.roll_brokers(spec, BrokerMode.HYBRID, secrets=mutual.secrets, only=(1,))
    by_hand.await_dual_write(spec, secrets=mutual.secrets)
    session = ZookeeperSession(spec.ensemble, secrets=mutual.secrets)
    session.connect()
    try:
        for path in ("/controller", "/migration", "/brokers/topics/orders"):
            acls, _ = session.client.get_acls(path)
            assert {(a.id.scheme, a.id.id) for a in acls if a.perms & ~Permissions.READ} == {("x509", "CN=kafka")}, path
    finally:
        session.close()
    assert not writing[1].done()


def test_it_goes_back(mutual: Lab, writing: tuple[threading.Event, Future[Account]]) -> None:
    spec = mutual.spec
    with ZookeeperReader(spec.ensemble, secrets=mutual.secrets) as reader:
        since = read_migration(reader).kraft_metadata_offset
    left = leave_kraft(
        spec, fence_plan(observe(spec, secrets=mutual.secrets)), proven_since=since, secrets=mutual.secrets, tell=print
    )
    assert set(left.deleted) >= {"/controller", "/migration"}
    for broker in spec.brokers:
        by_hand.write(broker, broker_properties(spec, broker, BrokerMode.ZOOKEEPER))
        by_hand.restart(broker, spec)
        wait_until_healthy(spec, say=print)
    seen = observe(spec, secrets=mutual.secrets).zookeeper
    assert was_read(seen) and seen.migration is None and set(seen.brokers) == set(spec.broker_ids)
    assert not writing[1].done()


def test_it_goes_to_the_end_with_no_acknowledged_record_lost(
    mutual: Lab, writing: tuple[threading.Event, Future[Account]]
) -> None:
    spec, (stop, account) = mutual.spec, writing
    for controller in spec.controllers:
        shutil.rmtree(Path(controller.log_dir), ignore_errors=True)
    by_hand.to_dual_write(spec, secrets=mutual.secrets)
    by_hand.roll_brokers(spec, BrokerMode.KRAFT, secrets=mutual.secrets)
    by_hand.await_dual_write(spec, secrets=mutual.secrets)
    by_hand.finalize(spec, secrets=mutual.secrets)
    stop.set()
    told = account.result(300)
    print(told)
    assert told.good, told
    assert refused(mutual, "stranger")
    phase = detect_phase(observe(spec, secrets=mutual.secrets, scope=Scope.FULL, with_hosts=True))
    assert phase.phase is Phase.FINALIZED, phase
