"""Where a roll stands, by the versions that nodes show, and in which order they change."""

from __future__ import annotations

from dataclasses import replace

import pytest
from feature_looks import BROKERS, CONTROLLERS, kafka3, kafka4, look, shown

from kraft_runbook.cluster.feature_levels import FeatureObservation, NodeFeatures
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.software.roll import Rolled, order, read_roll


def on_new(*node_ids: int) -> FeatureObservation:
    seen, newer = look(kafka3()), look(kafka4())
    return replace(
        seen,
        brokers={i: (newer if i in node_ids else seen).brokers[i] for i in BROKERS},
        controllers={i: (newer if i in node_ids else seen).controllers[i] for i in CONTROLLERS},
    )


@pytest.mark.parametrize(
    ("nodes", "stage"),
    [
        ((), Rolled.OLD),
        ((101,), Rolled.MIXED),
        ((1, *CONTROLLERS), Rolled.MIXED),
        ((*BROKERS, *CONTROLLERS), Rolled.NEW),
    ],
)
def test_the_stage_follows_from_what_the_nodes_show(nodes: tuple[int, ...], stage: Rolled) -> None:
    reading = read_roll(shown(on_new(*nodes)), "3.9.2", "4.1.1")
    assert (reading.stage, reading.on_new) == (stage, frozenset(nodes))
    assert reading.reasons == (f"{len(nodes)} of 6 nodes run 4.1.1, the others 3.9.2",)


def test_a_node_that_does_not_say_or_runs_a_third_version_leaves_it_unknown() -> None:
    seen = on_new(101)
    silent = replace(seen, brokers={**seen.brokers, 2: Unread("it refuses connections")})
    assert read_roll(shown(silent), "3.9.2", "4.1.1").stage is Rolled.UNKNOWN
    third = seen.brokers[2]
    assert isinstance(third, NodeFeatures)
    other = replace(seen, brokers={**seen.brokers, 2: replace(third, software_version="3.9.1")})
    reading = read_roll(shown(other), "3.9.2", "4.1.1")
    assert reading.stage is Rolled.UNKNOWN
    assert reading.reasons == ("broker 2 runs 3.9.1, neither 3.9.2 nor 4.1.1",)


def test_controllers_first_with_the_active_one_last_then_brokers_and_back_the_brokers_first() -> None:
    brokers, controllers = dict.fromkeys(BROKERS), dict.fromkeys(CONTROLLERS)
    assert order(brokers, controllers, 101) == (102, 103, 101, 1, 2, 3)
    assert order(brokers, controllers, 102, back=True) == (1, 2, 3, 101, 103, 102)


def test_controllers_alone_come_before_those_that_are_brokers_too_and_after_them_on_the_way_back() -> None:
    assert order((4,), (1, 2, 101), 1, both=(1, 2)) == (101, 2, 1, 4)
    assert order((4,), (1, 2, 101), 9, both=(1, 2), back=True) == (4, 1, 2, 101)


def test_a_node_that_is_down_is_half_way_so_that_its_step_goes_on() -> None:
    without = {who: each for who, each in shown(on_new(*CONTROLLERS)).items() if who != "broker 1"}
    reading = read_roll(without, "3.9.2", "4.1.1", down=["broker 1 does not run"])
    assert reading.stage is Rolled.MIXED
    assert reading.reasons == ("3 of 5 nodes run 4.1.1, the others 3.9.2", "broker 1 does not run")
    assert read_roll({}, "3.9.2", "4.1.1", down=["broker 1 does not run"]).stage is Rolled.UNKNOWN
