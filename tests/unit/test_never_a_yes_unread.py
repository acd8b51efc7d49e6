"""Every answer to "can it go back": what it rests on, taken away part by part, is never answered with yes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from observations import SPEC, WHY, a_controller, broker, observation, part
from test_upgrade_checks import ALL, PLAIN, cluster, features, host_changed, not_passing

from kraft_runbook.brokers.operation import UNREGISTERING
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.gates.page import render_page
from kraft_runbook.gates.proof import Proof, make_proof
from kraft_runbook.groups.operation import GROUPS
from kraft_runbook.groups.toggles.operation import TOGGLES
from kraft_runbook.levels.operation import LEVELS
from kraft_runbook.migration.explain import explain
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.plan import make_plan
from kraft_runbook.migration.way_back import way_back
from kraft_runbook.operations import OPERATIONS
from kraft_runbook.quorum.care import QUORUM_CARE
from kraft_runbook.quorum.drill import QUORUM_DRILL
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.restart.operation import RESTARTS
from kraft_runbook.runbook.way_back import RollbackPlan
from kraft_runbook.software.operation import SOFTWARE
from kraft_runbook.software.stages import Gate


def dual_write() -> ClusterObservation:
    return observation(Phase.DUAL_WRITE)


def hybrid_without(**parts: object) -> ClusterObservation:
    return part(**parts)(observation(Phase.HYBRID))


UNREAD: dict[str, Callable[[], RollbackPlan]] = {
    "migration: ZooKeeper": lambda: MIGRATION.way_back(hybrid_without(zookeeper=WHY), SPEC),
    "migration: the quorum": lambda: MIGRATION.way_back(
        replace(hybrid_without(quorum=WHY), zookeeper=replace(hybrid_without().zookeeper, controller=None)), SPEC
    ),
    "migration: whether a controller runs": lambda: MIGRATION.way_back(
        a_controller(102, running=WHY)(dual_write()), SPEC
    ),
    "migration: a controller's flag": lambda: MIGRATION.way_back(a_controller(102, mode=WHY)(dual_write()), SPEC),
    "migration: whether ZooKeeper is written": lambda: way_back(dual_write(), SPEC, dual_write_unread="no answer"),
    "migration: one look": lambda: explain(dual_write(), SPEC).rollback,
    "migration: the plan's one look": lambda: make_plan(dual_write(), SPEC).way_back_now,
    "upgrade_software: the levels and disks": lambda: SOFTWARE.way_back(part(features=WHY)(cluster(ALL)), PLAIN),
    "upgrade_software: one node's disk": lambda: SOFTWARE.way_back(host_changed(103, disk=WHY)(cluster(ALL)), PLAIN),
    "upgrade_software: one host": lambda: SOFTWARE.way_back(
        features(lambda seen: replace(seen, hosts={**seen.hosts, 2: WHY}))(cluster(ALL)), PLAIN
    ),
    "upgrade_software: a node's version": lambda: SOFTWARE.way_back(
        broker(2, software_version=WHY)(cluster(ALL)), PLAIN
    ),
    "upgrade_software: whether ZooKeeper is behind": lambda: SOFTWARE.way_back(
        part(controllers={}, quorum=WHY)(cluster(ALL)), PLAIN
    ),
    "upgrade_features: the plan": lambda: LEVELS.way_back(cluster(ALL), PLAIN),
    "rolling_restart: the phase": lambda: RESTARTS.way_back(
        part(controllers={}, quorum=WHY, zookeeper=WHY)(dual_write()), SPEC
    ),
    "reassignment: the phase": lambda: REASSIGNMENT.way_back(
        part(controllers={}, quorum=WHY, zookeeper=WHY)(dual_write()), SPEC
    ),
    "groups: the phase": lambda: GROUPS.way_back(part(controllers={}, quorum=WHY, zookeeper=WHY)(dual_write()), SPEC),
    "groups: the brokers' modes": lambda: GROUPS.way_back(
        part(brokers={n: replace(b, mode=WHY) for n, b in dual_write().brokers.items()})(dual_write()), SPEC
    ),
    "toggle: the phase": lambda: TOGGLES.way_back(part(controllers={}, quorum=WHY, zookeeper=WHY)(dual_write()), SPEC),
    "quorum_drill: the phase": lambda: QUORUM_DRILL.way_back(
        part(controllers={}, quorum=WHY, zookeeper=WHY)(dual_write()), SPEC
    ),
    "quorum_care: the phase": lambda: QUORUM_CARE.way_back(
        part(controllers={}, quorum=WHY, zookeeper=WHY)(dual_write()), SPEC
    ),
    "unregister_broker: the phase": lambda: UNREGISTERING.way_back(
        part(controllers={}, quorum=WHY, zookeeper=WHY)(dual_write()), SPEC
    ),
    "reassignment: a broker": lambda: REASSIGNMENT.way_back(broker(2, running=WHY)(dual_write()), SPEC),
}


@pytest.mark.parametrize("what", UNREAD)
def test_what_was_not_read_is_never_a_yes(what: str) -> None:
    plan = UNREAD[what]()
    assert not plan.possible and plan.answer in ("no", "not known"), plan
    assert plan.why


def test_every_operation_is_among_them() -> None:
    assert {what.partition(":")[0] for what in UNREAD} == set(OPERATIONS)


def test_a_look_that_read_it_all_says_yes() -> None:
    for operation, seen, spec in (
        (MIGRATION, dual_write(), SPEC),
        (SOFTWARE, cluster(ALL), PLAIN),
        (RESTARTS, dual_write(), SPEC),
        (REASSIGNMENT, dual_write(), SPEC),
        (GROUPS, observation(Phase.HYBRID), SPEC),
        (TOGGLES, dual_write(), SPEC),
        (QUORUM_CARE, observation(Phase.KRAFT), SPEC),
        (UNREGISTERING, observation(Phase.KRAFT), SPEC),
    ):
        assert operation.way_back(seen, spec).answer == "yes", operation.name


def test_explain_and_the_gate_give_one_answer_to_whether_the_software_can_go_back() -> None:
    """Every node healthy on 4.1.1 at level 27. Measured: the quick look said yes, and the gate failed."""
    at_27 = part(quorum=replace(observation(Phase.FINALIZED).quorum, metadata_version=27))(cluster(ALL, level=27))
    quick = part(features=WHY, margins=WHY)(at_27)
    assert not_passing(at_27, Gate.BACK)["KRB-UPG-005"][0] == "FAIL"
    for seen in (at_27, quick):
        found = SOFTWARE.explain(seen, PLAIN)
        assert found.rollback.answer == "no" and found.back == ()
        text = found.render_text()
        assert "Can the software go back: no" in text and "Restart" not in text
    assert (
        "metadata.version is 27, and Kafka 3.9.2 knows no level above 21" in SOFTWARE.explain(quick, PLAIN).rollback.why
    )
    at_21 = SOFTWARE.explain(part(features=WHY)(cluster(ALL)), PLAIN).render_text()
    assert "Can the software go back: not known" in at_21 and "kraft-runbook features --cluster" in at_21
    assert "Back, if that turns out to be yes" in at_21


def test_a_gate_says_that_it_is_not_known_and_its_proof_reads_back() -> None:
    seen, spec = cluster(ALL), PLAIN
    plan = LEVELS.way_back(seen, spec)
    proof = make_proof(
        "level", seen, spec, checks=(), parity=None, rollback=plan, made_at=datetime(2026, 11, 26, tzinfo=UTC)
    )
    page = render_page(proof, LEVELS.table.gate("level"))
    assert "Rollback: **not known**: only a plan can tell" in page and "**possible**" not in page
    assert Proof.from_dict(proof.to_dict()) == proof
    sure = replace(proof, rollback=RollbackPlan(True, "yes", ()))
    assert "known" not in sure.to_dict()["rollback"] and Proof.from_dict(sure.to_dict()) == sure
