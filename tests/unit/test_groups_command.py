"""``kraft-runbook groups scan`` and ``groups plan``: what they print, their exit codes, and bad input."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from groups_seen_as import kafka, look, member, new, zookeeper
from toggled_group import by_kafka, migrating
from typer.testing import CliRunner

from kraft_runbook.cli import app as cli
from kraft_runbook.cli.asking import Asking
from kraft_runbook.cluster.consumer_groups import ConsumerGroups
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import Unreachable
from kraft_runbook.groups.look import GroupLook, Kind, ZookeeperSide
from kraft_runbook.groups.move_plan import MovePlan
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.report import GroupScan, report
from kraft_runbook.procedures import see_groups

ROOT = Path(__file__).resolve().parents[2]
OLD = look(zookeeper(member(Kind.OLD), offsets={("t", 0): 5}))
UNKNOWN = look(zookeeper(), Unread("broker 2 did not answer"))
NEW = look(zookeeper(), kafka(new("app")))


def scan(*looks: GroupLook, arguments: tuple[str, ...] = ()) -> tuple[int, str, str]:
    found = GroupScan("lab", None, 0.2, tuple(map(report, looks)))
    place = ["--cluster", "lab", "--clusters-dir", str(ROOT / "include/clusters")]
    ask = Asking(scan=lambda *_, **__: found)
    done = CliRunner().invoke(cli.app, ["groups", "scan", *place, *arguments], obj=ask)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("looks", "code"),
    [((), 0), ((NEW,), 0), ((NEW, OLD), 1), ((NEW, UNKNOWN), 2), ((OLD, UNKNOWN), 1), ((look(Unread("NoAuth")),), 2)],
)
def test_exit_codes(looks: tuple[GroupLook, ...], code: int) -> None:
    assert scan(*looks)[0] == code


def test_the_text_has_each_group_and_what_the_checks_say() -> None:
    _, out, _ = scan(look(zookeeper(member(Kind.OLD), offsets={("t", 0): None})))
    assert "g: ALL_OLD (1 old, 1 partitions, lag not known)" in out
    assert "t-0 · nobody · none · none · its offset in ZooKeeper is no number" in out
    assert "1 groups below /consumers of lab: 1 ALL_OLD. 1 need ZooKeeper, or may" in out
    assert "FAIL    KRB-GRP-006" in out and "correct or delete these znodes" in out


def test_json_fits_its_documented_schema() -> None:
    _, out, _ = scan(OLD, UNKNOWN, NEW, arguments=("--json",))
    found = json.loads(out)
    jsonschema.validate(found, json.loads((ROOT / "docs/schemas/groups-scan.json").read_text()))
    assert [each["group_class"] for each in found["scan"]["groups"]] == ["ALL_OLD", "UNKNOWN", "ALL_NEW"]
    assert len(found["checks"]) == 11


def test_a_group_that_is_not_there_is_named() -> None:
    code, _, err = scan(OLD, arguments=("--group", "g", "--group", "h"))
    assert code != 0 and "there is no group h below /consumers" in err


def test_explain_says_why_there_are_no_groups() -> None:
    def gone(*_: object, **__: object) -> GroupScan:
        raise Unreachable("ZooKeeper at zk:2181 could not be read", way_out="start it")

    told = see_groups.told_of_groups(None, secrets=str, scan=gone)  # type: ignore[arg-type]
    assert told == ("not read: ZooKeeper at zk:2181 could not be read",)


def test_an_observation_writes_nothing_to_read_the_time_where_there_is_no_group() -> None:
    asks = see_groups.Asks(groups=lambda *_: iter(()), clock=lambda _: pytest.fail("a znode was created"))
    assert see_groups.sum_up_groups(None, None, secrets=str, asks=asks) == ConsumerGroups({})  # type: ignore[arg-type]


def test_many_partitions_are_cut_and_a_group_that_is_named_is_whole() -> None:
    large = look(zookeeper(member(Kind.OLD), offsets={("t", n): 5 for n in range(30)}))
    _, out, _ = scan(large, look(zookeeper(offsets={("t", 0): 5}, age=10**10)))
    assert "t-19 · " in out and "t-20 · " not in out and "10 more: --group g" in out
    assert out.count("t-0 · ") == 1  # nobody must look at the group that was left behind
    assert "t-29 · " in scan(large, arguments=("--group", "g"))[1]


def test_zookeepers_time_is_asked_for_once_and_only_where_a_group_goes_by_age() -> None:
    registered = zookeeper(member(Kind.OLD), offsets={("t", 0): 5})
    left, empty = zookeeper(offsets={("t", 0): 5}), zookeeper()
    asked: list[list[object]] = []

    def seen(*sides: object) -> list[GroupLook]:
        asked.append([])
        asks = see_groups.Asks(
            groups=lambda *_: [[(f"g{n}", s)] for n, s in enumerate(sides)],
            kafka=lambda _, names, **__: dict.fromkeys(names),
            clock=lambda _: asked[-1].append(1) or 7,
        )
        clock = see_groups._Clock(None, asks)  # type: ignore[arg-type]
        return list(see_groups._looks(None, None, clock, str, None, logs=False, asks=asks))  # type: ignore[arg-type]

    seen(registered, empty, Unread("NoAuth"))
    assert asked[-1] == [], "nothing is written to ZooKeeper for these"
    found = seen(registered, left, left)
    assert asked[-1] == [1] and [each.now_ms for each in found][1:] == [7, 7]


def test_the_clusters_topics_are_read_once_and_only_where_a_pattern_asks_for_them() -> None:
    listed = member(Kind.OLD, topics={"t.*": 1}, pattern="white_list")
    with_a_pattern, plain = zookeeper(listed), zookeeper(member(Kind.OLD, topics={"u": 1}))
    asked: list[str] = []

    def seen(*sides: ZookeeperSide, plans: tuple[MovePlan, ...] = ()) -> dict[str, set[str]]:
        asked.clear()
        asks = see_groups.Asks(
            groups=lambda *_: [[(f"g{n}", side)] for n, side in enumerate(sides)],
            kafka=lambda _, names, **__: dict.fromkeys(names),
            topics=lambda _: asked.append("topics") or frozenset({"t1", "t2", "v"}),  # type: ignore[func-returns-value]
            logs=lambda _, topics, **__: dict.fromkeys(topics),
        )
        clock = see_groups._Clock(None, asks)  # type: ignore[arg-type]
        looks = see_groups._looks(None, None, clock, str, None, logs=True, plans=plans, asks=asks)  # type: ignore[arg-type]
        return {each.name: set(each.logs) for each in looks}

    assert seen(plain) == {"g0": {"u"}} and asked == []
    assert seen(plain, with_a_pattern, with_a_pattern) == {"g0": {"u"}, "g1": {"t1", "t2"}, "g2": {"t1", "t2"}}
    assert asked == ["topics"]
    stopped = MovePlan("g0", Direction.TO_KAFKA, (), (("w", 0),), subscribed=(("white_list", "v"), ("static", "later")))
    assert seen(zookeeper(), zookeeper(), plans=(stopped,)) == {"g0": {"w", "v", "later"}, "g1": set()}


def planned(*looks: GroupLook, arguments: tuple[str, ...] = ()) -> tuple[int, str, str]:
    asked: list[str] = []
    ask = Asking(meant=lambda _, wanted, **__: asked.extend(wanted) or looks)
    place = ["--cluster", "lab", "--clusters-dir", str(ROOT / "include/clusters")]
    done = CliRunner().invoke(cli.app, ["groups", "plan", "--group", "g.*", *place, *arguments], obj=ask)
    assert asked == ["g.*"]
    return done.exit_code, done.stdout, done.stderr


def test_a_plan_is_shown_with_what_is_left_out() -> None:
    code, out, _ = planned(OLD, replace(UNKNOWN, name="other"))
    assert code == 1
    assert "t-0 · 5 · ZooKeeper · nothing" in out
    assert "other is not moved:\n- it is UNKNOWN (broker 2 did not answer)" in out
    assert out.endswith("1 groups can be moved, 1 can not\n")
    code, out, _ = planned(look(zookeeper(member(Kind.OLD))), arguments=("--without", "earliest", "--json"))
    assert code == 0
    found = json.loads(out)
    jsonschema.validate(found, json.loads((ROOT / "docs/schemas/groups-plan.json").read_text()))
    assert found["plans"][0]["offsets"] == [
        {"partition": ["t", 0], "offset": 0, "origin": "earliest", "replaces": None, "left": None}
    ]


def test_the_way_back_is_planned_from_kafka() -> None:
    code, out, _ = planned(look(zookeeper(), kafka(new("app", ("t", 0)), offsets={("t", 0): 9})), arguments=("--back",))
    assert (code, out.splitlines()[0]) == (0, "g back to ZooKeeper: 1 partitions")
    assert "t-0 · 9 · Kafka · nothing" in out


def toggle_plan(*looks: GroupLook, arguments: tuple[str, ...] = ()) -> tuple[int, str]:
    """``looks``: at the first and at the second look."""

    def meant(_: object, wanted: list[str], **__: object) -> tuple[GroupLook, ...]:
        return tuple(each for each in looks if any(re.fullmatch(word, each.name) for word in wanted))

    place = ["--cluster", "lab", "--clusters-dir", str(ROOT / "include/clusters")]
    ask = Asking(meant=meant, glance=0)
    done = CliRunner().invoke(cli.app, ["groups", "toggle-plan", *place, *arguments], obj=ask)
    return done.exit_code, done.stdout


def test_a_toggle_is_shown_and_what_is_refused_with_every_reason() -> None:
    code, out = toggle_plan(
        migrating(), replace(OLD, name="old"), replace(UNKNOWN, zookeeper=Unread("NoAuth"), name="other")
    )
    assert code == 1
    assert out.splitlines()[0] == "g to Kafka: mode zookeeper -> kafka, 2 members, 2 partitions, 2 move"
    assert "other is refused:\n- it is UNKNOWN (NoAuth), not ALL_MIGRATING" in out
    assert out.endswith("1 groups can be toggled to Kafka, 1 can not\n"), "old groups are not named unasked"
    assert toggle_plan(migrating(name="a(b"))[0] == 0
    code, out = toggle_plan(OLD, arguments=("--group", "g"))
    assert code == 1 and "it is ALL_OLD" in out
    assert toggle_plan()[1] == "0 groups can be toggled to Kafka, 0 can not\n"


def test_a_toggle_back_is_shown_as_json() -> None:
    code, out = toggle_plan(by_kafka(), arguments=("--back", "--json"))
    found = json.loads(out)
    jsonschema.validate(found, json.loads((ROOT / "docs/schemas/groups-toggle-plan.json").read_text()))
    assert code == 0 and found["toggles"][0]["now"] == "kafka" and found["direction"] == "back to ZooKeeper"
