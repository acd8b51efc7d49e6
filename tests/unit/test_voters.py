"""The voters of a dynamic quorum: one in or one out a run, only while every other one is whole and warm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from observations import SPEC, WHY, Spoil, a_controller, both, config, gauges, nobody, observation, on_host
from recording import Ports, RecordingCluster, run_on

from kraft_runbook.cluster.observation import ClusterObservation, HostState, Unread, was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.quorum_seen import Voter
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import QuorumKind
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.kafka.metadata_quorum import QuorumDescription
from kraft_runbook.migration.plays import bring_back_controller
from kraft_runbook.procedures.change_voters import Asks, add_voter, await_committed, remove_voter
from kraft_runbook.quorum.care import CHECKS
from kraft_runbook.quorum.care_rules import Care, CareForm, may_move, whom
from kraft_runbook.quorum.voters import follows, joining, leaving, may_add, may_remove, voters_whole
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.steps.quorum_care import take_care

OLD = {i: UUID(int=i) for i in (101, 102, 103, 104)}
NEW = UUID(int=1103)
CLOCK = 1_000_000_000
DYNAMIC = SPEC.model_copy(update={"quorum": QuorumKind.DYNAMIC, "zookeeper": None})
"""Controllers 101 to 103."""
DOWN = a_controller(103, running=False, mode=WHY, metrics=WHY)


def replica(node: int, directory: UUID | None = None, *, ago: float = 0.0, end: int = 1000) -> Voter:
    """``ago``: seconds since its last fetch."""
    return Voter(node, end, int(CLOCK - ago * 1000), CLOCK, directory or OLD[node])


def quorum(*voters: Voter, observers: tuple[Voter, ...] = ()) -> Spoil:
    def spoil(seen: ClusterObservation) -> ClusterObservation:
        assert was_read(seen.quorum)
        return replace(seen, quorum=replace(seen.quorum, voters=voters, observers=observers))

    return spoil


def seen_with(*spoils: Spoil) -> ClusterObservation:
    return both(*spoils)(observation(Phase.KRAFT))


def without(node: int) -> ClusterSpec:
    return DYNAMIC.model_copy(update={"controllers": tuple(c for c in DYNAMIC.controllers if c.id != node)})


WHOLE = (replica(101), replica(102), replica(103))
NOT_YET = quorum(replica(101), replica(102), observers=(replica(103, NEW),))
"""103 is declared, runs and follows, and does not vote."""
DEAD_VOTER = quorum(replica(101), replica(102), replica(103, ago=60.0))
OTHER_DISK = quorum(replica(101), replica(102), replica(103, ago=60.0), observers=(replica(103, NEW),))
"""103 follows with a new directory, and its former one still votes."""


# -- rules -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "spec", "why"),
    [
        (NOT_YET, DYNAMIC, ""),
        (quorum(replica(101), replica(102)), DYNAMIC, ""),
        (OTHER_DISK, DYNAMIC, ""),
        (quorum(*WHOLE), DYNAMIC, "every controller of the cluster file votes"),
        (NOT_YET, SPEC, "the cluster file has a static quorum"),
        (quorum(*(Voter(i, 1000) for i in (101, 102))), DYNAMIC, "kraft.version is not 1 yet"),
        (both(NOT_YET, a_controller(102, running=False)), DYNAMIC, "controller 102"),
        (both(NOT_YET, gauges(102, last_applied_offset=10, last_applied_lag_ms=70_000)), DYNAMIC, "102 to apply"),
        (quorum(replica(101), replica(102, end=3)), DYNAMIC, "waiting for voter 102 to catch up"),
        (quorum(replica(101), replica(102), replica(104)), DYNAMIC, ""),
        (quorum(replica(101), replica(102), replica(104, ago=60.0)), DYNAMIC, "Remove it first"),
    ],
)
def test_a_controller_is_added_only_while_every_voter_is_whole(spoil: Spoil, spec: ClusterSpec, why: str) -> None:
    finding = may_add(seen_with(spoil), spec)
    assert (finding.verdict is Verdict.PASS) == (not why), finding
    assert why in finding.evidence


@pytest.mark.parametrize(
    ("spoil", "spec", "why"),
    [
        (both(DEAD_VOTER, DOWN), without(103), ""),
        (quorum(*WHOLE), without(103), "voter 103 fetches from the leader still"),
        (DEAD_VOTER, DYNAMIC, "every voter is in the cluster file"),
        (both(DEAD_VOTER, a_controller(102, running=False)), without(103), "controller 102"),
        (quorum(*(Voter(i, 1000) for i in (101, 102, 103))), without(103), "kraft.version is not 1 yet"),
        (DEAD_VOTER, without(103).model_copy(update={"quorum": QuorumKind.STATIC}), "has a static quorum"),
    ],
)
def test_a_voter_is_removed_only_once_it_has_stopped_and_is_not_declared(
    spoil: Spoil, spec: ClusterSpec, why: str
) -> None:
    finding = may_remove(seen_with(spoil), spec)
    assert (finding.verdict is Verdict.PASS) == (not why), finding
    assert why in finding.evidence


def test_the_voters_that_would_be_left_must_be_a_majority_that_runs() -> None:
    """Of five voters three are gone and two run: Kafka would take one out, and commit it by nobody."""
    voters = (replica(101), replica(102), *(replica(103, UUID(int=i), ago=60.0) for i in (7,)))
    gone = tuple(Voter(i, 1000, int(CLOCK - 60_000), CLOCK, UUID(int=i)) for i in (105, 106))
    finding = may_remove(seen_with(quorum(*voters, *gone)), without(103))
    assert finding.verdict is Verdict.FAIL and "no majority" in finding.evidence


def test_the_preflight_asks_for_the_same() -> None:
    ran = {
        code: CHECKS[code].run(seen_with(spoil), spec).verdict
        for code, spoil, spec in (
            ("KRB-CARE-005", NOT_YET, DYNAMIC),
            ("KRB-CARE-006", both(DEAD_VOTER, DOWN), without(103)),
        )
    }
    assert set(ran.values()) == {Verdict.PASS}
    assert CHECKS["KRB-CARE-005"].run(seen_with(quorum(*WHOLE)), DYNAMIC).verdict is Verdict.FAIL
    assert CHECKS["KRB-CARE-006"].run(seen_with(quorum(*WHOLE)), without(103)).verdict is Verdict.FAIL


def test_who_joins_and_who_leaves_follows_from_the_cluster_file() -> None:
    assert joining(seen_with(NOT_YET), DYNAMIC) == (103,) == joining(seen_with(OTHER_DISK), DYNAMIC)
    assert joining(seen_with(DEAD_VOTER), DYNAMIC) == (), "a controller that is down votes all the same"
    assert leaving(seen_with(quorum(*WHOLE)), without(103)) == (103,)


@pytest.mark.parametrize(
    ("observers", "done", "told"),
    [
        ((replica(103, NEW),), True, ""),
        ((replica(103, NEW, end=5),), False, "catch up with offset 1000: it is at 5"),
        ((replica(103, NEW, ago=30.0),), False, "none with its id does"),
        ((replica(103, NEW), replica(103, UUID(int=9))), False, "2 directories with its id do"),
        ((replica(103, NEW), replica(103, UUID(int=9), ago=30.0)), True, ""),
    ],
)
def test_it_is_made_a_voter_once_it_follows_with_one_directory(
    observers: tuple[Voter, ...], done: bool, told: str
) -> None:
    progress = follows(seen_with(quorum(replica(101), replica(102), observers=observers)), DYNAMIC, 103, earlier=None)
    assert progress.done == done and told in progress.waiting_for


def test_a_cold_one_is_waited_for_before_it_votes() -> None:
    cold = gauges(103, last_applied_offset=10, last_applied_lag_ms=70_000)
    progress = follows(seen_with(NOT_YET, cold), DYNAMIC, 103, earlier=None)
    assert not progress.done and "apply the metadata log" in progress.waiting_for


def test_the_end_asks_for_those_that_vote_alone() -> None:
    """Of two that are to be added the second one is not there yet."""
    assert voters_whole(seen_with(quorum(replica(101), replica(102)), DOWN), DYNAMIC, earlier=None).done
    assert not voters_whole(seen_with(quorum(*WHOLE), DOWN), DYNAMIC, earlier=None).done


@pytest.mark.parametrize(
    ("care", "node", "spec", "why"),
    [
        (Care.ADD, 104, DYNAMIC, "the cluster file has 101, 102, 103"),
        (Care.ADD, 102, DYNAMIC, "controller 102 votes already"),
        (Care.ADD, None, DYNAMIC, "no controller"),
        (Care.REMOVE, 101, DYNAMIC, "the voters that the cluster file does not declare are none"),
        (Care.REMOVE, 101, without(102), "does not declare are 102"),
    ],
)
def test_a_form_that_names_the_wrong_one_is_refused(care: Care, node: int | None, spec: ClusterSpec, why: str) -> None:
    with pytest.raises(Refused, match=why):
        whom(CareForm(care, node), seen_with(NOT_YET), spec)


def test_a_lost_disk_in_a_dynamic_quorum_needs_a_file_that_says_so() -> None:
    lost = seen_with(DEAD_VOTER, DOWN)
    of = {spec.quorum: CHECKS["KRB-CARE-003"].run(lost, spec) for spec in (DYNAMIC, SPEC)}
    assert of[QuorumKind.DYNAMIC].verdict is Verdict.PASS
    assert of[QuorumKind.STATIC].verdict is Verdict.FAIL and "quorum: dynamic" in of[QuorumKind.STATIC].evidence


# -- steps -------------------------------------------------------------------------------------------------------------


def caring(
    care: Care,
    *shown: ClusterObservation,
    spec: ClusterSpec = DYNAMIC,
    ports: Ports | None = None,
    rehearses: bool = False,
    **of_host: Any,
) -> tuple[list[str], Any, list[tuple[Any, ...]]]:
    """What was done, the answer, and what was asked of the leader."""
    asked: list[tuple[Any, ...]] = []

    def change(name: str) -> Callable[..., bool]:
        def answer(*given: Any, **_: Any) -> bool:
            asked.append((name, *given))
            return True

        return answer

    empty: dict[str, Any] = {"has_metadata_log": False, "formatted_cluster_id": None}
    lost = on_host(103, **empty | of_host)(shown[0])
    facts: Mapping[int, HostState] = {i: each for i, each in lost.hosts.items() if not isinstance(each, Unread)}
    cluster = RecordingCluster(
        *shown,
        spec=spec,
        facts=facts,
        answers={add_voter: change("add"), remove_voter: change("remove"), await_committed: change("committed")},
    )
    vars(cluster)["rehearses"] = rehearses
    run = run_on(cluster, ports, answers={"preflight.checks": {"node": 103}}, care=care.value, controller=103)
    try:
        return cluster.did, take_care(run), asked
    except Refused as refused:
        return cluster.did, refused, asked


@pytest.mark.parametrize(
    ("care", "spec", "shown", "acts"),
    [
        (
            Care.LOST_DISK,
            DYNAMIC,
            (seen_with(DEAD_VOTER, DOWN), seen_with(OTHER_DISK)),
            ["remove voter 103", "add controller 103 to the voters"],
        ),
        (Care.REMOVE, without(103), (seen_with(DEAD_VOTER),), ["remove voter 103"]),
    ],
    ids=lambda each: each.name if isinstance(each, Care) else "",
)
def test_a_dry_run_lists_the_changes_that_the_run_then_makes(
    care: Care, spec: ClusterSpec, shown: tuple[ClusterObservation, ...], acts: list[str]
) -> None:
    done, _, _ = caring(care, *shown, spec=spec)
    listed, _, _ = caring(care, shown[0], spec=spec, rehearses=True)
    assert [each for each in done if "voter" in each] == [each for each in listed if "voter" in each] == acts


AWAITED = "awaited controller 103 to follow the metadata log and to be warm"


def test_a_lost_disk_becomes_a_voter_with_its_new_directory_and_the_former_one_ceases_to_be_one() -> None:
    did, answer, asked = caring(Care.LOST_DISK, seen_with(DEAD_VOTER, DOWN), seen_with(OTHER_DISK))
    assert did[:2] == ["played provision_controller on 103", AWAITED]
    assert asked == [("remove", 103, OLD[103]), ("add", 103, NEW)]
    assert answer["voter"] == "AAAAAAAAAAAAAAAAAAAETw", "as meta.properties has it"


def test_killed_between_the_two_requests_it_goes_on_with_the_second() -> None:
    did, answer, asked = caring(Care.LOST_DISK, seen_with(NOT_YET))
    assert asked == [("add", 103, NEW)] and answer["already_done"] == "controller 103 runs"
    did, answer, asked = caring(Care.LOST_DISK, seen_with(quorum(replica(101), replica(102), replica(103, NEW))))
    assert asked == [("committed",)] and did == [AWAITED], "and once it votes nothing is left to do"


def test_a_controller_is_added_once_it_follows() -> None:
    ports = Ports()
    did, _, asked = caring(
        Care.ADD, seen_with(quorum(replica(101), replica(102)), DOWN), seen_with(NOT_YET), ports=ports
    )
    assert did[:2] == ["played provision_controller on 103", AWAITED] and asked == [("add", 103, NEW)]
    assert ports.asked.count("signature of care") == 2, "the second act is signed for as the first"


def test_while_another_voter_is_down_the_voters_stay_as_they_are() -> None:
    spoilt = seen_with(NOT_YET, a_controller(102, running=False))
    _, answer, asked = caring(Care.ADD, spoilt)
    assert asked == [] and isinstance(answer, Refused) and "controller 102" in str(answer)


def test_a_voter_that_is_not_declared_any_more_is_removed_once_it_has_stopped() -> None:
    _, answer, asked = caring(Care.REMOVE, seen_with(DEAD_VOTER), spec=without(103))
    assert asked == [("remove", 103, OLD[103])] and answer == {"changed": ["voter removed"]}
    _, answer, asked = caring(Care.REMOVE, seen_with(quorum(replica(101), replica(102))), spec=without(103))
    assert asked == [("committed",)] and answer == {"changed": []}, "cleared once more, it changes nothing"
    _, answer, asked = caring(Care.REMOVE, seen_with(quorum(*WHOLE)), spec=without(103))
    assert asked == [] and isinstance(answer, Refused) and "stop its service" in str(answer)


def test_a_leader_that_was_just_elected_can_t_tell_who_has_stopped() -> None:
    """It knows of no fetch by anybody: a second look, after as long as a running one would have fetched in, tells."""
    unheard = quorum(replica(101), replica(102), Voter(103, 1000, -1, -1, OLD[103]))
    elected = seen_with(unheard, DOWN)
    assert was_read(elected.quorum)
    _, answer, asked = caring(Care.REMOVE, elected, seen_with(quorum(*WHOLE), DOWN), spec=without(103))
    assert asked == [] and isinstance(answer, Refused) and "voter 103 fetches from the leader" in str(answer)
    another = replace(elected, quorum=replace(elected.quorum, leader_epoch=9))
    _, answer, asked = caring(Care.REMOVE, elected, another, spec=without(103))
    assert asked == [] and isinstance(answer, Refused) and "elected just now" in str(answer)
    _, answer, asked = caring(Care.REMOVE, elected, spec=without(103))
    assert asked == [("remove", 103, OLD[103])], "one that is gone never fetches from it"


@pytest.mark.parametrize("judge", [may_move, lambda seen, spec: CHECKS["KRB-CARE-002"].run(seen, spec)])
def test_while_a_voter_is_not_declared_no_other_one_is_stopped(judge: Any) -> None:
    seen = seen_with(quorum(*WHOLE, replica(104, ago=60.0)))
    assert judge(seen, DYNAMIC).verdict is not Verdict.PASS
    assert judge(seen_with(quorum(*WHOLE)), DYNAMIC).verdict is Verdict.PASS


# -- the requests ------------------------------------------------------------------------------------------------------


class Quorum:
    """What its leader shows, look by look, the last for ever; ``asked``: how often it was asked for a change."""

    def __init__(self, *shown: QuorumDescription, within: float = 60.0) -> None:
        self.shown, self.asked = list(shown), 0
        self.by = Asks(self._look, self._answer, within, pause=0.0)

    def _look(self, *_: Any, **__: Any) -> QuorumDescription:
        return self.shown.pop(0) if len(self.shown) > 1 else self.shown[0]

    def _answer(self, *_: Any) -> None:
        self.asked += 1


def described(*voters: Voter, committed: int = 1000, epoch: int = 4) -> QuorumDescription:
    return QuorumDescription(101, epoch, committed, voters)


SHOWN = (replica(101, end=1010), replica(102), replica(103, NEW))


def test_a_voter_that_is_shown_counts_once_the_log_is_committed_so_far() -> None:
    seen = Quorum(described(replica(101), replica(102)), described(*SHOWN), described(*SHOWN, committed=1010))
    assert add_voter(DYNAMIC, 103, NEW, secrets=nobody, by=seen.by) is True and seen.asked == 1
    seen = Quorum(described(*SHOWN, committed=1010))
    assert add_voter(DYNAMIC, 103, NEW, secrets=nobody, by=seen.by) is False and seen.asked == 0
    seen = Quorum(described(*SHOWN), within=0.05)
    with pytest.raises(StepFailed, match="not committed yet"):
        await_committed(DYNAMIC, secrets=nobody, by=seen.by)


def test_a_change_that_a_new_leader_does_not_have_is_asked_for_again() -> None:
    without_it = described(replica(101), replica(102), epoch=5)
    end = described(*SHOWN, committed=1010, epoch=5)
    seen = Quorum(described(replica(101), replica(102)), described(*SHOWN), without_it, end)
    assert add_voter(DYNAMIC, 103, NEW, secrets=nobody, by=seen.by) is True and seen.asked == 2


def test_what_somebody_undoes_again_and_again_ends() -> None:
    seen = Quorum(described(*WHOLE), within=0.05)
    with pytest.raises(StepFailed, match="it did, and somebody undid it"):
        remove_voter(DYNAMIC, 103, OLD[103], secrets=nobody, by=seen.by)


def test_a_static_quorum_is_asked_for_nothing() -> None:
    seen = Quorum(described(*(Voter(i, 1000) for i in (101, 102))))
    with pytest.raises(Refused, match="the quorum is a static one"):
        add_voter(DYNAMIC, 103, NEW, secrets=nobody, by=seen.by)
    assert seen.asked == 0


def only_addresses(node: int) -> Spoil:
    return config(node, controller__quorum__voters=None, controller__quorum__bootstrap__servers="127.10.0.101:9093")


# -- files -------------------------------------------------------------------------------------------------------------


def test_the_directory_is_formatted_without_voters_of_its_own() -> None:
    given = bring_back_controller(DYNAMIC, 103, "an id", "3.9-IV0").variables
    assert given["joins_a_quorum"] is True
    assert given["properties"]["controller.quorum.bootstrap.servers"].count(":") == 3
    assert "controller.quorum.voters" not in given["properties"]
    assert "joins_a_quorum" not in bring_back_controller(SPEC, 103, "an id", "3.9-IV0").variables


@pytest.mark.parametrize(
    ("spec", "spoil", "verdict"),
    [
        (SPEC, quorum(*(Voter(i, 1000) for i in (101, 102, 103))), Verdict.PASS),
        (SPEC, quorum(*WHOLE), Verdict.PASS),
        (DYNAMIC, quorum(*WHOLE), Verdict.PASS),
        (DYNAMIC, quorum(*(Voter(i, 1000) for i in (101, 102, 103))), Verdict.FAIL),
        (DYNAMIC, lambda seen: replace(seen, quorum=WHY), Verdict.UNKNOWN),
    ],
)
def test_a_file_without_voters_is_no_file_of_a_static_quorum(spec: ClusterSpec, spoil: Spoil, verdict: Verdict) -> None:
    assert CHECKS["KRB-PRE-120"].run(seen_with(spoil), spec).verdict is verdict


@pytest.mark.parametrize(
    ("spoil", "verdict"),
    [
        (lambda seen: seen, Verdict.PASS),
        (only_addresses(102), Verdict.FAIL),
        (both(only_addresses(102), quorum(*WHOLE)), Verdict.PASS),
        (lambda seen: replace(only_addresses(102)(seen), quorum=WHY), Verdict.UNKNOWN),
        (on_host(102, config=WHY), Verdict.UNKNOWN),
        (on_host(102, config=None), Verdict.PASS),
    ],
)
def test_a_controller_whose_file_names_no_voter_is_not_restarted_in_a_static_quorum(
    spoil: Spoil, verdict: Verdict
) -> None:
    """As a chart of somebody else's wrote them (bitnami/charts 34015)."""
    assert CHECKS["KRB-PRE-121"].run(spoil(observation(Phase.FINALIZED)), SPEC).verdict is verdict


