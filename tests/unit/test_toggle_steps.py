"""The steps of a run that toggles one group, of one that toggles many, and of the watch, over their ports."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from groups_seen_as import look, member, new, zookeeper
from observations import SPEC, observation
from recording import Evidence, Ports, RecordingCluster, run_on
from toggled_group import SAME, T0, T1, A, B, by_kafka, migrating

from kraft_runbook.cluster.group_logs import GroupLogs
from kraft_runbook.cluster.group_toggles import GroupToggles, Relief
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import Refused, RunbookError, StepFailed, Unreachable
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.groups.look import GroupLook, KafkaSide, Kind, Mode
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.toggles.fleet import Kept, Seen, digest_of
from kraft_runbook.groups.toggles.toggle import Toggle, plan_toggle
from kraft_runbook.io.named_metric import worst_of_brokers
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.procedures.group_sides import GroupSides
from kraft_runbook.procedures.move_group import see_group
from kraft_runbook.procedures.see_groups import look_at_groups
from kraft_runbook.procedures.toggle_group import toggle_group
from kraft_runbook.steps.handle import RehearsedCluster
from kraft_runbook.steps.later import Later
from kraft_runbook.steps.run import Failed, NothingToDo, Run
from kraft_runbook.steps.toggles import fleet as group_fleet
from kraft_runbook.steps.toggles.alarm_watch import watch_the_groups
from kraft_runbook.steps.toggles.fleet import give_fleet_back, read_kept, settle_the_fleet, toggle_the_fleet
from kraft_runbook.steps.toggles.toggling import (
    give_group_back,
    plan_the_toggle,
    settle,
    shows_toggle,
    soak,
    tell_of_records,
    toggle_the_group,
)
from kraft_runbook.steps.toggles.waiting import WATCHES, Settling, Soaking

FORM = {"group": "g", "direction": "to Kafka", "commit_interval": 60, "soak_minutes": 10}
FLEET = GroupToggles(groups=("g.*",), unchanged_for=60, at_once=2, relief=Relief(metric="load", above=10))


def told(ports: Ports) -> list[str]:
    """What is on record."""
    return [f"{each.what}: {each.told}" for each in ports.kept if isinstance(each, Moves)]


class Scene:
    """Groups in the hand of a test. ``looks``: at them, by name; ``written``: group and mode, in order."""

    def __init__(self, tmp_path: Path, *looks: GroupLook, phase: Phase = Phase.HYBRID, spec: Any = SPEC) -> None:
        self.state = tmp_path
        self.ports = Evidence()
        self.looks = {each.name: each for each in looks}
        self.written: list[tuple[str, Mode]] = []
        self.failing: dict[str, RunbookError] = {}
        self.metric: Any = 1.0
        self.cluster = RecordingCluster(
            observation(phase),
            spec=spec,
            answers={
                see_group: lambda group: self.looks[group],
                look_at_groups: lambda names: tuple(
                    each for each in self.looks.values() if names is None or each.name in names
                ),
                toggle_group: self.toggle,
                worst_of_brokers: lambda relief: self.metric,
            },
        )

    def toggle(self, toggle: Toggle, earlier: GroupLook) -> bool:
        if toggle.group in self.failing:
            raise self.failing[toggle.group]
        side = self.looks[toggle.group].zookeeper
        assert not isinstance(side, Unread)
        if side.mode is toggle.wanted:
            return False
        self.written.append((toggle.group, toggle.wanted))
        made = by_kafka if toggle.wanted is Mode.KAFKA else migrating
        self.looks[toggle.group] = made(name=toggle.group)
        return True

    def run(self, **params: Any) -> Run:
        return run_on(self.cluster, self.ports, state=self.state, **{**FORM, **params})


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path, migrating())


# -- one group ---------------------------------------------------------------------------------------------------------


def test_one_group_from_the_plan_to_the_end(scene: Scene) -> None:
    run = scene.run()
    assert plan_the_toggle(run)["group"] == "g"
    (exhibit,) = shows_toggle(run).exhibits
    assert "mode` changes from zookeeper to kafka" in exhibit.rendered
    assert toggle_the_group(run) == {"group": "g", "written": True}
    assert scene.written == [("g", Mode.KAFKA)]
    assert toggle_the_group(run)["written"] is False, "a task that is cleared writes nothing again"
    later = settle(run, None)
    assert isinstance(later, Later) and later.watch == "settling" and later.given["groups"] == {"g": "to Kafka"}
    assert settle(run, {"over": True, "missing": {}}) == {"group": "g"}
    later = soak(run, None)
    assert isinstance(later, Later) and later.given["until"] == scene.cluster.now() + 600
    assert soak(run, {"over": True, "broken": "", "waits": ""}) == {"group": "g"}
    give_group_back(run)
    assert [each.partition(":")[0] for each in told(scene.ports)] == [
        "planned",
        "toggled to Kafka",
        "already toggled to Kafka",
        "settled",
        "soaked",
    ]
    assert scene.ports.asked[:4] == [
        "claim of g",
        "claim of g",
        "signature of toggle_group",
        "begins behind toggle_group",
    ]
    assert scene.ports.asked[-1] == "claim of g back"


def test_nothing_is_written_that_is_not_signed(scene: Scene) -> None:
    plan_the_toggle(scene.run())

    def refuse(*_: Any, **__: Any) -> None:
        raise Refused("not signed", way_out="sign it")

    scene.ports.require = refuse  # type: ignore[method-assign]
    for step in (toggle_the_group, lambda run: settle(run, None), lambda run: soak(run, None)):
        with pytest.raises(Refused, match="not signed"):
            step(scene.run())
    assert scene.written == []


def test_a_group_that_another_run_has_is_not_toggled(scene: Scene) -> None:
    plan_the_toggle(scene.run())
    scene.ports.others = ["g"]
    with pytest.raises(Refused, match="another run has g"):
        toggle_the_group(scene.run())
    assert scene.written == []


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"group": " "}, "no group is named"),
        ({"group": None}, "no group is named"),
        ({"group": "old"}, r"group old can't be toggled to Kafka: it is ALL_OLD \(1 old member\)"),
    ],
)
def test_what_cant_be_planned_is_refused_and_claims_nothing(scene: Scene, given: dict[str, Any], why: str) -> None:
    scene.looks["old"] = replace(look(zookeeper(member(Kind.OLD))), name="old")
    with pytest.raises(Refused, match=why):
        plan_the_toggle(scene.run(**given))
    assert scene.ports.asked == []


def test_the_way_back_is_refused_once_the_migration_is_final(tmp_path: Path) -> None:
    scene = Scene(tmp_path, by_kafka(), phase=Phase.FINALIZED)
    with pytest.raises(Refused, match="members that follow ZooKeeper see no topic"):
        plan_the_toggle(scene.run(direction="back to ZooKeeper"))


def test_back_is_the_same_with_the_other_direction(tmp_path: Path) -> None:
    scene = Scene(tmp_path, by_kafka())
    run = scene.run(direction="back to ZooKeeper")
    plan_the_toggle(run)
    toggle_the_group(run)
    assert scene.written == [("g", Mode.ZOOKEEPER)]


def test_a_group_that_does_not_settle_fails_with_what_is_missing_and_the_way_back(scene: Scene) -> None:
    plan_the_toggle(scene.run())
    with pytest.raises(StepFailed, match="group g has not settled: nobody owns t-1") as failed:
        settle(scene.run(), {"over": False, "missing": {"g": "nobody owns t-1"}})
    assert "toggle_consumer_group__lab for g with the direction 'back to ZooKeeper'" in failed.value.way_out


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        ({"over": True, "broken": "it is CONTRADICTORY", "waits": ""}, "it is CONTRADICTORY"),
        ({"over": False, "broken": "", "waits": "UNKNOWN: silent"}, "UNKNOWN: silent"),
    ],
)
def test_a_soak_that_finds_something_or_can_not_tell_fails(scene: Scene, seen: dict[str, Any], why: str) -> None:
    plan_the_toggle(scene.run())
    with pytest.raises(StepFailed, match=why):
        soak(scene.run(), seen)


def heard(scene: Scene, silent: float, name: str = "g") -> str:
    """The path of its members' logs: a partition hands out two records, so many seconds apart, the later one now."""
    now = scene.cluster.now()
    body = {"topic": "t", "partition": 0, "member": "a"}
    records = [{**body, "offset": 7, "at": now - silent}, {**body, "offset": 999, "at": now}]
    (scene.state / f"{name}.log").write_text("".join(json.dumps(each) + "\n" for each in records))
    return str(scene.state / "{group}.log")


