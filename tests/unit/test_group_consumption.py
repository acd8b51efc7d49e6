"""What a run that moves or toggles groups says of its members' logs, where somebody names them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from consumption import TENTH, lines
from groups_seen_as import kafka, look, member, new, zookeeper
from observations import SPEC, observation
from pydantic import ValidationError
from recording import Evidence, RecordingCluster, run_on

from kraft_runbook.cluster.group_logs import GroupLogs
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused, Unreachable
from kraft_runbook.evidence.kinds import Moves as Told
from kraft_runbook.groups.consumption import Before, Consumed, consumed
from kraft_runbook.groups.look import GroupLook, Kind, LogBounds
from kraft_runbook.groups.moves import plan_moves
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.proof import HandedOut
from kraft_runbook.io.members_logs import LARGEST, find_logs, read_logs
from kraft_runbook.procedures.see_groups import look_at_groups
from kraft_runbook.steps.groups.consumption import (
    NOT_NAMED,
    before_the_move,
    keep_before,
    require_names,
    tell_consumption,
    tell_consumption_of_moves,
)
from kraft_runbook.steps.groups.files import files_of
from kraft_runbook.steps.run import Run

BEGAN = 1_000_000.0
T0, T1 = ("t", 0), ("t", 1)
BEFORE = Before(BEGAN, {T0: 5, T1: 6})
ENDS = {"t": {0: LogBounds(0, 20), 1: LogBounds(0, 20)}}
AFTER = look(zookeeper(), kafka(new("app", T0, T1), offsets={T0: 20, T1: 20}), logs=ENDS)


def handed(member: str, offsets: Iterable[int], begin: float, partition: int = 0) -> list[HandedOut]:
    return [HandedOut("t", partition, o, member, BEGAN + begin + at * TENTH) for at, o in enumerate(offsets)]


OTHER = handed("old", range(6, 20), 0, 1)
ORDERLY = [*handed("old", range(2, 10), 0), *handed("new", range(10, 20), 3), *OTHER]
"""Partition 0 goes from the old member to the new one, silent for 2.125 s."""
TABLE = "partition · records · lost · twice · by two at once · longest silence · who had it last"


def shown(records: Sequence[HandedOut], **how: Any) -> Consumed:
    return consumed("g", records, BEFORE, AFTER, BEGAN + 5, logs=2, **how)


# -- the judgement -----------------------------------------------------------------------------------------------------


def test_an_orderly_move_is_clean_and_counts_from_the_offsets_at_the_beginning() -> None:
    assert shown(ORDERLY).render_text().splitlines() == [
        "g, by 2 logs of its members: every record once",
        "29 records of 2 partitions: 0 lost, 0 twice, 0 by two at once",
        "the longest silence of a partition: 2.1 s",
        "t, partitions at the end: new 1, old 1",
        TABLE,
        "t-0 · 15 · 0 · 0 · 0 · 2.1 s · new",
        "t-1 · 14 · 0 · 0 · 0 · 0.1 s · old",
    ]


@pytest.mark.parametrize(
    ("records", "row"),
    [
        ([each for each in ORDERLY if each.offset != 12 or each.partition], "t-0 · 14 · 1 · 0 · 0 · 2.1 s · new"),
        ([each for each in ORDERLY if each.offset < 18 or each.partition], "t-0 · 13 · 2 · 0 · 0 · 2.1 s · new"),
        ([*ORDERLY, *handed("new", (19,), 4.5)], "t-0 · 16 · 0 · 1 · 0 · 2.1 s · new"),
        (
            [*handed("old", range(5, 10), 0), *handed("new", range(10, 20), 0.4), *OTHER],
            "t-0 · 15 · 0 · 0 · 1 · 0.1 s · new",
        ),
    ],
)
def test_each_planted_fault_is_found_also_behind_the_last_record_that_came(
    records: Sequence[HandedOut], row: str
) -> None:
    found = shown(records)
    assert not found.proof.holds
    head, *_, first, other = found.render_text().splitlines()
    assert head.endswith("NOT every record once") and first == row and other.endswith("· 14 · 0 · 0 · 0 · 0.1 s · old")


def test_a_partition_of_which_nobody_logged_anything_is_lost() -> None:
    found = shown([each for each in ORDERLY if each.partition == 0])
    assert found.render_text().splitlines()[-2] == "t-1 · 0 · 14 · 0 · 0 · 5.0 s · nobody"


def test_a_silence_beyond_the_bound_is_told_as_exceeded() -> None:
    assert shown(ORDERLY, at_most=2.2).why_exceeded == ""
    found = shown(ORDERLY, at_most=2)
    assert found.why_exceeded == "exceeded: t-0 was silent for 2.1 s, and at most 2 s are allowed"
    assert found.why_exceeded in found.render_text()
    assert "t-0 · 15 · 0 · 0 · 0 · 2.1 s (exceeded) · new" in found.render_text()


def test_a_partition_that_never_came_back_is_silent_until_now_where_records_wait() -> None:
    records = [each for each in ORDERLY if each.partition or each.offset < 10]
    waits = replace(AFTER, kafka=kafka(new("app", T0, T1), offsets={T0: 10, T1: 20}))
    found = consumed("g", records, BEFORE, waits, BEGAN + 60, logs=1, at_most=5)
    assert found.proof.holds, "nothing that was committed is missing"
    assert found.why_exceeded == "exceeded: t-0 has been silent for 59.1 s, and at most 5 s are allowed"
    idle = replace(waits, logs={"t": {0: LogBounds(0, 10), 1: LogBounds(0, 20)}})
    assert not consumed("g", records, BEFORE, idle, BEGAN + 60, logs=1, at_most=5).exceeded, "nothing waits"


def test_what_ended_before_the_run_began_is_not_the_run_s() -> None:
    early = [HandedOut("t", 0, 5, "old", BEGAN - 50), HandedOut("t", 0, 6, "old", BEGAN - 1)]
    found = consumed("g", [*early, *handed("old", range(7, 20), 0)], BEFORE, AFTER, BEGAN + 5, logs=1, at_most=5)
    assert found.exceeded == ()


def test_a_partition_that_came_later_counts_by_the_time_of_its_records() -> None:
    before = Before(BEGAN, {T1: 6})
    old = HandedOut("t", 0, 1, "old", BEGAN - 90)
    found = consumed("g", [old, *ORDERLY], before, AFTER, BEGAN + 5, logs=1)
    assert [(each.name, each.records) for each in found.proof.partitions] == [("t-0", 18), ("t-1", 14)]


def test_records_of_other_topics_are_left_out() -> None:
    foreign = HandedOut("<b>other</b>", 0, 1, "x", BEGAN)
    assert [each.name for each in shown([foreign, *ORDERLY]).proof.partitions] == ["t-0", "t-1"]


def test_a_gap_of_a_billion_offsets_is_found_at_once() -> None:
    before = Before(BEGAN, {T0: 0})
    far = replace(AFTER, kafka=kafka(new("app", T0), offsets={T0: 10**12}))
    (found,) = consumed("g", [], before, far, BEGAN, logs=1).proof.partitions
    assert found.lost == ((0, 10**12 - 1),)


def test_where_a_group_stands_is_the_lower_offset_of_both_sides() -> None:
    seen = look(zookeeper(member(Kind.MIGRATING), offsets={T0: 5, T1: 9}), kafka(offsets={T0: 7, T1: 8}), logs=ENDS)
    assert Before.of(seen, BEGAN) == Before(BEGAN, {T0: 5, T1: 8})
    assert Before.from_dict(json.loads(json.dumps(BEFORE.to_dict()))) == BEFORE


# -- the files ---------------------------------------------------------------------------------------------------------


def test_a_line_that_is_being_written_is_left_out_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("\n".join([*lines(ORDERLY[:2]), lines(ORDERLY)[2][:20]]))
    assert list(read_logs([log])) == ORDERLY[:2]
    log.write_text("\n".join(lines(ORDERLY[:3])))
    assert list(read_logs([log])) == ORDERLY[:3], "whole, though no line follows"
    log.write_bytes(b"\xff\xfe\n")
    with pytest.raises(Refused, match=r"a\.log, line 1: no record"):
        list(read_logs([log]))


@pytest.mark.parametrize(
    "changed",
    [
        {"offset": "17-hunter2"},
        {"offset": -1},
        {"offset": True},
        {"offset": float("inf")},
        {"partition": 1.5},
        {"at": float("nan")},
        {"at": "hunter2"},
        {"member": None},
        {"topic": ["hunter2"]},
    ],
)
def test_a_value_of_another_kind_is_refused_and_not_quoted(changed: dict[str, Any], tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(json.dumps({"topic": "t", "partition": 0, "offset": 1, "member": "a", "at": 1.0} | changed) + "\n")
    with pytest.raises(Refused, match="line 1") as refused:
        list(read_logs([log]))
    assert "hunter2" not in str(refused.value)


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe.log")  # opening it would wait for ever
    (tmp_path / "dir.log").mkdir()
    (tmp_path / "a.log").touch()
    (tmp_path / "link.log").symlink_to(tmp_path / "a.log")
    assert find_logs([f"{tmp_path}/*.log", f"{tmp_path}/a.log"]) == ((tmp_path / "a.log").resolve(),)
    assert find_logs(["/nowhere/**", "/\0", "/["]) == ()


# -- the run -----------------------------------------------------------------------------------------------------------


class Scene:
    """One run. ``seen``: what a look at a group shows, or why there is none."""

    def __init__(self, state: Path, *of_file: GroupLogs) -> None:
        self.state, self.ports = state, Evidence()
        self.seen: GroupLook | Exception = AFTER
        spec = SPEC.model_copy(update={"group_logs": of_file})
        self.cluster = RecordingCluster(observation(Phase.HYBRID), spec=spec, answers={look_at_groups: self.look})
        vars(self.cluster)["paused"] = 0.0

    def look(self, names: list[str]) -> tuple[GroupLook, ...]:
        if isinstance(self.seen, Exception):
            raise self.seen
        return (replace(self.seen, name=names[0]),)

    def run(self, **params: Any) -> Run:
        return run_on(self.cluster, self.ports, state=self.state, **params)

    def told(self) -> list[str]:
        return [each.told for each in self.ports.kept if isinstance(each, Told)]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def write(path: Path, records: Sequence[HandedOut]) -> Path:
    path.write_text("".join(f"{each}\n" for each in lines(records)))
    return path


def test_groups_without_named_logs_are_not_checked_and_the_report_says_so(scene: Scene) -> None:
    assert tell_consumption(scene.run(), {"a": BEFORE, "b": BEFORE}) == {}
    assert scene.told() == [f"a, b: not checked: {NOT_NAMED}"]


def test_the_form_s_logs_are_judged_with_the_group_s_name_in_their_path(scene: Scene, tmp_path: Path) -> None:
    write(tmp_path / "g[1]-old.log", [each for each in ORDERLY if each.member == "old"])
    write(tmp_path / "g[1]-new.log", [each for each in ORDERLY if each.member == "new"])
    write(tmp_path / "g1-x.log", ORDERLY)
    (found,) = tell_consumption(
        scene.run(members_logs=f"{tmp_path}/{{group}}-*.log", silence_at_most=2), {"g[1]": BEFORE}
    ).values()
    assert (found.logs, found.proof.holds, found.proof.count("twice")) == (2, True, 0)
    (told,) = scene.told()
    assert told.startswith("g[1], by 2 logs of its members: every record once") and "exceeded: t-0 was silent" in told


def test_the_cluster_file_names_them_where_the_form_does_not(tmp_path: Path) -> None:
    scene = Scene(tmp_path, GroupLogs(groups=("g.*",), logs=(f"{tmp_path}/{{group}}.log",), silence_at_most=2))
    write(tmp_path / "g1.log", ORDERLY)
    found = tell_consumption(scene.run(silence_at_most=3), {"g1": BEFORE, "other": BEFORE})
    assert list(found) == ["g1"] and found["g1"].at_most == 3, "the form's bound goes with the file's logs"
    assert tell_consumption(scene.run(), {"g1": BEFORE})["g1"].at_most == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "no file is there that fits"),
        ("nonsense\n", "line 1: no record that was handed out"),
        (LARGEST + 1, f"its logs have {LARGEST + 1:,} bytes, and a run reads {LARGEST:,}"),
    ],
)
def test_logs_that_cant_be_judged_are_told_and_fail_nothing(
    scene: Scene, tmp_path: Path, text: str | int | None, why: str
) -> None:
    """A number: a log of so many bytes."""
    if text is not None:
        (tmp_path / "g.log").write_text(text if isinstance(text, str) else "")
    if isinstance(text, int):
        os.truncate(tmp_path / "g.log", text)
    assert tell_consumption(scene.run(members_logs=f"{tmp_path}/g.log"), {"g": BEFORE}) == {}
    (told,) = scene.told()
    assert told.startswith("g: not checked: ") and why in told


def test_a_group_that_cant_be_looked_at_is_judged_without_what_had_to_come(scene: Scene, tmp_path: Path) -> None:
    scene.seen = Unreachable("ZooKeeper is away", way_out="start it")
    log = write(tmp_path / "g.log", ORDERLY)
    (found,) = tell_consumption(scene.run(members_logs=str(log)), {"g": BEFORE}).values()
    assert found.proof.holds and "what was produced is not known" in found.render_text()


def test_a_move_that_planned_nothing_tells_why_and_one_that_did_is_judged(scene: Scene, tmp_path: Path) -> None:
    log = write(tmp_path / "g.log", ORDERLY)
    run = scene.run(members_logs=str(log))
    tell_consumption_of_moves(run)
    assert scene.told() == [] and "What members handed out is not checked" in scene.cluster.told[-1]
    old = look(zookeeper(member(Kind.OLD), offsets={T0: 5, T1: 6}), logs=ENDS)
    plan = plan_moves([old], Direction.TO_KAFKA, None)
    files = files_of(run)
    files.store(plan, "")
    keep_before(files.before, before_the_move(plan, BEGAN))
    tell_consumption_of_moves(run)
    assert "29 records of 2 partitions: 0 lost, 0 twice, 0 by two at once" in scene.told()[0]


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"members_logs": "logs/{group}.log"}, "no whole path"),
        ({"members_logs": "/logs/all.log"}, "is named for a and for b"),
        ({"silence_at_most": 3}, "how long a partition of a may be silent is given"),
        ({"members_logs": "/{group}", "silence_at_most": 0}, "can't be asked for"),
        ({"members_logs": "/{group}", "silence_at_most": float("nan")}, "can't be asked for"),
    ],
)
def test_what_cant_be_meant_is_refused_before_anything_is_done(scene: Scene, params: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        require_names(scene.run(**params), ["a", "b"])
    require_names(scene.run(), ["a", "b"])
    require_names(scene.run(members_logs="/logs/{group}-*.log", silence_at_most=3), ["a", "b"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"groups": ()},
        {"groups": ("[",)},
        {"logs": ()},
        {"logs": ("a.log",)},
        {"silence_at_most": 0},
        {"more": 1},
        {"groups": ("a", "b")},
        {"groups": ("g.*",)},
    ],
)
def test_a_cluster_file_s_entry_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        GroupLogs(**{"groups": ("g",), "logs": ("/a",), **wrong})
