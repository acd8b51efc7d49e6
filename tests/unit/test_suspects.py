"""What may have ended Kafka's copy, which znodes go with it, and what is said of a search."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_runbook.errors import RunbookError
from kraft_runbook.io.zookeeper.snapshot_file import made_up, snapshot_file
from kraft_runbook.io.zookeeper.snapshot_read import write_part, znodes_in
from kraft_runbook.rehearsal.halving import Culprits, Search
from kraft_runbook.rehearsal.suspects import Halved, suspect_of

POISON = "/delegation_token/tokens/x"


@pytest.mark.parametrize(
    ("path", "suspect"),
    [
        ("/brokers/topics/t", "/brokers/topics/t"),
        ("/brokers/topics/t/partitions/0/state", "/brokers/topics/t"),
        ("/config/topics/t", "/brokers/topics/t"),
        ("/config/brokers/<default>", "/config/brokers/<default>"),
        ("/config/users/u/clients/c", "/config/users/u"),
        ("/config/clients/c", "/config/clients/c"),
        ("/config/ips/192.0.2.1", "/config/ips/192.0.2.1"),
        ("/latest_producer_id_block", "/latest_producer_id_block"),
        ("/kafka-acl/Topic/t", "/kafka-acl/Topic/t"),
        ("/kafka-acl-extended/prefixed/Topic/t", "/kafka-acl-extended/prefixed/Topic/t"),
        ("/delegation_token/tokens/x", POISON),
        ("", None),
        *(
            (path, None)
            for path in (
                "/",
                "/brokers",
                "/brokers/topics",
                "/brokers/ids/1",
                "/config/topics",
                "/config/changes/config_change_1",
                "/kafka-acl/Topic",
                "/kafka-acl-changes/acl_changes_1",
                "/kafka-acl-extended/prefixed/Topic",
                "/delegation_token/tokens",
                "/controller_epoch",
                "/cluster/id",
            )
        ),
    ],
)
def test_a_znode_belongs_to_what_is_left_out_as_one(path: str, suspect: str | None) -> None:
    assert suspect_of(path) == suspect


# -- a part of a snapshot ----------------------------------------------------------------------------------------------

PATHS = ("/", "/brokers", "/brokers/topics", "/brokers/topics/t", "/brokers/topics/t/partitions", "/cluster", "/é")


def snapshot(directory: Path) -> Path:
    with snapshot_file(directory) as file:
        for number, path in enumerate(PATHS):
            data = None if number == 1 else path.encode() * number
            file.write([made_up(b"" if path == "/" else path.encode(), data, zxid=7, at_ms=1)])
        file.zxid = 0x28E
    assert file.path is not None
    return file.path


def test_a_part_has_the_same_znodes_but_for_those_that_are_left_out(tmp_path: Path) -> None:
    whole = snapshot(tmp_path / "whole")
    assert [path for path, _ in znodes_in(whole)] == list(PATHS)
    same = write_part(whole, tmp_path / "same", holds=lambda _: True)
    assert (same.name, same.read_bytes()) == (whole.name, whole.read_bytes())
    part = write_part(whole, tmp_path / "part", holds=lambda path: suspect_of(path) != "/brokers/topics/t")
    held = dict(znodes_in(whole))
    assert dict(znodes_in(part)) == {path: held[path] for path in PATHS if not path.startswith("/brokers/topics/t")}


def test_a_file_that_is_cut_short_or_that_another_wrote_is_refused(tmp_path: Path) -> None:
    whole = snapshot(tmp_path / "whole")
    for data, why in ((whole.read_bytes()[:-40], "cut short"), (b"ZKSN" + bytes(60), "was not written by a rehearsal")):
        (tmp_path / "other").write_bytes(data)
        with pytest.raises(RunbookError, match=why):
            list(znodes_in(tmp_path / "other"))


# -- in words ----------------------------------------------------------------------------------------------------------


def told(*found: Culprits[str], **known: object) -> str:
    return Halved(9, Search(found, 4, **known), {(POISON,): "an Exception: why"}).told()  # type: ignore[arg-type]


def test_a_culprit_is_named_with_what_kafka_said_of_it_alone() -> None:
    assert told(Culprits((POISON,), True), others=False) == (
        "4 more copies of parts of the tree, 9 suspects; the copy ends of /delegation_token/tokens/x alone, with"
        " an Exception: why; without it the copy is done"
    )


def test_of_many_some_are_named_and_their_kinds() -> None:
    some = tuple(f"/brokers/topics/t{number}" for number in range(7))
    assert "one or more of 7 znodes below /brokers/topics (/brokers/topics/t0, " in told(Culprits(some, True))


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"vanished": True}, "nor did one of all suspects again"),
        ({"others": True}, "it is something else in the tree"),
        ({"stopped": "no memory"}, "the last copy said nothing: no memory"),
    ],
)
def test_what_was_not_found_is_said(known: dict[str, object], words: str) -> None:
    assert words in told(**known)


def test_what_was_not_seen_alone_is_not_said_to_end_it_alone() -> None:
    said = told(Culprits((POISON, "/x"), False))
    assert "alone" not in said and "none of the parts that were tried ends it" in said