@pytest.mark.parametrize("step", [settle, soak])
def test_a_partition_that_was_silent_for_too_long_is_a_reason_to_go_back(scene: Scene, step: Any) -> None:
    good = {"over": True, "missing": {}, "broken": "", "waits": ""}
    form: dict[str, Any] = {"members_logs": str(scene.state / "{group}.log"), "silence_at_most": 5}
    plan_the_toggle(scene.run(**form))
    heard(scene, 8)
    with pytest.raises(StepFailed, match=r"exceeded: t-0 was silent for 8\.0 s, and at most 5 s are allowed") as failed:
        step(scene.run(**form), good)
    assert "toggle_consumer_group__lab for g with the direction 'back to ZooKeeper'" in failed.value.way_out
    assert step(scene.run(**form | {"silence_at_most": 9}), good) == {"group": "g"}
    assert step(scene.run(**form | {"members_logs": "/none"}), good) == {"group": "g"}, "not known is no reason"
    assert "How long partitions were silent is not known" in scene.cluster.told[-1] + scene.cluster.told[-2]


def test_the_report_of_a_toggle_holds_what_the_members_logs_say(scene: Scene) -> None:
    tell_of_records(scene.run())
    assert told(scene.ports) == [], "nothing was planned"
    form = {"members_logs": heard(scene, 8)}
    plan_the_toggle(scene.run(**form))
    tell_of_records(scene.run(**form))
    tell_of_records(scene.run())
    judged, not_checked = told(scene.ports)[1:]
    assert judged.startswith("consumption: g, by 1 log of its members: every record once")
    assert "2 records of 2 partitions: 0 lost, 0 twice, 0 by two at once" in judged
    assert not_checked.startswith("consumption: g: not checked: no logs of its members are named")


