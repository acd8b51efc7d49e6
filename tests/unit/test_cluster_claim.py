"""What this version makes of a claim that another one wrote. The claim in a real ZooKeeper: tests/airflow/test_claims.py."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kraft_runbook.errors import Refused
from kraft_runbook.io.zookeeper.cluster_claim import PATH, Claim, RunState, hold_claim, release_claim
from kraft_runbook.io.zookeeper.reader import Znode

NOW = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
ONE = Claim("zk_to_kraft_migration__lab", "one", "2026-03-04T09:00:00+00:00", "host-a", NOW + timedelta(hours=2))
TWO = Claim("zk_to_kraft_rollback__lab", "two", "2026-03-04T09:30:00+00:00", "host-b", NOW + timedelta(hours=2))


class OneZnode:
    """In place of ZooKeeper: the claim's znode. ``written``: what was done to it."""

    def __init__(self, data: bytes) -> None:
        self.data, self.written = data, list[bytes | None]()

    def get(self, _: str) -> Znode:
        return Znode(PATH, self.data, 0, 0, 0, 0, 0)

    def replace(self, _: Znode, data: bytes) -> bool:
        self.written.append(data)
        return True

    def delete(self, _: Znode) -> bool:
        self.written.append(None)
        return True


def of(claim: Claim, **changes: Any) -> bytes:
    return json.dumps({**json.loads(claim.to_json()), **changes}).encode()


def take(znode: Any, claim: Claim = TWO, *, now: datetime = NOW) -> bool:
    return hold_claim(znode, "lab", claim, ask=lambda _: RunState.UNKNOWN, now=now)


def test_a_claim_with_a_field_more_is_a_claim() -> None:
    znode = OneZnode(of(ONE, airflow="another", version=2))
    with pytest.raises(Refused, match="claimed until 2026-03-04 12:00 UTC by run one"):
        take(znode)
    assert not znode.written
    assert take(znode, ONE), "its own run renews it"
    assert release_claim(znode, ONE)  # type: ignore[arg-type]
    assert not take(OneZnode(of(ONE, airflow="another")), now=NOW + timedelta(hours=3)), "the lease has ended"


@pytest.mark.parametrize(
    "data",
    [b"[]", b"7", b'"x"', b"null", b'{"dag_id": "d"}', of(ONE, until="soon"), of(ONE, until=7), of(ONE, until="2026-03-04T12:00:00"), of(ONE, run_id=None)],
)
def test_what_is_json_and_no_claim_that_this_version_knows_is_refused_and_left(data: bytes) -> None:
    znode = OneZnode(data)
    for act in (lambda: take(znode), lambda: release_claim(znode, ONE)):  # type: ignore[arg-type]
        with pytest.raises(Refused, match="/kraft_runbook_claim in ZooKeeper holds a claim that this version can't read") as refused:
            act()
        assert "delete /kraft_runbook_claim with zookeeper-shell" in refused.value.way_out
    assert not znode.written


@pytest.mark.parametrize("data", [b"", b"no JSON", b"\xff"])
def test_what_is_no_json_is_nobody_s(data: bytes) -> None:
    znode = OneZnode(data)
    assert not take(znode)
    assert znode.written == [TWO.to_json()]
