"""Readable(node, software): whether a node can start on a version of Kafka, by what its own disk holds."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from asked_java import ask_java
from feature_looks import CONTROLLERS, host_module, in_log, kafka3, kafka4, look, on_disk, software_in
from hypothesis import given
from hypothesis import strategies as st
from metadata_encoding import ABORT, BEGIN, END, NO_OP, batch
from test_feature_records import level

from kraft_runbook.cluster.feature_levels import (
    METADATA_VERSION,
    FeatureObservation,
    NodeHost,
    NodeOnDisk,
    SoftwareLevels,
    WrittenLevel,
)
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.io.hosts.feature_state import on_disk_of
from kraft_runbook.metadata.metadata_version import BRINGS, LEVELS
from kraft_runbook.software.readable import unreadable
from kraft_runbook.software.way_back import way_to
from lab.installation import JARS, NEWEST, OTHERS, fetch_jars, jars_of, kafka4_version
from lab.layout import load

THREE, FOUR = load().kafka.version, kafka4_version()
OLDEST_FORMATTED = 4
"""No Kafka formats a directory at an earlier level (3.3-IV0)."""
host_module("kafka_host")
scan = host_module("metadata_log_scan")


def said(disk: NodeOnDisk | Unread, software: SoftwareLevels, **changes: int) -> list[str]:
    return [str(each) for each in unreadable("controller 103", disk, software, **changes)]


# -- the judgement -----------------------------------------------------------------------------------------------------


def test_the_trap_back_a_level_that_was_raised_and_lowered_again_still_keeps_the_older_software_away() -> None:
    """Measured: 4.1.1 raised 21 to 22 and lowered it; 3.9.2 then ended on the record of 22."""
    (text,) = said(on_disk(103, snapshot=98, held=21, after={130: 22, 140: 21}), kafka3())
    assert text == (
        "controller 103 cannot run 3.9.2 yet: its log holds metadata.version 22 at offset 130, its newest snapshot ends"
        " at 98, and 3.9.2 supports metadata.version 1-21. Wait for a snapshot past 130: it takes one within 1 h of its"
        " last one or its start (metadata.log.max.snapshot.interval.ms, read at the start)."
    )
    assert said(on_disk(103, snapshot=141, held=21), kafka3()) == []


def test_the_trap_forward_a_level_of_long_ago_keeps_the_newer_software_away() -> None:
    """Measured: formatted at 5, raised to 21 on 3.9.2 without a snapshot since, 4.1.1 exits."""
    (text,) = said(on_disk(103, snapshot=None, after={0: 5, 60: 21}), kafka4(), interval_ms=10_000)
    assert "its log holds metadata.version 5 at offset 0, it has no snapshot, and 4.1.1 supports" in text
    assert "Wait for a snapshot past 0: it takes one within 10 s of" in text
    assert said(on_disk(103, snapshot=61, held=21), kafka4()) == []


def test_a_level_that_holds_now_has_to_be_lowered_first() -> None:
    (found,) = unreadable("controller 103", on_disk(103, snapshot=98, held=27), kafka3())
    assert "its newest snapshot holds metadata.version 27" in found.problem
    assert found.way_out.startswith(
        "lower metadata.version first (upgrade_features), if Kafka still allows that; then wait"
    )
    (found,) = unreadable("controller 103", on_disk(103, snapshot=98, held=5), kafka4())
    assert found.way_out.startswith("raise metadata.version to 7 or higher first")


def test_another_feature_that_was_on_counts_as_much() -> None:
    """Measured: group.version 1 and then 0, at level 21."""
    disk = replace(on_disk(103, snapshot=98), after=(WrittenLevel("group.version", 1, 130),))
    assert "its log holds group.version 1 at offset 130" in said(disk, kafka3())[0]
    assert said(disk, kafka4()) == []
    off = replace(disk, after=(*disk.after, WrittenLevel("group.version", 0, 140)))
    (found,) = unreadable("controller 103", off, kafka3())
    assert found.way_out.startswith("wait for a snapshot past 130")
    assert said(replace(disk, after=(WrittenLevel("unheard.of", 0, 140),)), kafka3()) == []


def test_a_directory_that_was_formatted_by_newer_software_is_read_at_each_start() -> None:
    new = replace(on_disk(103), bootstrap={METADATA_VERSION: 27})
    (text,) = said(new, kafka3())
    assert text == (
        "controller 103 cannot run 3.9.2: its directory was formatted at metadata.version 27, and 3.9.2 ends on a"
        " bootstrap.checkpoint of a level that it does not know. Move that file aside on its host (do not delete it):"
        " only a quorum that has no log yet begins at its levels."
    )
    assert said(new, kafka4()) == []
    (text,) = said(replace(on_disk(103), bootstrap={METADATA_VERSION: 33}), replace(kafka4(), version="8.0.1-ccs"))
    assert "cannot run 8.0.1-ccs: " in text and "and Kafka 4.0.0, which that may be, ends on a bootstrap" in text
    assert said(replace(on_disk(103), bootstrap={METADATA_VERSION: 33}), kafka4()) == []
    assert said(replace(on_disk(103), bootstrap={METADATA_VERSION: 5}), kafka4()) == []


@pytest.mark.parametrize(
    "version", [THREE, FOUR, *(pytest.param(each, marks=pytest.mark.long) for each in ("4.0.0", *OTHERS))]
)
def test_which_bootstrap_checkpoint_ends_a_node_is_what_its_own_jars_do(version: str, tmp_path: Path) -> None:
    """4.0.1 and later read one of any level (KAFKA-19192); 4.0.0 and 3.9 end on one that they do not know."""
    jars = JARS if version == THREE else fetch_jars(version, jars=jars_of(version))
    directories = [tmp_path / str(number) for number in sorted(LEVELS.values()) if number >= OLDEST_FORMATTED]
    for each in directories:
        each.mkdir()
        (each / "bootstrap.checkpoint").write_bytes(batch(0, level(int(each.name))))
    told = ask_java(Path(__file__).with_name("AskBootstrap.java"), *directories, jars=jars).splitlines()
    ours = [
        said(replace(on_disk(103), bootstrap={METADATA_VERSION: int(each.name)}), software_in(jars))
        for each in directories
    ]
    assert [bool(each) for each in ours] == [each == "ends" for each in told]


def test_a_node_that_was_down_meets_what_the_others_have_behind_them() -> None:
    """103 was down when 4.1.1 raised 21 to 22 and lowered it. The others have snapshots past that, and their logs still
    reach back: 3.9.2 would start on its own disk, and end on what it is sent.
    """
    disk = replace(on_disk(103, snapshot=98), end=110, to_come=(level_at(22, 130), level_at(21, 140)))
    (text,) = said(disk, kafka3())
    assert text == (
        "controller 103 cannot run 3.9.2 yet: it is behind, the quorum's leader will send it metadata.version 22 at"
        " offset 130, and 3.9.2 supports metadata.version 1-21. Start it on software that knows these levels, and let"
        " it take a snapshot past 130."
    )
    assert said(disk, kafka4()) == []


def test_what_a_node_will_be_sent_is_unknown_and_no_yes_where_no_leader_was_asked() -> None:
    (found,) = unreadable("broker 2", replace(on_disk(2), to_come=Unread("no leader")), kafka4())
    assert found.unknown and "can run 4.1.1: no leader" in found.problem


def test_a_directory_that_4_4_formatted_is_no_obstacle_to_4_3_which_passes_over_its_snapshot() -> None:
    """Formatted by 4.4.0 at 33, 4.3.0 and 4.3.1 started on it; 3.9.2, 4.0.0, 4.0.2, 4.2.1 and 4.2.2 ended."""
    fresh, after = (
        replace(on_disk(103, snapshot=0, held=33), bootstrap={}),
        replace(on_disk(103, held=33), bootstrap={}),
    )
    for version, ends in (("4.2.2", True), ("4.3.0", False), ("4.3.1", False)):
        software = replace(kafka4(), version=version)
        assert [bool(said(fresh, software)), bool(said(after, software))] == [ends, True]


def level_at(number: int, offset: int) -> WrittenLevel:
    return WrittenLevel(METADATA_VERSION, number, offset)


def test_a_disk_that_was_not_read_is_unknown_and_no_yes() -> None:
    (found,) = unreadable("broker 2", Unread("Permission denied"), kafka4())
    assert found.unknown and "nothing shows whether broker 2 can run 4.1.1: Permission denied" in found.problem


# -- what is read of a disk --------------------------------------------------------------------------------------------


def written(directory: Path, records: list[bytes], *, snapshot: tuple[int, int] | None, cut: int) -> NodeOnDisk:
    """A node's log in two segments, cut at ``cut``, and its snapshot (end offset, level)."""
    log = directory / "__cluster_metadata-0"
    log.mkdir()
    for begin, some in ((0, records[:cut]), (cut, records[cut:])):
        if some or not begin:
            data = b"".join(batch(begin + at, each) for at, each in enumerate(some))
            (log / f"{begin:020d}.log").write_bytes(data)
    if snapshot is not None:
        (log / f"{snapshot[0]:020d}-0000000001.checkpoint").write_bytes(batch(0, NO_OP, level(snapshot[1])))
    return replace(on_disk_of(103, scan.read_at_start(str(log))), to_come=())


