"""What a migrating member sees in ZooKeeper and in Kafka's group, and what it does where that is odd."""

from __future__ import annotations

import secrets
import traceback

import pytest
from migrating_servers import session

from kraft_runbook_consumer.embedded import make_consumer
from kraft_runbook_consumer.errors import SettingError
from kraft_runbook_consumer.znodes import Registration, decode_partitions, decode_registration, plain_endpoint


def test_znodes_without_data_and_patterns_that_python_does_not_read_end_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    huge = b'{"version":1,"subscription":{"a{99999999999999999999}":1},"pattern":"white_list"}'
    tree: dict[str, tuple[bytes | None, int]] = {
        "/consumers/g/migration/mode": (None, 0),
        "/consumers/g/ids/g_odd": (huge, 7),
        "/consumers/g/ids/g_null": (None, 8),
        "/brokers/topics/t": (None, 0),
    }
    seen = session(monkeypatch, tree).look(lambda _members, every: list(every))
    assert seen.mode == "" and seen.partitions == {}
    assert seen.members == {"g_odd": Registration(), "g_null": Registration()}
    assert decode_registration(None) == Registration() and plain_endpoint(None) is None
    with pytest.raises(ValueError, match="no partitions"):
        decode_partitions(b"[]")


def test_no_secret_is_in_the_traceback_of_a_refused_setting() -> None:
    secret = secrets.token_hex(8)
    with pytest.raises(SettingError) as raised:
        make_consumer({"group.id": "g", "security.protocol": secret}, "coordination.migration.")
    told = "".join(traceback.format_exception(raised.value))
    assert "coordination.migration.…" in told and secret not in told
