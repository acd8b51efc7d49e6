"""Many groups on a schedule: which are toggled, which wait, and when all go back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from groups_seen_as import kafka, look, new, zookeeper
from pydantic import ValidationError
from toggled_group import T0, A, B, by_kafka, migrating

from kraft_runbook.cluster.group_toggles import GroupToggles, Relief
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.groups.look import Mode
from kraft_runbook.groups.toggles.fleet import FleetPlan, Kept, Seen, digest_of, digest_of_members, plan_fleet

HOUR = 3600.0
SETTINGS = GroupToggles(groups=("g.*",), unchanged_for=HOUR, at_once=2)
RELIEF = Relief(metric="load", above=10)
WITH_RELIEF = SETTINGS.model_copy(update={"relief": RELIEF})


def known(*looks: Any, since: float = 0, **changes: Any) -> Kept:
    return Kept(seen={each.name: Seen(digest_of(each), since) for each in looks}, **changes)


def plan(
    *looks: Any,
    kept: Kept | None = None,
    now: float = 2 * HOUR,
    settings: GroupToggles = SETTINGS,
    metric: Any = None,
) -> FleetPlan:
    return plan_fleet(looks, looks, settings, known(*looks) if kept is None else kept, now, metric)


def toggled(found: FleetPlan) -> list[str]:
    return [each.group for each in found.toggle]


def test_a_group_that_has_been_unchanged_for_long_enough_is_toggled() -> None:
    assert toggled(plan(migrating())) == ["g"]
    waits = plan(migrating(), now=HOUR / 2)
    assert toggled(waits) == [] and waits.waits == {"g": "unchanged for 1800 of 3600 s"}


def test_the_time_begins_anew_with_each_change_and_with_the_first_look() -> None:
    seen = migrating()
    first = plan(seen, kept=Kept(), now=HOUR)
    assert first.waits == {"g": "unchanged for 0 of 3600 s"}
    assert first.kept.seen["g"].since == HOUR
    again = plan(migrating(mode=Mode.OTHER), kept=first.kept, now=2 * HOUR)
    assert again.kept.seen["g"].since == 2 * HOUR and toggled(again) == []
    assert toggled(plan(seen, kept=first.kept, now=2 * HOUR)) == ["g"]


def test_a_group_that_is_not_read_at_a_moment_is_not_changed_by_that() -> None:
    kept = known(migrating())
    unread = plan(look(Unread("no right")), kept=kept)
    assert unread.kept.seen == kept.seen and "no right" in unread.waits["g"]


def test_so_many_at_once() -> None:
    found = plan(*(migrating(name=f"g{n}") for n in range(4)))
    assert toggled(found) == ["g0", "g1"]
    assert found.waits == {"g2": "2 are toggled at once", "g3": "2 are toggled at once"}
    assert found.render_text().endswith("2 to Kafka, 0 back, 2 wait")


def test_no_group_is_toggled_before_those_of_earlier_runs_have_settled() -> None:
    looks = by_kafka(name="g0"), migrating(name="g1")
    kept = known(*looks, toggled={"g0": 1.0})
    assert plan(*looks, kept=kept).waits == {"g1": "g0: not settled yet"}
    assert toggled(plan(*looks, kept=kept.with_settled(["g0"]))) == ["g1"]


def test_a_group_that_the_file_does_not_name_is_left_alone() -> None:
    found = plan(migrating(name="other"), migrating(name="og"))
    assert (toggled(found), found.waits, found.kept.seen) == ([], {}, {})


def test_a_group_that_must_not_be_toggled_waits_with_the_reason() -> None:
    assert "it is CONTRADICTORY" in plan(migrating(more=(new("app"),))).waits["g"]
    assert plan(by_kafka()).waits == {"g": "it follows Kafka by now"}


def test_what_changed_between_the_two_looks_waits() -> None:
    kept = known(migrating())
    found = plan_fleet([migrating(mode=Mode.OTHER)], [migrating()], SETTINGS, kept, 2 * HOUR, None)
    assert "migration/mode changed between two looks" in found.waits["g"]


def test_a_group_that_did_not_settle_is_not_tried_again_with_the_same_members() -> None:
    """It failed by Kafka's assignment, and is back by ZooKeeper's."""
    seen = migrating()
    kept = known(seen, failed={"g": digest_of_members(by_kafka())})
    assert "was put back with these members" in plan(seen, kept=kept).waits["g"]
    assert toggled(plan(seen, kept=known(seen, failed={"g": "others"}))) == ["g"]


def test_what_is_halted_stays_so() -> None:
    assert plan(migrating(), kept=known(migrating(), halted="g2 did not settle")).waits == {"g": "g2 did not settle"}


# -- relief ------------------------------------------------------------------------------------------------------------


def relieved(*looks: Any, toggled: Mapping[str, float], metric: Any = 11.0) -> FleetPlan:
    kept = known(*looks, toggled=toggled, settled=frozenset(toggled))
    return plan(*looks, kept=kept, settings=WITH_RELIEF, metric=metric)


def test_all_that_runs_have_toggled_go_back_when_the_metric_has_passed_its_threshold() -> None:
    looks = by_kafka(name="g0"), by_kafka(name="g1"), by_kafka(name="g2"), migrating(name="g3")
    found = relieved(*looks, toggled={"g0": 1, "g2": 1})
    assert [each.group for each in found.back] == ["g0", "g2"], "g1 was toggled by a person"
    assert found.relief == "load is 11, above 10" == found.kept.halted
    assert toggled(found) == [] and found.waits["g3"] == found.relief


def test_after_a_relief_nothing_is_toggled_until_a_person_says_so() -> None:
    halted = relieved(by_kafka(), toggled={"g": 1}).kept.with_back("g")
    later = plan(migrating(), kept=halted, now=9 * HOUR, settings=WITH_RELIEF, metric=1.0)
    assert later.waits == {"g": "load is 11, above 10"}


@pytest.mark.parametrize("metric", [1.0, Unread("silent")])
def test_a_relief_goes_on_after_a_kill_until_all_have_gone_back(metric: Any) -> None:
    """The run that began it was killed after g0, and with g0 the load has gone."""
    begun = relieved(by_kafka(name="g0"), by_kafka(name="g1"), toggled={"g0": 1, "g1": 1}).kept
    half = migrating(name="g0"), by_kafka(name="g1")
    found = plan(*half, kept=Kept.from_dict(begun.with_back("g0").to_dict()), settings=WITH_RELIEF, metric=metric)
    assert [each.group for each in found.back] == ["g1"] and found.relief == "load is 11, above 10"
    over = plan(migrating(name="g0"), migrating(name="g1"), kept=found.kept.with_back("g1"), settings=WITH_RELIEF)
    assert (over.relief, over.kept.relief, over.kept.halted) == ("", "", "load is 11, above 10")


def test_one_that_cant_go_back_is_named_and_keeps_no_other() -> None:
    looks = by_kafka(name="g0", more=(new("app", T0),)), by_kafka(name="g1")
    found = relieved(*looks, toggled={"g0": 1, "g1": 1})
    assert [each.group for each in found.back] == ["g1"]
    assert "MIXED_NEW" in found.stuck["g0"] and "replace its new members" in found.stuck["g0"]


def test_a_group_outside_the_file_s_patterns_goes_back_too_where_a_run_has_toggled_it() -> None:
    found = relieved(by_kafka(name="renamed"), toggled={"renamed": 1})
    assert [each.group for each in found.back] == ["renamed"]


@pytest.mark.parametrize("metric", [1.0, 10.0])
def test_below_its_threshold_the_metric_does_nothing(metric: float) -> None:
    found = relieved(by_kafka(name="g0"), migrating(name="g1"), toggled={"g0": 1}, metric=metric)
    assert (found.back, toggled(found)) == ((), ["g1"])


def test_a_metric_that_is_not_read_toggles_nothing_and_puts_nothing_back() -> None:
    found = relieved(by_kafka(name="g0"), migrating(name="g1"), toggled={"g0": 1}, metric=Unread("silent"))
    assert (found.back, toggled(found)) == ((), [])
    assert found.waits == {"g1": "load could not be read, and nobody would see that the brokers suffer: silent"}


def test_groups_that_are_no_longer_of_the_runs() -> None:
    """A person has put one back, one has new members alone, one is gone."""
    looks = migrating(name="g0"), look(zookeeper(mode=Mode.KAFKA), kafka(new("app")))
    kept = known(*looks, toggled={"g0": 1, "g": 1, "gone": 1, "g3": 1})
    assert plan(*looks, by_kafka(name="g3"), kept=kept).kept.toggled == {"g3": 1}


# -- what is kept, and the file ----------------------------------------------------------------------------------------


def test_what_is_kept_is_read_again_as_it_was() -> None:
    kept = known(migrating(), halted="h", failed={"f": "x"}).with_toggled("g", 5).with_settled(["g", "not toggled"])
    assert Kept.from_dict(kept.to_dict()) == kept
    assert kept.settled == {"g"} and kept.with_toggled("g", 6).settled == frozenset()
    back = kept.with_back("g", failed="who")
    assert (back.toggled, back.settled, back.failed) == ({}, frozenset(), {"f": "x", "g": "who"})


def test_who_is_there_is_told_by_ids_that_a_member_gets_anew() -> None:
    assert digest_of(migrating()) == digest_of(migrating(given={A: (), B: (T0,)}))
    assert digest_of(migrating()) != digest_of(migrating(mode=Mode.OTHER))
    assert digest_of(look(Unread("x"))) == ""


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"groups": []}, "at least 1 item"),
        ({"groups": ["("]}, "is no pattern"),
        ({"groups": ["x"], "at_once": 0}, "greater than or equal to 1"),
        ({"groups": ["x"], "commit_interval": 600}, "settled_within 300 s is less than two commit_intervals"),
        ({"groups": ["x"], "relief": {"metric": "m"}}, "name one of 'above' and 'below'"),
        ({"groups": ["x"], "relief": {"metric": "m", "above": 1, "below": 2}}, "name one of 'above' and 'below'"),
    ],
)
def test_a_wrong_block_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        GroupToggles(**given)


def test_a_threshold_is_above_or_below() -> None:
    below = Relief(metric="idle", below=0.3)
    assert (below.passed(0.2), below.passed(0.3)) == ("idle is 0.2, below 0.3", "")
    assert (below.worst({1: 0.5, 2: 0.1}), RELIEF.worst({1: 0.5, 2: 0.1})) == (0.1, 0.5)