class OfOneGroup(RehearsedCluster):
    """Shows one group of migrating members, and lets no time pass."""

    def ask(self, question: Any, *given: Any, **how: Any) -> Any:
        return migrating()

    def pause(self, seconds: float) -> None:
        pass


def test_a_dry_run_writes_and_claims_nothing(tmp_path: Path) -> None:
    said = list[str]()
    cluster = OfOneGroup(SPEC, lambda ref: "", said.append)
    ports = Evidence()
    run = run_on(cluster, ports, state=tmp_path, **FORM)
    plan_the_toggle(run)
    toggle_the_group(run)
    assert [settle(run, None), soak(run, None)] == [{"dry_run": True}] * 2
    assert [str(each) for each in cluster.acts] == [
        "let the mode of group g be kafka\n/consumers/g/migration/mode: zookeeper -> kafka"
    ]
    assert ports.asked == []


def test_a_plan_that_is_gone_is_refused_with_the_task_to_clear(scene: Scene) -> None:
    with pytest.raises(Refused) as refused:
        toggle_the_group(scene.run())
    assert "clear the task 'preflight.plan'" in refused.value.way_out
    give_group_back(scene.run())
    assert scene.ports.asked == []


# -- the act -----------------------------------------------------------------------------------------------------------


class ModeZnode:
    """The mode's znode. ``others_write``: somebody else, just before this run does."""

    def __init__(self, data: bytes | None) -> None:
        self.data, self.version = data, 3
        self.look: GroupLook = migrating()
        self.others_write = self.others_write_after = False

    def read(self) -> Znode | None:
        return None if self.data is None else Znode("/consumers/g/migration/mode", self.data, self.version, 0, 0, 0, 0)

    def write(self, mode: Mode, seen: Znode | None) -> bool:
        if self.others_write or seen != self.read():
            return False
        self.data, self.version = b"zookeeper" if self.others_write_after else mode.value.encode(), self.version + 1
        return True


