"""The looks of a comparison, against a log and a ZooKeeper that are played: what is looked at again, how often, and
what is made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from metadata_encoding import config, log, partition, record, topic
from observations import SPEC
from test_parity_spellings import DECODING, Tree, records_of, znode_of

from kraft_runbook.cluster.observation import ZkMigrationState
from kraft_runbook.io.kafka.metadata_quorum import QuorumDescription
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.image.log_replay import LogReplay, Version
from kraft_runbook.metadata.log.log_chunks import Chunk
from kraft_runbook.metadata.log.record_schemas import RecordType
from kraft_runbook.parity.comparison import ParityReport, Verdict
from kraft_runbook.parity.dual_write import NoProof
from kraft_runbook.parity.findings import Findings
from kraft_runbook.parity.looks import PATIENCE_FOR_SESSIONS, PATIENCE_FOR_THE_LOG, Looks, NotDualWriting

CONFIG = "/config/topics/t"
SECRETS = environment_secrets({})


class Log:
    """Stands for the followed log: a replay that holds all of it."""

    def __init__(self, replay: LogReplay) -> None:
        self.replay = replay
        self.quorum = QuorumDescription(101, 4, replay.end + 1, ())

    def read_on(self) -> int:
        return self.replay.end


class Ensemble:
    """Stands for ZooKeeper: the n-th session sees the n-th tree, or the last. ``at_first``: what happens as the first
    session begins.
    """

    def __init__(self, *trees: Tree, at_first: Callable[[], object] = lambda: None) -> None:
        self.trees = list(trees)
        self.sessions = 0
        self.at_first = at_first

    def __call__(self, *_: object, **__: object) -> Session:
        self.sessions += 1
        if self.sessions == 1:
            self.at_first()
        return Session(self.trees[min(self.sessions, len(self.trees)) - 1])


class Session(Tree):
    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None: ...

    def get(self, path: str) -> Znode | None:
        return self.get_many([path])[0]  # type: ignore[override]


def tree(retention: str, *, offset: int = 5, controller: int = 101, more: dict[str, bytes] | None = None) -> Tree:
    """What ZooKeeper says of the topic's config, and who writes it."""
    migration = (
        f'{{"version":0,"kraft_metadata_offset":{offset},"kraft_controller_id":{controller},'
        '"kraft_metadata_epoch":4,"kraft_controller_epoch":4}'
    )
    held = {
        CONFIG: f'{{"version":1,"config":{{"retention.ms":"{retention}"}}}}'.encode(),
        "/controller": f'{{"version":2,"brokerid":{controller},"kraftControllerEpoch":4}}'.encode(),
        "/migration": migration.encode(),
    }
    return Tree(held | (more or {}))


def replay(*later: bytes, state: ZkMigrationState = ZkMigrationState.MIGRATION, resumed: bool = False) -> LogReplay:
    """A topic, and its retention set to 1 behind M, which is 4."""
    first = [
        record(RecordType.FEATURE_LEVEL, name="metadata.version", feature_level=21),
        record(RecordType.ZK_MIGRATION_STATE, zk_migration_state=int(state)),
        topic("t"),
        partition(),
        config("retention.ms", "0", "t"),
    ]
    whole = LogReplay(4, DECODING.fingerprints, "3.9")
    values = [*first, config("retention.ms", "1", "t"), *later]
    chunk = Chunk(log(*values), up_to=len(values) - 1)
    whole.apply(chunk)
    if not resumed:
        return whole
    onwards = LogReplay.resumed(whole.at_start, 4, DECODING.fingerprints, "3.9")
    onwards.apply(Chunk(chunk.data, since=5, up_to=chunk.up_to))
    return onwards


def looked(
    log: LogReplay, *trees: Tree, at_first: Callable[[], object] = lambda: None
) -> tuple[ParityReport, Ensemble]:
    """A first look at what was touched, and suspects again."""

    def told_by_the_quorum(spec: Any, quorum: QuorumDescription, *, offset: int, secrets: Any) -> Iterator[Version]:
        for where in ("/controller", "/migration"):
            row = canonical_rows.controller(where, quorum.leader_id, quorum.leader_epoch)
            yield Version(row.kind, row.key, row.value, offset, last=True)

    ensemble: Any = Ensemble(*trees, at_first=at_first)
    found = Findings(datetime(2026, 1, 1, tzinfo=UTC), may_be_empty=True)
    follower: Any = Log(log)
    looks = Looks(SPEC, SECRETS, DECODING, follower, found, pause=0, opened=ensemble, versions=told_by_the_quorum)
    looks.at_touched()
    looks.again()
    return found.report(SPEC), ensemble


