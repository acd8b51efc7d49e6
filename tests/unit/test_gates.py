"""When a proof and its signatures let a step run, and every reason why they don't."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from observations import SPEC, broker, controller, gauges, observation, with_quorum

from kraft_runbook.cluster.approvals import Approvals
from kraft_runbook.cluster.observation import (
    NO_ZOOKEEPER,
    BrokerMode,
    ControllerState,
    ControllerZnode,
    Unread,
    ZkMigrationState,
    was_read,
)
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.evidence.record import make_record
from kraft_runbook.gates.proof import ParitySummary, Proof, digest_of_file, make_proof
from kraft_runbook.gates.signatures import concluded, proven_again, refusal, standing, too_old
from kraft_runbook.migration.ahead import is_behind
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import TABLE, Gate
from kraft_runbook.migration.way_back import rollback_plan
from kraft_runbook.operations import OPERATIONS
from kraft_runbook.parity.parity_report import Verdict as ParityVerdict
from kraft_runbook.runbook.changes import By, state_of
from kraft_runbook.runbook.check_results import CheckResult, Severity, Verdict
from kraft_runbook.runbook.digests import digest_of
from kraft_runbook.runbook.way_back import RollbackPlan

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
FINE = CheckResult("KRB-TEST-001", "all is well", Severity.BLOCKING, Verdict.PASS, "it is")
MATCH = ParitySummary(ParityVerdict.MATCH, "p" * 64, 1000, NOW.isoformat(), "all the same", "parity_in_hybrid")
ANYONE = SPEC.model_copy(update={"approvals": Approvals()})
DOWN = Unread("it does not run")
START, HYBRID, DUAL = observation(Phase.ZOOKEEPER), observation(Phase.HYBRID), observation(Phase.DUAL_WRITE)


def approvals(**what):
    return ANYONE.model_copy(update={"approvals": Approvals(**what)})


def proof_of(seen, gate=Gate.DUAL_WRITE, checks=(FINE,), parity=MATCH, spec=ANYONE, **further) -> Proof:
    parity = parity if gate in (Gate.DUAL_WRITE, Gate.FINALIZE) else None
    return make_proof(
        gate, seen, spec, checks=checks, parity=parity, rollback=rollback_plan(Phase.HYBRID), made_at=NOW, **further
    )


def objections(proof: Proof) -> tuple[str, ...]:
    return proof.objections(TABLE.gate(proof.gate))


class Journal:
    """The records of one gate, as its tasks write them."""

    def __init__(self, proof: Proof) -> None:
        self.proof, self.records, self.instances = proof, [], 0

    def write(self, task, outcome, what, at=NOW):
        body = {"task": task, "outcome": outcome, **what}
        self.records.append(make_record(self.records[-1] if self.records else None, body, at=at))
        return self

    def _of_gate(self, task, outcome, digest=None, **what):
        name = self.proof.gate.value
        return self.write(f"gate_{name}.{task}", outcome, {"gate": name, "digest": digest or self.proof.digest, **what})

    def prove(self, digest=None, **what):
        return self._of_gate("prove", "proven", digest, **what)

    def ask(self, task="approve", digest=None):
        self.instances += 1
        return self._of_gate(task, "asked", digest, task_instance=str(self.instances))

    def approve(self, by, task="approve", digest=None, by_id=None, instance=None):
        what = {
            "by": by,
            "by_id": by_id or by,
            "answered_at": NOW.isoformat(),
            "task_instance": instance or str(self.instances),
        }
        return self._of_gate(task, "approved", digest, **what)

    def signed(self, *people):
        self.prove()
        for task, who in zip(("approve", "approve_second"), people, strict=False):
            self.ask(task).approve(who, task)
        return self

    def confirm(self):
        return self._of_gate(
            "confirm", "confirmed", signatures=[{"task_instance": str(n)} for n in range(1, self.instances + 1)]
        )

    @property
    def at(self):
        return standing(self.records, self.proof.gate)


def why(proof, journal, seen, spec=ANYONE, **changes):
    found = refusal(MIGRATION, proof, journal.at, seen, spec, **{"now": LATER, "confirming": True, **changes})
    return found and found.why


def signed(proof, *people):
    return Journal(proof).signed(*people)


def test_a_fresh_proof_signed_by_a_person_lets_the_step_run():
    seen = observation(Phase.HYBRID)
    proof = proof_of(seen)
    assert why(proof, signed(proof, "ann"), seen) is None
    assert why(proof, signed(proof, "ann"), seen, confirming=False) is None


def test_every_reason_to_refuse_is_named():
    seen = observation(Phase.HYBRID)
    proof = proof_of(seen)
    assert "0 of 1 approvals" in why(proof, signed(proof), seen)
    assert "1 of 2 approvals by different people" in why(proof, signed(proof, "ann", "ann"), seen, asked=2)
    assert "rejected it" in why(proof, signed(proof)._of_gate("approve", "rejected", by="bob"), seen)


# -- what counts as a signature ----------------------------------------------------------------------------------------


def test_an_approval_counts_only_where_the_same_try_of_the_same_task_had_asked_for_it():
    proof = proof_of(observation(Phase.HYBRID))
    assert not Journal(proof).prove().approve("ann", instance="1").at.signatures, "nobody had asked"
    assert not Journal(proof).prove().ask().approve("ann", instance="of another try").at.signatures
    assert not Journal(proof).prove().ask("approve").approve("ann", "approve_second").at.signatures
    assert (
        not Journal(proof)
        .prove()
        .ask()
        .write("roll.restart", "approved", {"gate": "dual_write", "digest": proof.digest, "by": "ann"})
        .at.signatures
    )
    assert [s.name for s in Journal(proof).prove().ask().approve("ann").at.on_this_proof] == ["ann"]


def test_asking_anew_voids_the_answer_that_was_given_before():
    proof = proof_of(observation(Phase.HYBRID))
    again = signed(proof, "ann").confirm().ask()
    assert not again.at.signatures
    assert not again.at.confirmed


def test_proving_anew_voids_what_was_signed_and_what_was_confirmed():
    seen = observation(Phase.HYBRID)
    proof = proof_of(seen)
    again = signed(proof, "ann").confirm().prove("f" * 64)
    assert again.at.confirmed == ""
    assert again.at.on_this_proof == ()
    assert again.at.provings == 2
    assert "not for the latest proof" in why(proof, again, seen)


def test_a_confirmation_names_the_answers_that_airflow_repeated():
    proof = proof_of(observation(Phase.HYBRID))
    at = signed(proof, "ann").confirm().at
    assert (at.confirmed, at.read_back) == (proof.digest, {"1"})
    assert signed(proof, "ann").confirm()._of_gate("approve", "rejected", by="bob").at.confirmed == ""


# -- who may sign ------------------------------------------------------------------------------------------------------


def test_who_does_not_stand_in_the_file_may_not_sign():
    seen, spec = observation(Phase.HYBRID), approvals(users=["ann"])
    proof = proof_of(seen, spec=spec)
    assert "bob (id bob) does not stand in approvals.users" in why(proof, signed(proof, "bob"), seen, spec)


def test_the_file_names_people_whatever_their_ids_are():
    """Under FAB the id is a number; an id in the file decides, since a name can be given to another account."""
    allowed = Approvals.model_validate({"users": ["ann", {"name": "bob", "id": "7"}]})
    assert allowed.may_sign("ann", "3")
    assert allowed.may_sign("bob", "7")
    assert not allowed.may_sign("bob", "8")
    assert not allowed.may_sign("7", "77")
    assert not allowed.may_sign("carl", "ann")


def test_the_form_can_raise_the_number_of_signatures_and_not_lower_it():
    seen, spec = observation(Phase.HYBRID), approvals(needed=2)
    proof = proof_of(seen, spec=spec)
    assert "1 of 2" in why(proof, signed(proof, "ann"), seen, spec, asked=1)
    assert why(proof, signed(proof, "ann", "bob"), seen, spec, asked=1) is None
    only_the_last = Approvals(needed_at={"finalize": 2})
    assert (
        only_the_last.needed_for("finalize"),
        only_the_last.needed_for("start"),
        only_the_last.needed_for("start", 2),
    ) == (2, 1, 2)


def test_who_triggered_the_run_may_be_kept_from_signing_it():
    seen, spec = observation(Phase.HYBRID), approvals(exclude_trigger=True)
    proof = proof_of(seen, spec=spec, triggered_by="ann")
    assert "ann triggered this run" in why(proof, signed(proof, "ann"), seen, spec)
    assert why(proof, signed(proof, "bob"), seen, spec) is None
    unknown = proof_of(seen, spec=spec)
    assert "does not know who triggered" in why(unknown, signed(unknown, "bob"), seen, spec)


# -- age ---------------------------------------------------------------------------------------------------------------


def test_the_age_of_the_parity_report_counts_and_the_way_out_leads_to_a_new_one():
    seen = observation(Phase.HYBRID)
    old = replace(MATCH, finished_at=(NOW - timedelta(hours=2)).isoformat())
    proof = proof_of(seen, parity=old)
    found = refusal(MIGRATION, proof, signed(proof, "ann").at, seen, ANYONE, now=LATER, confirming=True)
    assert "the parity report that was signed is 7260 s old and holds for 3600 s" in found.why
    assert "clear parity_in_hybrid with its downstream tasks" in found.way_out
    assert too_old(proof, 3600, NOW)
    assert not too_old(proof_of(seen), 3600, LATER)


def test_before_the_first_change_the_age_counts_in_full_though_the_gate_was_confirmed():
    seen = observation(Phase.ZOOKEEPER)
    proof = proof_of(seen, Gate.START)
    journal, tomorrow = signed(proof, "ann"), NOW + timedelta(days=1)
    assert "the proof is 86400 s old" in why(proof, journal, seen, confirming=False, now=tomorrow)


def test_a_step_that_has_begun_is_not_stopped_by_the_proofs_age_but_still_needs_its_signature():
    seen = observation(Phase.HYBRID)
    proof = proof_of(seen)
    half, tomorrow = broker(1, mode=BrokerMode.KRAFT)(seen), NOW + timedelta(days=1)
    begun = signed(proof, "ann").confirm()._of_gate("restart", "begins")
    assert why(proof, begun, half, confirming=False, now=tomorrow, turn=[2]) is None
    assert "0 of 1 approvals" in why(proof, signed(proof), half, confirming=False, turn=[2])
    anew = begun.prove(proof.digest)
    assert not anew.at.begun, "what was proven again has not begun"


@pytest.mark.parametrize("down", [1, 102])
def test_a_node_that_went_down_by_itself_is_no_beginning(down):
    """Only the evidence says that a step has begun: else a crash of the node whose turn it is would make a signature of
    any age good.
    """
    for gate, seen in ((Gate.DUAL_WRITE, HYBRID), (Gate.FINALIZE, DUAL), (Gate.ROLLBACK, DUAL)):
        proof = proof_of(seen, gate)
        crashed = broker(1, running=False)(seen) if down == 1 else with_controller(seen, 102, None, running=False)
        journal = signed(proof, "ann").confirm()
        assert "s old" in why(proof, journal, crashed, confirming=False, now=NOW + timedelta(days=9), turn=[down])


@pytest.mark.parametrize(
    ("gate", "seen"), [(Gate.START, START), (Gate.DUAL_WRITE, HYBRID), (Gate.FINALIZE, DUAL), (Gate.ROLLBACK, DUAL)]
)
def test_a_step_that_began_and_changed_nothing_excuses_no_age(gate, seen):
    """Say Ansible did not reach the host: a month later the proof is a month old, whatever the evidence says of a
    beginning.
    """
    proof = proof_of(seen, gate)
    begun = signed(proof, "ann").confirm()._of_gate("restart", "begins")
    assert begun.at.begun
    assert "s old" in why(proof, begun, seen, confirming=False, now=NOW + timedelta(days=30), turn=[1])
    unread = broker(1, mode=Unread("its metrics time out"))(seen)
    assert "s old" in why(proof, begun, unread, confirming=False, now=NOW + timedelta(days=30), turn=[1])


def test_while_restarts_go_on_the_proofs_age_counts_from_the_last_one():
    """A rolling restart, or a roll of the software, leaves nothing that a look could tell from the proof. With an hour
    of validity a roll of forty brokers would be refused in its middle.
    """
    proof = proof_of(HYBRID)
    journal = signed(proof, "ann").confirm()
    early = played(journal, NOW + timedelta(minutes=10))
    assert "s old" in why(proof, early, HYBRID, confirming=False, now=NOW + timedelta(hours=2)), "it has not begun"
    journal = played(early._of_gate("restart", "begins"), NOW + timedelta(minutes=100))
    assert why(proof, journal, HYBRID, confirming=False, now=NOW + timedelta(minutes=150)) is None
    assert "s old" in why(proof, journal, HYBRID, confirming=False, now=NOW + timedelta(minutes=161))
    assert "s old" in why(proof, journal, HYBRID, confirming=True, now=NOW + timedelta(minutes=150))
    anew = journal.prove(proof.digest)
    assert anew.at.acted_at is None


def played(journal, ended):
    at = ended.isoformat()
    body = {"phase": "HYBRID", "step": "s", "node_id": 1, "changed": [], "seconds": 1.0, "restarted": True}
    return journal.write("restart", "played", {**body, "began_at": at, "ended_at": at})


@pytest.mark.parametrize(
    ("condition", "counts"), [("canary_holds", True), ("canary_holds_in_kraft", True), ("broker_in_sync", False)]
)
def test_behind_the_watch_over_a_canary_the_age_counts_from_its_end(condition, counts):
    """A soak may last longer than a proof holds; an ordinary wait is no reason."""
    proof = proof_of(HYBRID)
    journal = played(signed(proof, "ann").confirm()._of_gate("restart", "begins"), NOW + timedelta(minutes=10))
    waited = {"condition": condition, "node_id": 2, "began_at": NOW.isoformat(), "seconds": 1.0, "error": ""}
    journal.write("canary", "reached", waited, at=NOW + timedelta(minutes=190))
    told = why(proof, journal, HYBRID, confirming=False, now=NOW + timedelta(minutes=200))
    assert told is None if counts else "s old" in told


@pytest.mark.parametrize(
    ("gate", "seen", "node"), [(Gate.DUAL_WRITE, HYBRID, 1), (Gate.ROLLBACK, DUAL, 1), (Gate.FINALIZE, DUAL, 102)]
)
def test_a_step_killed_with_its_node_down_goes_on_without_a_new_signature(gate, seen, node):
    proof = proof_of(seen, gate)
    begun = signed(proof, "ann").confirm()._of_gate("restart", "begins")
    down = broker(1, running=False)(seen) if node == 1 else with_controller(seen, 102, None, running=False)
    assert why(proof, begun, down, confirming=False, now=NOW + timedelta(days=1), turn=[node]) is None


def test_a_leave_that_gave_the_office_back_goes_on_without_a_new_signature():
    """Every controller was down when it was proven, so that no node changed: that ZooKeeper holds the office again is
    the steps' own work.
    """
    dead = held_by_kraft(with_all_controllers_down(HYBRID))
    proof = proof_of(dead, Gate.ROLLBACK)
    begun = signed(proof, "ann").confirm()._of_gate("leave_kraft", "begins")
    back = replace(dead, zookeeper=replace(dead.zookeeper, controller=ControllerZnode(2, -1), migration=None))
    assert why(proof, begun, back, confirming=False, now=NOW + timedelta(days=1), turn=[1]) is None
    assert "s old" in why(proof, begun, dead, confirming=False, now=NOW + timedelta(days=1))


def test_a_beginning_on_another_proof_or_before_its_confirmation_is_none():
    proof = proof_of(HYBRID)
    assert not signed(proof, "ann").confirm()._of_gate("restart", "begins", "0" * 64).at.begun
    assert not signed(proof, "ann")._of_gate("restart", "begins").at.begun


def test_a_proof_of_another_cluster_signs_for_nothing_here():
    proof = proof_of(HYBRID, spec=ANYONE.model_copy(update={"name": "other"}))
    assert "the proof is of gate dual_write of other" in why(proof, signed(proof, "ann"), HYBRID)


@pytest.mark.parametrize("left", [broker(2, mode=BrokerMode.ZOOKEEPER), broker(2, mode=Unread("a start"))])
def test_the_start_gate_asks_as_long_as_a_broker_may_be_left_to_take_into_migration_mode(left):
    assert is_behind(Gate.START, HYBRID)
    assert not is_behind(Gate.START, left(HYBRID))


def test_a_confirmation_excuses_no_age_whatever_began():
    proof = proof_of(HYBRID, Gate.ROLLBACK)
    begun = signed(proof, "ann").confirm()._of_gate("restart", "begins")
    flickering = with_controller(HYBRID, 101, None, running=False)
    assert "s old" in why(proof, begun, flickering, now=NOW + timedelta(days=30))


@pytest.mark.parametrize("anew", [Journal.ask, Journal.confirm, lambda j: j.ask().approve("bob").confirm()])
def test_what_is_asked_or_confirmed_anew_has_not_begun(anew):
    proof = proof_of(HYBRID)
    begun = signed(proof, "ann").confirm()._of_gate("restart", "begins")
    assert begun.at.begun
    assert not anew(begun).at.begun


def with_all_controllers_down(seen):
    down = Unread("it does not run")
    return replace(seen, controllers={i: ControllerState(i, False, down, down) for i in seen.controllers}, quorum=down)


def held_by_kraft(seen):
    return replace(seen, zookeeper=replace(seen.zookeeper, controller=ControllerZnode(101, 5)))


def test_a_controller_provisioned_anew_in_dual_write_needs_no_other_signature():
    proof = proof_of(START, Gate.START)
    journal = signed(proof, "ann").confirm()._of_gate("provision", "begins")
    lost = with_controller(DUAL, 103, None, running=False)
    assert why(proof, journal, lost, confirming=False, turn=[103]) is None
    assert "broker 1" in why(proof, journal, lost, confirming=False, turn=[2])


@pytest.mark.parametrize("seen", [HYBRID, DUAL])
def test_a_controller_that_dies_after_the_copy_can_be_signed_for_by_a_run_that_found_the_copy_made(seen):
    """That run's start gate had nothing to ask; proven again it asks, no check stands in its way, and the controller's
    provisioning may go on.
    """
    assert is_behind(Gate.START, seen)
    down = Unread("it does not run")
    lost = replace(seen, controllers={**seen.controllers, 103: ControllerState(103, False, down, down)})
    made_anew = replace(
        lost,
        hosts={
            **lost.hosts,
            103: replace(lost.hosts[103], config=None, formatted_cluster_id=None, has_metadata_log=False),
        },
    )
    well = {each.code for each in CHECKS.run(seen, SPEC, seen_phase(seen), gate="start", earlier=seen).blocking}
    for each in (lost, made_anew):
        assert not is_behind(Gate.START, each)
        assert {c.code for c in CHECKS.run(each, SPEC, seen_phase(each), gate="start", earlier=each).blocking} <= well
        proof = proof_of(each, Gate.START)
        assert "0 of 1 approvals" in why(proof, Journal(proof).prove(passed=True), each, confirming=False, turn=[103])
        assert why(proof, signed(proof, "ann").confirm(), each, confirming=False, turn=[103]) is None
    for gate in ("dual_write", "finalize"):
        assert "KRB-PRE-006" in {
            c.code for c in CHECKS.run(lost, SPEC, seen_phase(lost), gate=gate, earlier=lost).blocking
        }


def seen_phase(seen):
    return detect_phase(seen).phase


def test_controllers_that_start_and_stop_do_not_keep_a_rollback_from_being_confirmed():
    proof = proof_of(HYBRID, Gate.ROLLBACK)
    flickering = with_controller(HYBRID, 101, None, running=False)
    assert why(proof, signed(proof, "ann"), flickering) is None
    assert "broker 2" in why(proof, signed(proof, "ann"), broker(2, running=False)(HYBRID))


# -- what may differ ---------------------------------------------------------------------------------------------------


def test_a_cluster_that_changed_since_the_proof_is_refused_and_the_change_is_named():
    seen = observation(Phase.HYBRID)
    proof = proof_of(seen)
    changed = broker(1, running=False)(seen)
    assert "broker 1 runs (hybrid), now is down (hybrid)" in why(proof, signed(proof, "ann"), changed)


def with_controller(seen, node_id, state, *, mode=BrokerMode.HYBRID, running=True):
    made = controller(node_id, state if running else None, mode, active=False)
    return replace(seen, controllers={**seen.controllers, node_id: made})


@pytest.mark.parametrize(
    ("gate", "proven", "seen"),
    [
        (Gate.START, START, with_controller(START, 101, ZkMigrationState.PRE_MIGRATION)),
        (Gate.START, START, broker(1, mode=BrokerMode.HYBRID)(START)),
        (Gate.START, START, HYBRID),
        (Gate.DUAL_WRITE, HYBRID, DUAL),
        (Gate.FINALIZE, DUAL, with_controller(DUAL, 102, ZkMigrationState.POST_MIGRATION, mode=BrokerMode.KRAFT)),
        (Gate.ROLLBACK, DUAL, HYBRID),
        (Gate.ROLLBACK, DUAL, START),
    ],
)
def test_what_the_guarded_steps_make_of_the_cluster_is_excused_on_the_way_and_never_at_the_gate(gate, proven, seen):
    proof = proof_of(proven, gate)
    assert {c.by for c in MIGRATION.changes(proof.gate, proof.state, state_of(seen), ())} <= {By.THE_STEPS, By.UNREAD}
    assert By.THE_STEPS in {c.by for c in MIGRATION.changes(proof.gate, proof.state, state_of(seen), ())}
    assert why(proof, signed(proof, "ann"), seen, confirming=False) is None
    assert "the cluster changed" in why(proof, signed(proof, "ann"), seen, confirming=True)


@pytest.mark.parametrize(
    ("gate", "proven", "seen", "named"),
    [
        (Gate.START, START, broker(2, running=False)(START), "broker 2"),
        (Gate.START, START, broker(2, running=False, mode=DOWN)(START), "broker 2"),
        (Gate.DUAL_WRITE, HYBRID, broker(2, running=False, mode=DOWN)(HYBRID), "broker 2"),
        (Gate.ROLLBACK, DUAL, broker(2, running=False, mode=DOWN)(DUAL), "broker 2"),
        (Gate.START, START, broker(2, mode=BrokerMode.KRAFT)(START), "broker 2"),
        (Gate.START, START, with_controller(START, 101, ZkMigrationState.POST_MIGRATION), "controller 101"),
        (Gate.START, START, replace(START, undeclared_brokers=frozenset({9})), "were none, now 9"),
        (Gate.START, START, replace(START, zookeeper=replace(START.zookeeper, cluster_id="other")), "now other"),
        (Gate.DUAL_WRITE, HYBRID, with_controller(HYBRID, 103, None, running=False), "controller 103"),
        (Gate.DUAL_WRITE, HYBRID, broker(3, mode=BrokerMode.ZOOKEEPER)(HYBRID), "broker 3"),
        (Gate.FINALIZE, DUAL, broker(3, mode=BrokerMode.HYBRID)(DUAL), "broker 3"),
        (Gate.FINALIZE, DUAL, broker(3, running=False)(DUAL), "broker 3"),
        (Gate.ROLLBACK, HYBRID, broker(3, mode=BrokerMode.KRAFT)(HYBRID), "broker 3"),
        (Gate.ROLLBACK, HYBRID, with_controller(HYBRID, 101, ZkMigrationState.POST_MIGRATION), "controller 101"),
    ],
)
def test_what_the_guarded_steps_do_not_make_is_never_excused(gate, proven, seen, named):
    proof = proof_of(proven, gate)
    assert named in why(proof, signed(proof, "ann"), seen, confirming=False, turn=[1])


def test_the_node_whose_turn_it_is_may_be_half_way_since_its_own_step_resumes_there():
    proof = proof_of(HYBRID)
    half = broker(2, running=False)(broker(1, mode=BrokerMode.KRAFT)(HYBRID))
    assert why(proof, signed(proof, "ann"), half, confirming=False, turn=[2]) is None
    assert "broker 2" in why(proof, signed(proof, "ann"), half, confirming=False, turn=[3])


def test_a_part_that_could_not_be_read_is_no_change_and_no_beginning_either():
    proof = proof_of(HYBRID)
    dark = broker(2, mode=Unread("its metrics time out"))(HYBRID)
    assert why(proof, signed(proof, "ann"), dark, confirming=False, turn=[1]) is None
    assert "s old" in why(proof, signed(proof, "ann"), dark, confirming=False, turn=[1], now=NOW + timedelta(days=1))
    assert "broker 2" in why(proof, signed(proof, "ann"), dark, confirming=True)


def test_an_edited_cluster_file_is_refused_until_it_is_proven_and_signed_anew():
    proof = proof_of(HYBRID)
    edited = ANYONE.model_copy(update={"broker_properties": {**ANYONE.broker_properties, "num.io.threads": "9"}})
    assert "lab.yaml was edited after the proof" in why(proof, signed(proof, "ann"), HYBRID, edited)
    half = broker(1, mode=BrokerMode.KRAFT)(HYBRID)
    assert "was edited after the proof" in why(proof, signed(proof, "ann"), half, edited, confirming=False, turn=[2])
    refused = refusal(MIGRATION, proof, signed(proof, "ann").at, half, edited, now=LATER, turn=[2])
    assert "undo the edit" in refused.way_out
    anew = proof_of(half, spec=edited)
    assert why(anew, signed(anew, "ann"), half, edited, confirming=False, turn=[2]) is None
    assert digest_of_file(ANYONE) == digest_of_file(ANYONE.model_copy())


# -- parity between signature and finalization -------------------------------------------------------------------------

AGAIN = "gate_finalize.parity_again"


def compared(verdict="MATCH", began=LATER, **what):
    return {"verdict": verdict, "started_at": began.isoformat(), "digest": "d", "final": True, **what}


def test_parity_again_is_bound_to_the_signature_it_follows():
    proof = proof_of(DUAL, Gate.FINALIZE)

    def holds(journal):
        return proven_again(journal.records, AGAIN, journal.at.on_this_proof)

    assert holds(signed(proof, "ann").write(AGAIN, "compared", compared()))
    assert not holds(signed(proof, "ann")), "none was made"
    assert not holds(signed(proof, "ann").write("soak", "compared", compared())), "another task's"
    assert not holds(signed(proof, "ann").write(AGAIN, "compared", compared("MISMATCH")))
    assert not holds(
        signed(proof, "ann").write(AGAIN, "compared", compared()).write(AGAIN, "compared", compared("MISMATCH"))
    ), "not the latest"
    assert not holds(signed(proof, "ann").write(AGAIN, "compared", compared(began=NOW - timedelta(seconds=1)))), (
        "begun before the answer"
    )
    earlier = Journal(proof).write(AGAIN, "compared", compared()).signed("ann")
    assert not holds(earlier), "made for an earlier signature"


def test_a_gate_takes_the_report_that_the_task_ended_with_and_no_other():
    journal = Journal(proof_of(DUAL, Gate.FINALIZE)).write("soak", "compared", compared(final=False))
    assert concluded(journal.records, "soak", "d") is None, "in the middle of the soak"
    journal.write("soak", "compared", compared(digest="e"))
    assert concluded(journal.records, "soak", "d") is None
    found = concluded(journal.records, "soak", "e")
    assert found is not None and (found.digest, found.final) == ("e", True)


# -- the proof itself --------------------------------------------------------------------------------------------------


def test_an_altered_proof_is_refused():
    proof = replace(proof_of(HYBRID), phase=Phase.DUAL_WRITE)
    assert "it was altered" in why(proof, signed(proof, "ann"), HYBRID)


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.UNKNOWN])
def test_a_blocking_check_that_failed_or_was_not_answered_is_an_objection(verdict):
    proof = proof_of(
        HYBRID, checks=(FINE, replace(FINE, code="KRB-TEST-002", verdict=verdict, evidence="broker 2 is silent"))
    )
    assert "broker 2 is silent" in " ".join(objections(proof))
    assert "does not hold" in why(proof, signed(proof, "ann"), HYBRID)


@pytest.mark.parametrize("gate", [Gate.DUAL_WRITE, Gate.FINALIZE])
@pytest.mark.parametrize("parity", [None, replace(MATCH, verdict="MISMATCH"), replace(MATCH, verdict="INCONCLUSIVE")])
def test_no_gate_behind_the_copy_holds_without_a_parity_match(gate, parity):
    assert objections(proof_of(HYBRID, gate=gate, parity=parity))


@pytest.mark.parametrize("gate", [Gate.START, Gate.DUAL_WRITE, Gate.FINALIZE])
def test_a_proof_without_checks_proves_nothing(gate):
    proof = proof_of(HYBRID, gate=gate, checks=())
    assert objections(proof) == ("nothing was checked",)
    assert "does not hold" in why(proof, signed(proof, "ann"), HYBRID)


def back_proof(possible, steps, checks=()):
    plan = RollbackPlan(possible, "controller 102 runs without the migration flag", steps)
    return make_proof(Gate.ROLLBACK, HYBRID, ANYONE, checks=checks, parity=None, rollback=plan, made_at=NOW)


def test_the_rollback_gate_objects_where_the_way_back_is_closed_and_not_where_the_rollback_opens_it():
    assert objections(back_proof(True, ("leave_kraft: …",))) == ()
    assert objections(back_proof(False, ("restore_quorum: …",))) == (), "the rollback brings the quorum back first"
    closed = back_proof(False, ())
    assert objections(closed) == ("no rollback is possible: controller 102 runs without the migration flag",)
    assert "does not hold" in why(closed, signed(closed, "ann"), HYBRID)


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.UNKNOWN])
def test_the_rollback_gate_objects_where_dual_write_is_not_seen_alive(verdict):
    dead = CheckResult("KRB-DW-001", "dual write is alive", Severity.BLOCKING, verdict, "/migration stands still")
    assert "/migration stands still" in " ".join(objections(back_proof(True, ("leave_kraft: …",), (dead,))))


def test_a_warning_is_no_objection():
    warned = replace(FINE, severity=Severity.WARNING, verdict=Verdict.FAIL)
    assert not objections(proof_of(HYBRID, checks=(warned,)))


def test_a_proof_survives_its_file():
    proof = proof_of(HYBRID, needed=2, triggered_by="ann", ahead=("one", "two"))
    read = Proof.from_dict(proof.to_dict())
    assert read == proof
    assert digest_of(read.to_dict()) == proof.digest


@given(evidence=st.text(), offset=st.integers(-1, 2**62))
def test_the_digest_covers_what_was_seen(evidence, offset):
    one = proof_of(HYBRID, checks=(replace(FINE, evidence=evidence),), parity=replace(MATCH, offset=offset))
    other = proof_of(HYBRID, checks=(replace(FINE, evidence=evidence + "."),), parity=replace(MATCH, offset=offset))
    assert one.digest != other.digest


def test_what_is_seen_of_the_nodes_is_plain_json():
    assert was_read(HYBRID.zookeeper)
    assert proof_of(HYBRID).state["brokers"]["1"] == [True, "hybrid"]


def on_kafka_4(recorded: ZkMigrationState | None):
    """A cluster that was migrated and rolled on. ``recorded``: what its leader's newest snapshot holds."""
    spec = ANYONE.model_copy(update={"zookeeper": None})
    seen = replace(observation(Phase.FINALIZED, spec), zookeeper=NO_ZOOKEEPER)
    for node_id in seen.controllers:
        seen = gauges(node_id, zk_migration_state=None)(seen)
    return with_quorum(migration_state_record=recorded)(seen)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=str)
def test_a_migration_that_kafka_4_forgets_and_remembers_is_nobodys_change(operation):
    told, forgot = on_kafka_4(ZkMigrationState.POST_MIGRATION), on_kafka_4(None)
    assert (detect_phase(told).phase, detect_phase(forgot).phase) == (Phase.FINALIZED, Phase.KRAFT)
    for gate in operation.table.gates:
        for was, now in ((told, forgot), (forgot, told)):
            assert list(operation.changes(gate.name, state_of(was), state_of(now), ())) == []