@dataclass(frozen=True)
class Sides(GroupSides):
    """The group whose mode's znode this is."""

    znode: ModeZnode

    def look(self, topics: Any = ()) -> GroupLook:
        return self.znode.look

    def read_mode(self) -> Znode | None:
        return self.znode.read()

    def write_mode(self, mode: Mode, seen: Znode | None) -> bool:
        return self.znode.write(mode, seen)


TO_KAFKA = plan_toggle(migrating(), migrating(), Direction.TO_KAFKA)
assert isinstance(TO_KAFKA, Toggle)


def toggled(znode: ModeZnode, toggle: Any = TO_KAFKA) -> bool:
    sides = lambda spec, group, secrets: Sides(spec, group, secrets, znode)  # noqa: E731 - one word for all
    return toggle_group(SPEC, toggle, migrating(), secrets=lambda ref: "", sides=sides)


@pytest.mark.parametrize("data", [None, b"zookeeper", b"nonsense"])
def test_the_mode_is_written_at_the_version_that_was_read(data: bytes | None) -> None:
    znode = ModeZnode(data)
    assert toggled(znode) and znode.data == b"kafka"
    assert not toggled(znode), "it says so by now"
    assert znode.version == 4


def test_somebody_else_s_toggle_is_not_overwritten() -> None:
    znode = ModeZnode(b"zookeeper")
    znode.others_write = True
    with pytest.raises(Refused, match="was written by somebody else since it was read"):
        toggled(znode)
    znode.others_write, znode.others_write_after = False, True
    with pytest.raises(StepFailed, match="does not say kafka any more"):
        toggled(znode)


def test_a_group_that_is_not_as_planned_is_not_toggled() -> None:
    znode = ModeZnode(b"zookeeper")
    znode.look = migrating(more=(new("app"),))
    with pytest.raises(Refused, match="group g must not be toggled now: it is CONTRADICTORY"):
        toggled(znode)
    znode.look = migrating()
    with pytest.raises(Refused, match="the members of group g are not those that were planned for: g_x left") as why:
        toggled(znode, replace(TO_KAFKA, members=(*TO_KAFKA.members, "g_x")))  # type: ignore[union-attr, type-var]
    assert "preflight.plan" in why.value.way_out
    assert znode.data == b"zookeeper"


# -- looking again and again -------------------------------------------------------------------------------------------


def looks_at(scene: Scene, watch: Settling | Soaking, *seen: GroupLook | RunbookError) -> list[bool]:
    found = []
    for each in seen:

        def answer(names: Any, now: Any = each) -> tuple[GroupLook, ...]:
            if isinstance(now, RunbookError):
                raise now
            return (now,)

        scene.cluster.answers[look_at_groups] = answer
        try:
            found.append(watch.look(scene.cluster))
        except RunbookError:
            found.append(False)
    return found


def test_three_good_looks_in_a_row_are_settled(scene: Scene) -> None:
    good, bad = by_kafka(), by_kafka(owners={T0: B})
    watch = Settling({"g": "to Kafka"}, 60)
    assert looks_at(scene, watch, good, good, bad, good, good) == [False] * 5
    assert watch.told() == {"missing": {"g": "2 of 3 looks are good"}}
    assert looks_at(scene, watch, good) == [True] and watch.told() == {"missing": {}}


