"""What the dashboard shows of a cluster, from files alone. What is not known is never shown as good, as 0 or as now."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from observations import NOW, SPEC, WHY, later, observation
from unit import evidence_runs

from kraft_runbook.cluster.assignment import Ongoing, TopicPartition
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.dashboard.facts import ClusterFacts, GateState, Standing
from kraft_runbook.dashboard.kept_moves import moves_of
from kraft_runbook.dashboard.look_files import keep_look, keep_moves, latest_path
from kraft_runbook.dashboard.page import Links, render_cluster, render_clusters
from kraft_runbook.dashboard.read_facts import cluster_facts, in_words
from kraft_runbook.dashboard.runs_seen import RunsRead
from kraft_runbook.evidence.course import CoursePoint, course_to_list
from kraft_runbook.evidence.record import EvidenceRecord, make_record
from kraft_runbook.io.cluster_claim import Claim
from kraft_runbook.reassignment.throttles import Former

LINKS = Links("", "/plugin/kafka", "/kafka_clusters/evidence")
MIGRATION = "zk_to_kraft_migration__lab"


def facts(state: Path, now: datetime = NOW, **given: Any) -> ClusterFacts:
    given = {"spec": SPEC, "two_watches": 1200.0, **given}
    return cluster_facts(SPEC.name, state=state, evidence=state / "evidence", runs=RunsRead(), now=now, **given)


def keep(state: Path, phase: Phase, **changes: Any) -> None:
    keep_look(state, replace(observation(phase), **changes), pytest.fail)


def write(state: Path, run: str, records: list[EvidenceRecord]) -> Path:
    path = state / "evidence" / f"{run}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{each.to_line()}\n" for each in records))
    return path


def told(*bodies: Mapping[str, Any], dag: str = MIGRATION, run: str = "r") -> list[EvidenceRecord]:
    records: list[EvidenceRecord] = []
    for n, body in enumerate(bodies):
        whole = {"cluster": "lab", "dag": dag, "run": run, **body}
        records.append(make_record(records[-1] if records else None, whole, at=NOW + timedelta(seconds=n)))
    return records


def proven(digest: str = "d1") -> dict[str, Any]:
    of = {"task": "gate_start.prove", "outcome": "proven", "gate": "start", "phase": "ZOOKEEPER"}
    return {**of, "digest": digest, "parity": None, "passed": False, "proof": {}}


def at_task(outcome: str, task: str = "approve", digest: str = "d1", **more: Any) -> dict[str, Any]:
    bound = {"gate": "start", "digest": digest, "task_instance": f"{task}-{digest}", "try_number": 1}
    return {"task": f"gate_start.{task}", "outcome": outcome, **bound, **more}


def asked(number: int = 1, needed: int = 1, digest: str = "d1") -> dict[str, Any]:
    task = "approve" if number == 1 else "approve_second"
    return at_task("asked", task, digest, number=number, needed=needed)


def approved(by: str, digest: str = "d1") -> dict[str, Any]:
    return at_task("approved", digest=digest, by=by, by_id="7", answered_at=NOW.isoformat())


# -- the look ----------------------------------------------------------------------------------------------------------


def test_a_fresh_look_marks_the_present_phase(tmp_path: Path) -> None:
    keep(tmp_path, Phase.HYBRID)
    seen = facts(tmp_path, NOW + timedelta(seconds=12))
    assert seen.look.standing is Standing.FRESH
    assert seen.look.words == "Looked at 12 s ago"
    assert [each.mark for each in seen.stages] == ["done", "done", "here", "ahead", "ahead"]


def test_after_a_minute_it_is_old_in_words_and_no_phase_is_marked_as_now(tmp_path: Path) -> None:
    keep(tmp_path, Phase.HYBRID)
    assert facts(tmp_path, NOW + timedelta(seconds=60)).look.standing is Standing.FRESH
    seen = facts(tmp_path, NOW + timedelta(seconds=61))
    assert seen.look.standing is Standing.STALE
    assert "Old: nobody has looked for 61 s" in seen.look.words
    assert [each.mark for each in seen.stages][2] == "was here"
    page = render_cluster(seen, LINKS, now=NOW)
    assert 'class="warn">Old:' in page
    assert "(when last seen)" in page and "(now)" not in page


def test_a_look_from_ahead_of_this_clock_is_not_fresh(tmp_path: Path) -> None:
    keep(tmp_path, Phase.HYBRID)
    seen = facts(tmp_path, NOW - timedelta(seconds=30))
    assert seen.look.standing is Standing.STALE
    assert "the clocks differ" in seen.look.words


def test_a_look_from_ahead_of_its_file_s_clock_is_not_fresh_when_its_time_comes(tmp_path: Path) -> None:
    keep(tmp_path, Phase.HYBRID)
    written = (NOW - timedelta(minutes=20)).timestamp()
    os.utime(latest_path(tmp_path, SPEC.name), (written, written))
    seen = facts(tmp_path, NOW + timedelta(seconds=3))
    assert seen.look.standing is Standing.STALE
    assert "20 min ahead of the clock of its file" in seen.look.words


def test_a_cluster_at_which_nobody_looked_shows_no_phase_and_nothing_good(tmp_path: Path) -> None:
    seen = facts(tmp_path)
    assert seen.look.standing is Standing.NEVER
    assert {each.mark for each in seen.stages} == {"not known"}
    page = render_cluster(seen, LINKS, now=NOW)
    assert "Nobody has looked" in page and "The phase is not known" in page
    assert 'class="good"' not in page and "(now)" not in page


def test_a_spoilt_look_is_said_and_nothing_of_an_older_one_is_shown(tmp_path: Path) -> None:
    keep(tmp_path, Phase.HYBRID)
    latest_path(tmp_path, SPEC.name).write_text('{"phase": "HYBRID"')
    seen = facts(tmp_path)
    assert seen.look.standing is Standing.UNREADABLE
    assert {each.mark for each in seen.stages} == {"not known"}
    page = render_cluster(seen, LINKS, now=NOW)
    assert "be read" in page and "(now)" not in page and "Traceback" not in page


def test_an_unknown_phase_is_shown_with_its_reason(tmp_path: Path) -> None:
    keep(tmp_path, Phase.HYBRID, zookeeper=WHY, quorum=WHY, controllers={})
    seen = facts(tmp_path)
    assert seen.look.look is not None and seen.look.look.phase is Phase.UNKNOWN
    page = render_cluster(seen, LINKS, now=NOW)
    assert 'class="bad">UNKNOWN: ' in page
    assert f"Not read: {WHY.reason}" in page


def test_a_cluster_born_in_kraft_has_one_stage(tmp_path: Path) -> None:
    spec = SPEC.model_copy(update={"zookeeper": None})
    assert [each.phase for each in facts(tmp_path, spec=spec).stages] == [Phase.KRAFT]


def test_the_quorum_shows_which_voter_does_not_run(tmp_path: Path) -> None:
    seen = observation(Phase.HYBRID)
    stopped = replace(seen.controllers[103], running=False, mode=WHY, metrics=WHY)
    keep(tmp_path, Phase.HYBRID, controllers={**seen.controllers, 103: stopped})
    page = render_cluster(facts(tmp_path), LINKS, now=NOW)
    quorum = page[page.index('aria-label="Quorum"') : page.index('aria-label="Parity"')]
    assert quorum.count("<td>runs</td>") == 2
    assert '<td>103</td><td><span class="bad">does not run</span></td><td>not known</td>' in quorum


# -- gates -------------------------------------------------------------------------------------------------------------


def test_an_open_gate_links_to_the_page_where_it_is_answered(tmp_path: Path) -> None:
    write(tmp_path, f"{MIGRATION}__r-1", told(proven(), asked()))
    (gate,) = facts(tmp_path).gates
    assert (gate.state, gate.needed, gate.since) == (GateState.OPEN, 1, NOW + timedelta(seconds=1))
    assert LINKS.gate(gate) == f"/dags/{MIGRATION}/runs/r/tasks/gate_start.approve/mapped/0/required_actions"


def test_the_second_signature_after_a_new_proof_has_its_own_task_and_map_index(tmp_path: Path) -> None:
    records = told(proven(), asked(), proven("d2"), asked(digest="d2", needed=2), approved("maria", "d2"))
    records = told(*(each.body for each in records), asked(2, 2, "d2"))
    write(tmp_path, f"{MIGRATION}__r-1", records)
    (gate,) = facts(tmp_path).gates
    assert gate.state is GateState.OPEN
    assert [(s.who, s.digest) for s in gate.signatures] == [("maria (id 7)", "d2")]
    assert LINKS.gate(gate).endswith("/tasks/gate_start.approve_second/mapped/1/required_actions")


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ([approved("maria")], GateState.SIGNED),
        ([at_task("rejected", by="jon", by_id="8", answered_at=NOW.isoformat())], GateState.REFUSED),
        (
            [
                {
                    "task": "closing_report",
                    "outcome": "closed",
                    "phase": "ZOOKEEPER",
                    "failed": ["x"],
                    "succeeded": False,
                }
            ],
            GateState.ENDED,
        ),
    ],
)
def test_a_gate_that_nobody_is_asked_at_has_no_link_to_answer(
    tmp_path: Path, more: list[dict[str, Any]], state: GateState
) -> None:
    write(tmp_path, f"{MIGRATION}__r-1", told(proven(), asked(), *more))
    (gate,) = facts(tmp_path).gates
    assert gate.state is state
    assert "required_actions" not in LINKS.gate(gate)


def test_a_whole_run_shows_its_gates_parity_and_outcome(tmp_path: Path) -> None:
    run = evidence_runs.forward()
    write(tmp_path, f"{run.dag}__manual-1", run.records)
    seen = facts(tmp_path, run.clock + timedelta(minutes=5))
    assert {gate.gate: gate.state for gate in seen.gates} == dict.fromkeys(
        ("start", "dual_write", "finalize"), GateState.CONFIRMED
    )
    assert seen.parity is not None
    assert (seen.parity.verdict, seen.parity.offset, seen.parity.holds) == ("MATCH", 1260, True)
    assert [(each.outcome, each.good) for each in seen.runs] == [("succeeded in FINALIZED", True)]
    ahead = facts(tmp_path, run.clock - timedelta(hours=3)).parity
    assert ahead is not None and not ahead.holds
    assert "the clocks differ" in ahead.words
    later_on = facts(tmp_path, run.clock + timedelta(hours=3)).parity
    assert later_on is not None and not later_on.holds
    assert "too old" in later_on.words


# -- the rest ----------------------------------------------------------------------------------------------------------


def watched(state: Path, *threats: str, possible: bool = True) -> None:
    way = {"task": "can_it_go_back", "outcome": "way_back", "phase": "HYBRID", "possible": possible, "why": "open"}
    way |= {"steps": [], "threats": list(threats), "seconds": 180.0, "window_seconds": 3.0}
    write(state, "way_back_watch__lab__w-1", told(way, dag="way_back_watch__lab"))


def way_back_on_the_page(seen: ClusterFacts) -> str:
    page = render_cluster(seen, LINKS, now=NOW)
    return page[page.index('aria-label="Way back"') : page.index('aria-label="Reassignment"')]


def test_the_last_watch_of_the_way_back_is_shown_and_is_not_the_run(tmp_path: Path) -> None:
    watched(tmp_path, "KRB-PRE-067")
    keep_look(tmp_path, later(observation(Phase.HYBRID), 110), pytest.fail)
    seen = facts(tmp_path, NOW + timedelta(minutes=2))
    assert seen.way_back is not None
    assert (seen.way_back.possible, seen.way_back.threats, seen.way_back.age_seconds) == (True, ("KRB-PRE-067",), 120)
    (run,) = seen.runs
    assert run.watch and run.good is False
    assert '<strong class="warn">Possible</strong>' in way_back_on_the_page(seen)


@pytest.mark.parametrize(
    ("minutes", "phase", "shown", "why"),
    [
        (2, Phase.HYBRID, 'good">Possible<', ""),
        (20, Phase.HYBRID, 'good">Possible<', ""),
        (21, Phase.HYBRID, 'warn">Was possible<', "no watch has looked for longer than 20 min"),
        (2, Phase.DUAL_WRITE, 'warn">Was possible<', "the watch saw HYBRID, and the cluster is in DUAL_WRITE now"),
        (2, None, 'warn">Was possible<', "no fresh look"),
        (2, Phase.FINALIZED, 'bad">Not possible<', "there is none any more: the migration is final"),
        (90_000, Phase.FINALIZED, 'bad">Not possible<', "there is none any more"),
    ],
)
def test_the_way_back_is_good_only_by_a_young_watch_and_a_fresh_look_at_the_same_phase(
    tmp_path: Path, minutes: int, phase: Phase | None, shown: str, why: str
) -> None:
    watched(tmp_path)
    if phase:
        keep_look(tmp_path, later(observation(phase), 60 * minutes), pytest.fail)
    box = way_back_on_the_page(facts(tmp_path, NOW + timedelta(minutes=minutes)))
    assert f'<strong class="{shown}' in box
    assert why in box
    assert ('class="good"' in box) is shown.startswith("good")


def test_a_look_that_is_old_makes_no_way_back_good(tmp_path: Path) -> None:
    watched(tmp_path)
    keep(tmp_path, Phase.HYBRID)
    assert 'warn">Was possible<' in way_back_on_the_page(facts(tmp_path, NOW + timedelta(minutes=2)))


def test_the_way_back_is_young_for_two_schedules_of_its_watch(tmp_path: Path) -> None:
    watched(tmp_path)
    keep_look(tmp_path, later(observation(Phase.HYBRID), 900), pytest.fail)
    at = NOW + timedelta(minutes=15)
    for seconds, young in ((600.0, False), (1200.0, True), (7200.0, True), (None, False)):
        found = facts(tmp_path, at, two_watches=seconds).way_back
        assert found is not None and found.holds is young, seconds
    page = way_back_on_the_page(facts(tmp_path, at, two_watches=None))
    assert 'warn">Was possible<' in page and "how often the watch looks is not known" in page


def test_a_watch_that_found_nothing_wrong_is_not_under_way(tmp_path: Path) -> None:
    record = {"task": "watch", "outcome": "checked", "phase": "KRAFT", "checks": {"results": []}}
    write(tmp_path, "quorum_watch__lab__w-1", told(record, dag="quorum_watch__lab"))
    assert [(each.outcome, each.good) for each in facts(tmp_path).runs] == [("nothing wrong", True)]


def test_elections_of_the_last_hour_are_told_by_the_epochs_of_looks(tmp_path: Path) -> None:
    seen = observation(Phase.DUAL_WRITE)
    quorum: Any = seen.quorum
    for minutes, epoch in ((0, 4), (20, 5), (70, 9)):
        keep_look(tmp_path, replace(later(seen, 60 * minutes), quorum=replace(quorum, leader_epoch=epoch)), pytest.fail)
    found = facts(tmp_path, NOW + timedelta(minutes=70)).elections
    assert (found.count, found.since) == (4, NOW + timedelta(minutes=20))
    assert facts(tmp_path, NOW + timedelta(hours=5)).elections.count is None


def test_the_last_hour_is_drawn_and_told_in_words(tmp_path: Path) -> None:
    keep(tmp_path, Phase.HYBRID)
    assert "Fewer than two looks" in render_cluster(facts(tmp_path), LINKS, now=NOW)
    for seconds, phase in ((15, Phase.HYBRID), (30, Phase.DUAL_WRITE), (45, Phase.DUAL_WRITE)):
        keep(tmp_path, phase, observed_at=NOW + timedelta(seconds=seconds))
    seen = facts(tmp_path, NOW + timedelta(seconds=50))
    page = render_cluster(seen, LINKS, now=NOW + timedelta(seconds=50))
    assert seen.hour is not None and [each.state for each in seen.hour.lanes[0].spans] == ["HYBRID", "DUAL_WRITE"]
    assert "HYBRID, 03:04:05 to 03:04:35; DUAL_WRITE, 03:04:35 to 03:04:50" in page and page.count("<rect") >= 3
    assert "Every broker ran and was in sync" in page


def test_the_claim_is_shown_and_one_whose_lease_ended_as_such(tmp_path: Path) -> None:
    claim = Claim(MIGRATION, "r", NOW.isoformat(), "host-1", NOW + timedelta(hours=1))
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "lab.json").write_bytes(claim.to_json())
    held = facts(tmp_path).claim
    assert held is not None and (held.run_id, held.host, held.ended) == ("r", "host-1", False)
    over = facts(tmp_path, NOW + timedelta(hours=2)).claim
    assert over is not None and over.ended


def test_who_holds_the_cluster_is_named_only_to_those_who_may_read_that_dag(tmp_path: Path) -> None:
    (tmp_path / "claims").mkdir()
    claim = Claim(MIGRATION, "run-of-others", NOW.isoformat(), "host-1", NOW + timedelta(hours=1))
    (tmp_path / "claims" / "lab.json").write_bytes(claim.to_json())
    seen = facts(tmp_path, dags={"cluster_watch__lab"})
    assert seen.claim is not None and (seen.claim.dag, seen.claim.run_id, seen.claim.host) == (None, None, None)
    page = render_cluster(seen, LINKS, now=NOW)
    assert "a run of a DAG that you may not read" in page
    assert "run-of-others" not in page and "host-1" not in page and MIGRATION not in page
    mine = facts(tmp_path, dags={MIGRATION}).claim
    assert mine is not None and (mine.dag, mine.run_id, mine.host) == (MIGRATION, "run-of-others", "host-1")


def test_how_far_a_reassignment_is(tmp_path: Path) -> None:
    dag, run = "reassign_partitions__lab", "reassign_partitions__lab__r-1"
    write(tmp_path, run, told({"task": "move", "outcome": "moves", "what": "started", "partitions": 40}, dag=dag))
    directory = tmp_path / "reassignments" / run
    directory.mkdir(parents=True)
    progress = {"at": NOW.isoformat(), "partitions": 40, "there": 10, "moving": 5, "bytes_left": 2_000_000}
    (directory / "progress.json").write_text(json.dumps({**progress, "stuck": ["t-0: broker 2 is down"]}))
    seen = facts(tmp_path)
    assert seen.moves is not None
    assert (seen.moves.there, seen.moves.moving, seen.moves.seconds_left) == (10, 5, None)
    page = render_cluster(seen, LINKS, now=NOW)
    assert "10 of 40 partitions there, 5 moving, 2.0 MB left, time left not known" in page
    assert "Stuck: t-0: broker 2 is down" in page
    assert "The course of the reassignment" not in page
    points = [CoursePoint(NOW - timedelta(minutes=n), 30 + n, 60 + n, 2_000_000) for n in (2, 1, 0)]
    (directory / "course.json").write_text(json.dumps(course_to_list(points)))
    seen = facts(tmp_path)
    assert seen.moves is not None and seen.moves.course == tuple(points)
    page = render_cluster(seen, LINKS, now=NOW)
    assert "The course of the reassignment" in page
    assert "replicas still to be copied 62 at first, 62 at most, 60 at last" in page
    short = facts(tmp_path, hour=False).moves
    assert short is not None and short.course == ()
    (directory / "course.json").write_text("{}")
    seen = facts(tmp_path)
    assert seen.moves is not None and (seen.moves.there, seen.moves.course) == (10, ())
    assert "(course.json) can't be read: it is no list" in seen.unread[0]


def test_a_run_between_disks_hides_no_reassignment_that_is_nobodys(tmp_path: Path) -> None:
    """It says how far it is, and no partition that another tool reassigns is its own, nor is a replication throttle."""
    dag, run = "move_between_disks__lab", "move_between_disks__lab__r-1"
    write(tmp_path, run, told({"task": "move", "outcome": "moves", "what": "started", "partitions": 4}, dag=dag))
    (tmp_path / "reassignments" / run).mkdir(parents=True)
    progress = {"at": NOW.isoformat(), "partitions": 4, "there": 1, "moving": 2, "bytes_left": 2_000_000}
    (tmp_path / "reassignments" / run / "progress.json").write_text(json.dumps(progress))
    rated = Former({"leader.replication.throttled.rate": "5"}, {}, {})
    moving = {TopicPartition("t", 0): Ongoing((1, 2), (2,), ())}
    for ongoing, said in ((moving, "No run that goes on"), ({}, "Throttle rates are set, and nothing is being")):
        keep_moves(tmp_path, moves_of("lab", NOW, ongoing, rated), warn=pytest.fail)
        page = render_cluster(facts(tmp_path), LINKS, now=NOW)
        assert "1 of 4 replicas on their new disks, 2 moving, 2.0 MB left" in page and said in page


@pytest.mark.parametrize("place", ["claims/lab.json", "quorum/lab.json", f"evidence/{MIGRATION}__r-1.jsonl"])
def test_what_can_t_be_read_is_said_and_stops_nothing(tmp_path: Path, place: str) -> None:
    keep(tmp_path, Phase.HYBRID)
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text('{"half\n')
    seen = facts(tmp_path)
    (said,) = seen.unread
    assert "can't be" in said or "holds no record" in said
    assert f'<p class="bad">{said.split("(")[0][:12]}' in render_cluster(seen, LINKS, now=NOW).replace("&#39;", "'")
    assert seen.look.standing is Standing.FRESH


def test_a_run_whose_evidence_is_gone_hides_no_other_and_is_said(tmp_path: Path) -> None:
    write(tmp_path, f"{MIGRATION}__r-1", told(proven(), asked()))
    (tmp_path / "evidence" / f"{MIGRATION}__gone-1.jsonl").symlink_to(tmp_path / "nowhere")
    seen = facts(tmp_path)
    assert [each.run_id for each in seen.runs] == ["r"]
    (said,) = seen.unread
    assert f"{MIGRATION}__gone-1 can't be read" in said


def test_evidence_that_was_altered_is_never_good(tmp_path: Path) -> None:
    run = evidence_runs.forward()
    path = write(tmp_path, f"{run.dag}__manual-1", run.records)
    path.write_text(path.read_text().replace('"succeeded":true', '"succeeded":1'))
    (shown,) = facts(tmp_path).runs
    assert shown.good is False
    assert "can't be trusted" in shown.outcome


def test_nothing_is_shown_of_a_dag_that_may_not_be_read_or_of_another_cluster(tmp_path: Path) -> None:
    run = evidence_runs.forward()
    write(tmp_path, f"{run.dag}__manual-1", run.records)
    other = told({"task": "t", "outcome": "began", "cluster": "lab__b", "host": "h"}, dag=f"{MIGRATION}__b")
    write(tmp_path, f"{MIGRATION}__b__r-1", other)
    assert [each.dag for each in facts(tmp_path).runs] == [MIGRATION]
    seen = facts(tmp_path, dags={"quorum_watch__lab"})
    assert (seen.runs, seen.gates, seen.parity) == ((), (), None)


def test_a_file_is_read_again_only_when_it_changed(tmp_path: Path) -> None:
    runs = RunsRead()
    path = write(tmp_path, f"{MIGRATION}__r-1", told(proven(), asked()))
    first = runs.of_cluster(tmp_path / "evidence", "lab", None)[0][0]
    assert runs.of_cluster(tmp_path / "evidence", "lab", None)[0][0] is first
    write(tmp_path, path.stem, told(proven(), asked(), approved("maria")))
    assert runs.of_cluster(tmp_path / "evidence", "lab", None)[0][0].gates[0].state is GateState.SIGNED


def test_names_with_html_in_them_are_shown_as_text(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    keep(tmp_path, Phase.HYBRID, topics=replace(WHY, reason=evil), quorum=replace(WHY, reason=evil))
    write(tmp_path, f"{MIGRATION}__r-1", told(proven(evil), asked(digest=evil), approved(evil, evil), run=evil))
    seen = facts(tmp_path, spec=f"the file is wrong: {evil}")
    for page in (
        render_cluster(replace(seen, cluster=evil, description=evil), LINKS, now=NOW),
        render_clusters(_all(replace(seen, cluster=evil)), LINKS),
    ):
        assert "<img" not in page
        assert "&lt;img" in page


def test_times_are_said_as_a_person_says_them() -> None:
    assert [in_words(each) for each in (3, 89, 600, 7500, 400_000)] == ["3 s", "89 s", "10 min", "2 h 05 min", "4 d"]


def _all(*seen: ClusterFacts) -> Any:
    from kraft_runbook.dashboard.facts import Clusters

    return Clusters(NOW, seen)
