"""What a person reads at a gate before the button, and that nothing of the cluster becomes markup there."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from observations import SPEC, broker, observation

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.gates import page as gate_page
from kraft_runbook.gates.proof import ParitySummary, Proof, make_proof
from kraft_runbook.migration.ahead import what_happens_next
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.migration.transitions import TABLE, Gate
from kraft_runbook.migration.way_back import way_back
from kraft_runbook.parity.parity_report import Verdict as ParityVerdict
from kraft_runbook.runbook.check_results import CheckResult, Severity, Verdict

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
FINE = CheckResult("KRB-TEST-001", "all is well", Severity.BLOCKING, Verdict.PASS, "the evidence of it")
WARNED = CheckResult("KRB-TEST-002", "there is room", Severity.WARNING, Verdict.FAIL, "broker 2 has 1 GiB", "make room")
UNANSWERED = CheckResult(
    "KRB-TEST-003", "all run", Severity.BLOCKING, Verdict.UNKNOWN, "broker 3 is silent", "look at it"
)
MATCH = ParitySummary(
    ParityVerdict.MATCH,
    "p" * 64,
    1000,
    (NOW - timedelta(minutes=10)).isoformat(),
    "**MATCH: 9 facts**\n\n| kind | same |",
    "parity_in_hybrid",
)
PHASE = {
    Gate.START: Phase.ZOOKEEPER,
    Gate.DUAL_WRITE: Phase.HYBRID,
    Gate.FINALIZE: Phase.DUAL_WRITE,
    Gate.ROLLBACK: Phase.DUAL_WRITE,
}


def render_page(made: Proof, **given: str) -> str:
    return gate_page.render_page(made, TABLE.gate(made.gate), **given)


def render_in_full(made: Proof) -> str:
    return gate_page.render_in_full(made, TABLE.gate(made.gate))


def proof(gate, seen=None, checks=(FINE,), **further):
    seen = seen or observation(PHASE[gate])
    back = way_back(seen, SPEC)
    ahead = what_happens_next(gate, seen, SPEC, back=back.steps)
    parity = MATCH if gate in (Gate.DUAL_WRITE, Gate.FINALIZE) else None
    return make_proof(
        gate, seen, SPEC, checks=checks, parity=parity, rollback=back, made_at=NOW, ahead=ahead, **further
    )


def test_what_passes_is_counted_and_the_rest_of_it_stands_elsewhere():
    page = render_page(proof(Gate.DUAL_WRITE, checks=(FINE,) * 50), in_full="[the log](/there)")
    assert "Checks that pass: **50 of 50**" in page
    assert "the evidence of it" not in page
    assert page.endswith("The evidence of each is in [the log](/there).\n\nKRB-TEST-001.")
    assert len(page.splitlines()) < 45
    full = render_in_full(proof(Gate.DUAL_WRITE, checks=(FINE,) * 50))
    assert full.count("the evidence of it") == 50
    assert "| kind | same |" in full


def test_what_does_not_pass_stands_before_all_steps_objections_first():
    page = render_page(proof(Gate.START, checks=(FINE, WARNED, UNANSWERED)))
    order = [
        "Objections: **1**",
        "Warnings: **1**",
        "**objection** `KRB-TEST-003`",
        "**warning** `KRB-TEST-002`",
        "What happens next",
        "### How to roll back from here",
        "What passes",
    ]
    places = [page.index(each) for each in order]
    assert places == sorted(places)
    assert "all run (could not be answered): broker 3 is silent. What to do: look at it" in page


def test_an_objection_that_is_no_check_is_named_too():
    missing = replace(proof(Gate.DUAL_WRITE), parity=None)
    assert "- **objection** parity was not measured" in render_page(missing)


def test_it_holds_as_long_as_the_parity_report_does():
    assert "holds until 12:50:00 UTC" in render_page(proof(Gate.DUAL_WRITE))
    assert "holds until 13:00:00 UTC" in render_page(proof(Gate.START))


def test_the_start_gate_says_which_nodes_and_how_long_the_copy_takes():
    seen = observation(Phase.ZOOKEEPER)
    checks = CHECKS.run(seen, SPEC, Phase.ZOOKEEPER, gate="start").results
    page = render_page(proof(Gate.START, seen, checks))
    assert "1. Provision controllers 101, 102, 103" in page
    assert "2. Restart brokers 1, 2, 3 in migration mode, one by one." in page
    assert (
        "3. Metadata copy: 44 partitions, less than 1 s expected. While it runs, Kafka handles no topic, leader or ISR"
        " change." in page
    )


def test_what_is_done_already_is_not_announced():
    half = broker(1, mode=BrokerMode.KRAFT)(observation(Phase.HYBRID))
    assert "Restart brokers 2, 3 in KRaft mode" in render_page(proof(Gate.DUAL_WRITE, half))


def test_the_finalize_gate_says_that_the_way_back_ends():
    page = render_page(proof(Gate.FINALIZE))
    assert "**This can't be undone.**" in page
    assert "**possible now, impossible once you approve**" in page
    assert "the active one last (now 101)" in page


def test_the_rollback_gate_shows_its_steps_once_and_what_it_risks():
    page = render_page(proof(Gate.ROLLBACK))
    assert page.count("leave_kraft") == 1
    assert (
        page.index("leave_kraft")
        < page.index("What a rollback risks")
        < page.index("- Risk: ")
        < page.index("Nothing that ZooKeeper can hold is lost")
    )


def test_who_must_sign_is_said():
    apart = SPEC.approvals.model_copy(update={"exclude_trigger": True, "users": ()})
    spec = SPEC.model_copy(update={"approvals": apart})
    seen = observation(Phase.ZOOKEEPER)
    made = make_proof(
        Gate.START,
        seen,
        spec,
        checks=(),
        parity=None,
        rollback=way_back(seen, spec),
        made_at=NOW,
        ahead=what_happens_next(Gate.START, seen, spec),
        needed=2,
        triggered_by="ann",
    )
    assert "Signatures: 2 of: anyone whom Airflow lets answer; not ann, who triggered this run" in render_page(made)


@pytest.mark.parametrize(
    "evil", ["a|b", "x\n# shout", "[click](http://evil)", "<b>bold</b>", "`code` *loud*", "an _emphasis_ here"]
)
def test_what_comes_from_the_cluster_is_text_and_no_markup(evil):
    shown = replace(WARNED, evidence=evil)
    for page in (
        render_page(proof(Gate.START, checks=(shown,))),
        render_in_full(proof(Gate.START, checks=(shown, replace(FINE, evidence=evil)))),
    ):
        assert evil not in page
        assert "\n# shout" not in page


def test_codes_are_short_and_lose_none() -> None:
    codes = [*(f"KRB-PRE-{n:03}" for n in (1, 2, 3, 7, 9, 10)), "KRB-GATE-002", "REA-001", "plain"]
    assert gate_page.in_short(codes) == "KRB-PRE-001 to 003, 007, 009 to 010; KRB-GATE-002; REA-001; plain"
    assert gate_page.in_short([]) == ""
