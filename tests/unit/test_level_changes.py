"""A change of a level: planned by the running software's own table, and what stands in its way, each with a way out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from feature_looks import in_log, kafka3, kafka4, look, ranges, registered

from kraft_runbook.cluster.feature_levels import (
    METADATA_VERSION,
    FeatureObservation,
    LevelsInLog,
    NodeHost,
    Range,
)
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.errors import Refused
from kraft_runbook.levels.change import Direction, plan_change
from kraft_runbook.levels.losses import Loss
from kraft_runbook.levels.obstacles import obstacles, running_software
from kraft_runbook.levels.preview import shuts_out
from kraft_runbook.runbook.obstacle import Obstacle


def ways(seen: FeatureObservation, wanted: str, *, feature: str = METADATA_VERSION) -> list[str]:
    software = running_software(seen)
    assert not isinstance(software, Obstacle), software
    assert not isinstance(seen.log, Unread)
    change = plan_change(software, feature, seen.log.levels.get(feature, 0), wanted)
    return [str(each) for each in obstacles(seen, change, software)]


# -- the plan ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "level"), [("27", 27), ("4.1", 27), ("4.1-IV1", 27), ("4.0", 25), ("4.0-IV0", 22), ("3.9", 21)]
)
def test_a_level_is_named_by_number_name_or_release(wanted: str, level: int) -> None:
    change = plan_change(kafka4(), METADATA_VERSION, 21, wanted)
    assert (change.target, [step.level for step in change.steps]) == (level, list(range(22, level + 1)))


def test_the_starred_levels_on_the_way_are_named_and_say_how_far_back_remains() -> None:
    change = plan_change(kafka4(), METADATA_VERSION, 21, "4.1")
    assert [step.level for step in change.starred] == [23]
    assert change.lowest_afterwards == 23
    text = change.render_text()
    assert "comes: 23 4.0-IV1 *, changes metadata: eligible leader replicas (ELR)" in text
    assert text.endswith(
        "irreversible: 23 (4.0-IV1) changes metadata, and no server lowers across such a level; afterwards 23 is the"
        " lowest that can be had"
    )


def test_a_raise_without_a_star_says_that_it_can_go_back() -> None:
    text = plan_change(kafka4(), METADATA_VERSION, 21, "22").render_text()
    assert "it can go back to 21: no level on the way changes metadata" in text


def test_what_else_a_level_does_is_said_before_it_is_signed() -> None:
    """By 4.1.1: ELR takes the brokers' own min.insync.replicas away, and no level gives it back."""
    raised = plan_change(kafka4(), "eligible.leader.replicas.version", 0, "1").render_text()
    assert "removes what is set for single brokers; lowering the level gives nothing of that back" in raised
    lowered = plan_change(kafka4(), "group.version", 1, "0").render_text()
    assert "consumers with group.protocol=consumer are refused from then on" in lowered
    transactions = plan_change(kafka4(), "transaction.version", 2, "1").render_text()
    assert "transactional producers of Kafka 4 that run may get UNSUPPORTED_VERSION and end for good" in transactions
    for text in (
        plan_change(kafka4(), "group.version", 0, "1").render_text(),
        plan_change(kafka4(), "transaction.version", 0, "2").render_text(),
        plan_change(kafka4(), "eligible.leader.replicas.version", 1, "0").render_text(),
    ):
        assert "refused" not in text and "min.insync" not in text and "producers" not in text


def test_down_the_steps_go_from_the_top() -> None:
    change = plan_change(kafka3(), METADATA_VERSION, 21, "18")
    assert (change.direction, [step.level for step in change.steps]) == (Direction.DOWN, [21, 20, 19])


def test_the_level_that_is_there_is_no_change() -> None:
    change = plan_change(kafka3(), METADATA_VERSION, 21, "3.9")
    assert (change.direction, change.steps) == (Direction.NONE, ())
    assert change.render_text() == "metadata.version is at 21 (3.9-IV0) already: nothing to do"
    assert obstacles(look(), change, kafka3()) == ()


@pytest.mark.parametrize("wanted", ["22", "4.0-IV0", "4.0", "99", "0", "nonsense"])
def test_a_level_beyond_the_software_is_refused_with_its_range(wanted: str) -> None:
    with pytest.raises(Refused, match=r"Kafka 3\.9\.2 supports metadata\.version 1-21; .* is") as refused:
        plan_change(kafka3(), METADATA_VERSION, 21, wanted)
    assert "name a level from 1 to 21, or a release up to 3.9" in refused.value.way_out


def test_a_feature_that_the_software_has_not_is_refused() -> None:
    with pytest.raises(Refused, match=r"Kafka 3\.9\.2 has no feature share\.version"):
        plan_change(kafka3(), "share.version", 0, "1")


