"""One run at a time changes a cluster, wherever its tasks run: the claim in a real ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from kazoo.client import KazooClient
from observations import SPEC

from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.errors import Refused, RunbookError
from kraft_runbook.io.cluster_claim import Claim, RunState, hold_claim, lease_end, release_claim
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.claim_znode import PATH, ClaimZnode
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.writer import ZookeeperWriter

NOW = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
ONE = Claim("zk_to_kraft_migration__lab", "one", "2026-03-04T09:00:00+00:00", "host-a", NOW + timedelta(hours=2))
TWO = Claim("zk_to_kraft_rollback__lab", "two", "2026-03-04T09:30:00+00:00", "host-b", NOW + timedelta(hours=2))


@pytest.fixture
def reader(zookeeper: str) -> Iterator[ZookeeperReader]:
    with ZookeeperReader(ZooKeeper(servers=(zookeeper,)), secrets=environment_secrets({})) as session:
        yield session
        place = ClaimZnode(session)
        if place.read():
            place.delete()


def take(reader: ZookeeperReader, claim: Claim, state: RunState, *, now: datetime = NOW) -> bool:
    return hold_claim(ClaimZnode(reader), "lab", claim, ask=lambda _: state, now=now)


def holder(reader: ZookeeperReader) -> Claim | None:
    znode = reader.get(PATH)
    return Claim.from_json(znode.data) if znode else None


def test_a_second_run_of_the_same_airflow_is_refused_with_the_name_of_the_first(reader: ZookeeperReader) -> None:
    take(reader, ONE, RunState.ACTIVE)
    with pytest.raises(Refused, match="run one of zk_to_kraft_migration__lab") as refused:
        take(reader, TWO, RunState.ACTIVE)
    assert "mark it failed" in refused.value.way_out
    assert holder(reader) == ONE


def test_a_run_of_another_airflow_is_refused_until_the_lease_ends(reader: ZookeeperReader) -> None:
    take(reader, ONE, RunState.ACTIVE)
    with pytest.raises(Refused, match=r"until 2026-03-04 12:00 UTC by run one .* does not know .* host-a"):
        take(reader, TWO, RunState.UNKNOWN, now=NOW + timedelta(hours=1, minutes=59))
    take(reader, TWO, RunState.UNKNOWN, now=NOW + timedelta(hours=2))
    assert holder(reader) == TWO


def test_a_run_of_the_same_name_in_another_airflow_is_another_run(reader: ZookeeperReader) -> None:
    take(reader, ONE, RunState.ACTIVE)
    with pytest.raises(Refused, match="does not know"):
        take(reader, replace(ONE, run_after="2026-03-04T09:00:01+00:00"), RunState.UNKNOWN)


def test_a_run_renews_its_own_claim(reader: ZookeeperReader) -> None:
    assert take(reader, ONE, RunState.ACTIVE) is False
    later = replace(ONE, until=NOW + timedelta(hours=9), host="host-b")
    assert take(reader, later, RunState.ACTIVE) is True
    assert holder(reader) == later


def test_the_claim_of_a_run_that_ended_is_free_at_once(reader: ZookeeperReader) -> None:
    take(reader, ONE, RunState.ACTIVE)
    take(reader, TWO, RunState.ENDED)
    assert holder(reader) == TWO


def test_a_task_cleared_in_an_old_run_does_not_slip_past_a_newer_run(reader: ZookeeperReader) -> None:
    take(reader, ONE, RunState.ACTIVE)
    take(reader, TWO, RunState.ENDED)
    with pytest.raises(Refused, match="run two of"):
        take(reader, ONE, RunState.ACTIVE)


def test_only_the_holder_gives_the_claim_back(reader: ZookeeperReader) -> None:
    take(reader, ONE, RunState.ACTIVE)
    assert not release_claim(ClaimZnode(reader), TWO)
    assert release_claim(ClaimZnode(reader), ONE)
    assert holder(reader) is None
    take(reader, TWO, RunState.ACTIVE)


def test_of_many_that_claim_at_once_one_gets_it(reader: ZookeeperReader, zookeeper: str) -> None:
    def claim(number: int) -> bool:
        with ZookeeperReader(ZooKeeper(servers=(zookeeper,)), secrets=environment_secrets({})) as session:
            try:
                take(session, replace(ONE, run_id=f"run{number}"), RunState.ACTIVE)
            except Refused:
                return False
            return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claim, range(16))) == 1


def test_what_is_no_claim_holds_nothing(reader: ZookeeperReader) -> None:
    for data in (b"", b"no JSON", b"\xff"):
        assert ZookeeperWriter(reader).create(PATH, data)
        take(reader, ONE, RunState.UNKNOWN)
        assert release_claim(ClaimZnode(reader), ONE)


def test_an_ensemble_that_forbids_it_is_said_so(zookeeper: str) -> None:
    admin = KazooClient(hosts=zookeeper, auth_data=[("digest", "kafka:pw")])
    admin.start()
    try:
        from kazoo.security import make_digest_acl

        admin.create("/closed", acl=[make_digest_acl("kafka", "pw", all=True)])
        closed = ZooKeeper(servers=(zookeeper,), chroot="/closed")
        with (
            ZookeeperReader(closed, secrets=environment_secrets({})) as session,
            pytest.raises(
                RunbookError,
                match=r"does not let this tool write /kraft_runbook_claim \(NoAuth: no CREATE on Kafka's root\)",
            ),
        ):
            take(session, ONE, RunState.ACTIVE)
    finally:
        admin.delete("/closed")
        admin.stop()
        admin.close()


def test_the_lease_outlasts_the_longest_wait() -> None:
    longest = max(SPEC.deadlines.metadata_copy, SPEC.deadlines.in_sync) + SPEC.service_manager.stop_timeout
    assert lease_end(SPEC, NOW) > NOW + timedelta(seconds=longest)
