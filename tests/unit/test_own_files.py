"""This tool's own certificates and keys: one that can't be read is told as such, never as a server that is silent."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from observations import SPEC

from kraft_runbook.cluster.client_security import ClientSecurity, SecurityProtocol, ZookeeperSecurity
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.spec_parts import MetricsSource
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.connection import KafkaConnection, connect_to
from kraft_runbook.io.kafka.topics_seen import client_security
from kraft_runbook.io.metrics import MetricsClient
from kraft_runbook.io.own_files import KEYS, require_own_files
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.ensemble import ensemble_servers
from kraft_runbook.io.zookeeper.reader import ZookeeperReader

SECRETS = environment_secrets({})
TLS = SecurityProtocol.SSL


@pytest.fixture
def port() -> Iterator[int]:
    """One that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        yield mute.getsockname()[1]


@pytest.fixture(params=["missing", "looped", "directory"])
def spoilt(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file that can't be read, whoever asks."""
    path = tmp_path / str(request.param)
    if request.param == "looped":
        path.symlink_to(path)
    elif request.param == "directory":
        path.mkdir()
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Of each key, one that can be read."""
    found = {key: tmp_path / f"{key}.pem" for key in KEYS}
    for path in found.values():
        path.touch()
    return {key: str(path) for key, path in found.items()}


@pytest.mark.parametrize("key", KEYS)
def test_kafka_is_not_blamed_for_it(key: str, spoilt: Path, files: dict[str, str], port: int) -> None:
    security = ClientSecurity(protocol=TLS, **files | {key: str(spoilt)})
    with (
        KafkaConnection(f"127.0.0.1:{port}", "broker 1", security, secrets=SECRETS, timeout=5) as connection,
        pytest.raises(Unreachable, match=rf"^broker_security\.{key} {spoilt}: \w") as found,
    ):
        connection.connect()
    assert "(Airflow's workers and its triggerer)" in found.value.way_out
    with pytest.raises(Unreachable, match=rf"^broker_security\.{key} "):
        client_security(security, SECRETS)


def test_the_controllers_have_a_block_of_their_own(spoilt: Path) -> None:
    spec = SPEC.model_copy(update={"controller_security": ClientSecurity(protocol=TLS, ca_file=str(spoilt))})
    with (
        connect_to(spec, spec.controllers[0], secrets=SECRETS) as connection,
        pytest.raises(Unreachable, match=r"^controller_security\.ca_file "),
    ):
        connection.connect()


@pytest.mark.parametrize("key", KEYS)
def test_zookeeper_is_not_blamed_for_it(key: str, spoilt: Path, files: dict[str, str], port: int) -> None:
    security = ZookeeperSecurity(protocol=TLS, **files | {key: str(spoilt)})
    ensemble = SPEC.ensemble.model_copy(update={"servers": (f"127.0.0.1:{port}",), "security": security})
    said = rf"^zookeeper\.security\.{key} {spoilt}: \w"
    with pytest.raises(Unreachable, match=said), ZookeeperReader(ensemble, secrets=SECRETS, timeout=5):
        pass
    (server,) = ensemble_servers(ensemble, secrets=SECRETS).values()
    assert isinstance(server, Unread)
    assert server.reason.startswith(f"zookeeper.security.{key} {spoilt}: ")


def test_nor_is_whatever_shows_metrics(spoilt: Path) -> None:
    with pytest.raises(Unreachable, match=r"^metrics\.ca_file "):
        MetricsClient(MetricsSource(scheme="https", ca_file=str(spoilt)), secrets=SECRETS)


def test_files_that_nothing_uses_are_not_asked_for(spoilt: Path, files: dict[str, str]) -> None:
    require_own_files(ClientSecurity(ca_file=str(spoilt)), "broker_security")
    require_own_files(ClientSecurity(protocol=TLS), "broker_security")
    require_own_files(ClientSecurity(protocol=TLS, **files), "broker_security")