# -- what stands in the way --------------------------------------------------------------------------------------------


def test_nothing_stands_in_the_way_of_a_whole_cluster() -> None:
    assert ways(look(), "18") == []
    assert ways(look(kafka4()), "27") == []
    assert ways(look(kafka4()), "1", feature="group.version") == []


@pytest.mark.parametrize("level", range(4, 22))
@pytest.mark.parametrize("target", range(4, 22))
def test_down_a_change_is_refused_exactly_where_it_crosses_a_starred_level(level: int, target: int) -> None:
    """The pairs that 3.9.2 allowed when each was asked by validate-only (SAFE): measured, not derived."""
    allowed = {(9, 8), (10, 9), (10, 8), (12, 11), (16, 15)} | {(a, b) for a in range(18, 22) for b in range(17, a)}
    refused = any("crosses what changed metadata" in each for each in ways(look(kafka3(), level), str(target)))
    assert refused == (target < level and (level, target) not in allowed)


def test_the_refusal_of_a_step_down_names_what_would_be_lost_and_the_lowest_that_can_be_had() -> None:
    change = plan_change(kafka3(), METADATA_VERSION, 21, "10")
    lost = (Loss(11, 3, "SCRAM credentials"), Loss(17, 12, "replicas assigned to a directory"))
    (found,) = obstacles(look(), change, kafka3(), lost)
    assert "17 (3.7-IV2: log directories of brokers and partitions)" in found.problem
    assert (
        "it would lose 3 SCRAM credentials (level 11), 12 replicas assigned to a directory (level 17)" in found.problem
    )
    assert found.way_out == "the lowest that can be had is 17"


def test_dual_write_forbids_it_and_a_final_migration_does_not() -> None:
    assert [len(ways(in_log(look(), migration_state=state), "20")) for state in range(4)] == [0, 1, 1, 0]
    (said,) = ways(in_log(look(), migration_state=1), "20")
    assert said.startswith("the migration from ZooKeeper is not final") and "Finalize the migration first" in said


def test_a_registered_broker_that_does_not_run_and_is_too_old() -> None:
    seen = look(kafka4())
    assert not isinstance(seen.log, Unread)
    old = replace(registered(7, kafka3()), supported={METADATA_VERSION: Range(1, 19)})
    (said,) = ways(in_log(seen, brokers={**seen.log.brokers, 7: old}), "22")
    assert said == (
        "broker 7 is registered, not running, not in the cluster file, supports metadata.version 1-19, not 22. Start it"
        " on the new software, or unregister it (unregister_broker, docs/unregistering.md)."
    )


def test_a_declared_broker_that_is_down_and_too_old_blocks_by_its_registration() -> None:
    seen = look(kafka4())
    assert not isinstance(seen.log, Unread)
    log = in_log(seen, brokers={**seen.log.brokers, 3: registered(3, kafka3())})
    change = plan_change(kafka4(), METADATA_VERSION, 21, "22")
    down = replace(log, brokers={**log.brokers, 3: Unread("it refuses connections")})
    unknown, old = obstacles(down, change, kafka4())
    assert (unknown.problem, unknown.unknown) == ("broker 3 could not be asked: it refuses connections", True)
    assert old.problem == "broker 3 is registered, not running, supports metadata.version 1-21, not 22"


def test_a_ghost_controller_and_its_cure() -> None:
    seen = look(kafka4())
    assert not isinstance(seen.log, Unread)
    ghosts = {**seen.log.controllers, 104: registered(104, kafka3())}
    (said,) = ways(in_log(seen, controllers=ghosts), "22")
    assert said.startswith(
        "controller 104 is registered and no voter any more, and supports metadata.version 1-21, not 22"
    )
    assert "Start it once on the new software, with its old data and itself in its own controller.quorum.voters" in said
    assert ways(in_log(look(kafka4(), 14), controllers=ghosts), "14") == []


def test_a_dead_controller_of_the_right_software_does_not_block_by_its_registration() -> None:
    seen = look(kafka4())
    down = replace(seen, controllers={**seen.controllers, 103: Unread("it refuses connections")})
    change = plan_change(kafka4(), METADATA_VERSION, 21, "22")
    assert [each.problem for each in obstacles(down, change, kafka4())] == [
        "controller 103 could not be asked: it refuses connections"
    ]


def test_a_controller_that_has_not_registered() -> None:
    seen = look(kafka4())
    assert not isinstance(seen.log, Unread)
    without = {i: each for i, each in seen.log.controllers.items() if i != 102}
    (said,) = ways(in_log(seen, controllers=without), "22")
    (found,) = obstacles(in_log(seen, controllers=without), plan_change(kafka4(), METADATA_VERSION, 21, "22"), kafka4())
    assert found.momentary
    assert said.startswith("controller 102 has not registered, so the server does not know what it supports")


