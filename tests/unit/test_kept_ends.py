"""Log ends that are kept and compared: a loss is named with both numbers, and nothing unread counts as fine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from observations import SPEC

from kraft_runbook.cluster.log_ends import LogEnds, NotKept, TopicEnds
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.replica_directories import GoneStray, GoneTopic
from kraft_runbook.errors import Unreachable
from kraft_runbook.migration.kept_ends import CODE, compared, judged
from kraft_runbook.procedures.kept_log_ends import check_log_ends
from kraft_runbook.runbook.check_results import CheckResult, Severity, Verdict

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def ends(topics: Mapping[str, tuple[str, Mapping[int, int]]], **unread: str) -> LogEnds:
    held = {name: TopicEnds(topic_id, numbers) for name, (topic_id, numbers) in topics.items()}
    return LogEnds("cluster", AT, held, {name.replace("_", "-"): why for name, why in unread.items()})


KEPT = ends({"t": ("T", {0: 10, 1: 0, 2: 5}), "u": ("U", {0: 7})})


@pytest.mark.parametrize(
    ("now", "severity", "verdict", "told"),
    [
        (KEPT, Severity.BLOCKING, Verdict.PASS, "4 partitions end where they ended or later"),
        (
            ends({"t": ("T", {0: 11, 1: 0, 2: 5}), "u": ("U", {0: 7}), "new": ("N", {0: 0})}),
            Severity.BLOCKING,
            Verdict.PASS,
            "4 partitions",
        ),
        (ends({"t": ("T", {0: 10, 1: 0, 2: 5})}), Severity.BLOCKING, Verdict.PASS, "1 topics deleted since"),
        (
            ends({"t": ("T", {0: 9, 1: 0, 2: 5}), "u": ("U", {0: 0})}),
            Severity.BLOCKING,
            Verdict.FAIL,
            "2: t-0 (ended at 10, now at 9), u-0 (ended at 7, now at 0)",
        ),
        (
            ends({"t": ("T", {0: 10, 1: 0}), "u": ("U", {0: 7})}),
            Severity.BLOCKING,
            Verdict.FAIL,
            "1: t-2 (ended at 5, now it is gone)",
        ),
        (
            ends({"t": ("T", {0: 10, 1: 0, 2: 5}), "u": ("U2", {0: 0})}),
            Severity.WARNING,
            Verdict.FAIL,
            "deleted and made again, under another id: 1: u (id U, now U2)",
        ),
        (
            ends({"t": ("T", {0: 10, 2: 5}), "u": ("U", {0: 7})}, t_1="it has no leader"),
            Severity.BLOCKING,
            Verdict.UNKNOWN,
            "1: t-1: it has no leader",
        ),
        (
            ends({"t": ("T", {0: 10, 1: 0, 2: 5})}, u="this tool's identity may not describe the topic"),
            Severity.BLOCKING,
            Verdict.UNKNOWN,
            "1: u: this tool's identity may not describe the topic",
        ),
        (
            ends({"t": ("T", {0: 9, 2: 5}), "u": ("U2", {0: 0})}, t_1="it has no leader"),
            Severity.BLOCKING,
            Verdict.FAIL,
            "1: t-0 (ended at 10, now at 9)",
        ),
        (replace(KEPT, cluster_id="other"), Severity.BLOCKING, Verdict.UNKNOWN, "of cluster cluster, not of other"),
    ],
)
def test_what_is_lost_deleted_begun_anew_or_unread_is_told_apart(
    now: LogEnds, severity: Severity, verdict: Verdict, told: str
) -> None:
    result = judged(KEPT, now, "/state/log_ends/lab", "abc", version="3.9.2")
    assert (result.code, result.severity, result.verdict) == (CODE, severity, verdict), result.evidence
    assert told in result.evidence
    assert "2026-01-02 at 03:04:05 UTC in /state/log_ends/lab, SHA-256 abc" in result.evidence
    if verdict is Verdict.FAIL and severity is Severity.BLOCKING:
        assert "remove /state/log_ends/lab and clear this task" in result.fix and "KAFKA-17076" not in result.fix
    assert not judged(KEPT, now, "f", "abc", version="3.9.2", blocking=False).blocks


def left_of(topic_id: str, name: str, *partitions: int | None, count: int = 0) -> GoneTopic:
    strays = tuple(GoneStray(2, f"/d/{name}-{number}.ab-stray", number) for number in partitions)
    return GoneTopic(topic_id, name, strays, count or len(strays))


@pytest.mark.parametrize("blocking", [True, False])
def test_what_was_set_aside_of_a_topic_that_is_gone_is_named_beside_its_end(blocking: bool) -> None:
    """A person decides: a topic that was deleted while a broker was down leaves the same. One that was gone before the
    copy, or has another id, is not new.
    """
    now = ends({"t": ("T", {0: 10, 1: 0, 2: 5})})
    old = (left_of("OLD", "u", 0), left_of("T", "t", 0), left_of("", "other", 0))
    assert judged(KEPT, now, "file", "sum", version="3.9.2", blocking=blocking, gone=old).verdict is Verdict.PASS
    found = judged(
        KEPT, now, "file", "sum", version="3.9.2", blocking=blocking, gone=(*old, left_of("U", "u", 0, 4, count=9))
    )
    assert (found.severity, found.verdict) == (Severity.WARNING, Verdict.FAIL)
    assert found.evidence.startswith(
        "-stray directories of topics that were there before the copy and are gone: 9: broker 2: /d/u-0.ab-stray"
        " (u-0 ended at 7), broker 2: /d/u-4.ab-stray, …; 3 partitions end where they ended or later"
    )
    assert found.fix.startswith("delete no -stray directory yet")
    nameless = judged(KEPT, now, "file", "sum", version="3.9.2", gone=(left_of("", "u", None),))
    assert "1: broker 2: /d/u-None.ab-stray; 3 partitions" in nameless.evidence


def test_a_topic_that_began_anew_and_one_that_was_set_aside_are_both_told() -> None:
    now = ends({"t": ("T2", {0: 0})})
    found = judged(KEPT, now, "file", "sum", version="3.9.2", gone=(left_of("U", "u", 0),))
    assert "deleted and made again, under another id: 1: t (id T, now T2); -stray directories of" in found.evidence
    assert found.fix.startswith("ask the owners of these topics") and "delete no -stray directory" in found.fix


def test_they_are_read_back_as_they_were_kept_and_damage_is_seen() -> None:
    kept = replace(KEPT, unread={"x": "why"})
    data = kept.to_bytes()
    back, digest = LogEnds.from_bytes(data)
    assert back == kept
    assert digest != LogEnds.from_bytes(replace(kept, cluster_id="c").to_bytes())[1]
    for damaged in (b"", data[:-1], data[:10] + bytes([data[10] ^ 1]) + data[11:]):
        with pytest.raises(NotKept):
            LogEnds.from_bytes(damaged)


def test_two_hundred_thousand_partitions_are_small() -> None:
    many = LogEnds(
        "c", AT, {f"topic-{n}": TopicEnds("B" * 22, {p: n * 977 + p for p in range(10)}) for n in range(20_000)}
    )
    data = many.to_bytes()
    assert len(data) < 3_000_000
    back, _ = LogEnds.from_bytes(data)
    assert compared(many, back).partitions == 200_000


class World:
    """What the brokers say, look by look; the last stays."""

    def __init__(self, file: Path) -> None:
        self.says: list[LogEnds | Unreachable] = [KEPT]
        self.file = file

    def _read(self, *_: object, **__: object) -> LogEnds:
        said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if isinstance(said, Unreachable):
            raise said
        return said

    def check(
        self, phase: Phase, *says: LogEnds | Unreachable, keeps: bool = True, blocking: bool = True
    ) -> CheckResult:
        self.says = list(says) or self.says
        return check_log_ends(
            SPEC,
            self.file,
            phase,
            secrets=lambda _: "",
            keeps=keeps,
            blocking=blocking,
            tell=lambda _: None,
            read=self._read,
            stored=lambda *_: frozenset(),
            apart=0,
        )

    @property
    def kept(self) -> LogEnds:
        return LogEnds.from_bytes(self.file.read_bytes())[0]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "log_ends" / "lab")


@pytest.mark.parametrize("version", ["3.9.0", "3.9.1"])
def test_a_fault_of_the_release_that_runs_is_named_beside_a_loss(version: str) -> None:
    lower = ends({"t": ("T", {0: 9, 1: 0, 2: 5}), "u": ("U", {0: 7})})
    found = judged(KEPT, lower, "file", "sum", version=version)
    assert found.blocks and found.fix.startswith("records are lost, or about to be: restart nothing more")
    assert f"a compacted partition of which a replica was copied anew: Kafka {version} has KAFKA-17076" in found.fix
    assert "remove file and clear this task" in found.fix


LATER = ends({"t": ("T", {0: 20, 1: 3, 2: 5}), "u": ("U", {0: 7})})
LOST = ends({"t": ("T", {0: 0, 1: 0, 2: 5}), "u": ("U", {0: 7})})


def test_a_migration_keeps_them_once_and_the_next_one_anew(world: World) -> None:
    kept = world.check(Phase.ZOOKEEPER)
    digest = LogEnds.from_bytes(world.file.read_bytes())[1]
    assert kept.verdict is Verdict.PASS and digest in kept.evidence and str(world.file) in kept.evidence
    assert world.file.stat().st_mode & 0o777 == 0o600
    for phase in (Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE):
        result = world.check(phase, LATER)
        assert result.verdict is Verdict.PASS and digest in result.evidence
    assert world.kept == KEPT
    assert world.check(Phase.ZOOKEEPER, LATER, keeps=False).verdict is Verdict.PASS  # the confirmation
    assert world.kept == KEPT
    world.check(Phase.ZOOKEEPER, LATER)  # after a rollback
    assert world.kept == LATER


def test_a_loss_blocks_until_its_file_is_removed_and_then_the_signer_is_told(world: World) -> None:
    world.check(Phase.ZOOKEEPER)
    assert world.check(Phase.HYBRID, LOST).blocks
    assert not world.check(Phase.HYBRID, LOST, blocking=False).blocks
    world.file.unlink()
    late = world.check(Phase.HYBRID, LOST)
    assert (late.severity, late.verdict) == (Severity.WARNING, Verdict.UNKNOWN)
    assert "no log ends are kept from before the metadata copy" in late.evidence
    assert world.kept == LOST
    assert world.check(Phase.DUAL_WRITE, LOST).verdict is Verdict.PASS


def test_what_was_lower_for_a_moment_only_is_no_loss(world: World) -> None:
    world.check(Phase.ZOOKEEPER)
    assert world.check(Phase.HYBRID, LOST, LATER).verdict is Verdict.PASS


def test_what_can_not_be_read_or_kept_whole_is_unknown(world: World) -> None:
    silent = Unreachable("no broker answers", way_out="start one")
    first = world.check(Phase.ZOOKEEPER, silent)
    assert (first.verdict, first.blocks, first.fix) == (Verdict.UNKNOWN, True, "start one")
    assert not world.file.exists()
    assert world.check(Phase.HYBRID, KEPT, keeps=False).blocks
    partly = world.check(Phase.ZOOKEEPER, ends({"t": ("T", {0: 1})}, t_1="it has no leader"))
    assert partly.blocks and partly.evidence == "nothing is kept; not read: 1: t-1: it has no leader"
    assert not world.file.exists()
    world.check(Phase.ZOOKEEPER, KEPT)
    world.file.write_bytes(b"damaged")
    for keeps in (True, False):
        damaged = world.check(Phase.HYBRID, KEPT, keeps=keeps)
        assert damaged.blocks and f"remove {world.file}" in damaged.fix
