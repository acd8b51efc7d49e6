"""Migrating members where ZooKeeper takes certificates and logins alone, and brokers SCRAM over TLS."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import by_hand
import pytest
from kazoo.client import KazooClient
from labs import Lab
from migrating_members import Group, await_mode

from kraft_runbook_consumer import ConsumerError, MigratingConsumer, Mode
from kraft_runbook_consumer.errors import Closed, Unreachable
from kraft_runbook_consumer.settings import read_settings

pytestmark = pytest.mark.long


@pytest.fixture
def group(secured: Lab, tmp_path: Path) -> Group:
    kafka, zookeeper = secured.spec.broker_security, secured.spec.ensemble.security
    assert kafka.password is not None and zookeeper.password is not None
    login = {
        "security.protocol": str(kafka.protocol.value),
        "sasl.mechanism": str(kafka.sasl_mechanism),
        "sasl.username": str(kafka.username),
        "sasl.password": secured.secrets(kafka.password),
        "ssl.ca.location": str(kafka.ca_file),
    }
    at_zookeeper = {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": str(zookeeper.ca_file),
        "zookeeper.ssl.keystore.location": str(zookeeper.certificate_file),
        "zookeeper.sasl.username": str(zookeeper.username),
        "zookeeper.sasl.password": secured.secrets(zookeeper.password),
    }
    made = Group(secured, f"secured-{time.time_ns()}", tmp_path, login=login, at_zookeeper=at_zookeeper)
    made.make_topic()
    return made


@pytest.fixture
def zookeeper(group: Group) -> Iterator[KazooClient]:
    options = read_settings(group.settings()).zookeeper_options
    client = KazooClient(hosts=group.lab.spec.ensemble.connect, **dict(options))
    client.start()
    yield client
    client.stop()


def test_members_are_toggled_forth_and_back_with_tls_and_logins_on_both_sides(
    group: Group, zookeeper: KazooClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(1)
    with ExitStack() as stack:
        with group.records():
            members = [stack.enter_context(group.member()) for _ in range(2)]
            group.await_owners(zookeeper, [6, 6])
            for word, mode in (("kafka", Mode.KAFKA), ("zookeeper", Mode.ZOOKEEPER)):
                group.set_mode(zookeeper, word)
                await_mode(members, mode)
                group.await_owners(zookeeper, [6, 6])
                at = len(group.seen)
                by_hand.wait_until("records come", lambda at=at: len(group.seen) > at + 50)
        told = group.require_each_once()
    print(f"{sum(group.sent.values())} records, silent at most {told.silent or 0:.2f} s")
    ours = "\n".join(each.getMessage() for each in caplog.records if each.name.startswith("kraft_runbook_consumer"))
    assert ours
    for secret in (group.login["sasl.password"], group.at_zookeeper["zookeeper.sasl.password"]):
        assert secret not in ours


def test_a_wrong_password_at_either_side_is_an_error_that_says_so(group: Group) -> None:
    with pytest.raises(Unreachable, match="its login was refused") as refused:
        MigratingConsumer(group.settings(**{"zookeeper.sasl.password": "guessed-wrong"}), {group.name: 1})
    assert "guessed-wrong" not in str(refused.value)
    with MigratingConsumer(
        group.settings(**{"coordination.migration.sasl.password": "guessed-wrong"}), {group.name: 1}
    ) as consumer:
        ends = time.monotonic() + 60
        with pytest.raises(Closed, match="Kafka does not let") as closed:
            while time.monotonic() < ends:
                consumer.streams[0].poll(0.5)
    assert "guessed-wrong" not in str(closed.value)


def test_a_certificate_of_another_authority_is_refused(group: Group, tmp_path: Path) -> None:
    from lab.secured.certificates import Authority

    other = Authority(tmp_path / "other").file
    with pytest.raises(ConsumerError, match="certificate verify failed"):
        MigratingConsumer(group.settings(**{"zookeeper.ssl.truststore.location": str(other)}), {group.name: 1})