@given(
    levels=st.lists(st.one_of(st.none(), st.integers(4, 30)), min_size=1, max_size=12),
    snapshot=st.one_of(st.none(), st.integers(1, 12)),
    cut=st.integers(0, 12),
)
def test_a_node_can_start_exactly_where_its_snapshot_and_each_later_record_lie_in_the_range(
    levels: list[int | None], snapshot: int | None, cut: int
) -> None:
    """Generated logs, as bytes on disk; None is another record than a level's."""
    ends = None if snapshot is None else min(snapshot, len(levels))
    held = next((each for each in reversed(levels[:ends]) if each is not None), 21)
    with tempfile.TemporaryDirectory() as directory:
        records = [NO_OP if each is None else level(each) for each in levels]
        disk = written(
            Path(directory), records, snapshot=None if ends is None else (ends, held), cut=min(cut, len(levels))
        )
    assert disk.end == len(levels)
    for software in (kafka3(), kafka4()):
        met = [each for each in levels[ends or 0 :] if each is not None] + ([] if ends is None else [held])
        low, high = software.features[METADATA_VERSION].supported
        assert (unreadable("x", disk, software) == ()) == all(low <= each <= high for each in met)


def test_a_level_in_an_aborted_transaction_counts_too_because_it_is_replayed(tmp_path: Path) -> None:
    disk = written(tmp_path, [BEGIN, level(22), ABORT, BEGIN, level(21), END], snapshot=None, cut=6)
    assert [(each.level, each.offset) for each in disk.after] == [(22, 1), (21, 4)]


