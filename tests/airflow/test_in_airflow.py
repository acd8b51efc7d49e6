"""What only a real Airflow shows, one for all tests of this file. Gates: nothing but a person's approval of the proof
at hand lets the step behind a gate run. Claims: of two runs that change one cluster the second is refused. Sensors:
they live in the triggerer, say who is missing, and give up at their deadline.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from kazoo.client import KazooClient

from kraft_runbook.errors import RunbookError
from kraft_runbook.io.cluster_claim import Claim
from kraft_runbook.io.zookeeper.claim_znode import PATH

APPROVE = "gate_start.approve"
SECOND = "gate_start.approve_second"
CONFIRM = "gate_start.confirm"
PARKED = {"awaiting_input"}
ENDED = {"success", "failed", "upstream_failed", "skipped"}


@pytest.fixture(autouse=True)
def in_order(scene):
    scene.see()


def reach_gate(scene, dag_id, **params):
    run_id = scene.start(dag_id, **params)
    assert scene.wait(dag_id, run_id, APPROVE, PARKED | ENDED) == "awaiting_input"
    scene.as_user("operator").settle(dag_id, run_id, APPROVE)
    return run_id


def proven(scene, run_id, dag_id="gate_anyone"):
    """The digest of the gate's latest proof."""
    return scene.as_user("operator").xcom(dag_id, run_id, "gate_start.prove")[-1]["digest"]


def test_an_approval_lets_the_step_run_and_shows_what_was_proven(scene):
    run_id = reach_gate(scene, "gate_anyone")
    assert f"anyone: a gate waits (start), {run_id}" in scene.told()
    client = scene.as_user("operator")
    shown = client.gate("gate_anyone", run_id, APPROVE)
    digest = proven(scene, run_id)
    assert digest in shown["body"]
    assert "KRB-TEST-001" in shown["body"]
    assert "Rollback: **possible**" in shown["body"]
    client.answer("gate_anyone", run_id, APPROVE, "Approve")
    assert scene.wait("gate_anyone", run_id, "step", ENDED) == "success"
    signed = client.xcom("gate_anyone", run_id, APPROVE)
    assert (signed["approved_by"], signed["proof_digest"]) == ("operator", digest)
    approved, confirmed = (scene.record("gate_anyone", run_id, outcome) for outcome in ("approved", "confirmed"))
    assert (approved["by"], approved["by_id"], approved["digest"], approved["try_number"]) == (
        "operator",
        "operator",
        digest,
        1,
    )
    assert [(s["by"], s["task_instance"]) for s in confirmed["signatures"]] == [("operator", approved["task_instance"])]


def test_rejecting_stops_the_run_as_failed_and_says_how_to_go_back(scene):
    scene.see(state=2, controllers_run=True)
    run_id = reach_gate(scene, "gate_anyone")
    scene.as_user("operator").answer("gate_anyone", run_id, APPROVE, "Reject")
    assert scene.wait("gate_anyone", run_id, APPROVE, ENDED) == "failed"
    assert scene.wait("gate_anyone", run_id, "step", ENDED) == "upstream_failed"
    scene.until_ended("gate_anyone", run_id)
    until = time.monotonic() + 60
    while f"anyone: a run failed, {run_id}" not in scene.told():
        assert time.monotonic() < until, scene.told()
        time.sleep(0.5)
    log = scene.log("gate_anyone", run_id, APPROVE)
    assert "Rejected by operator" in log
    assert "deprovision_controllers" in log


def test_only_assigned_users_may_answer(scene):
    run_id = reach_gate(scene, "gate_assigned")
    with pytest.raises(RunbookError, match="403"):
        scene.as_user("operator").answer("gate_assigned", run_id, APPROVE, "Approve")
    scene.as_user("second").answer("gate_assigned", run_id, APPROVE, "Approve")
    assert scene.wait("gate_assigned", run_id, "step", ENDED) == "success"


def test_a_gate_can_be_answered_once(scene):
    run_id = reach_gate(scene, "gate_anyone")
    scene.as_user("operator").answer("gate_anyone", run_id, APPROVE, "Approve")
    with pytest.raises(RunbookError, match="409"):
        scene.as_user("second").answer("gate_anyone", run_id, APPROVE, "Reject")


