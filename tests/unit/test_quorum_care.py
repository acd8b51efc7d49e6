"""Care of the quorum: one controller at a time, and only while every other one is whole and warm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from observations import SPEC, WHY, Spoil, a_controller, both, gauges, observation, on_host, part, with_quorum
from recording import Ports, RecordingCluster, run_on

from kraft_runbook.cluster.observation import ClusterObservation, HostState, Unread, was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.migration.plays import bring_back_controller
from kraft_runbook.quorum.care import CHECKS, QUORUM_CARE, care_for
from kraft_runbook.quorum.care_rules import Care, CareForm, page, whom
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.steps.node_step import Look
from kraft_runbook.steps.quorum_care import STEPS, shows_care, take_care

LEADERSHIP: dict[str, Any] = {"care": Care.LEADERSHIP.value, "controller": None}
LOST_DISK: dict[str, Any] = {"care": Care.LOST_DISK.value, "controller": 103}
DOWN = a_controller(103, running=False, mode=WHY, metrics=WHY)
COLD = gauges(102, last_applied_offset=10, last_applied_lag_ms=70_000)
EMPTY: dict[str, Any] = {"has_metadata_log": False, "formatted_cluster_id": None}


def hosts(seen: ClusterObservation, **of_lost: Any) -> Mapping[int, HostState]:
    lost = both(DOWN, on_host(103, **EMPTY | of_lost))(seen)
    return {i: each for i, each in lost.hosts.items() if not isinstance(each, Unread)}


def taking(
    form: Mapping[str, Any],
    *spoils: Spoil,
    node: int,
    phase: Phase = Phase.KRAFT,
    spec: ClusterSpec = SPEC,
    **of_lost: Any,
) -> tuple[RecordingCluster, Any]:
    """What was done, and the step's answer."""
    seen = both(*spoils)(observation(phase)) if spoils else observation(phase)
    cluster = RecordingCluster(seen, spec=spec, facts=hosts(seen, **of_lost))
    run = run_on(cluster, answers={"preflight.checks": {"node": node}}, **form)
    try:
        return cluster, take_care(run)
    except Refused as refused:
        return cluster, refused


# -- the leadership ----------------------------------------------------------------------------------------------------


def test_the_leader_is_restarted_while_every_standby_is_warm() -> None:
    cluster, answer = taking(LEADERSHIP, node=101)
    assert cluster.did == ["played restart_node on 101"]
    assert answer["changed"]


class Signed(Ports):
    """Keeps what each signature was asked for."""

    def require(self, operation: Any, gate: str, seen: Any, **given: Any) -> None:
        super().require(operation, gate, seen)
        self.asked.append(str(given.get("exhibit")))


@pytest.mark.parametrize(("form", "node"), [(LEADERSHIP, 101), (LOST_DISK, 103)])
def test_one_look_and_one_check_of_the_signature_for_that_form_and_controller_are_enough(
    form: Mapping[str, Any], node: int
) -> None:
    seen = observation(Phase.KRAFT) if form is LEADERSHIP else DOWN(observation(Phase.KRAFT))
    cluster = RecordingCluster(seen, facts=hosts(seen))
    ports = Signed()
    take_care(run_on(cluster, ports, answers={"preflight.checks": {"node": node}}, **form))
    assert len(cluster.looks) == 1
    assert [each for each in ports.asked if each != "claim"] == [
        "signature of care",
        CareForm.of(form).digest(node),
        "begins behind care",
    ]


def test_once_another_leads_the_cleared_task_restarts_nobody() -> None:
    seen = observation(Phase.KRAFT)
    elected = part(quorum=replace(seen.quorum, leader_id=102))  # type: ignore[type-var]
    cluster, answer = taking(LEADERSHIP, elected, node=101)
    assert cluster.did == []
    assert answer["already_done"] == "controller 101 does not lead any more: controller 102 does"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (COLD, "controller 102 to apply the metadata log"),
        (DOWN, "controller 103's process has ended"),
        (gauges(102, last_applied_offset=None, last_applied_lag_ms=None), "controller 102: "),
    ],
)
def test_the_leader_is_left_alone_while_a_standby_is_cold_or_down_or_not_known_to_be_warm(
    spoil: Spoil, why: str
) -> None:
    cluster, answer = taking(LEADERSHIP, spoil, node=101)
    assert cluster.did == []
    assert isinstance(answer, Refused) and why in str(answer)
    assert "controller 101 was not touched" in str(answer)


