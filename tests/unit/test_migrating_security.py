"""TLS and logins of the migrating consumer: what is handed on to its clients, and what nobody gets to see."""

from __future__ import annotations

import logging
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError
from kazoo.client import KazooState
from kazoo.exceptions import AuthFailedError
from kazoo.protocol.connection import ConnectionDropped

from kraft_runbook_consumer import ConsumerError, MigratingConsumer
from kraft_runbook_consumer.embedded import EmbeddedConsumer, make_consumer
from kraft_runbook_consumer.errors import Closed, SettingError, Unreachable
from kraft_runbook_consumer.lease import Lease
from kraft_runbook_consumer.security import LOGIN_SECONDS, Logins
from kraft_runbook_consumer.settings import embedded_config, fetch_config, read_settings
from kraft_runbook_consumer.streams import Stream
from kraft_runbook_consumer.znodes import GroupPaths
from kraft_runbook_consumer.zookeeper import ZookeeperSession
from lab.secured.certificates import Authority

SECRET = "pl4nted-secret"
LEAST = {"group.id": "g", "zookeeper.connect": "127.0.0.1:1", "zookeeper.connection.timeout.ms": 300}
OF_KAFKA = {
    "coordination.migration.enabled": "true",
    "coordination.migration.bootstrap.servers": "127.0.0.1:1",
    "coordination.migration.security.protocol": "SASL_SSL",
    "coordination.migration.sasl.mechanism": "SCRAM-SHA-512",
    "coordination.migration.sasl.username": "app",
    "coordination.migration.sasl.password": SECRET,
    "coordination.migration.enable.ssl.certificate.verification": "true",
}
LOGIN = {"zookeeper.sasl.username": "kafka", "zookeeper.sasl.password": SECRET}
REFUSED = KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: invalid credentials")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("tls")
    Authority(where).pem(where / "app.pem", "app")
    return where


def tls(files: Path) -> dict[str, object]:
    return {
        "zookeeper.ssl.client.enable": True,
        "zookeeper.ssl.truststore.location": files / "authority.pem",
        "zookeeper.ssl.keystore.location": files / "app.pem",
    }


def test_zookeepers_client_gets_certificates_and_login(files: Path) -> None:
    found = read_settings({**LEAST, **LOGIN, **tls(files), "zookeeper.ssl.keystore.password": SECRET})
    assert dict(found.zookeeper_options) == {
        "use_ssl": True,
        "verify_certs": True,
        "check_hostname": True,
        "ca": str(files / "authority.pem"),
        "certfile": str(files / "app.pem"),
        "keyfile": str(files / "app.pem"),
        "keyfile_password": SECRET,
        "sasl_options": {"mechanism": "DIGEST-MD5", "username": "kafka", "password": SECRET},
    }
    assert SECRET not in repr(found)
    lax = read_settings({**LEAST, **tls(files), "zookeeper.ssl.endpoint.identification.algorithm": ""})
    assert lax.zookeeper_options["check_hostname"] is False and lax.zookeeper_options["verify_certs"] is True
    assert dict(read_settings(LEAST).zookeeper_options) == {}, "nothing is asked for, nothing is different"
    session = ZookeeperSession("zk:1", GroupPaths("g"), Lease(6.0), lambda: None, found.zookeeper_options)
    assert session._client.use_ssl and session._client._connection.sasl_options["password"] == SECRET


def test_every_client_of_kafka_gets_what_it_needs_to_be_let_in() -> None:
    found = read_settings({**LEAST, **OF_KAFKA})
    needed = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "app",
        "sasl.password": SECRET,
        "enable.ssl.certificate.verification": "true",
    }
    asked: list[dict[str, Any]] = []
    config = embedded_config(found, "g_me")
    EmbeddedConsumer(config, Lease(45.0), lambda *_: None, admin=lambda given: asked.append(given))  # type: ignore[arg-type, func-returns-value]
    for each in (config, fetch_config(found, "127.0.0.1:1", "g_me"), asked[0]):
        assert needed.items() <= each.items()