def test_marking_the_gate_successful_by_hand_signs_nothing(scene):
    run_id = reach_gate(scene, "gate_anyone")
    scene.as_user("operator").mark("gate_anyone", run_id, APPROVE, "success")
    assert scene.wait("gate_anyone", run_id, CONFIRM, ENDED) == "failed"
    assert "0 of 1 approvals" in scene.log("gate_anyone", run_id, CONFIRM)
    assert scene.wait("gate_anyone", run_id, "step", ENDED) == "upstream_failed"


def test_an_xcom_written_by_hand_signs_nothing(scene):
    """Marked successful, and given the value that an approval leaves: whoever may edit a DAG's runs can do both."""
    run_id = reach_gate(scene, "gate_anyone")
    client = scene.as_user("operator")
    digest = proven(scene, run_id)
    forged = {
        "proof_digest": digest,
        "chosen_options": ["Approve"],
        "approved_by": "operator",
        "approved_at": datetime.now(UTC).isoformat(),
    }
    client.write_xcom("gate_anyone", run_id, APPROVE, forged)
    client.mark("gate_anyone", run_id, APPROVE, "success")
    assert scene.wait("gate_anyone", run_id, CONFIRM, ENDED) == "failed"
    assert "0 of 1 approvals" in scene.log("gate_anyone", run_id, CONFIRM)
    assert scene.wait("gate_anyone", run_id, "step", ENDED) == "upstream_failed"


def test_a_cluster_that_changed_after_the_proof_is_refused(scene):
    """Also where it changed as the step behind the gate would have changed it: nobody signed for that."""
    for now in ({"brokers": "hybrid"}, {"state": 2, "controllers_run": True, "brokers": "hybrid"}):
        scene.see()
        run_id = reach_gate(scene, "gate_anyone")
        scene.see(**now)
        scene.as_user("operator").answer("gate_anyone", run_id, APPROVE, "Approve")
        assert scene.wait("gate_anyone", run_id, CONFIRM, ENDED) == "failed"
        assert "the cluster changed since the proof" in scene.log("gate_anyone", run_id, CONFIRM)
        assert scene.wait("gate_anyone", run_id, "step", ENDED) == "upstream_failed"


def test_a_cluster_that_has_come_beyond_the_gate_meanwhile_is_not_refused_and_nothing_is_confirmed(scene):
    run_id = reach_gate(scene, "gate_anyone")
    scene.see(state=1, controllers_run=True, brokers="hybrid")
    scene.as_user("operator").answer("gate_anyone", run_id, APPROVE, "Approve")
    assert scene.wait("gate_anyone", run_id, CONFIRM, ENDED) == "success"
    assert "already done: the cluster is in HYBRID" in scene.log("gate_anyone", run_id, CONFIRM)
    with pytest.raises(StopIteration):
        scene.record("gate_anyone", run_id, "confirmed")


def test_a_stale_proof_is_refused(scene):
    run_id = reach_gate(scene, "gate_hasty")
    time.sleep(0.6)  # the cluster file lets a proof hold for half a second
    scene.as_user("operator").answer("gate_hasty", run_id, APPROVE, "Approve")
    assert scene.wait("gate_hasty", run_id, CONFIRM, ENDED) == "failed"
    assert "holds for 0 s" in scene.log("gate_hasty", run_id, CONFIRM) or "s old and holds for" in scene.log(
        "gate_hasty", run_id, CONFIRM
    )


@pytest.mark.long
def test_a_proof_with_an_objection_is_never_put_before_a_person(scene):
    """Every day: test_gate_tasks, each check that blocks."""
    scene.see(objection="partition t-0 has no state")
    run_id = scene.start("gate_anyone")
    assert scene.wait("gate_anyone", run_id, "gate_start.prove", ENDED) == "failed"
    assert scene.wait("gate_anyone", run_id, APPROVE, ENDED) == "upstream_failed"
    assert "partition t-0 has no state" in scene.log("gate_anyone", run_id, "gate_start.prove")


