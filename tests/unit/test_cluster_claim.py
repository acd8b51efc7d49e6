"""What this version makes of a claim that another one wrote, and the claim in a file. The claim in a real ZooKeeper:
tests/airflow/test_claims.py.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from observations import SPEC

from kraft_runbook.errors import Refused, Unreachable
from kraft_runbook.io.claim_file import claim_file
from kraft_runbook.io.cluster_claim import (
    Claim,
    RunState,
    hold_claim,
    hold_cluster,
    release_claim,
    release_cluster,
    told_of_claim,
)
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.claim_znode import PATH, ClaimZnode
from kraft_runbook.io.zookeeper.znode import Znode

NOW = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
ONE = Claim("zk_to_kraft_migration__lab", "one", "2026-03-04T09:00:00+00:00", "host-a", NOW + timedelta(hours=2))
TWO = Claim("zk_to_kraft_rollback__lab", "two", "2026-03-04T09:30:00+00:00", "host-b", NOW + timedelta(hours=2))


class OneZnode:
    """In place of ZooKeeper, its reader and its writer: the claim's znode. ``written``: what was done to it."""

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


class FreeZnode:
    """The same, where no claim is there at first."""

    def __init__(self) -> None:
        self.data: bytes | None = None

    def get(self, _: str) -> Znode | None:
        return None if self.data is None else Znode(PATH, self.data, 0, 0, 0, 0, 0)

    def create(self, _: str, data: bytes) -> bool:
        self.data = data
        return True

    def replace(self, _: Znode, data: bytes) -> bool:
        self.data = data
        return True

    def delete(self, _: Znode) -> bool:
        self.data = None
        return True


def place(znode: Any) -> Any:
    """The claim's place in it."""
    return ClaimZnode(znode, writer=lambda reader: reader)  # type: ignore[arg-type, return-value]


def opened(znode: Any) -> Any:
    """The same, as a session opens it."""
    return lambda *_, **__: nullcontext(place(znode))


def gone(*_: Any, **__: Any) -> Any:
    raise Unreachable("no answer in 10 s", way_out="start it")


def of(claim: Claim, **changes: Any) -> bytes:
    return json.dumps({**json.loads(claim.to_json()), **changes}).encode()


def take(znode: Any, claim: Claim = TWO, *, now: datetime = NOW) -> bool:
    return hold_claim(place(znode), "lab", claim, ask=lambda _: RunState.UNKNOWN, now=now)


def test_a_claim_with_a_field_more_is_a_claim() -> None:
    znode = OneZnode(of(ONE, airflow="another", version=2))
    with pytest.raises(Refused, match="claimed until 2026-03-04 12:00 UTC by run one"):
        take(znode)
    assert not znode.written
    assert take(znode, ONE), "its own run renews it"
    assert release_claim(place(znode), ONE)
    assert not take(OneZnode(of(ONE, airflow="another")), now=NOW + timedelta(hours=3)), "the lease has ended"


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"7",
        b'"x"',
        b"null",
        b'{"dag_id": "d"}',
        of(ONE, until="soon"),
        of(ONE, until=7),
        of(ONE, until="2026-03-04T12:00:00"),
        of(ONE, run_id=None),
    ],
)
def test_what_is_json_and_no_claim_that_this_version_knows_is_refused_and_left(data: bytes) -> None:
    znode = OneZnode(data)
    for act in (lambda: take(znode), lambda: release_claim(place(znode), ONE)):
        with pytest.raises(
            Refused, match="/kraft_runbook_claim in ZooKeeper holds a claim that this version can't read"
        ) as refused:
            act()
        assert "delete /kraft_runbook_claim with zookeeper-shell" in refused.value.way_out
    assert not znode.written


@pytest.mark.parametrize("data", [b"", b"no JSON", b"\xff"])
def test_what_is_no_json_is_nobody_s(data: bytes) -> None:
    znode = OneZnode(data)
    assert not take(znode)
    assert znode.written == [TWO.to_json()]


