"""A batch of the copy above 8 MiB ends every controller, on a real cluster: the check tells its size before, and with
the setting that is rendered now the same controllers copy the same tree.
"""

from __future__ import annotations

import re

import by_hand
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from labs import Lab

from kraft_runbook.cluster.copy_groups import BATCH_BYTES
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.local import supervision
from kraft_runbook.migration.checks import CHECKS
from kraft_runbook.migration.copy_tuning import HEAVY, LARGE, Size, size_of
from kraft_runbook.procedures.observe import Scope, observe
from lab.layout import layout

TOPICS, PARTITIONS, AT_ONCE = 700, 3, 50
LONG = ",".join(f"{n}:1" for n in range(2_430))[:16_000].rpartition(",")[0]
TOO_LARGE = re.compile(r"RecordBatchTooLargeException.*?(\d+).*?exceeds.*?(\d+)")


def make_topics(spec: ClusterSpec) -> None:
    """One replica each, on one broker after the other."""
    admin = AdminClient({"bootstrap.servers": ",".join(spec.bootstrap_servers)})
    config = {"follower.replication.throttled.replicas": LONG}
    for start in range(0, TOPICS, AT_ONCE):
        some = [
            NewTopic(
                f"heavy-{number:03}",
                replica_assignment=[[spec.broker_ids[(number + each) % 3]] for each in range(PARTITIONS)],
                num_partitions=PARTITIONS,
                config=config,
            )
            for number in range(start, start + AT_ONCE)
        ]
        by_hand.answered(admin.create_topics(some, operation_timeout=60, request_timeout=60))


def tuned(spec: ClusterSpec, size: Size) -> ClusterSpec:
    return spec.model_copy(update={"controller_properties": {**spec.controller_properties, **size.properties}})


@pytest.mark.long
def test_a_batch_too_large_ends_every_controller_and_the_setting_that_the_check_names_copies_the_tree(
    own_lab: Lab,
) -> None:
    spec, secrets, here = own_lab.spec, own_lab.secrets, layout(own_lab.spec)
    make_topics(spec)
    seen = observe(spec, secrets=secrets, scope=Scope.FULL, with_hosts=True)
    copied, partitions = seen.tree.copied, seen.tree.partitions
    assert partitions > LARGE.from_partitions
    assert size_of(partitions, copied) is HEAVY
    check = CHECKS["KRB-PRE-089"]
    assert str(HEAVY.min_batch_size) in check.run(seen, spec).evidence

    large = tuned(spec, LARGE)
    by_hand.provision_controllers(large, by_hand.cluster_id(large, secrets=secrets), secrets=secrets)
    refused = check.run(observe(large, secrets=secrets, scope=Scope.FULL, with_hosts=True), large)
    assert refused.blocks and f"Kafka accepts {BATCH_BYTES:,}" in refused.evidence, refused
    *first, last = spec.brokers
    by_hand.roll_brokers(large, BrokerMode.HYBRID, secrets=secrets, only=tuple(each.id for each in first))
    by_hand.write(last, broker_properties(spec, last, BrokerMode.HYBRID))
    by_hand.restart(last, spec)
    by_hand.await_death_of_the_majority(spec, within=600)
    logs = "\n".join(supervision.log_tail(here, c.service, lines=2_000) for c in spec.controllers)
    said = TOO_LARGE.search(logs)
    assert said, logs[-3_000:]
    size, limit = int(said[1]), int(said[2])
    assert limit == BATCH_BYTES
    assert size <= copied.most_bytes(LARGE.min_batch_size) < 1.05 * size  # never fewer than Kafka's, and hardly more

    heavy = tuned(spec, HEAVY)
    for controller in spec.controllers:
        by_hand.write(controller, controller_properties(heavy, controller, ControllerMode.MIGRATION))
        if supervision.processes(here)[controller.service].runs:
            by_hand.restart(controller, spec)
        else:
            supervision.start(here, controller.service)
    by_hand.await_dual_write(heavy, secrets=secrets)
    after = observe(heavy, secrets=secrets)
    assert after.topics_apart.in_quorum == after.topics_apart.in_zookeeper >= TOPICS
