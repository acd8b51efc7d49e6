"""A real ZooKeeper that takes clients over TLS with a certificate and a login alone: what works, and what a person is
told where it does not.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lone_zookeeper import HOST, SECRETS, ensemble, serving

from kraft_runbook.cluster.observation import ZookeeperTree
from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.io.zookeeper.read_state import read_zookeeper
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.servers import server_mode, tls_of
from lab.secured.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def port(authority: Authority) -> Iterator[int]:
    with serving(authority) as port:
        yield port


def told(zookeeper: ZooKeeper) -> str:
    """What a person reads who can't connect."""
    with pytest.raises(Unreachable) as raised, ZookeeperReader(zookeeper, secrets=SECRETS, timeout=3):
        pass
    assert "'zookeeper.security'" in str(raised.value.way_out)
    return raised.value.problem


def no_tree(_: ZookeeperReader) -> ZookeeperTree:
    raise RunbookError("no tree is wanted here", way_out="none")


def test_all_that_a_look_asks_is_answered(authority: Authority, port: int) -> None:
    zookeeper = ensemble(authority, port)
    with ZookeeperReader(zookeeper, secrets=SECRETS, timeout=10) as reader:
        for path, data in (("/brokers", b""), ("/brokers/ids", b""), ("/controller_epoch", b"4")):
            reader._session.client.create(path, data)
    seen, _ = read_zookeeper(zookeeper, secrets=SECRETS, deep=no_tree, timeout=10)
    assert (seen.server_version, seen.controller_epoch, seen.connections) == ("3.8.4", 4, 1)
    assert server_mode(f"{HOST}:{port}", tls=tls_of(zookeeper, secrets=SECRETS)) == "standalone"


def test_a_certificate_that_names_another_host_is_refused_unless_the_brokers_do_not_ask(
    authority: Authority, port: int
) -> None:
    other = ensemble(authority, port, host="localhost")
    assert "its certificate is refused: Hostname mismatch" in told(other)
    lax = other.model_copy(update={"properties": {"zookeeper.ssl.endpoint.identification.algorithm": ""}})
    own = other.model_copy(update={"security": other.security.model_copy(update={"check_names": False})})
    for each in (lax, own):
        with ZookeeperReader(each, secrets=SECRETS, timeout=10) as reader:
            assert reader.server_version() == "3.8.4"


def test_a_certificate_of_another_authority_is_refused(authority: Authority, port: int) -> None:
    stranger = Authority(authority.directory, "stranger")
    assert "its certificate is refused: " in told(ensemble(authority, port, trusted=stranger.file))


def test_a_refused_login_is_told_as_one(authority: Authority, port: int) -> None:
    assert "its login as kafka was refused" in told(ensemble(authority, port, password="WRONG"))


def test_a_file_that_is_no_key_is_named(authority: Authority, port: int) -> None:
    zookeeper = ensemble(authority, port)
    security = zookeeper.security.model_copy(update={"key_file": str(authority.file)})
    assert "this tool's own certificate or key can't be used" in told(
        zookeeper.model_copy(update={"security": security})
    )