def test_no_secret_is_in_an_error_or_a_log(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Logged as finely as can be; in the whole of each traceback, too."""
    caplog.set_level(1)
    wrong: list[dict[str, object]] = [
        {**LEAST, **LOGIN, **tls(files)},
        {**LEAST, **LOGIN, **tls(files), "zookeeper.ssl.truststore.location": f"-----BEGIN {SECRET}"},
        {**LEAST, **LOGIN, "zookeeper.ssl.client.enable": SECRET[:0]},
        {**LEAST, **OF_KAFKA, "coordination.migration.sasl.mechanism": "NONE"},
        {**LEAST, **OF_KAFKA, "coordination.migration.ssl.key.pem": SECRET},
    ]
    for given in wrong:
        with pytest.raises(ConsumerError) as raised:
            MigratingConsumer(given, {"t": 1}).close()
        assert SECRET not in "".join(traceback.format_exception(raised.value))
    with pytest.raises(SettingError) as refused:
        make_consumer({"group.id": "g", "security.protocol": SECRET})
    assert SECRET not in "".join(traceback.format_exception(refused.value))
    assert caplog.records and SECRET not in caplog.text
    assert not any(each.levelno < logging.INFO for each in caplog.records if each.name.endswith(".kazoo"))


def test_a_login_that_zookeeper_refuses_is_tried_again_and_said() -> None:
    """kazoo would end its thread: a member whose server restarts in the middle of a login would be cut off for ever."""
    options = read_settings({**LEAST, **LOGIN}).zookeeper_options
    session = ZookeeperSession("zk:1", GroupPaths("g"), Lease(6.0), lambda: None, options)
    connection = session._client._connection

    def refuse(*_: object) -> None:
        raise AuthFailedError(SECRET)

    refused = ZookeeperSession("zk:1", GroupPaths("g"), Lease(6.0), lambda: None)
    refused._client._connection._authenticate_with_sasl = refuse
    refused._log_in_again_and_again()
    with pytest.raises(ConnectionDropped, match="its login was refused: AuthFailedError") as told:
        refused._client._connection._authenticate_with_sasl("host", 1.0)
    assert SECRET not in str(told.value) and connection._authenticate_with_sasl.__name__ == "again"


def test_a_server_that_is_not_reached_is_told_with_the_reason(files: Path) -> None:
    with pytest.raises(Unreachable, match=r"no session within 0\.3 s .*zookeeper\.sasl\.\*"):
        MigratingConsumer({**LEAST, **LOGIN, **tls(files)}, {"t": 1})


def test_it_connects_again_within_a_second_however_long_the_server_was_away() -> None:
    session = ZookeeperSession("zk:1", GroupPaths("g"), Lease(6.0), lambda: None)
    retry = session._client._conn_retry
    assert retry.max_tries == -1 and retry.max_delay <= 1.0


def test_a_sign_is_given_as_soon_as_it_is_connected_again() -> None:
    given: list[str] = []

    class Signs(ZookeeperSession):
        def _give_sign(self) -> None:
            given.append("sign")

    session = Signs("zk:1", GroupPaths("g"), Lease(6.0), lambda: given.append("changed"))
    for state in (KazooState.SUSPENDED, KazooState.CONNECTED, KazooState.LOST):
        session._state_changed(state)
    assert given == ["changed", "sign", "changed", "changed"]


# -- a login that Kafka refuses ----------------------------------------------------------------------------------------


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_refusals_for_half_a_minute_end_the_member_and_a_passing_one_does_not() -> None:
    clock = Clock()
    logins = Logins("thread 0", clock)
    logins.told(KafkaError(KafkaError._TRANSPORT, "away"))
    for each in range(0, int(LOGIN_SECONDS), 5):
        clock.now = each
        logins.told(REFUSED)
        logins.require()
    clock.now = LOGIN_SECONDS
    logins.told(REFUSED)
    with pytest.raises(ConsumerError, match=r"Kafka does not let thread 0 in: SASL authentication error") as raised:
        logins.require()
    assert "coordination.migration.security.protocol" in raised.value.way_out
    logins.let_in()
    logins.require()
    logins.told(REFUSED)
    clock.now += LOGIN_SECONDS * 2
    logins.told(REFUSED)
    logins.require()  # a broker that restarts once in a while


class Refusing:
    """A client of Kafka that is told that its login is refused."""

    def __init__(self, config: dict[str, Any], *_: Any) -> None:
        self.told = config["error_cb"]

    def poll(self, timeout: float) -> None:
        self.told(REFUSED)

    def memberid(self) -> str:
        return ""


def test_the_member_and_its_threads_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraft_runbook_consumer.security.LOGIN_SECONDS", 0.0)
    config = embedded_config(read_settings({**LEAST, **OF_KAFKA}), "g_me")
    embedded = EmbeddedConsumer(config, Lease(45.0), lambda *_: None, consumer=Refusing)  # type: ignore[arg-type]
    with pytest.raises(ConsumerError, match="does not let the embedded consumer in"):
        embedded.poll()
    stream = Stream(0, {}, lambda: True, make=Refusing)  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(Closed, match="does not let thread 0 in"):
            stream.poll(0.1)


def test_the_command_reads_its_settings_from_a_file(tmp_path: Path) -> None:
    config = tmp_path / "member.properties"
    config.write_text(
        f"# of the canary\n\ngroup.id=g\nzookeeper.connect=127.0.0.1:1\nzookeeper.sasl.password={SECRET}\n"
    )
    command = [sys.executable, "-m", "kraft_runbook_consumer", "--topic", "t", "--config"]
    done = subprocess.run([*command, str(config)], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "zookeeper.sasl.username" in done.stderr and SECRET not in done.stderr
    gone = subprocess.run([*command, str(tmp_path / "none")], capture_output=True, text=True, check=False)
    assert gone.returncode == 2 and "can't be read: FileNotFoundError" in gone.stderr