@pytest.mark.long
def test_an_objection_that_arises_after_the_approval_stops_the_step(scene):
    """Every day: test_gate_tasks, each check that blocks meanwhile."""
    run_id = reach_gate(scene, "gate_anyone")
    scene.see(objection="partition t-0 went offline")
    scene.as_user("operator").answer("gate_anyone", run_id, APPROVE, "Approve")
    assert scene.wait("gate_anyone", run_id, CONFIRM, ENDED) == "failed"
    assert "partition t-0 went offline" in scene.log("gate_anyone", run_id, CONFIRM)


def test_two_approvals_must_come_from_two_people(scene):
    run_id = reach_gate(scene, "gate_anyone", approvals_needed=2)
    scene.as_user("operator").answer("gate_anyone", run_id, APPROVE, "Approve")
    scene.wait("gate_anyone", run_id, SECOND, PARKED)
    first_asking = scene.as_user("operator").gate("gate_anyone", run_id, SECOND)["created_at"]
    scene.as_user("operator").answer("gate_anyone", run_id, SECOND, "Approve")
    assert "operator has signed already" in scene.await_record("gate_anyone", run_id, "turned_away")["why"]
    assert scene.await_open_gate("gate_anyone", run_id, SECOND)["created_at"] == first_asking
    scene.as_user("second").answer("gate_anyone", run_id, SECOND, "Approve")
    assert scene.wait("gate_anyone", run_id, "step", ENDED) == "success"
    assert [s["by"] for s in scene.record("gate_anyone", run_id, "confirmed")["signatures"]] == ["operator", "second"]


def test_whoever_triggered_the_run_is_turned_away_where_the_cluster_file_says_so_and_the_form_lowers_nothing(scene):
    """The file asks for two and for someone else; Airflow itself would let the operator answer, as nobody
    is assigned.
    """
    run_id = reach_gate(scene, "gate_apart", approvals_needed=1)
    scene.as_user("operator").answer("gate_apart", run_id, APPROVE, "Approve")
    assert "operator triggered this run" in scene.await_record("gate_apart", run_id, "turned_away")["why"]
    scene.await_open_gate("gate_apart", run_id, APPROVE)
    scene.as_user("second").answer("gate_apart", run_id, APPROVE, "Approve")
    scene.wait("gate_apart", run_id, SECOND, PARKED)
    scene.as_user("stranger").answer("gate_apart", run_id, SECOND, "Approve")
    assert scene.wait("gate_apart", run_id, "step", ENDED) == "success"


def test_proving_the_gate_again_asks_again(scene):
    run_id = reach_gate(scene, "gate_anyone")
    client = scene.as_user("operator")
    client.answer("gate_anyone", run_id, APPROVE, "Approve")
    scene.wait("gate_anyone", run_id, "step", ENDED)
    scene.until_ended("gate_anyone", run_id)  # a run that is just ending would leave what is cleared now lying
    client.clear("gate_anyone", run_id, ["gate_start.prove"])
    assert scene.wait("gate_anyone", run_id, APPROVE, PARKED) == "awaiting_input"
    assert proven(scene, run_id) in client.gate("gate_anyone", run_id, APPROVE)["body"]


@pytest.mark.long
def test_an_approval_of_another_proof_does_not_count(scene):
    """Every day: test_gates and test_approvals."""
    run_id = reach_gate(scene, "gate_anyone")
    client = scene.as_user("operator")
    client.answer("gate_anyone", run_id, APPROVE, "Approve")
    scene.wait("gate_anyone", run_id, "step", ENDED)
    scene.until_ended("gate_anyone", run_id)  # a run that is just ending would leave what is cleared now lying
    client.clear("gate_anyone", run_id, ["gate_start.prove"], downstream=False)
    scene.until_ended("gate_anyone", run_id)
    client.clear("gate_anyone", run_id, [CONFIRM], downstream=False)
    assert scene.wait("gate_anyone", run_id, CONFIRM, {"failed"}) == "failed"


def test_a_dry_run_asks_nobody(scene):
    run_id = scene.start("gate_anyone", dry_run=True)
    assert scene.wait("gate_anyone", run_id, "step", ENDED) == "success"
    assert "Dry run: nobody is asked" in scene.log("gate_anyone", run_id, APPROVE)


# -- claims ------------------------------------------------------------------------------------------------------------