def test_the_newest_snapshot_counts_and_a_half_written_one_does_not(tmp_path: Path) -> None:
    disk = written(tmp_path, [level(20), NO_OP, level(21)], snapshot=(1, 20), cut=3)
    assert disk.snapshot is not None and (disk.snapshot.end, disk.snapshot.levels) == (1, {METADATA_VERSION: 20})
    log = tmp_path / "__cluster_metadata-0"
    (log / f"{3:020d}-0000000001.checkpoint.part").write_bytes(batch(0, level(21))[:20])
    (log / f"{2:020d}-0000000001.checkpoint").write_bytes(batch(0, level(20)))
    again = on_disk_of(103, scan.read_at_start(str(log)))
    assert again.snapshot is not None and again.snapshot.end == 2
    assert [each.offset for each in again.after] == [2]


def test_a_log_that_is_being_written_is_read_up_to_its_last_whole_batch(tmp_path: Path) -> None:
    disk = written(tmp_path, [level(21), NO_OP, level(22)], snapshot=None, cut=3)
    path = tmp_path / "__cluster_metadata-0" / f"{0:020d}.log"
    os.truncate(path, path.stat().st_size - 3)
    again = on_disk_of(103, scan.read_at_start(str(path.parent)))
    assert (disk.end, again.end, [each.level for each in again.after]) == (3, 2, [21])