def test_a_standby_that_looked_cold_once_and_has_passed_that_offset_since_is_warm() -> None:
    behind = gauges(102, last_applied_offset=900, last_applied_lag_ms=2_500)(observation(Phase.KRAFT))
    cluster = RecordingCluster(
        observation(Phase.KRAFT), behind, gauges(102, last_applied_offset=1_000)(observation(Phase.KRAFT))
    )
    take_care(run_on(cluster, answers={"preflight.checks": {"node": 101}}, **LEADERSHIP))
    assert cluster.did == ["played restart_node on 101"]


def test_an_only_controller_can_not_hand_over() -> None:
    alone = SPEC.model_copy(update={"controllers": SPEC.controllers[:1]})
    cluster, answer = taking(LEADERSHIP, node=101, spec=alone)
    assert cluster.did == []
    assert "controller 101 is the only one: nobody else can lead" in str(answer)


# -- a lost disk -------------------------------------------------------------------------------------------------------


def test_an_empty_directory_is_formatted_with_the_id_that_the_others_have_and_its_controller_started() -> None:
    seen = DOWN(observation(Phase.KRAFT))
    cluster, answer = taking(LOST_DISK, DOWN, node=103)
    assert cluster.did == ["played provision_controller on 103"]
    assert answer["changed"]
    facts = hosts(seen)
    look = _look(cluster, seen)
    played = STEPS[Care.LOST_DISK].play(look)
    assert played.variables["cluster_id"] == facts[101].formatted_cluster_id
    assert "zookeeper.connect" not in played.variables["properties"]


@pytest.mark.parametrize(("level", "name"), [(21, "3.9-IV0"), (7, "3.3-IV3"), (33, "4.4-IV2")])
def test_it_is_formatted_at_the_level_in_force(level: int, name: str) -> None:
    """Kafka 4 would write its newest level there, and no way back would be open for this node alone."""
    seen = both(DOWN, with_quorum(metadata_version=level))(observation(Phase.KRAFT))
    played = STEPS[Care.LOST_DISK].play(_look(RecordingCluster(seen, facts=hosts(seen)), seen))
    assert played.variables["release_version"] == name


@pytest.mark.parametrize(
    ("level", "why"),
    [(None, "metadata.version could not be read"), (99, "metadata.version is 99, which this tool does not know")],
)
def test_without_the_level_in_force_nothing_is_formatted(level: int | None, why: str) -> None:
    cluster, answer = taking(LOST_DISK, both(DOWN, with_quorum(metadata_version=level)), node=103)
    assert cluster.did == []
    assert isinstance(answer, Refused) and why in str(answer) and "controller 103 was not touched" in str(answer)


def test_it_is_formatted_by_the_kafka_that_its_service_starts() -> None:
    """A roll to another Kafka leads the link there, and kafka.home stays: by that one it would be formatted with what
    the others have left behind.
    """
    linked = SPEC.model_copy(
        update={
            "controllers": tuple(c.model_copy(update={"home_link": f"/opt/{c.id}/kafka"}) for c in SPEC.controllers)
        }
    )
    assert bring_back_controller(linked, 103, "an id", "3.9-IV0").variables["kafka_home"] == "/opt/103/kafka"
    given = bring_back_controller(SPEC, 103, "an id", "3.9-IV0").variables
    assert "kafka_home" not in given, "kafka.home, as for every play"


def _look(cluster: RecordingCluster, seen: ClusterObservation) -> Look:
    return Look(cluster, 103, seen, QUORUM_CARE.read(seen, SPEC))


def test_a_controller_that_runs_again_is_left_alone() -> None:
    cluster, answer = taking(LOST_DISK, node=103)
    assert cluster.did == []
    assert answer["already_done"] == "controller 103 runs"


def test_a_directory_that_a_killed_try_has_formatted_is_no_obstacle() -> None:
    cluster, _ = taking(LOST_DISK, DOWN, node=103, formatted_cluster_id="the cluster's")
    assert cluster.did == ["played provision_controller on 103"]