def test_a_look_that_fails_breaks_the_row(scene: Scene) -> None:
    watch = Settling({"g": "to Kafka"}, 60)
    silent = Unreachable("ZooKeeper is away", way_out="start it")
    assert looks_at(scene, watch, by_kafka(), by_kafka(), silent) == [False] * 3
    assert watch.told() == {"missing": {"g": "ZooKeeper is away"}}
    assert looks_at(scene, watch, by_kafka(), by_kafka(), by_kafka()) == [False, False, True]


def test_a_soak_ends_with_a_good_look_and_at_once_with_three_bad_ones(scene: Scene) -> None:
    good, bad = by_kafka(), by_kafka(mode=Mode.ZOOKEEPER)
    unknown = by_kafka(state="PreparingRebalance")
    until = scene.cluster.now() + 60
    watch = Soaking("g", "to Kafka", until)
    assert looks_at(scene, watch, good, bad, bad, good, unknown) == [False] * 5
    scene.cluster.pause(60)
    assert looks_at(scene, watch, unknown, good) == [False, True]
    assert looks_at(scene, Soaking("g", "to Kafka", until + 99), bad, bad, bad) == [False, False, True]
    watch = Soaking("g", "to Kafka", until + 99)
    looks_at(scene, watch, *[by_kafka(mode=Mode.ABSENT, more=(new("app"),))] * 3)
    assert watch.told()["broken"].startswith("g: new members while the mode is not kafka")
    assert looks_at(scene, Soaking("g", "to Kafka", 0), by_kafka(more=(new("app"),))) == [True], "canaries may come"
    assert looks_at(scene, Soaking("g", "back to ZooKeeper", 0), migrating()) == [True]


def test_each_watch_is_made_by_its_name() -> None:
    assert isinstance(WATCHES["settling"](groups={"g": "to Kafka"}, interval=60), Settling)
    assert isinstance(WATCHES["soaking"](group="g", direction="to Kafka", until=0), Soaking)


# -- many groups -------------------------------------------------------------------------------------------------------


@pytest.fixture
def fleet(tmp_path: Path) -> Scene:
    """Two groups that have been unchanged for long enough, and one with old members."""
    spec = SPEC.model_copy(update={"group_toggles": FLEET})
    old = replace(look(zookeeper(member(Kind.OLD))), name="g-old")
    scene = Scene(tmp_path, migrating(name="g1"), migrating(name="g2"), old, spec=spec)
    group_fleet._keep(scene.run(), Kept(seen={each: Seen(digest_of(scene.looks[each]), 0) for each in ("g1", "g2")}))
    return scene


def settled(scene: Scene, **missing: str) -> Any:
    assert isinstance(settle_the_fleet(scene.run(), None), Later)
    return settle_the_fleet(scene.run(), {"over": not missing, "missing": missing})


def test_a_run_toggles_what_is_ready_and_waits_until_it_has_settled(fleet: Scene) -> None:
    assert toggle_the_fleet(fleet.run())["toggled"] == ["g1", "g2"]
    assert fleet.written == [("g1", Mode.KAFKA), ("g2", Mode.KAFKA)]
    assert fleet.ports.asked == ["claim of g1", "claim of g2"], "nobody signs"
    assert settled(fleet) == {"settled": ["g1", "g2"]}
    assert read_kept(fleet.run()).settled == {"g1", "g2"}
    give_fleet_back(fleet.run())
    assert fleet.ports.asked[-1] == "claim of g1, g2 back"
    assert toggle_the_fleet(fleet.run())["toggled"] == []
    assert settle_the_fleet(fleet.run(), None) == {"settled": []}