def test_a_second_run_is_refused_by_name_until_the_first_has_ended(scene):
    first = scene.start("claim_forward")
    assert scene.wait("claim_forward", first, "claim", ENDED) == "success"
    second = scene.start("claim_back")
    assert scene.wait("claim_back", second, "claim", ENDED) == "failed"
    assert f"run {first} of claim_forward" in scene.log("claim_back", second, "claim")

    assert scene.wait("claim_forward", first, "hold", ENDED) == "failed"
    scene.until_ended("claim_forward", first)
    third = scene.start("claim_back")
    assert scene.wait("claim_back", third, "claim", ENDED) == "success"
    scene.wait("claim_back", third, "hold", ENDED)


@pytest.mark.long
def test_a_run_is_refused_while_another_airflow_holds_the_cluster(scene, zookeeper):
    """Every day: test_claims, against a real ZooKeeper."""
    until = datetime.now(UTC) + timedelta(hours=1)
    elsewhere = Claim("zk_to_kraft_migration__anyone", "manual", "2026-03-04T10:00:00+00:00", "far-host", until)
    client = KazooClient(hosts=zookeeper)
    client.start()
    try:
        client.ensure_path(PATH)
        client.set(PATH, elsewhere.to_json())
        refused = scene.start("claim_brief")
        assert scene.wait("claim_brief", refused, "claim", ENDED) == "failed"
        log = scene.log("claim_brief", refused, "claim")
        assert "run manual of zk_to_kraft_migration__anyone, which this Airflow does not know" in log
        assert "far-host" in log
    finally:
        client.delete(PATH)
        client.stop()
        client.close()


@pytest.mark.long
def test_the_claim_of_a_run_that_succeeded_is_free(scene):
    """Every day: test_claims and test_begin_and_end_of_a_run."""
    for _ in range(2):
        run_id = scene.start("claim_brief")
        assert scene.wait("claim_brief", run_id, "claim", ENDED) == "success"
        scene.until_ended("claim_brief", run_id)


# -- sensors -----------------------------------------------------------------------------------------------------------


def test_a_sensor_gives_up_at_its_deadline_and_names_who_is_missing(scene):
    run_id = scene.start("wait")
    assert scene.wait("wait", run_id, "quorum_ready", {"deferred"}, every=0.3) == "deferred"
    assert scene.wait("wait", run_id, "quorum_ready", ENDED) == "failed"
    log = scene.log("wait", run_id, "quorum_ready")
    assert "controller 101" in log and "the deadline of 3 s has passed" in log


@pytest.mark.long
def test_a_dry_run_says_what_it_would_wait_for(scene):
    """Every day: test_sensors."""
    run_id = scene.start("wait", dry_run=True)
    assert scene.wait("wait", run_id, "quorum_ready", ENDED) == "success"
    log = scene.log("wait", run_id, "quorum_ready")
    for deadline in (3, 60):
        assert f"Not waiting (a dry run, or a step that this run leaves out): up to {deadline} s" in log


# -- the soak ----------------------------------------------------------------------------------------------------------


def test_the_triggerer_ends_the_soak_as_soon_as_it_reads_that_a_controllers_file_lost_its_flag(scene, zookeeper):
    """The file is read on its host, by ansible, in the triggerer; the soak was to last an hour."""
    scene.see(state=1, controllers_run=True, brokers="kraft")
    file = scene.file.with_name("101.properties")
    file.write_text(f"process.roles=controller\nzookeeper.connect={zookeeper}\n")
    for _ in range(5):  # where ansible takes longer than three looks that read nothing of this cluster, these end it
        run_id = scene.start("soaking", soak_minutes=60)
        assert scene.wait("soaking", run_id, "soak", {"deferred", *ENDED}) == "deferred"
        assert scene.wait("soaking", run_id, "soak", ENDED) == "failed"
        broken = scene.record("soaking", run_id, "failed")["error"]
        assert broken.startswith("the soak found the cluster unhealthy: ")
        if "KRB-PRE-047 " in broken:
            break
    assert "KRB-PRE-047 " in broken
    assert f"in controller 101's file {file}: zookeeper.metadata.migration.enable is missing" in broken
