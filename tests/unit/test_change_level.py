"""A level is changed once, at whoever leads, and only from where it was planned. The leader is a fake that records what
it is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from feature_looks import kafka3, kafka4, look
from observations import SPEC, nobody

from kraft_runbook.cluster.feature_levels import METADATA_VERSION, Answer, LevelsInLog, NodeFeatures, WrittenLevel
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.io.kafka.feature_calls import UpgradeType
from kraft_runbook.levels.change import LevelChange, plan_change
from kraft_runbook.procedures.change_level import TRIES, Calls, Pace, await_level, change_level

OK, NOT_LEADER = (0, ""), (41, "")
SAID = "Invalid metadata.version 20. Refusing the requested downgrade because it might delete metadata information."
REFUSES = (95, SAID)


@dataclass
class Quorum:
    """``answers``: to each request in turn, code and text, or what happens instead. An accepted one that is not
    validate-only changes the level.
    """

    answers: list[tuple[int, str] | Callable[[Quorum], tuple[int, str]]]
    level: int = 21
    leader: int = 101
    asked: list[tuple[int, int, bool]] = field(default_factory=list)
    looks_without_a_leader: int = 0
    shows: NodeFeatures | None = None

    def update(
        self,
        _: ClusterSpec,
        leader: int,
        feature: str,
        level: int,
        kind: UpgradeType,
        *,
        validate_only: bool,
        **__: object,
    ) -> Answer:
        assert kind is (UpgradeType.SAFE_DOWNGRADE if level < self.level else UpgradeType.UPGRADE)
        self.asked.append((leader, level, validate_only))
        given = self.answers.pop(0)
        code, text = given(self) if callable(given) else given
        if not code and not validate_only:
            self.level = level
        return Answer(0, "", {feature: (code, text)})

    def read(self, _: ClusterSpec, **__: object) -> tuple[int, LevelsInLog]:
        if self.looks_without_a_leader:
            self.looks_without_a_leader -= 1
            raise Unreachable("no leader of the controller quorum was found", way_out="wait for their election")
        return self.leader, LevelsInLog((WrittenLevel(METADATA_VERSION, self.level, 5),), {}, {}, 3, 9)


QUICK = Pace(apart=0, settles=0, leads_within=0.05, seen_within=0.01)
PATIENT = replace(QUICK, leads_within=60, seen_within=60)


def run(quorum: Quorum, change: LevelChange | None = None, pace: Pace = PATIENT) -> bool:
    calls = Calls(levels=quorum.read, update=quorum.update, shown=lambda *_, **__: quorum.shows)
    return change_level(SPEC, change or to_20(), secrets=nobody, tell=print, calls=calls, pace=pace)  # type: ignore[arg-type]


def test_the_level_of_kraft_version_is_what_the_leader_shows() -> None:
    """It stands in the quorum's control records, which are no FeatureLevelRecord: by the log it would be 0 for ever."""
    quorum = Quorum([], shows=NodeFeatures(101, {}, {"kraft.version": 1}, 7, "4.1.1"))
    assert not run(quorum, plan_change(kafka4(), "kraft.version", 0, "1"))
    assert quorum.asked == []


def to_20() -> LevelChange:
    return plan_change(kafka3(), METADATA_VERSION, 21, "20")


def lost(_: Quorum) -> tuple[int, str]:
    raise Unreachable("controller 101 did not answer", way_out="")


def resigned_after_it_was_applied(quorum: Quorum) -> tuple[int, str]:
    quorum.level, quorum.leader = 20, 102
    return NOT_LEADER


def lost_and_nobody_leads(quorum: Quorum) -> tuple[int, str]:
    quorum.looks_without_a_leader = 10**9
    return lost(quorum)


def lost_after_it_was_applied(quorum: Quorum) -> tuple[int, str]:
    quorum.level = 20
    raise Unreachable("controller 101 did not answer", way_out="")


def lost_with_the_leader(quorum: Quorum) -> tuple[int, str]:
    quorum.leader, quorum.looks_without_a_leader = 102, 4
    raise Unreachable("controller 101 did not answer", way_out="")


def test_it_is_validated_and_then_applied_once() -> None:
    quorum = Quorum([OK, OK])
    assert run(quorum)
    assert quorum.asked == [(101, 20, True), (101, 20, False)]


def test_where_it_is_already_there_nothing_is_sent() -> None:
    quorum = Quorum([], level=20)
    assert not run(quorum) and quorum.asked == []


def test_from_another_level_than_planned_nothing_is_sent() -> None:
    quorum = Quorum([], level=19)
    with pytest.raises(Refused, match=r"metadata\.version is at 19, and this change was planned from 21 to 20"):
        run(quorum)
    assert quorum.asked == []