def test_the_relief_puts_back_what_runs_have_toggled_and_alarms_once(fleet: Scene) -> None:
    toggle_the_fleet(fleet.run())
    settled(fleet)
    fleet.metric = 12.0
    fleet.ports = Evidence()
    assert toggle_the_fleet(fleet.run())["toggled"] == ["g1", "g2"]
    assert fleet.written[2:] == [("g1", Mode.ZOOKEEPER), ("g2", Mode.ZOOKEEPER)]
    with pytest.raises(Failed, match="relieved: load is 12, above 10: 2 groups go back"):
        settle_the_fleet(fleet.run(), None)
    fleet.metric, fleet.ports = 1.0, Evidence()
    fleet.cluster.pause(3600)
    assert toggle_the_fleet(fleet.run())["toggled"] == []
    assert settle_the_fleet(fleet.run(), None) == {"settled": []}
    fleet.cluster.pause(3600)
    assert toggle_the_fleet(fleet.run(go_on=True))["toggled"] == ["g1", "g2"], "a person let it go on"


def test_a_group_of_the_fleet_with_a_silent_partition_goes_back_and_the_rest_waits(fleet: Scene) -> None:
    logs = GroupLogs(groups=("g.*",), logs=(str(fleet.state / "{group}.log"),), silence_at_most=5)
    vars(fleet.cluster)["spec"] = fleet.cluster.spec.model_copy(update={"group_logs": (logs,)})
    toggle_the_fleet(fleet.run())
    heard(fleet, 8, "g1")
    heard(fleet, 4, "g2")
    with pytest.raises(Failed, match=r"silent for too long: g1: exceeded: t-0 was silent for 8\.0 s"):
        settled(fleet)
    assert fleet.written[2:] == [("g1", Mode.ZOOKEEPER)]
    kept = read_kept(fleet.run())
    assert set(kept.toggled) == kept.settled == {"g2"} and kept.halted.startswith("g1, silent for too long")
    assert sum(each.startswith("consumption: g") for each in told(fleet.ports)) == 2
    assert toggle_the_fleet(fleet.run())["toggled"] == []


def test_one_that_cant_go_back_is_named(fleet: Scene) -> None:
    toggle_the_fleet(fleet.run())
    settled(fleet)
    fleet.metric = 12.0
    fleet.looks["g1"] = by_kafka(name="g1", more=(new("app"),))
    fleet.failing["g2"] = Unreachable("ZooKeeper is away", way_out="start it")
    toggle_the_fleet(fleet.run())
    with pytest.raises(Failed) as failed:
        settle_the_fleet(fleet.run(), {"over": True, "missing": {}})
    assert "can't go back: g1: it is MIXED_NEW" in str(failed.value)
    assert "can't go back: g2: ZooKeeper is away" in str(failed.value)
    assert set(read_kept(fleet.run()).toggled) == {"g1", "g2"}


def test_a_group_that_does_not_settle_goes_back_and_holds_up_all(fleet: Scene) -> None:
    toggle_the_fleet(fleet.run())
    with pytest.raises(Failed, match=r"not settled: g1: nobody owns t-1\. It went back to ZooKeeper"):
        settled(fleet, g1="nobody owns t-1")
    assert fleet.written[-1] == ("g1", Mode.ZOOKEEPER)
    kept = read_kept(fleet.run())
    assert set(kept.toggled) == kept.settled == {"g2"} and kept.halted == "g1, not settled: nobody owns t-1"
    fleet.cluster.pause(3600)
    fleet.ports = Evidence()
    fleet.looks["g3"] = migrating(name="g3")
    toggle_the_fleet(fleet.run(go_on=True))
    fleet.cluster.pause(3600)
    assert toggle_the_fleet(fleet.run())["toggled"] == ["g3"], "g1 has the same members"
    side = fleet.looks["g1"].kafka
    assert isinstance(side, KafkaSide)
    again = tuple(replace(each, id=f"{each.id}-2") for each in side.members)
    fleet.looks["g1"] = replace(fleet.looks["g1"], kafka=replace(side, members=again))
    settled(fleet)
    toggle_the_fleet(fleet.run())
    fleet.cluster.pause(3600)
    assert toggle_the_fleet(fleet.run())["toggled"] == ["g1"], "one was restarted"