# -- a cluster without ZooKeeper ---------------------------------------------------------------------------------------

WITHOUT = SPEC.model_copy(update={"zookeeper": None})


def take_file(state: Path, claim: Claim, run: RunState, *, now: datetime = NOW) -> bool:
    with claim_file(state, "lab") as place:
        return hold_claim(place, "lab", claim, ask=lambda _: run, now=now)


def test_without_zookeeper_the_claim_lies_in_the_state_directory(tmp_path: Path) -> None:
    assert take_file(tmp_path, ONE, RunState.ACTIVE) is False
    assert take_file(tmp_path, ONE, RunState.ACTIVE) is True, "its own run renews it"
    file = tmp_path / "claims" / "lab.json"
    assert Claim.from_json(file.read_bytes()) == ONE
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(Refused, match="cluster lab is being changed by run one of zk_to_kraft_migration__lab"):
        take_file(tmp_path, TWO, RunState.ACTIVE)
    with pytest.raises(Refused, match="claimed until 2026-03-04 12:00 UTC by run one"):
        take_file(tmp_path, TWO, RunState.UNKNOWN)
    assert take_file(tmp_path, TWO, RunState.ENDED) is False
    with claim_file(tmp_path, "lab") as place:
        assert not release_claim(place, ONE), "another's run is left alone"
        assert release_claim(place, TWO)
        assert place.read() is None


def test_of_runs_that_claim_at_once_one_gets_the_file(tmp_path: Path) -> None:
    def claim(number: int) -> bool:
        try:
            take_file(tmp_path, replace(ONE, run_id=f"run{number}"), RunState.ACTIVE)
        except Refused:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claim, range(16))) == 1


def test_a_claim_of_another_version_in_a_file_is_left_and_its_place_is_named(tmp_path: Path) -> None:
    file = tmp_path / "claims" / "lab.json"
    with claim_file(tmp_path, "lab") as place:
        place.write(b'{"dag_id": "d"}')
    with pytest.raises(Refused, match=f"{file} holds a claim that this version can't read") as refused:
        take_file(tmp_path, ONE, RunState.ENDED)
    assert f"delete {file}." in refused.value.way_out
    assert file.read_bytes() == b'{"dag_id": "d"}'


def test_a_lock_that_is_held_is_waited_for_and_then_named(tmp_path: Path) -> None:
    with (
        claim_file(tmp_path, "lab"),
        pytest.raises(Refused, match=r"another task has held the lock of .*lab\.json for 0 s"),
        claim_file(tmp_path, "lab", within=0),
    ):
        pass
    with claim_file(tmp_path, "lab", within=0), claim_file(tmp_path, "other", within=0):
        pass  # free again, and each cluster has a lock of its own


def test_a_directory_that_is_none_is_refused_and_not_taken_for_free(tmp_path: Path) -> None:
    (tmp_path / "claims").write_text("a file")
    with pytest.raises(Refused, match="the claim could not be read or written") as refused:
        take_file(tmp_path, ONE, RunState.ENDED)
    assert "KRAFT_RUNBOOK_STATE" in refused.value.way_out


def test_a_cluster_file_without_zookeeper_is_claimed_by_the_file_alone(tmp_path: Path) -> None:
    def hold(claim: Claim) -> None:
        hold_cluster(
            WITHOUT,
            claim,
            secrets=environment_secrets({}),
            directory=tmp_path,
            ask=lambda _: RunState.ACTIVE,
            now=NOW,
        )

    hold(ONE)
    hold(ONE)
    with pytest.raises(Refused, match="cluster lab is being changed by run one of zk_to_kraft_migration__lab"):
        hold(TWO)
    release_cluster(WITHOUT, TWO, secrets=environment_secrets({}), directory=tmp_path)
    assert Claim.from_json((tmp_path / "claims" / "lab.json").read_bytes()) == ONE, "another's run is left alone"
    release_cluster(WITHOUT, ONE, secrets=environment_secrets({}), directory=tmp_path)
    hold(TWO)