@pytest.mark.parametrize(
    ("spoil", "of_lost", "why"),
    [
        (both(DOWN, a_controller(102, running=False)), {}, "controllers 102, 103 do not run"),
        (both(DOWN, COLD), {}, "controller 102 to apply the metadata log"),
        (both(DOWN, gauges(102, last_applied_offset=None, last_applied_lag_ms=None)), {}, "controller 102: "),
        (DOWN, {"has_metadata_log": True}, "controller 103 holds a metadata log: it lost nothing"),
        (DOWN, {"has_metadata_log": WHY}, "could not be read"),
    ],
)
def test_a_controller_is_not_brought_back_while_another_is_missing_or_it_holds_data(
    spoil: Spoil, of_lost: Mapping[str, Any], why: str
) -> None:
    cluster, answer = taking(LOST_DISK, spoil, node=103, **of_lost)
    assert cluster.did == []
    assert isinstance(answer, Refused) and why in str(answer)


def test_a_leader_that_an_earlier_try_stopped_and_did_not_start_is_started() -> None:
    """Another one leads by then; to say that nothing is left to do would leave it down for ever."""
    elected = part(quorum=replace(observation(Phase.KRAFT).quorum, leader_id=102))  # type: ignore[type-var]
    cluster, answer = taking(LEADERSHIP, elected, a_controller(101, running=False, mode=WHY, metrics=WHY), node=101)
    assert cluster.did == ["played restart_node on 101"] and "already_done" not in str(answer)


def test_a_controller_that_runs_has_lost_no_disk() -> None:
    with pytest.raises(Refused, match="controller 102 runs: it is not the one that lost its disk"):
        whom(CareForm(Care.LOST_DISK, 102), DOWN(observation(Phase.KRAFT)), SPEC)


def test_the_others_must_show_one_id_of_the_cluster() -> None:
    seen = DOWN(observation(Phase.KRAFT))
    facts = {**hosts(seen), 102: replace(hosts(seen)[102], formatted_cluster_id="another")}
    cluster = RecordingCluster(seen, facts=facts)
    with pytest.raises(Refused, match="do not show one id of the cluster"):
        take_care(run_on(cluster, answers={"preflight.checks": {"node": 103}}, **LOST_DISK))


# -- the form, the checks and the gate ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "spoil", "why"),
    [
        ({**LOST_DISK, "controller": None}, None, "the form names no controller"),
        ({**LOST_DISK, "controller": 7}, None, "the form names controller 7"),
        ({**LEADERSHIP, "controller": 102}, None, "nobody can say which one leads next"),
        (LEADERSHIP, part(quorum=WHY), "which controller leads is not known"),
    ],
)
def test_a_form_that_names_a_wrong_controller_is_refused(
    form: Mapping[str, Any], spoil: Spoil | None, why: str
) -> None:
    seen = observation(Phase.KRAFT)
    with pytest.raises(Refused, match=why):
        whom(CareForm.of(form), spoil(seen) if spoil else seen, SPEC)


def verdicts(care: Care, spoil: Spoil, phase: Phase = Phase.KRAFT) -> dict[str, Verdict]:
    seen = spoil(observation(phase))
    operation = care_for(care)
    report = operation.checks.run(seen, SPEC, operation.read(seen, SPEC).stage)
    return {each.code: each.verdict for each in report.results if "CARE" in each.code}


def test_each_care_is_checked_for_what_it_needs() -> None:
    lost = both(DOWN, on_host(103, **EMPTY))
    assert verdicts(Care.LEADERSHIP, part()) == {"KRB-CARE-001": Verdict.PASS, "KRB-CARE-002": Verdict.PASS}
    assert verdicts(Care.LEADERSHIP, COLD)["KRB-CARE-002"] is Verdict.FAIL
    found = verdicts(Care.LOST_DISK, lost)
    assert set(found.values()) == {Verdict.PASS} and len(found) == 3
    assert verdicts(Care.LOST_DISK, part())["KRB-CARE-003"] is Verdict.FAIL
    assert verdicts(Care.LOST_DISK, both(lost, COLD))["KRB-CARE-003"] is Verdict.FAIL
    assert verdicts(Care.LOST_DISK, both(lost, on_host(103, has_metadata_log=True)))["KRB-CARE-004"] is Verdict.FAIL
    assert verdicts(Care.LOST_DISK, both(lost, on_host(103, has_metadata_log=WHY)))["KRB-CARE-004"] is Verdict.UNKNOWN