def test_before_there_is_a_quorum_none_of_this_is_in_the_way() -> None:
    seen = observation(Phase.ZOOKEEPER)
    codes = ("KRB-PRE-120", "KRB-PRE-121", "KRB-PRE-122")
    assert {CHECKS[code].run(seen, SPEC).verdict for code in codes} == {Verdict.PASS}


@pytest.mark.parametrize(
    ("endpoints", "verdict"),
    [
        (("CONTROLLER://127.10.0.103:9093",), Verdict.PASS),
        (("CONTROLLER://localhost:9093",), Verdict.FAIL),
        (("OTHER://127.10.0.103:9093",), Verdict.FAIL),
        (("CONTROLLER://127.10.0.103:9094",), Verdict.FAIL),
        ((), Verdict.UNKNOWN),
    ],
)
def test_a_voter_that_the_log_has_at_another_address_is_named(endpoints: tuple[str, ...], verdict: Verdict) -> None:
    at = {i: f"CONTROLLER://{DYNAMIC.controller(i).address}" for i in (101, 102)}
    known = [replace(replica(i), endpoints=(at[i],)) for i in (101, 102)]
    seen = seen_with(quorum(*known, replace(replica(103), endpoints=endpoints)))
    assert CHECKS["KRB-PRE-122"].run(seen, DYNAMIC).verdict is verdict
    capitals = DYNAMIC.model_copy(
        update={
            "controllers": tuple(each.model_copy(update={"host": f"KAFKA-{each.id}"}) for each in DYNAMIC.controllers)
        }
    )
    small = [replace(replica(i), endpoints=(f"CONTROLLER://kafka-{i}:9093",)) for i in (101, 102, 103)]
    assert CHECKS["KRB-PRE-122"].run(seen_with(quorum(*small)), capitals).verdict is Verdict.PASS
    assert "Or, if every controller reaches it there, write that host and port into" in CHECKS["KRB-PRE-122"].fix


def test_a_controller_that_would_add_itself_is_refused_in_the_cluster_file() -> None:
    for where in ("controller_properties", "broker_properties"):
        with pytest.raises(ValueError, match=r"auto.join.enable: with it a controller makes itself a voter"):
            ClusterSpec.model_validate(SPEC.model_dump() | {where: {"controller.quorum.auto.join.enable": "true"}})
