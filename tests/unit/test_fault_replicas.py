"""What the fault matrix reads out of a failed task's log to repair a broker's disks is what the checks write."""

from __future__ import annotations

from fault_replicas import named_directory, named_id
from left_on_disk import LEFT_OVER
from observations import SPEC, observation, part

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.replica_directories import IdsApart, ReplicasCompared, WithoutId
from kraft_runbook.migration.checks.catalogue import CHECKS

OLD, NEW = "-daYNaX2RW-M4Tbe3DPT9A", "BQHmqfPtTlGeScgm5iii_A"
DIRECTORY = f"/tmp/lab/broker-3/data/{LEFT_OVER}"
OTHERS = ReplicasCompared(
    132,
    apart=(IdsApart("workload-2", NEW, {"another": (1, 2, 3)}),),
    apart_count=1,
    without_id=(WithoutId(2, f"/elsewhere/{LEFT_OVER}", assigned=False),),
    without_id_count=1,
)


def told(found: ReplicasCompared) -> str:
    """As ``preflight.checks`` writes it."""
    report = CHECKS.run(part(replicas=found)(observation(Phase.ZOOKEEPER)), SPEC, Phase.ZOOKEEPER)
    return "\n".join(f"{c.code} {c.title}: {c.evidence}\n  What to do: {c.fix}" for c in report.blocking)


def test_the_id_is_the_one_that_the_replicas_of_this_very_topic_have() -> None:
    found = ReplicasCompared(132, apart=(IdsApart("workload", NEW, {OLD: (1, 2, 3)}),), apart_count=1)
    assert named_id(told(found), "workload") == OLD
    assert named_id(told(OTHERS), "workload") is None


def test_the_directory_is_the_one_on_this_very_broker() -> None:
    found = ReplicasCompared(132, without_id=(WithoutId(3, DIRECTORY, assigned=False),), without_id_count=1)
    assert named_directory(told(found), 3) == DIRECTORY
    assert named_directory(told(OTHERS), 3) is None
