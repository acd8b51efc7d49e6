"""Whether a cluster is being migrated or changed, by three of its znodes, read over one session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from observations import SPEC

from kraft_runbook.errors import Refused
from kraft_runbook.io.cluster_claim import Claim
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.procedures.source_at_work import source_at_work

NOW = datetime(2026, 8, 2, 3, 0, tzinfo=UTC)
BROKER = b'{"version":1,"brokerid":2,"timestamp":"1"}'


def claim(until: datetime) -> bytes:
    return Claim("zk_to_kraft_migration__lab", "sun", "2026", "worker-1", until).to_json()


def migration(offset: int, controller: int) -> bytes:
    names = ("kraft_metadata_offset", "kraft_controller_id", "kraft_metadata_epoch", "kraft_controller_epoch")
    return json.dumps(dict(zip(names, (offset, controller, -1, -1), strict=True))).encode()


def asked(**znodes: bytes) -> tuple[str, ...]:
    class Session:
        def get_many(self, paths: list[str]) -> list[Znode | None]:
            found = [znodes.get(path.removeprefix("/")) for path in paths]
            return [
                None if data is None else Znode(path, data, 0, 1, 1, 1, 0)
                for path, data in zip(paths, found, strict=True)
            ]

        def get(self, path: str) -> Znode | None:
            return self.get_many([path])[0]

    @contextmanager
    def session(*_: Any, **__: Any) -> Iterator[Any]:
        yield Session()

    return source_at_work(SPEC, secrets=lambda ref: "", now=NOW, session=session)


def test_a_cluster_at_rest_is_not_at_work() -> None:
    assert asked(controller=BROKER) == ()
    blank, over = migration(-1, -1), claim(NOW - timedelta(seconds=1))
    assert asked(controller=BROKER, migration=blank, kraft_runbook_claim=over) == (), (
        "nothing was copied; nobody holds it"
    )


@pytest.mark.parametrize(
    ("znodes", "why"),
    [
        (
            {"kraft_runbook_claim": claim(NOW + timedelta(hours=1))},
            "run sun of zk_to_kraft_migration__lab holds it until",
        ),
        ({"controller": b'{"version":2,"brokerid":9001,"kraftControllerEpoch":4}'}, "KRaft controller 9001"),
        ({"controller": BROKER, "migration": migration(0, 101)}, "controller 101 wrote up to offset 0"),
        ({"migration": migration(4711, 101)}, "controller 101 wrote up to offset 4711"),
    ],
)
def test_what_says_that_it_is_at_work_is_named(znodes: dict[str, bytes], why: str) -> None:
    (told,) = asked(**znodes)
    assert why in told


def test_what_can_not_be_read_says_nothing_but_another_version_s_claim() -> None:
    assert asked(controller=b"?", migration=b"") == ()
    with pytest.raises(Refused, match="a claim that this version can't read"):
        asked(kraft_runbook_claim=b'{"run": "of another version"}')