def test_a_controller_whose_registration_is_of_its_software_before() -> None:
    seen = look(kafka4())
    assert isinstance(seen.log, LevelsInLog)
    stale = in_log(seen, controllers={**seen.log.controllers, 102: registered(102, kafka3())})
    (found,) = obstacles(stale, plan_change(kafka4(), METADATA_VERSION, 21, "22"), kafka4())
    assert found.problem == (
        "controller 102 runs software with metadata.version 7-27 and is registered with 1-21, and the leader goes by"
        " that"
    )
    assert found.momentary and found.way_out.startswith("restart controller 102")
    assert ways(stale, "20") == [], "what the older registration supports too is not held up"


def test_below_fifteen_no_controller_is_asked_to_have_registered() -> None:
    assert ways(in_log(look(kafka3(), 14), controllers={}), "15") == []


@pytest.mark.parametrize(
    ("feature", "wanted", "said"),
    [
        ("metadata.version", "21", ()),
        ("metadata.version", "22", ("until it is lowered again and every node has taken a snapshot past that",)),
        ("metadata.version", "27", ("for good, since 23 (4.0-IV1) changes metadata",)),
        ("group.version", "1", ("until it is lowered again and every node has taken a snapshot past that",)),
        ("share.version", "1", ("until it is lowered again and every node has taken a snapshot past that",)),
    ],
)
def test_a_raise_says_to_which_software_it_shuts_the_way_and_for_how_long(
    feature: str, wanted: str, said: tuple[str, ...]
) -> None:
    seen = look(kafka4(), 20)
    hosts = {
        i: replace(host, software={**host.software, "/old": kafka3()})
        for i, host in seen.hosts.items()
        if isinstance(host, NodeHost)
    }
    seen = replace(seen, hosts=hosts)
    found = shuts_out(seen, plan_change(kafka4(), feature, 20 if feature == METADATA_VERSION else 0, wanted))
    assert tuple(each.partition(": ")[2] for each in found) == said
    supports = "no share.version" if feature == "share.version" else feature
    assert all(each.startswith(f"it shuts the way to Kafka 3.9.2, which supports {supports}") for each in found)
    assert shuts_out(seen, plan_change(kafka4(), METADATA_VERSION, 26, "24")) == ()


@pytest.mark.parametrize(
    ("now", "wanted", "said"),
    [
        (22, "23", ["for good, since 23 (4.0-IV1) changes metadata"]),
        (23, "27", []),  # 3.9 was shut out for good by 23
        (24, "25", []),
    ],
)
def test_a_software_that_is_shut_out_already_is_told_only_where_that_becomes_final(
    now: int, wanted: str, said: list[str]
) -> None:
    seen = look(kafka4(), now)
    hosts = {
        i: replace(host, software={**host.software, "/old": kafka3()})
        for i, host in seen.hosts.items()
        if isinstance(host, NodeHost)
    }
    found = shuts_out(replace(seen, hosts=hosts), plan_change(kafka4(), METADATA_VERSION, now, wanted))
    assert [each.partition(": ")[2] for each in found] == said


def test_kraft_version_has_no_way_back_and_its_preview_says_so() -> None:
    assert (
        "irreversible: no release lowers kraft.version" in plan_change(kafka4(), "kraft.version", 0, "1").render_text()
    )


def test_3_9_sets_no_level_below_4_though_it_supports_1() -> None:
    """The server says: Unable to set a metadata.version less than 3.3-IV0."""
    found = obstacles(look(kafka3(), 4), plan_change(kafka3(), METADATA_VERSION, 4, "3"), kafka3())
    assert "metadata.version 3 can't be set: 3.9 sets none below 4 (3.3-IV0)" in [each.problem for each in found]
    below = obstacles(look(kafka3(), 9), plan_change(kafka3(), METADATA_VERSION, 9, "8"), kafka3())
    assert not [each for each in below if "can't be set" in each.problem]


def test_a_feature_that_needs_another_level_says_which() -> None:
    feature = "eligible.leader.replicas.version"
    assert ways(look(kafka4(), 22), "1", feature=feature) == [
        f"{feature} 1 needs metadata.version 23, which is at 22. Raise metadata.version to 23 first."
    ]
    assert ways(look(kafka4(), 23), "1", feature=feature) == []


