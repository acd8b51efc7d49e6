"""The demo of the quorum: what it triggers, and when it has passed."""

from __future__ import annotations

import pytest
from test_before_after import AFTER, BEFORE, fault

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.quorum.faults import Fault
from lab.demo import DAG
from lab.demo_quorum import DRILL, judged, picture, rendered, runs

SHUTDOWN = Fault.SHUTDOWN.value
BOTH = [
    (BEFORE, AFTER),
    (fault("three", Phase.ZOOKEEPER, 3.0, SHUTDOWN), fault("four", Phase.FINALIZED, 1.0, SHUTDOWN)),
]
DONE = {title: "success" for title, _, _ in runs(30)}


def test_each_drill_is_made_before_the_migration_and_the_same_after_it() -> None:
    planned = runs(30)
    at = [dag_id for _, dag_id, _ in planned].index(DAG)
    before, after = planned[:at], planned[at + 1 :]
    assert [form for _, _, form in before] == [form for _, _, form in after]
    assert {dag_id for _, dag_id, _ in before + after} == {DRILL}


def test_it_has_passed_where_all_of_it_went_well_and_both_sides_are_there() -> None:
    assert all(judged(DONE, len(DONE), Phase.FINALIZED, BOTH).values())


@pytest.mark.parametrize(
    ("states", "phase", "both", "wrong"),
    [
        (dict(list(DONE.items())[:-1]), Phase.FINALIZED, BOTH, "every run succeeded"),
        (DONE | {next(iter(DONE)): "failed"}, Phase.FINALIZED, BOTH, "every run succeeded"),
        (DONE, Phase.DUAL_WRITE, BOTH, "the cluster is in KRaft mode for good"),
        (DONE, Phase.FINALIZED, BOTH[:1], f"{SHUTDOWN} was measured on both sides"),
    ],
)
def test_it_has_not_passed_otherwise(states: dict[str, str], phase: Phase, both: list[object], wrong: str) -> None:
    verdicts = judged(states, len(DONE), phase, both)  # type: ignore[arg-type]
    assert [name for name, held in verdicts.items() if not held] == [wrong]


def test_the_picture_and_the_last_words_show_both_sides() -> None:
    page = picture(BOTH)
    assert page.count("<svg") == 2
    assert "14.2 s (0.7) in ZooKeeper mode" in page
    said = rendered(DONE, BOTH, judged(DONE, len(DONE), Phase.FINALIZED, BOTH))
    assert "14.2 s (0.7) in ZooKeeper mode" in said and "NO " not in said
    assert "Nothing was measured" in picture([])