def test_bootstrap_checkpoint_lies_beside_the_log(tmp_path: Path) -> None:
    (tmp_path / "bootstrap.checkpoint").write_bytes(batch(0, level(27)))
    assert written(tmp_path, [level(21)], snapshot=None, cut=1).bootstrap == {METADATA_VERSION: 27}


# -- the whole cluster -------------------------------------------------------------------------------------------------


def disks(seen: FeatureObservation, **by_node: NodeOnDisk) -> FeatureObservation:
    hosts = dict(seen.hosts)
    for name, disk in by_node.items():
        node_id = int(name.removeprefix("node_"))
        host = hosts[node_id]
        assert isinstance(host, NodeHost)
        hosts[node_id] = replace(host, disk=disk)
    return replace(seen, hosts=hosts)


def test_the_way_is_open_where_every_node_can_read_its_log() -> None:
    way = way_to(look(kafka3()), kafka4(), kafka3())
    assert way.open and way.render_text() == "every node can start on 4.1.1 now"


def test_the_way_back_is_shut_until_the_last_controller_has_its_snapshot_and_says_which() -> None:
    seen = disks(look(kafka4()), node_103=on_disk(103, snapshot=98, after={130: 22, 140: 21}))
    way = way_to(seen, kafka3(), kafka4())
    assert not way.open and set(way.in_the_way) == {103}
    assert "controller 103 cannot run 3.9.2 yet" in way.render_text()


def test_the_way_back_is_closed_for_good_past_a_star_that_the_older_software_does_not_know() -> None:
    way = way_to(look(kafka4(), 27), kafka3(), kafka4())
    assert way.render_text() == (
        "closed: metadata.version is 27, 3.9.2 supports 1-21, and 23 (4.0-IV1) between changed metadata: no server"
        " lowers across that"
    )
    assert not way_to(look(kafka4(), 22), kafka3(), kafka4()).closed


def test_what_is_closed_is_never_called_not_yet_though_the_newer_softwares_levels_were_not_read() -> None:
    """A half-done roll, or a host whose newer home is gone: the older one's table knows nothing of what is between."""
    seen = disks(look(kafka4(), 27), node_103=on_disk(103, held=27))
    way = way_to(seen, kafka3(), kafka3())
    assert way.in_the_way and way.render_text() == way_to(look(kafka4(), 27), kafka3(), kafka4()).render_text()
    assert not way_to(look(kafka4(), 22), kafka3(), kafka3()).closed


NO_LEADER = Unread("no controller leads")


@pytest.mark.parametrize("in_snapshots", [True, False])
def test_without_a_leader_the_nodes_own_disks_show_that_the_way_back_is_closed(in_snapshots: bool) -> None:
    """In the middle of a bad upgrade: waiting and lowering open nothing."""
    passed = [on_disk(i, held=27) if in_snapshots else on_disk(i, after={130: 27}) for i in (101, 102)]
    seen = disks(replace(look(kafka4()), log=NO_LEADER), node_101=passed[0], node_102=passed[1])
    way = way_to(seen, kafka3(), kafka4())
    assert way.render_text() == (
        "closed: the nodes' disks hold metadata.version 27, 3.9.2 supports 1-21, and 23 (4.0-IV1) between changed"
        " metadata: no server lowers across that"
    )


def test_one_snapshot_is_enough_and_one_record_is_not() -> None:
    """A snapshot holds what was committed; a record on one disk may never be."""
    without = replace(look(kafka4()), log=NO_LEADER)
    assert way_to(disks(without, node_1=on_disk(1, held=27)), kafka3(), kafka4()).closed
    way = way_to(disks(without, node_101=on_disk(101, after={130: 27})), kafka3(), kafka4())
    assert not way.closed and way.unknown
    assert way.render_text().startswith("not known: whether the way to 3.9.2 is closed for good. The metadata log")
    read = replace(without, hosts={**dict.fromkeys(without.hosts, Unread("no ssh")), 101: without.hosts[101]})
    of_one = way_to(disks(read, node_101=on_disk(101, after={130: 27})), kafka3(), kafka4())
    assert of_one.unknown and "not yet" not in of_one.render_text()


