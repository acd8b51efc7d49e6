"""Whether ZooKeeper is still written, by /migration alone."""

from __future__ import annotations

import json
from itertools import chain, repeat
from typing import cast

import pytest
from observations import SPEC

from kraft_runbook.clients import dual_write
from kraft_runbook.clients.dual_write import NoProof, read_migration, require_movement
from kraft_runbook.clients.metadata_quorum import QuorumDescription
from kraft_runbook.clients.zookeeper import Znode, ZookeeperReader
from kraft_runbook.cluster import SecretRef


class Migration:
    """A reader whose /migration holds these offsets one after the other, the last one for ever; None: there is no znode; bytes: as they are."""

    def __init__(self, *offsets: int | bytes | None) -> None:
        self._next = chain(offsets, repeat(offsets[-1]))

    def get(self, path: str) -> Znode | None:
        assert path == "/migration"
        found = next(self._next)
        if found is None:
            return None
        fields = {"version": 0, "kraft_metadata_offset": found, "kraft_controller_id": 101, "kraft_metadata_epoch": 1, "kraft_controller_epoch": 1}
        return Znode(path, found if isinstance(found, bytes) else json.dumps(fields).encode(), 0, 0, 0, 0, 0)


def reader(*offsets: int | bytes | None) -> ZookeeperReader:
    return cast(ZookeeperReader, Migration(*offsets))


def no_secret(ref: SecretRef) -> str:
    raise AssertionError(ref)


@pytest.fixture(autouse=True)
def a_quorum_at_900(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dual_write, "describe_quorum", lambda *_, **__: QuorumDescription(101, 1, 900, ()))
    monkeypatch.setattr(dual_write, "STANDSTILL", 0.3)


def test_a_frozen_migration_offset_withholds_the_proof_and_says_how_it_is_cured() -> None:
    with pytest.raises(NoProof) as raised:
        require_movement(reader(5), SPEC, since=5, secrets=no_secret)
    assert raised.value.problem == "dual write stands still: /migration stays at offset 5 while the metadata log has reached 899"
    assert "restart the active controller" in raised.value.way_out


def test_an_offset_that_moves_is_alive() -> None:
    require_movement(reader(5, 5, 6), SPEC, since=5, secrets=no_secret)


def test_a_migration_that_names_no_offset_proves_nothing() -> None:
    for found, problem in ((None, "/migration is missing"), (-1, "/migration is blank"), (b"{}", "/migration can't be read: /migration lacks a field")):
        with pytest.raises(NoProof, match=problem):
            read_migration(reader(found))