@pytest.mark.parametrize("zookeeper", ["dropped", "gained"])
def test_a_run_is_seen_when_the_cluster_file_drops_or_gains_zookeeper(zookeeper: str, tmp_path: Path) -> None:
    znodes = FreeZnode()
    before, now = (SPEC, WITHOUT) if zookeeper == "dropped" else (WITHOUT, SPEC)
    options: Any = {"secrets": environment_secrets({}), "directory": tmp_path, "znode": opened(znodes)}
    hold_cluster(before, ONE, ask=lambda _: RunState.ACTIVE, now=NOW, **options)
    with pytest.raises(Refused, match="run one of zk_to_kraft_migration__lab"):
        hold_cluster(now, TWO, ask=lambda _: RunState.ACTIVE, now=NOW, **options)
    hold_cluster(now, ONE, ask=lambda _: RunState.ACTIVE, now=NOW, **options)
    release_cluster(SPEC, ONE, **options)
    assert znodes.data is None
    hold_cluster(now, TWO, ask=lambda _: RunState.ACTIVE, now=NOW, **options)


def test_a_run_that_zookeeper_refuses_leaves_no_claim_in_the_file(tmp_path: Path) -> None:
    options: Any = {"secrets": environment_secrets({}), "directory": tmp_path, "znode": opened(OneZnode(of(ONE)))}
    with pytest.raises(Refused, match="claimed until 2026-03-04 12:00 UTC by run one"):
        hold_cluster(SPEC, TWO, ask=lambda _: RunState.UNKNOWN, now=NOW, **options)
    assert not (tmp_path / "claims" / "lab.json").exists()
    hold_cluster(SPEC, ONE, ask=lambda _: RunState.UNKNOWN, now=NOW, **options)
    assert (tmp_path / "claims" / "lab.json").exists()


def test_the_file_is_given_back_though_zookeeper_is_gone(tmp_path: Path) -> None:
    take_file(tmp_path, ONE, RunState.ACTIVE)
    with pytest.raises(Unreachable):
        release_cluster(SPEC, ONE, secrets=environment_secrets({}), directory=tmp_path, znode=gone)
    assert not (tmp_path / "claims" / "lab.json").exists()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (
            of(ONE),
            "run one of zk_to_kraft_migration__lab has a claim on it, until 2026-03-04 12:00 UTC. While that run",
        ),
        (of(ONE, until="2026-03-04T09:59:59+00:00"), "which ended at 2026-03-04 09:59 UTC: the next run takes it"),
        (of(ONE), "Its last task ran on host-a"),
        (b'{"version": 9}', "holds a claim that this version can't read"),
        (b"no JSON", ""),
    ],
)
def test_the_claim_is_told_in_words(data: bytes, told: str) -> None:
    words = told_of_claim(SPEC, secrets=environment_secrets({}), now=NOW, znode=opened(OneZnode(data)))
    assert told in words and bool(told) == bool(words)


def test_of_a_claim_that_nobody_can_read_nothing_is_told() -> None:
    assert told_of_claim(WITHOUT, secrets=environment_secrets({}), now=NOW) == ""
    assert told_of_claim(SPEC, secrets=environment_secrets({}), now=NOW, znode=gone) == ""


def test_without_zookeeper_the_file_of_the_state_directory_tells(tmp_path: Path) -> None:
    def told() -> str:
        return told_of_claim(WITHOUT, secrets=environment_secrets({}), now=NOW, directory=tmp_path)

    assert told() == "" and not any(tmp_path.iterdir()), "whoever only looks makes nothing"
    with claim_file(tmp_path, WITHOUT.name) as file:
        file.write(of(ONE))
    assert "run one of zk_to_kraft_migration__lab has a claim on it" in told()
    with claim_file(tmp_path, WITHOUT.name) as file:
        file.write(b'{"version": 9}')
    assert "holds a claim that this version can't read" in told()