@pytest.mark.parametrize(("seconds_ago", "verdict"), [(1.5, Verdict.FAIL), (6.0, Verdict.PASS)])
def test_while_a_process_with_its_id_fetches_elsewhere_it_is_not_brought_back(
    seconds_ago: float, verdict: Verdict
) -> None:
    def fetching(seen: ClusterObservation) -> ClusterObservation:
        assert was_read(seen.quorum)
        ago = {each: 0.0 for each in SPEC.controller_ids} | {103: seconds_ago}
        voters = tuple(replace(v, last_fetch_ms=int((1e9 - ago[v.id]) * 1000)) for v in seen.quorum.voters)
        return replace(seen, quorum=replace(seen.quorum, voters=voters))

    lost = both(DOWN, on_host(103, **EMPTY), fetching)
    assert verdicts(Care.LOST_DISK, lost)["KRB-CARE-003"] is verdict
    cluster, answer = taking(LOST_DISK, DOWN, fetching, node=103)
    assert bool(cluster.did) is (verdict is Verdict.PASS)
    if verdict is Verdict.FAIL:
        assert "a process with its id fetched from the leader 1.5 s ago" in str(answer)


def test_files_that_name_former_voters_are_named_and_keep_nobody_back() -> None:
    moved = SPEC.quorum_voters.replace(SPEC.controller(103).address, "10.9.9.9:9093")
    former = SPEC.quorum_voters.replace(",", " , ")
    check = CHECKS["KRB-PRE-115"]
    seen = both(*(on_host(i, config={"controller.quorum.voters": former}) for i in SPEC.node_ids))(
        observation(Phase.KRAFT)
    )
    assert check.run(seen, SPEC).verdict is Verdict.PASS, "blanks make no difference"
    named = SPEC.model_copy(
        update={"controllers": tuple(each.model_copy(update={"host": f"kafka-{each.id}"}) for each in SPEC.controllers)}
    )
    in_capitals = on_host(102, config={"controller.quorum.voters": named.quorum_voters.upper()})(
        observation(Phase.KRAFT)
    )
    assert "node 102" not in check.run(in_capitals, named).evidence, "nor does the spelling of a host"
    fewer = on_host(102, config={"controller.quorum.voters": former.rpartition(" , ")[0]})(seen)
    assert check.run(fewer, SPEC).evidence == "node 102 names fewer controllers"
    wrong = on_host(102, config={"controller.quorum.voters": moved})(seen)
    found = check.run(wrong, SPEC)
    assert (found.verdict, found.blocks) == (Verdict.FAIL, False)
    assert found.evidence == "node 102 names 103@10.9.9.9:9093"
    assert check.run(on_host(102, config=WHY)(seen), SPEC).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("phase", [Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.DUAL_WRITE])
def test_care_waits_until_the_migration_is_over(phase: Phase) -> None:
    assert verdicts(Care.LEADERSHIP, part(), phase)["KRB-CARE-001"] is Verdict.FAIL


def test_the_gate_names_the_controller_and_its_signature_is_for_that_one() -> None:
    run = run_on(RecordingCluster(observation(Phase.KRAFT)), answers={"preflight.checks": {"node": 101}}, **LEADERSHIP)
    (exhibit,) = shows_care(run).exhibits
    form = CareForm.of(LEADERSHIP)
    assert "Restarts controller 101, which leads by this look" in exhibit.rendered
    assert exhibit.digest == form.digest(101) != form.digest(102)
    assert "formats its empty directory" in page(CareForm.of(LOST_DISK), 103, SPEC)
    with pytest.raises(Refused, match="whom this run is about is not known"):
        shows_care(run_on(RecordingCluster(observation(Phase.KRAFT)), **LEADERSHIP))


def test_every_check_stands_in_the_catalogue_of_the_operation() -> None:
    assert {"KRB-CARE-001", "KRB-CARE-002", "KRB-CARE-003", "KRB-CARE-004"} <= set(CHECKS)