def with_files(brokers: int | None, controllers: int | None, dynamic: dict[str, int] | Unread) -> FeatureObservation:
    """``None``: the files do not name min.insync.replicas."""
    seen = in_log(look(kafka4(), 23), min_isr=dynamic)
    hosts = {}
    for node_id, host in seen.hosts.items():
        assert isinstance(host, NodeHost)
        value = brokers if node_id in seen.brokers else controllers
        hosts[node_id] = replace(host, config={} if value is None else {"min.insync.replicas": str(value)})
    return replace(seen, hosts=hosts)


ELIGIBLE = "eligible.leader.replicas.version"


def test_the_min_insync_replicas_that_elr_would_change_are_told_in_numbers_and_block() -> None:
    """Measured on 4.1.1: 2 in the brokers' files, none in the controllers', and 2 became 1 for good."""
    (said,) = ways(with_files(2, None, {}), "1", feature=ELIGIBLE)
    assert "min.insync.replicas would change for good: broker 1 2 -> 1, by the file of controller 101" in said
    assert "--entity-default --add-config min.insync.replicas=" in said
    (single,) = ways(with_files(2, 2, {"3": 4}), "1", feature=ELIGIBLE)
    assert "broker 3 4 -> 2" in single and "broker 1" not in single
    (over,) = ways(with_files(1, 1, {"": 2, "3": 3}), "1", feature=ELIGIBLE)
    assert "would change for good: broker 3 3 -> 2, as it is set for all." in over


@pytest.mark.parametrize(("brokers", "controllers", "dynamic"), [(2, 2, {}), (None, None, {}), (2, None, {"": 2})])
def test_where_elr_changes_no_min_insync_replicas_nothing_blocks(
    brokers: int | None, controllers: int | None, dynamic: dict[str, int]
) -> None:
    assert ways(with_files(brokers, controllers, dynamic), "1", feature=ELIGIBLE) == []


def test_files_that_were_not_read_are_no_files_that_agree() -> None:
    why = Unread("the host did not answer")
    seen = with_files(2, 2, {})
    host = seen.hosts[102]
    assert isinstance(host, NodeHost)
    for changed in (why, replace(host, config=why), replace(host, config=None)):
        software = kafka4()
        look_again = replace(seen, hosts={**seen.hosts, 102: changed})
        (found,) = obstacles(look_again, plan_change(software, ELIGIBLE, 0, "1"), software)
        assert found.unknown and "the file of controller 102" in found.problem
    (found,) = obstacles(with_files(2, 2, why), plan_change(kafka4(), ELIGIBLE, 0, "1"), kafka4())
    assert found.unknown and why.reason in found.problem


def test_the_log_that_could_not_be_read_is_unknown_and_refuses() -> None:
    seen = replace(look(kafka4()), log=Unread("no leader"))
    (found,) = obstacles(seen, plan_change(kafka4(), METADATA_VERSION, 21, "22"), kafka4())
    assert found.unknown and found.problem == "the metadata log could not be read: no leader"


# -- which software runs -----------------------------------------------------------------------------------------------


def test_nodes_of_several_versions_are_named() -> None:
    seen = look(kafka3())
    newer = replace(look(kafka4()).controllers[103])
    mixed = replace(seen, controllers={**seen.controllers, 103: newer})  # type: ignore[dict-item]
    found = running_software(mixed)
    assert isinstance(found, Obstacle) and not found.unknown
    assert found.problem == (
        "the nodes run several versions of Kafka (3.9.2: broker 1, broker 2, broker 3, controller 101, controller 102;"
        " 4.1.1: controller 103)"
    )


def test_a_node_that_could_not_be_asked_and_a_jar_that_could_not_be_read_are_unknown() -> None:
    seen = look(kafka3())
    silent = replace(seen, brokers={**seen.brokers, 2: Unread("it hangs")})
    unread = replace(seen, hosts=dict.fromkeys(seen.hosts, Unread("no ssh")))
    for each, words in ((silent, "broker 2 could not be asked: it hangs"), (unread, "on any host (no ssh)")):
        found = running_software(each)
        assert isinstance(found, Obstacle) and found.unknown and words in found.problem


def test_the_ranges_of_this_test_are_what_nodes_of_both_versions_answer() -> None:
    """Measured: 3.9.2 shows 1-21 and kraft.version 0-1, 4.1.1 these six."""
    assert {name: str(each) for name, each in ranges(kafka3()).items()} == {
        METADATA_VERSION: "1-21",
        "kraft.version": "0-1",
    }
    assert {name: str(each) for name, each in ranges(kafka4()).items()} == {
        METADATA_VERSION: "7-27",
        "kraft.version": "0-1",
        "transaction.version": "0-2",
        "group.version": "0-1",
        "eligible.leader.replicas.version": "0-1",
        "share.version": "0-1",
    }