def test_what_validate_only_refuses_is_never_applied() -> None:
    quorum = Quorum([REFUSES])
    with pytest.raises(
        Refused, match=r"the server refuses metadata\.version 20: Invalid metadata\.version 20"
    ) as error:
        run(quorum)
    assert quorum.asked == [(101, 20, True)] and "would be lost" in error.value.way_out


def test_an_answer_that_never_came_is_not_asked_for_again_once_the_level_is_there() -> None:
    """It was this call that changed it, which is what the run's evidence says."""
    quorum = Quorum([OK, lost_after_it_was_applied])
    assert run(quorum)
    assert [validate_only for _, _, validate_only in quorum.asked] == [True, False]


def test_an_answer_that_was_lost_with_the_leader_is_asked_of_the_next_one() -> None:
    quorum = Quorum([OK, lost_with_the_leader, OK, OK])
    assert run(quorum)
    assert quorum.asked == [(101, 20, True), (101, 20, False), (102, 20, True), (102, 20, False)]


def test_a_leader_that_resigns_before_its_record_is_committed_may_have_changed_the_level() -> None:
    """It answers NOT_CONTROLLER to every such request, and the next leader may commit the record."""
    quorum = Quorum([OK, resigned_after_it_was_applied])
    assert run(quorum) and len(quorum.asked) == 2
    not_applied = Quorum([OK, NOT_LEADER, OK, OK])
    assert run(not_applied) and len(not_applied.asked) == 4


def test_what_became_of_a_request_is_said_to_be_unknown_where_nothing_shows_it() -> None:
    never_there = Quorum([OK, lost] * TRIES)
    unknown = r"whether metadata\.version 20 was applied is not known: controller 101 did not answer, and "
    with pytest.raises(StepFailed, match=unknown + r"the metadata log shows metadata\.version 21 so far"):
        run(never_there)
    nobody_leads = Quorum([OK, lost_and_nobody_leads])
    with pytest.raises(StepFailed, match=unknown + "since then no leader of the controller quorum was found"):
        run(nobody_leads, pace=QUICK)


def test_the_last_request_is_looked_for_as_the_others_are() -> None:
    quorum = Quorum([OK, lost] * (TRIES - 1) + [OK, lost_after_it_was_applied])
    assert run(quorum)


def test_an_answer_to_validate_only_that_never_came_leaves_nothing_in_doubt() -> None:
    quorum = Quorum([lost] * TRIES)
    with pytest.raises(StepFailed, match="no leader of the quorum took"):
        run(quorum)


def test_where_nobody_leads_it_looks_again_until_its_time_is_over() -> None:
    quorum = Quorum([OK, OK], looks_without_a_leader=3)
    assert run(quorum) and len(quorum.asked) == 2
    for_ever = Quorum([], looks_without_a_leader=10**9)
    with pytest.raises(Unreachable, match="no leader of the controller quorum was found"):
        run(for_ever, pace=QUICK)


def test_who_does_not_lead_is_not_asked_for_ever() -> None:
    quorum = Quorum([NOT_LEADER] * 9)
    with pytest.raises(StepFailed, match=r"no leader of the quorum took metadata\.version 20 in 3 tries"):
        run(quorum)
    assert len(quorum.asked) == TRIES


def test_a_level_counts_when_every_node_shows_it_twice_in_a_row() -> None:
    asked: list[int] = []

    def shows(_: ClusterSpec, node: object, **__: object) -> NodeFeatures:
        node_id = node.id  # type: ignore[attr-defined]
        asked.append(node_id)
        late = node_id == 3 and asked.count(3) in (1, 3)  # not yet, then, not (a restart), then
        return NodeFeatures(node_id, {}, {METADATA_VERSION: 21 if late else 20}, 7, "3.9.2")

    await_level(SPEC, METADATA_VERSION, 20, secrets=nobody, tell=print, calls=Calls(shown=shows), pace=PATIENT)  # type: ignore[arg-type]
    assert asked.count(3) == 5


def test_who_never_shows_it_is_named() -> None:
    seen = look(kafka3(), 20)

    def shows(_: ClusterSpec, node: object, **__: object) -> NodeFeatures:
        node_id = node.id  # type: ignore[attr-defined]
        if node_id == 102:
            raise Unreachable("controller 102 did not answer", way_out="")
        found = seen.nodes[node_id]
        assert isinstance(found, NodeFeatures)
        return found

    with pytest.raises(
        StepFailed, match=r"is not shown by every node after .* node 102: controller 102 did not answer"
    ):
        await_level(SPEC, METADATA_VERSION, 20, secrets=nobody, tell=print, calls=Calls(shown=shows), pace=QUICK)  # type: ignore[arg-type]
