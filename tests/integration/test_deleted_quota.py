"""Kafka does not write the deletion of an entity's last quota to ZooKeeper in dual write, and goes on. Parity shows it
with its cure, and the cure works.
"""

from __future__ import annotations

import json

import by_hand
import pytest
from churn import alter_quota
from kazoo.client import KazooClient
from labs import Lab
from pyspark.sql import SparkSession

from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.parity.comparison import ParityReport, Verdict
from kraft_runbook.parity.dual_write import read_migration
from kraft_runbook.parity.spark.full_comparison import run_parity
from kraft_runbook.parity.standstill import LAST_QUOTA
from lab.layout import layout

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

Entity = dict[str, str]
STAY: dict[str, Entity] = {
    "/config/clients/mayfly": {"client-id": "mayfly"},
    "/config/ips/192.0.2.7": {"ip": "192.0.2.7"},
    "/config/users/ephemera/clients/mayfly": {"user": "ephemera", "client-id": "mayfly"},
}
"""By its znode, each kind of entity whose last quota Kafka leaves in ZooKeeper."""
USER_ALONE = "/config/users/ephemera"
FAILED = "java.lang.NullPointerException"
WHERE = "KRaftMigrationZkWriter.lambda$handleClientQuotasDelta"


@pytest.fixture(scope="module")
def own_lab(dual_write: Lab) -> Lab:
    return dual_write


def name_of(entity: Entity) -> str:
    return "connection_creation_rate" if "ip" in entity else "producer_byte_rate"


def alter(lab: Lab, entity: Entity, *, remove: bool) -> None:
    """Set the entity's one quota, or delete it."""
    alter_quota(lab, lab.spec.brokers[0], entity, name_of(entity), value=1024.0, remove=remove)


def quotas(zookeeper: KazooClient, path: str) -> dict[str, str] | None:
    """What the znode holds; None: there is none."""
    return dict(json.loads(zookeeper.get(path)[0])["config"]) if zookeeper.exists(path) else None


def faults(lab: Lab, controller_id: int) -> int:
    """How often this controller's log has the fault."""
    log = layout(lab.spec).logs / f"{lab.spec.controller(controller_id).service}.log"
    lines = log.read_text().splitlines()
    return sum(FAILED in line and any(WHERE in at for at in lines[n : n + 3]) for n, line in enumerate(lines))


def written_past(lab: Lab, offset: int) -> bool:
    with ZookeeperReader(lab.spec.zookeeper, secrets=lab.secrets) as reader:
        return read_migration(reader).kraft_metadata_offset >= offset


def parity(lab: Lab, spark: SparkSession) -> ParityReport:
    return run_parity(lab.spec, secrets=lab.secrets, spark=spark)


def test_it_stays_until_the_active_controller_is_restarted(
    dual_write: Lab, zookeeper: KazooClient, spark: SparkSession
) -> None:
    spec, secrets = dual_write.spec, dual_write.secrets
    entities = {**STAY, USER_ALONE: {"user": "ephemera"}}
    for entity in entities.values():
        alter(dual_write, entity, remove=False)
    by_hand.wait_until("the quotas are in ZooKeeper", lambda: all(quotas(zookeeper, path) for path in entities))

    leads = describe_quorum(spec, secrets=secrets)
    for number, (path, entity) in enumerate(STAY.items(), start=1):
        alter(dual_write, entity, remove=True)
        by_hand.wait_until(f"{path} fails", lambda number=number: faults(dual_write, leads.leader_id) == number)
    alter(dual_write, entities[USER_ALONE], remove=True)
    by_hand.wait_until("a user's quota goes", lambda: quotas(zookeeper, USER_ALONE) == {})
    end = describe_quorum(spec, secrets=secrets)
    by_hand.wait_until("/migration moves past it", lambda: written_past(dual_write, end.high_watermark - 1))
    assert (end.leader_id, end.leader_epoch) == (leads.leader_id, leads.leader_epoch), (
        "a new leader would have cured it"
    )
    assert {path: set(quotas(zookeeper, path) or ()) for path in STAY} == {
        path: {name_of(entity)} for path, entity in STAY.items()
    }

    found = parity(dual_write, spark)
    assert found.verdict is Verdict.MISMATCH, found.render_text()
    only_zookeeper = {each.kind: each.only_zookeeper for each in found.counts if each.only_zookeeper}
    assert only_zookeeper == {"client quota": len(STAY)}, found.render_text()
    assert found.differing == len(STAY) and LAST_QUOTA in found.render_text(), found.render_text()

    by_hand.restart(spec.controller(leads.leader_id), spec)
    by_hand.wait_until("the next leader writes them", lambda: all(quotas(zookeeper, path) == {} for path in STAY))
    by_hand.await_dual_write(spec, secrets=secrets)
    found = parity(dual_write, spark)
    assert found.verdict is Verdict.MATCH, found.render_text()