def kinds(report: ParityReport) -> Sequence[str]:
    return [each.kind for each in report.samples]


def test_what_was_touched_and_agrees_is_a_match_at_the_first_look() -> None:
    report, zookeeper = looked(replay(), tree("1"))
    assert (report.verdict, zookeeper.sessions, report.rounds) == (Verdict.MATCH, 1, 1)
    assert (report.migration_offset, report.end_offset) == (5, 5)
    assert {each.kind: each.both for each in report.counts} == {"topic config": 1, "controller": 2}


def test_what_was_touched_up_to_m_is_looked_at_however_late_it_came() -> None:
    """A record that is committed, and that /migration names as written, between two steps of the first look."""
    growing = replay()
    late = Chunk(log(config("cleanup.policy", "compact", "t"), first=6), since=6, up_to=6)
    report, _ = looked(growing, tree("1", offset=6), at_first=lambda: growing.apply(late))
    assert (report.verdict, kinds(report)) == (Verdict.MISMATCH, ["topic config"])
    assert report.migration_offset == 6


def test_a_suspect_that_fits_once_is_cleared_and_counted() -> None:
    report, zookeeper = looked(replay(), tree("9"), tree("9"), tree("1"), tree("9"))
    assert (report.verdict, zookeeper.sessions) == (Verdict.MATCH, 3)
    assert {each.kind: each.both for each in report.counts} == {"topic config": 1, "controller": 2}


def test_one_that_never_fits_is_a_mismatch_after_as_many_looks_as_the_log_is_given() -> None:
    report, zookeeper = looked(replay(), tree("9"))
    assert (report.verdict, kinds(report)) == (Verdict.MISMATCH, ["topic config"])
    assert zookeeper.sessions == report.rounds == 1 + PATIENCE_FOR_THE_LOG


def test_who_leads_is_given_longer_for_it_does_not_follow_the_log() -> None:
    report, zookeeper = looked(replay(), tree("1", controller=102))
    assert (report.verdict, kinds(report)) == (Verdict.MISMATCH, ["controller", "controller"])
    assert zookeeper.sessions == 1 + PATIENCE_FOR_SESSIONS


@pytest.mark.parametrize("resumed", [False, True], ids=["whole", "resumed"])
def test_a_znode_that_can_be_read_again_accuses_nobody_of_what_only_the_whole_log_knows(
    monkeypatch: pytest.MonkeyPatch, resumed: bool
) -> None:
    """The user's quota was set before M: a state to read on from does not hold it."""
    credential = ("scram", "u", "1")
    path, good = znode_of(credential, {"u": "u"})
    both = good.replace(b'{"SCRAM', b'{"request_percentage":"7","SCRAM')
    entity = [{"entity_type": "user", "entity_name": "u"}]
    quota = record(RecordType.CLIENT_QUOTA, entity=entity, key="request_percentage", value=7.0, remove=False)
    garbled, mended = tree("1", more={path: b"{"}), tree("1", more={path: both})
    known = replay(*records_of(credential), *([] if resumed else [quota]), resumed=resumed)
    report, _ = looked(known, garbled, mended)
    assert report.verdict is Verdict.MATCH, report.render_text()


@pytest.mark.parametrize(
    ("state", "said"), [(ZkMigrationState.POST_MIGRATION, "finalized"), (ZkMigrationState.PRE_MIGRATION, "not copied")]
)
def test_without_dual_write_there_is_nothing_to_compare(
    monkeypatch: pytest.MonkeyPatch, state: ZkMigrationState, said: str
) -> None:
    with pytest.raises(NotDualWriting, match=said):
        looked(replay(state=state), tree("1"))


def test_a_migration_beyond_the_logs_end_is_of_another_quorum() -> None:
    with pytest.raises(NoProof, match="belongs to another quorum"):
        looked(replay(), tree("1", offset=77))
