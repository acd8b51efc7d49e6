"""A controller that has fetched the log and not applied it is cold: every wait for controllers waits for it, and the
gate of finalization refuses. One whose exporter lacks the gauges is UNKNOWN at the gate, and holds up no roll.
"""

from __future__ import annotations

import pytest
from observations import SPEC, Spoil, a_controller, both, gauges, later, observation, with_quorum

from kraft_runbook.cluster.observation import ClusterObservation, ControllerMetrics, Unread, Voter, was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed
from kraft_runbook.migration import conditions as migration
from kraft_runbook.migration.checks import CHECKS
from kraft_runbook.restart import conditions as restart
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.runbook.warm import NOT_KNOWN, RULE, Warmth, warmth
from kraft_runbook.software import conditions as upgrade
from kraft_runbook.steps.waiting import Wait

COMMITTED = 400_374
"""The high watermark of the samples; what they hold of controllers was read from JMX of Kafka 3.9.2."""


def sampled(offset: int | None, lag: int | None, *, active: bool = False) -> ControllerMetrics:
    return ControllerMetrics(None, active, None, None, last_applied_offset=offset, last_applied_lag_ms=lag)


@pytest.mark.parametrize(
    ("metrics", "is_warm"),
    [
        pytest.param(sampled(400_373, 64), True, id="idle"),
        pytest.param(sampled(400_372, 1027), True, id="between two NoOp records"),
        pytest.param(sampled(100_000, 70_661), False, id="replaying: fetched all, 300,374 behind in applying"),
        pytest.param(sampled(400_353, 70_661), False, id="21 records behind by a clock that differs"),
        pytest.param(sampled(400_354, 70_661), True, id="20 records behind by a clock that differs"),
        pytest.param(sampled(398_000, 1999), True, id="much is written"),
        pytest.param(sampled(398_000, 2000), False, id="as old as a cold one's"),
        pytest.param(sampled(398_000, -3000), False, id="its clock is behind"),
        pytest.param(sampled(0, 1_700_000_000_000), False, id="just started: nothing is applied"),
        pytest.param(sampled(400_373, 0, active=True), True, id="the active one"),
        pytest.param(sampled(100_000, 0, active=True), False, id="an active one's lag is 0 by definition"),
        pytest.param(sampled(None, 431), True, id="an exporter with the lag alone"),
        pytest.param(sampled(None, 0, active=True), True, id="an exporter with the lag alone, the active one"),
        pytest.param(sampled(400_370, None), True, id="an exporter with the offset alone"),
    ],
)
def test_what_a_controller_has_applied_tells_whether_it_is_warm(metrics: ControllerMetrics, is_warm: bool) -> None:
    assert warmth(metrics, COMMITTED) is (Warmth.WARM if is_warm else Warmth.COLD)


def test_who_has_applied_all_that_was_committed_at_the_look_before_is_warm_however_much_is_written() -> None:
    busy = sampled(398_000, 9_000)
    assert warmth(busy, COMMITTED, before=398_001) is Warmth.WARM
    assert warmth(busy, COMMITTED, before=398_002) is Warmth.COLD


@pytest.mark.parametrize(
    ("metrics", "committed", "why"),
    [
        (sampled(None, None), COMMITTED, "no gauge KafkaController.LastAppliedRecordOffset"),
        (
            sampled(None, 70_661),
            COMMITTED,
            "70661 ms old, and its metrics hold no KafkaController.LastAppliedRecordOffset",
        ),
        (sampled(None, -3000), COMMITTED, "its metrics hold no KafkaController.LastAppliedRecordOffset"),
        (sampled(400_373, 70_661), -1, "nobody leads that knows what is committed"),
        (sampled(400_373, 70_661), None, "nobody leads that knows what is committed"),
    ],
)
def test_what_is_not_told_is_unread(metrics: ControllerMetrics, committed: int | None, why: str) -> None:
    found = warmth(metrics, committed)
    assert not was_read(found)
    assert why in found.reason


def cold(node: int) -> Spoil:
    return gauges(node, last_applied_offset=100, last_applied_lag_ms=70_661)


WAITS = [
    (migration.QUORUM_READY, Phase.PRE_MIGRATION, None),
    (migration.QUORUM_WHOLE, Phase.DUAL_WRITE, None),
    (migration.CONTROLLER_CAUGHT_UP, Phase.DUAL_WRITE, 102),
    (restart.QUORUM_WHOLE, Phase.KRAFT, None),
    (restart.CONTROLLER_BACK, Phase.KRAFT, 102),
    (upgrade.QUORUM_WHOLE, Phase.KRAFT, None),
    (upgrade.CONTROLLER_CAUGHT_UP, Phase.KRAFT, 102),
    (upgrade.CONTROLLER_ON_FORMER, Phase.KRAFT, 102),
    (upgrade.CONTROLLER_ON_TARGET, Phase.KRAFT, 102),
]
ROLL = SPEC.model_copy(
    update={"kafka": SPEC.kafka.model_copy(update={"upgrade_to": SPEC.kafka})}  # both versions are the same here
)
each_wait = pytest.mark.parametrize(("condition", "phase", "node"), WAITS, ids=lambda v: getattr(v, "name", None))