def test_a_directory_that_was_just_formatted_proves_no_committed_level_and_keeps_older_software_away() -> None:
    """4.4 formats a controller's directory with a snapshot that ends at 0, at its newest level or at another one."""
    without = replace(look(kafka4(), 22), log=NO_LEADER)
    fresh = replace(on_disk(103, snapshot=0, held=27), end=0, bootstrap={})
    for disk in (fresh, replace(fresh, end=150, after=(level_at(22, 3),))):
        way = way_to(disks(without, node_103=disk), kafka3(), kafka4())
        assert not way.closed and way.unknown and 103 in way.in_the_way
    two = disks(without, node_102=replace(fresh, node_id=102), node_103=fresh)
    assert not way_to(two, kafka3(), kafka4()).closed
    began = {f"node_{i}": replace(fresh, node_id=i, end=150, after=(level_at(27, 3),)) for i in (102, 103)}
    assert way_to(disks(without, **began), kafka3(), kafka4()).closed, "a majority wrote it into its log"


def test_a_way_that_no_leader_tells_of_is_never_called_not_yet() -> None:
    waits = on_disk(103, snapshot=98, after={130: 22, 140: 21})
    seen = disks(look(kafka4()), node_103=waits)
    assert way_to(seen, kafka3(), kafka4()).render_text().startswith("not yet: ")
    way = way_to(replace(seen, log=NO_LEADER), kafka3(), kafka4())
    assert way.unknown and "The metadata log was not read (no controller leads)" in way.render_text()


@pytest.mark.parametrize("version", [THREE, FOUR, *(pytest.param(each, marks=pytest.mark.long) for each in OTHERS)])
def test_this_tools_list_of_levels_that_changed_metadata_is_the_jars_own(version: str) -> None:
    """Of each release the levels that it supports, but its first: nothing comes before that one. All of 3.9 and of the
    newest are all of the list.
    """
    software = software_in(JARS if version == THREE else fetch_jars(version, jars=jars_of(version)))
    table = software.features[METADATA_VERSION]
    judged = range(table.levels[0].number + 1, table.supported.highest + 1)
    assert [each for each in BRINGS if each in judged] == [
        each.number for each in table.levels if each.changes_metadata and each.number in judged
    ]
    assert version != NEWEST or max(BRINGS) in judged


def test_each_node_waits_for_its_own_snapshots_interval() -> None:
    seen = disks(look(kafka4()), node_101=on_disk(101, snapshot=98, after={130: 22, 140: 21}))
    host = seen.hosts[101]
    assert isinstance(host, NodeHost)
    hosts = {**seen.hosts, 101: replace(host, config={"metadata.log.max.snapshot.interval.ms": "600000"})}
    way = way_to(replace(seen, hosts=hosts), kafka3(), kafka4())
    assert "it takes one within 10 min of" in way.render_text()


def test_a_node_that_takes_snapshots_by_the_logs_size_alone_is_never_said_to_take_one_within_a_time() -> None:
    seen = disks(look(kafka4()), node_101=on_disk(101, snapshot=98, after={130: 22, 140: 21}))
    host = seen.hosts[101]
    assert isinstance(host, NodeHost)
    hosts = {**seen.hosts, 101: replace(host, config={"metadata.log.max.snapshot.interval.ms": "0"})}
    told = way_to(replace(seen, hosts=hosts), kafka3(), kafka4()).render_text()
    assert told.endswith(
        "Wait for a snapshot past 130: it takes them by the log's size alone"
        " (metadata.log.max.record.bytes.between.snapshots), for metadata.log.max.snapshot.interval.ms is 0. Set that"
        " to a time in the cluster file and restart it, and it takes one within that time."
    )


@pytest.mark.parametrize("node_id", CONTROLLERS)
def test_a_host_that_was_not_read_leaves_it_unknown(node_id: int) -> None:
    seen = in_log(look(kafka3()))
    way = way_to(replace(seen, hosts={**seen.hosts, node_id: Unread("no ssh")}), kafka4(), kafka3())
    assert not way.open and way.in_the_way[node_id][0].unknown
