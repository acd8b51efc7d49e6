"""Whether ZooKeeper is still written, by /migration alone."""

from __future__ import annotations

import json
from contextlib import nullcontext
from itertools import chain, repeat
from typing import Any, cast

import pytest
from observations import SPEC, both, observation, part, with_quorum, zookeeper

from kraft_runbook.cluster.observation import ClusterObservation, MigrationZnode, Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.io.kafka.metadata_quorum import QuorumDescription
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.parity.dual_write import NoProof, await_movement, read_migration, require_movement


class Migration:
    """A reader whose /migration holds these offsets one after the other, the last one for ever; None: there is no
    znode; bytes: as they are.
    """

    def __init__(self, *offsets: int | bytes | None) -> None:
        self._next = chain(offsets, repeat(offsets[-1]))

    def get(self, path: str) -> Znode | None:
        assert path == "/migration"
        found = next(self._next)
        if found is None:
            return None
        fields = {
            "version": 0,
            "kraft_metadata_offset": found,
            "kraft_controller_id": 101,
            "kraft_metadata_epoch": 1,
            "kraft_controller_epoch": 1,
        }
        return Znode(path, found if isinstance(found, bytes) else json.dumps(fields).encode(), 0, 0, 0, 0, 0)


def reader(*offsets: int | bytes | None) -> ZookeeperReader:
    return cast(ZookeeperReader, Migration(*offsets))


def no_secret(ref: SecretRef) -> str:
    raise AssertionError(ref)


def require(found: ZookeeperReader, *, high_watermark: int = 900) -> None:
    """Of a quorum that has committed all below this."""
    quorum = QuorumDescription(101, 1, high_watermark, ())
    require_movement(found, SPEC, since=5, secrets=no_secret, within=0.3, describe=lambda *_, **__: quorum)


def test_a_frozen_migration_offset_withholds_the_proof_and_says_how_it_is_cured() -> None:
    with pytest.raises(NoProof) as raised:
        require(reader(5))
    assert (
        raised.value.problem
        == "dual write has stopped: /migration stays at offset 5 while the metadata log has reached 899"
    )
    assert "restart the active controller" in raised.value.way_out


def test_an_offset_that_moves_is_alive() -> None:
    require(reader(5, 5, 6))


def test_an_offset_that_nothing_could_have_moved_withholds_no_proof() -> None:
    """metadata.max.idle.interval.ms is 0, or longer than the wait, and the cluster is idle."""
    require(reader(5), high_watermark=6)


def test_one_record_that_does_not_reach_zookeeper_withholds_the_proof() -> None:
    with pytest.raises(NoProof, match="stays at offset 5 while the metadata log has reached 6"):
        require(reader(5), high_watermark=7)


def test_a_migration_that_names_no_offset_proves_nothing() -> None:
    for found, problem in (
        (None, "/migration is missing"),
        (-1, "/migration has no offset"),
        (b"{}", "/migration can't be read: /migration lacks a field"),
    ):
        with pytest.raises(NoProof, match=problem):
            read_migration(reader(found))


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def waited(*offsets: int | bytes | None, earlier: ClusterObservation | None = None) -> float:
    """Seconds that ``await_movement`` waits at most three, after a look at offset 5 with records up to 6 committed."""
    clock = Clock()
    seen = earlier or both(zookeeper(migration=MigrationZnode(5, 101, 1, 1)), with_quorum(high_watermark=7))(
        observation(Phase.DUAL_WRITE)
    )
    opened: Any = lambda *_, **__: nullcontext(reader(*offsets))  # noqa: E731
    await_movement(
        SPEC, seen, secrets=no_secret, within=3.0, opened=opened, monotonic=clock.monotonic, sleep=clock.sleep
    )
    return clock.now


def test_a_look_waits_until_the_offset_has_moved_up_to_what_was_committed() -> None:
    assert waited(8) == 0.0
    assert waited(5, 6) == 0.25
    assert waited(5, 5, 4, 9) == 0.75


@pytest.mark.parametrize("offsets", [(5,), (4,), (None,), (b"{}",), (-1,)])
def test_a_look_waits_its_whole_time_where_nothing_moves(offsets: tuple[int | bytes | None, ...]) -> None:
    assert waited(*offsets) == 3.0


def test_a_look_waits_its_whole_time_where_the_look_before_saw_nothing() -> None:
    for spoil in (part(zookeeper=Unread("silent")), part(quorum=Unread("silent"))):
        assert waited(900, earlier=spoil(observation(Phase.DUAL_WRITE))) == 3.0