def looks(phase: Phase, spoil: Spoil) -> tuple[ClusterObservation, ClusterObservation]:
    versions = (a_controller(i, software_version=SPEC.kafka.version) for i in SPEC.controller_ids)
    seen = spoil(both(*versions)(observation(phase)))
    return seen, later(seen, 1)


@each_wait
def test_every_wait_for_a_controller_waits_until_it_is_warm(condition: Condition, phase: Phase, node: int) -> None:
    earlier, seen = looks(phase, cold(102))
    progress = condition.progress(seen, ROLL, node_id=node, earlier=earlier)
    assert not progress.done
    assert not progress.hopeless
    assert progress.waiting_for == (
        "waiting for controller 102 to apply the metadata log: it has applied up to offset 100 of"
        f" {seen.quorum.high_watermark - 1}, its last record is 70661 ms old"  # type: ignore[union-attr]
    )
    earlier, seen = looks(phase, lambda seen: seen)
    assert condition.progress(seen, ROLL, node_id=node, earlier=earlier).done


@each_wait
def test_no_wait_is_held_up_by_an_exporter_without_the_gauges_and_the_evidence_says_so(
    condition: Condition, phase: Phase, node: int
) -> None:
    earlier, seen = looks(phase, gauges(102, last_applied_offset=None, last_applied_lag_ms=None))
    assert condition.progress(seen, ROLL, node_id=node, earlier=earlier).done
    assert list(condition.keeps(seen)[NOT_KNOWN]) == ["102"]


def test_a_controller_that_was_elected_cold_is_waited_for() -> None:
    """Its metrics do not call it active yet, and it knows nothing of what is committed."""
    seen = both(
        with_quorum(leader_id=102, high_watermark=-1, voters=tuple(Voter(i, 1000) for i in SPEC.controller_ids)),
        gauges(101, active=False, last_applied_lag_ms=431),
        gauges(102, last_applied_offset=100, last_applied_lag_ms=70_661),
    )(observation(Phase.KRAFT))
    progress = restart.QUORUM_WHOLE.progress(seen, SPEC)
    assert progress.waiting_for == (
        "waiting to tell whether controller 102 is warm: nobody leads that knows what is committed"
    )


def test_a_controller_whose_metrics_do_not_answer_is_waited_for() -> None:
    seen = a_controller(102, metrics=Unread("its metrics timed out"))(observation(Phase.KRAFT))
    assert "its metrics timed out" in restart.CONTROLLER_BACK.progress(seen, SPEC, node_id=102).waiting_for
    assert restart.CONTROLLER_BACK.progress(seen, SPEC, node_id=103).done


class Recorded:
    """A cluster that shows these looks, one after the other."""

    def __init__(self, *looks: ClusterObservation) -> None:
        self._looks, self.told, self._at, self.observed = list(looks), list[str](), 1.0, 0

    @property
    def spec(self) -> ClusterSpec:
        return SPEC

    def tell(self, line: str, /) -> None:
        self.told.append(line)

    def observe(self) -> ClusterObservation:
        self._at += 1.0
        self.observed += 1
        return self._looks.pop(0)

    def now(self) -> float:
        return self._at

    def pause(self, seconds: float, /) -> None:
        self._at += seconds


def test_a_wait_that_can_t_tell_whether_a_controller_is_warm_says_which_rule_to_add() -> None:
    blind = gauges(103, last_applied_offset=None, last_applied_lag_ms=None)(observation(Phase.KRAFT))
    cluster = Recorded(*(later(blind, n) for n in range(SPEC.deadlines.healthy_in_a_row)))
    wait = Wait(cluster, restart.QUORUM_WHOLE, 60.0)
    while not wait.look():
        pass
    assert cluster.told[-1].startswith("whether controller 103 is warm is not known: its metrics hold no gauge")
    assert cluster.told[-1].endswith(RULE)


def test_a_roll_goes_on_only_once_the_restarted_controller_has_applied_the_log() -> None:
    spec_looks = [cold(102)(later(observation(Phase.KRAFT), n)) for n in range(4)]
    warm = [later(observation(Phase.KRAFT), 4 + n) for n in range(SPEC.deadlines.healthy_in_a_row)]
    cluster = Recorded(*spec_looks, *warm)
    wait = Wait(cluster, restart.CONTROLLER_BACK, 60.0, 102)
    assert [wait.look() for _ in range(len(spec_looks) + len(warm))] == [
        *[False] * (len(spec_looks) + len(warm) - 1),
        True,
    ]


