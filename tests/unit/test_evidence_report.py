"""What a reader learns from a run's records, and what he is not made to believe."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from evidence_runs import COUNTS, START, Run, back, forward

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.evidence.kinds import STOPPED_OUTDATED
from kraft_runbook.evidence.page import render_page
from kraft_runbook.evidence.record import EvidenceRecord, find_break, make_record
from kraft_runbook.evidence.run_report import RunReport, make_report
from kraft_runbook.evidence.text import render_text
from kraft_runbook.migration.leaving import Departure
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.parity.parity_report import Verdict


def read(run: Run, **options: str) -> RunReport:
    return make_report("run", run.records, find_break(run.records), **options)


def resealed(records: list[EvidenceRecord], place: int, **changes: object) -> list[EvidenceRecord]:
    """The records with one body changed, and the whole chain written anew from there: what somebody does who can
    compute a digest.
    """
    made = list(records[:place])
    for n, record in enumerate(records[place:]):
        body = {**record.body, **changes} if n == 0 else record.body
        made.append(make_record(made[-1] if made else None, body, at=START))
    return made


def test_a_whole_run_says_who_ran_it_when_and_how_it_ended() -> None:
    report = read(forward())
    assert (report.cluster, report.dag, report.run_id) == (
        "lab",
        "zk_to_kraft_migration__lab",
        "manual__2026-03-04T09:58:12+00:00",
    )
    assert report.began == START
    assert (report.outcome, report.good) == ("succeeded in FINALIZED", True)
    assert report.chain.problem is None
    assert report.chain.last_digest == forward().records[-1].digest


def test_the_phases_follow_each_other_without_a_gap() -> None:
    phases = read(forward()).phases
    assert [p.phase for p in phases] == ["ZOOKEEPER", "PRE_MIGRATION", "HYBRID", "DUAL_WRITE", "FINALIZED"]
    assert all(one.ended == other.began for one, other in pairwise(phases))


def test_each_gate_has_its_approver_and_a_proof_whose_digest_fits() -> None:
    gates = read(forward()).gates
    assert [(g.gate, [a.by for a in g.answers], g.genuine) for g in gates] == [
        ("start", ["maria"], True),
        ("dual_write", ["maria"], True),
        ("finalize", ["jon"], True),
    ]
    assert all(a.digest == g.digest for g in gates for a in g.answers)
    assert all(g.confirmed_at for g in gates)
    assert gates[1].parity.startswith("MATCH at metadata offset 640")


def test_an_answer_is_dated_when_it_was_given_not_when_it_was_written_down() -> None:
    run = forward()
    written = next(r for r in run.records if r.body["outcome"] == "approved")
    assert (
        read(run).gates[0].answers[0].at.isoformat() == str(written.body["answered_at"]).replace(" ", "T") != written.at
    )


def test_a_proof_that_was_changed_shows_even_in_a_chain_that_was_sealed_anew() -> None:
    records = forward().records
    place = next(n for n, r in enumerate(records) if r.body["outcome"] == "proven")
    forged = resealed(records, place, proof={**records[place].body["proof"], "phase": "HYBRID"})
    assert find_break(forged) is None
    report = make_report("run", forged, None)
    assert [g.genuine for g in report.gates] == [False, True, True]
    assert "DOES NOT FIT ITS CONTENT" in render_text(report)


def test_a_comparison_that_was_changed_shows_even_in_a_chain_that_was_sealed_anew() -> None:
    records = forward().records
    place = next(n for n, r in enumerate(records) if r.body["outcome"] == "compared")
    counts = [{**records[place].body["counts"][0], "both": 1}, *records[place].body["counts"][1:]]
    report = make_report("run", resealed(records, place, counts=counts), None)
    assert [p.genuine for p in report.parity] == [False, True, True, True]


def test_a_signature_under_an_unknown_proof_is_not_shown_as_one_for_a_known_proof() -> None:
    run = Run()
    run.gate(Gate.START, Phase.ZOOKEEPER, None, thinks=1, by="maria")
    run.write("gate_start.approve", "approved", {"gate": "start", "digest": "f" * 64, "by": "mallory"})
    known, unknown = read(run).gates
    assert [a.by for a in known.answers] == ["maria"]
    assert (unknown.proven_at, [a.by for a in unknown.answers]) == (None, ["mallory"])
    assert "NO RECORD OF THAT PROOF" in render_text(read(run))


def test_parity_is_counted_per_kind() -> None:
    report = read(forward())
    assert [p.verdict for p in report.parity] == ["MATCH"] * 4
    assert all(p.counts == COUNTS and p.genuine for p in report.parity)


def test_a_comparison_that_is_no_match_is_a_problem_with_its_reason() -> None:
    run = Run()
    run.compare("parity", Phase.HYBRID, 7, Verdict.INCONCLUSIVE)
    report = read(run)
    assert report.problems[0].reason == "parity is INCONCLUSIVE; the log does not reach back to offset 7"
    assert report.problems[0].overcome_at is None
    assert report.parity[0].genuine is True


def test_restarts_are_counted_by_what_was_stopped_not_by_what_was_played() -> None:
    nodes = {n.node_id: n for n in read(forward()).nodes}
    assert {node: work.restarts for node, work in nodes.items()} == {1: 2, 2: 2, 3: 2, 101: 1, 102: 1, 103: 1}
    assert nodes[1].seconds == 15.7


@pytest.mark.parametrize(
    ("said", "counted"),
    [({"restarted": True}, 1), ({"restarted": False}, 0), ({}, 1)],
    ids=["restarted", "not restarted", "older record"],
)
def test_a_restart_is_what_the_playbook_reported_as_one_and_an_older_record_has_its_task(
    said: dict[str, bool], counted: int
) -> None:
    run = Run()
    run.write(
        "roll.broker_1.restart",
        "played",
        {"node_id": 1, "step": "roll", "changed": [STOPPED_OUTDATED], "seconds": 3.0, **said},
    )
    assert [node.restarts for node in read(run).nodes] == [counted]


def test_a_failure_has_its_reason_and_when_it_was_overcome() -> None:
    (problem,) = read(forward()).problems
    assert problem.task == "roll_brokers_to_hybrid.broker_3.restart"
    assert "bad cluster.id" in problem.reason
    assert problem.overcome_at is not None and problem.overcome_at > problem.at


def test_leaving_kraft_shows_its_moments_before_and_after_the_fence() -> None:
    (window,) = read(back()).windows
    assert (window.window_seconds, window.migration_offset, window.high_watermark, window.touched_keys) == (
        1.42,
        755,
        756,
        31,
    )
    assert [(m.name, m.seconds) for m in window.moments][:4] == [
        ("ready", -3.1),
        ("caught_up", -0.2),
        ("fenced", 0.0),
        ("drained", 0.31),
    ]
    assert window.moments[-1].name == "known"
    assert window.raised == ("orders-1 (version 7, epoch 11)",)


def test_several_records_of_one_departure_are_one_window_and_an_open_one_says_so() -> None:
    """It is recorded at the deletion, once every broker knows its controller, and once an election was seen."""
    begun = Departure(began_at=START, fenced_at=START, deleted_at=START, deleted=("/controller",))
    run = Run("zk_to_kraft_rollback__lab")
    run.write("leave_kraft", "left_kraft", {"phase": "HYBRID", **begun.to_dict()})
    (still_open,) = read(run).windows
    assert still_open.window_seconds is None
    assert "no controller for a time that was not measured" in render_text(read(run))
    known = replace(begun, controller=2, known_at=START + timedelta(seconds=2))
    for each in (known, replace(known, election="orders-1 was given broker 1")):
        run.write("leave_kraft", "left_kraft", {"phase": "HYBRID", **each.to_dict()})
    report = read(run)
    assert [(each.window_seconds, each.election) for each in report.windows] == [(2.0, "orders-1 was given broker 1")]
    assert [each.summary for each in report.entries] == [
        "the controller role was given back; no broker was known as controller yet",
        *["no controller for 2.0 s"] * 2,
    ]


def test_leaving_kraft_says_what_rests_on_a_persons_word_and_on_the_logs_alone() -> None:
    run = Run("zk_to_kraft_rollback__lab")
    run.write(
        "leave_kraft",
        "left_kraft",
        {
            "phase": "UNKNOWN",
            "window_seconds": None,
            "gone": [103],
            "logs_read": ["controller 101: migration states 2"],
        },
    )
    shown = "\n".join(entry.summary for entry in read(run).entries)
    assert "controller 103 counted as stopped on the operator's word" in shown
    assert "the copy was never committed: controller 101: migration states 2" in shown


@pytest.mark.parametrize(
    ("epoch_set", "summary"),
    [
        (9, "/controller_epoch was set to 9, /controller was deleted, broker 2 was elected"),
        (None, "/controller was deleted, broker 2 was elected"),
    ],
)
def test_a_cluster_that_had_left_kraft_before_has_no_window_and_nothing_that_was_proven(
    epoch_set: int | None, summary: str
) -> None:
    moments = {name: START for name in ("began_at", "deleted_at", "elected_at")}
    left = Departure(**moments, controller=2, deleted=("/controller",), controller_epoch=3, epoch_set=epoch_set)
    run = Run("zk_to_kraft_rollback__lab")
    run.write("leave_kraft", "left_kraft", {"phase": "ZOOKEEPER", **left.to_dict()})
    report = read(run)
    assert [entry.summary for entry in report.entries] == [summary]
    assert "a broker was elected controller anew: began +0.000 s" in render_text(report)
    page = render_page(report, run.records, made_at=START)
    assert "<h2>A broker was elected controller anew</h2>" in page
    assert "not recorded" not in page.partition("<h2>A broker was")[2].partition("<h2>")[0]


@pytest.mark.parametrize(
    ("figures", "good"),
    [
        ({"acknowledged": 5, "lost": 0, "duplicated": 0}, True),
        ({"acknowledged": 5, "lost": 1, "duplicated": 0}, False),
        ({"acknowledged": 5, "lost": None, "duplicated": 0}, None),
        ({"acknowledged": 0, "lost": 0, "duplicated": 0}, None),
        ({}, None),
    ],
)
def test_a_workload_is_fine_only_where_something_was_acknowledged_and_all_of_it_was_found(
    figures: dict[str, object], good: bool | None
) -> None:
    run = Run()
    run.write("workload", "workload", figures)
    assert read(run).workloads[0].good is good


@pytest.mark.parametrize(
    ("closings", "outcome", "good"),
    [
        ([], "under way, or ended without a closing report", None),
        ([{"phase": "HYBRID", "succeeded": False, "failed": ["a.b"]}], "stopped in HYBRID; failed: a.b", False),
        ([{"phase": "HYBRID", "succeeded": False, "failed": []}], "stopped in HYBRID", False),
        ([{"phase": "HYBRID", "failed": []}], "closed in HYBRID", None),
        (
            [{"phase": "HYBRID", "failed": ["a"]}, {"phase": "FINALIZED", "succeeded": True, "failed": []}],
            "succeeded in FINALIZED",
            True,
        ),
    ],
)
def test_the_last_closing_report_says_how_a_run_ended(
    closings: list[dict[str, object]], outcome: str, good: bool | None
) -> None:
    run = Run()
    run.write("preflight.checks", "checked", {"phase": "ZOOKEEPER"})
    for closing in closings:
        run.write("closing_report", "closed", closing)
    assert (read(run).outcome, read(run).good) == (outcome, good)


def test_a_run_that_went_on_after_it_was_closed_has_not_ended() -> None:
    run = Run()
    run.write("closing_report", "closed", {"phase": "FINALIZED", "succeeded": True, "failed": []})
    run.wait("roll.broker_1", "broker_in_sync", 1, 2.0)
    assert read(run).good is None
    assert "then resumed" in read(run).outcome


def test_nothing_behind_a_break_is_believed() -> None:
    records = forward().records
    place = next(n for n, r in enumerate(records) if r.body["outcome"] == "approved")
    records[place] = replace(records[place], body={**records[place].body, "by": "mallory"})
    report = make_report("run", records, find_break(records))
    assert (report.good, report.outcome) == (False, "the evidence can't be trusted")
    assert report.chain.broken_at == place
    assert [g.answers for g in report.gates] == [()]
    assert [e.trusted for e in report.entries] == [n < place for n in range(len(records))]
    assert "mallory" not in str(report.gates)
    assert f"record {place} was altered after it was written" in render_text(report)


def test_a_tail_that_was_cut_off_shows_only_by_a_digest_that_was_noted_elsewhere() -> None:
    run = forward()
    noted = run.records[-2].digest
    run.records = run.records[:-3]
    assert read(run).chain.problem is None
    cut = read(run, anchor=noted)
    assert cut.good is False
    assert "cut off" in (cut.chain.problem or "")
    assert read(forward(), anchor=noted).chain.problem is None


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"possible": True, "why": "dual write lasts", "threats": []}, None),
        (
            {"possible": True, "why": "dual write lasts", "threats": ["KRB-DW-001"]},
            "the way back is about to be closed; KRB-DW-001",
        ),
        ({"possible": False, "why": "it is final", "threats": []}, "the way back is closed: it is final"),
        ({}, "the way back is closed: "),
    ],
)
def test_a_way_back_that_is_not_open_is_a_problem(said: dict[str, object], reason: str | None) -> None:
    run = Run()
    run.write("way_back", "way_back", said)
    assert [p.reason for p in read(run).problems] == ([] if reason is None else [reason])


def test_every_record_of_a_run_before_it_had_more_in_it_can_still_be_read() -> None:
    run = Run()
    run.write("gate_start.prove", "proven", {"gate": "start", "digest": "a" * 64, "phase": "ZOOKEEPER", "parity": None})
    run.write("gate_start.approve", "approved", {"gate": "start", "digest": "a" * 64, "by": "operator"})
    run.write(
        "roll.broker_1.restart",
        "played",
        {"step": "roll_brokers_to_hybrid", "node_id": 1, "changed": [STOPPED_OUTDATED], "seconds": 6.9},
    )
    run.write("parity", "compared", {"verdict": "MATCH", "digest": "b" * 64, "offset": 5, "report": "parity.json"})
    report = read(run)
    assert report.gates[0].genuine is None and report.gates[0].answers[0].by == "operator"
    assert report.nodes[0].restarts == 1 and report.entries[2].seconds == 6.9
    assert report.parity[0].genuine is None


ODD = [
    "x",
    5,
    None,
    [],
    {},
    [None],
    [[]],
    True,
    float("nan"),
    float("inf"),
    10**400,
    "2026-01-01",
    "9999-12-31T23:59:59-12:00",
    "\ud800\x1b[2J",
]
KEYS = (
    "phase",
    "step",
    "node_id",
    "changed",
    "seconds",
    "began_at",
    "ended_at",
    "gate",
    "digest",
    "proof",
    "by",
    "counts",
    "verdict",
    "error",
    "checks",
)


@pytest.mark.parametrize(
    ("outcome", "said", "summary"),
    [
        ("played", {"changed": ["Write the file"]}, "Write the file"),
        ("played", {"node_id": 0, "changed": []}, "node 0: nothing to change"),
        ("asked", {"gate": "start", "digest": "ab" * 32}, "gate start, proof abababababab"),
        ("asked", {"gate": "start", "digest": "ab" * 32, "number": 1}, "gate start, proof abababababab"),
        ("begins", {"gate": "restart", "digest": ""}, "gate restart, no signature was asked for"),
        ("compared", {"verdict": "MATCH"}, "MATCH"),
        ("left_kraft", {}, "how long there was no controller is not in the record"),
    ],
)
def test_what_a_record_lacks_is_left_out_and_never_shown_as_none(
    outcome: str, said: dict[str, object], summary: str
) -> None:
    run = Run()
    run.write("task", outcome, said)
    report = read(run)
    assert [entry.summary for entry in report.entries] == [summary]
    assert "None" not in render_text(report)
    assert "None" not in render_page(report, run.records, made_at=START).partition("<h2>")[2].replace(
        "<p>None.</p>", ""
    )


@pytest.mark.parametrize(
    "outcome",
    [
        "checked",
        "proven",
        "approved",
        "rejected",
        "confirmed",
        "played",
        "reached",
        "compared",
        "closed",
        "left_kraft",
        "workload",
        7,
    ],
)
@pytest.mark.parametrize("odd", ODD, ids=lambda v: repr(v)[:20])
def test_a_body_of_any_shape_is_shown_and_breaks_nothing(outcome: object, odd: object) -> None:
    run = Run()
    run.write("task", "checked", {"phase": "ZOOKEEPER"})
    record = make_record(run.records[-1], {"outcome": outcome, "task": odd, **dict.fromkeys(KEYS, odd)}, at=START)
    report = make_report("run", [*run.records, record], None)
    assert len(report.entries) == 2
    shown = render_text(report)
    assert "\x1b" not in shown
    shown.encode()