def test_a_group_that_does_not_settle_does_not_go_back_once_the_migration_is_final(fleet: Scene) -> None:
    toggle_the_fleet(fleet.run())
    fleet.cluster.shown[:] = [observation(Phase.FINALIZED)]
    with pytest.raises(Failed, match=r"g1: nobody owns t-1\. It did not go back: the cluster is in phase FINALIZED"):
        settled(fleet, g1="nobody owns t-1")
    assert ("g1", Mode.ZOOKEEPER) not in fleet.written and "g1" in read_kept(fleet.run()).toggled


def test_one_that_does_not_settle_stays_where_going_back_is_refused(fleet: Scene) -> None:
    toggle_the_fleet(fleet.run())
    fleet.looks["g1"] = by_kafka(name="g1", more=(new("app"),))
    with pytest.raises(Failed, match="It can't go back: it is MIXED_NEW"):
        settled(fleet, g1="it is MIXED_NEW")
    assert ("g1", Mode.ZOOKEEPER) not in fleet.written and "g1" in read_kept(fleet.run()).toggled


def test_a_run_that_is_killed_before_the_write_knows_of_the_group(fleet: Scene) -> None:
    def killed(toggle: Toggle, earlier: GroupLook) -> bool:
        raise KeyboardInterrupt

    fleet.cluster.answers[toggle_group] = killed
    with pytest.raises(KeyboardInterrupt):
        toggle_the_fleet(fleet.run())
    assert set(read_kept(fleet.run()).toggled) == {"g1"}
    fleet.cluster.answers[toggle_group] = fleet.toggle
    toggle_the_fleet(fleet.run())
    assert set(read_kept(fleet.run()).toggled) == {"g1", "g2"} == {group for group, _ in fleet.written}


def test_a_group_that_another_run_has_keeps_no_other(fleet: Scene) -> None:
    fleet.ports.others = ["g1"]
    assert toggle_the_fleet(fleet.run())["toggled"] == ["g2"]
    fleet.failing["g1"] = Refused("changed", way_out="wait")
    fleet.ports.others = []
    assert set(read_kept(fleet.run()).toggled) == {"g2"}
    with pytest.raises(Failed, match="refused: g1: another run has g1; wait for it"):
        settled(fleet)


def test_a_metric_that_is_not_read_alarms_and_toggles_nothing(fleet: Scene) -> None:
    fleet.metric = Unread("broker 2 is silent", way_out="start it")
    assert toggle_the_fleet(fleet.run())["toggled"] == []
    with pytest.raises(Failed, match="metric not read: broker 2 is silent; start it"):
        settle_the_fleet(fleet.run(), None)


def test_without_the_block_or_after_the_migration_there_is_nothing_to_do(tmp_path: Path, fleet: Scene) -> None:
    with pytest.raises(NothingToDo, match="has no group_toggles"):
        toggle_the_fleet(Scene(tmp_path).run())
    fleet.cluster.shown[:] = [observation(Phase.FINALIZED)]
    with pytest.raises(NothingToDo, match="in KRaft mode for good"):
        toggle_the_fleet(fleet.run())


def test_a_file_that_cant_be_read_is_refused_since_nobody_would_know_what_to_put_back(fleet: Scene) -> None:
    group_fleet._file(fleet.run()).write_text("{")
    with pytest.raises(Refused, match="can't be read"):
        toggle_the_fleet(fleet.run())
    assert fleet.written == []


# -- the watch ---------------------------------------------------------------------------------------------------------


def test_the_watch_fails_on_what_two_looks_show(scene: Scene) -> None:
    scene.looks["h"] = migrating(name="h", more=(new("app"),))
    with pytest.raises(Failed, match="of lab may be read twice, or by nobody:\nh: new members while the mode is not"):
        watch_the_groups(scene.run())
    scene.looks["h"] = by_kafka(name="h", more=(new("app"),), in_kafka=SAME, given={A: (T1,), B: (T0,)})
    assert watch_the_groups(scene.run()) == {"groups": 2, "alarms": 0}
    assert told(scene.ports)[-1] == "watched: 2 groups, 0 alarms"