def test_a_wait_tells_why_a_controller_was_not_judged_and_no_rule_where_none_is_missing() -> None:
    """Between two looks the metrics of a third controller broke off; the wait is about another."""
    dark = a_controller(103, metrics=Unread("its metrics timed out"))(observation(Phase.KRAFT))
    cluster = Recorded(*(later(dark, n) for n in range(SPEC.deadlines.healthy_in_a_row)))
    wait = Wait(cluster, restart.CONTROLLER_BACK, 60.0, 102)
    while not wait.look():
        pass
    assert cluster.told[-1] == "whether controller 103 is warm is not known: its metrics timed out"


def applied(offset: int, at: int) -> ClusterObservation:
    return gauges(102, last_applied_offset=offset, last_applied_lag_ms=70_661)(later(observation(Phase.KRAFT), at))


def test_a_wait_goes_on_past_its_deadline_while_the_controller_applies_its_log() -> None:
    warm = [later(observation(Phase.KRAFT), 30 + n) for n in range(SPEC.deadlines.healthy_in_a_row)]
    cluster = Recorded(*(applied(10 * n, n) for n in range(30)), *warm)
    wait = Wait(cluster, restart.CONTROLLER_BACK, 5.0, 102)
    assert [wait.look() for _ in range(30 + len(warm))][-1]


def test_a_wait_ends_where_the_controller_stands_still_for_as_long_as_its_deadline() -> None:
    cluster = Recorded(*(applied(10 * min(n, 9), n) for n in range(30)))
    wait = Wait(cluster, restart.CONTROLLER_BACK, 5.0, 102)
    with pytest.raises(StepFailed, match="the deadline of 5 s has passed, and for 6 s nothing got on"):
        for _ in range(30):
            wait.look()
    assert cluster.observed == 9 + 1 + 6


def test_a_wait_ends_where_the_log_grows_as_fast_as_the_controller_applies_it() -> None:
    """Its offset rises, and it never has what is committed."""

    def growing(at: int) -> ClusterObservation:
        end = 1000 * at + 5000
        grown = with_quorum(high_watermark=end, voters=tuple(Voter(i, end) for i in SPEC.controller_ids))
        return gauges(102, last_applied_offset=1000 * at, last_applied_lag_ms=5_000)(
            grown(later(observation(Phase.KRAFT), at))
        )

    wait = Wait(Recorded(*map(growing, range(30))), restart.CONTROLLER_BACK, 5.0, 102)
    with pytest.raises(StepFailed, match="the deadline of 5 s has passed, and for 6 s nothing got on"):
        for _ in range(30):
            wait.look()


def test_what_rises_while_something_else_is_waited_for_gives_no_time() -> None:
    """A voter that is down is down, however much the others apply."""
    down = (a_controller(102, running=False)(applied(10 * n, n)) for n in range(30))
    wait = Wait(Recorded(*down), restart.QUORUM_WHOLE, 5.0)
    with pytest.raises(StepFailed, match="controller 102"):
        for _ in range(30):
            wait.look()


def at_the_gate(spoil: Spoil) -> tuple[Verdict, str, str]:
    seen = spoil(observation(Phase.DUAL_WRITE))
    report = CHECKS.run(later(seen, 1), SPEC, Phase.DUAL_WRITE, gate="finalize", earlier=seen)
    found = next(each for each in report.results if each.code == "KRB-QRM-003")
    return found.verdict, found.evidence, found.fix


def test_the_gate_of_finalization_refuses_while_a_controller_is_cold() -> None:
    assert at_the_gate(lambda seen: seen)[0] is Verdict.PASS
    verdict, evidence, fix = at_the_gate(cold(103))
    assert verdict is Verdict.FAIL
    assert evidence.startswith("controller 103 is cold: it has applied up to offset 100")
    assert fix.startswith("wait until the named controller has applied the log")


def test_at_the_gate_an_exporter_without_the_gauges_is_unknown_and_the_rule_is_named() -> None:
    verdict, evidence, fix = at_the_gate(gauges(103, last_applied_offset=None, last_applied_lag_ms=None))
    assert (verdict, fix) == (Verdict.UNKNOWN, RULE)
    assert "controller 103: its metrics hold no gauge" in evidence


def test_no_other_gate_asks_for_it() -> None:
    codes = {each.code for each in CHECKS.applicable(Phase.HYBRID, "dual_write")}
    assert "KRB-QRM-003" not in codes
