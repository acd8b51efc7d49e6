"""The lab's ZooKeeper: one server, or an ensemble of three. Which services there are, where, and what they are told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from labs import with_ensemble

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, RunbookError
from kraft_runbook.io.local.ports import addresses
from kraft_runbook.io.local.supervision import render_configuration
from lab.layout import ROOT, Layout, in_words, load, zookeeper_servers
from lab.lifecycle import _require_same_servers, _start_order, _stop_order, zookeeper_properties

ALONE = load({"KRB_LAB_DIR": "/tmp/lab", "KRB_LAB_NET": "127.20.0"})
ENSEMBLE = with_ensemble(ALONE)
THREE = ["zookeeper-1", "zookeeper-2", "zookeeper-3"]


def declaring(*servers: str, chroot: str = "") -> ClusterSpec:
    zookeeper = ALONE.zookeeper.model_copy(update={"servers": servers, "chroot": chroot})
    return ALONE.model_copy(update={"zookeeper": zookeeper})


def test_the_demo_says_how_many_servers_begin() -> None:
    assert in_words(ALONE) == "1 ZooKeeper server, 3 brokers"
    assert in_words(load({"KRB_LAB_CLUSTERS": str(ROOT / "lab" / "secured")})) == "3 ZooKeeper servers, 3 brokers"
    four = [*ALONE.brokers, ALONE.brokers[0].model_copy(update={"id": 4})]
    assert in_words(ALONE.model_copy(update={"brokers": tuple(four), "zookeeper": None})) == "4 brokers in 3 racks"


def test_one_server_is_the_service_zookeeper_and_knows_of_no_other() -> None:
    (server,) = zookeeper_servers(ALONE)
    assert (server.service, server.address, server.config) == (
        "zookeeper",
        "127.20.0.1:2181",
        Path("/tmp/lab/zookeeper/zookeeper.properties"),
    )
    properties = zookeeper_properties(server, (server,))
    assert properties["dataDir"] == "/tmp/lab/zookeeper/data"
    assert not [name for name in properties if name.startswith("server.") or name in ("initLimit", "syncLimit")]
    assert addresses(ALONE)["zookeeper"] == (("127.20.0.1", 2181),)


def test_three_servers_have_a_service_a_directory_and_an_address_each_and_name_all() -> None:
    servers = zookeeper_servers(ENSEMBLE)
    assert [server.service for server in servers] == THREE
    assert [server.number for server in servers] == [1, 2, 3]
    assert ENSEMBLE.zookeeper.connect == "127.20.0.1:2181,127.20.0.2:2181,127.20.0.3:2181"
    properties = zookeeper_properties(servers[1], servers)
    assert properties["clientPortAddress"] == "127.20.0.2"
    assert properties["dataDir"] == "/tmp/lab/zookeeper-2/data"
    assert [properties[f"server.{number}"] for number in (1, 2, 3)] == [f"127.20.0.{n}:2888:3888" for n in (1, 2, 3)]
    assert addresses(ENSEMBLE)["zookeeper-3"] == (("127.20.0.3", 2181), ("127.20.0.3", 2888), ("127.20.0.3", 3888))


def test_no_other_service_of_the_lab_has_an_address_of_the_ensemble() -> None:
    needed = addresses(ENSEMBLE)
    ensemble = {host for service in THREE for host, _ in needed.pop(service)}
    assert not ensemble & {host for sockets in needed.values() for host, _ in sockets}


def test_a_leader_that_hangs_is_replaced_before_a_broker_s_session_expires() -> None:
    properties = zookeeper_properties(zookeeper_servers(ENSEMBLE)[0], zookeeper_servers(ENSEMBLE))
    session = int(ENSEMBLE.zookeeper.properties["zookeeper.session.timeout.ms"])
    assert int(properties["syncLimit"]) * int(properties["tickTime"]) < session


def test_supervisor_has_a_program_for_each_server() -> None:
    for spec, names in ((ALONE, ["zookeeper"]), (ENSEMBLE, THREE)):
        assert re.findall(r"^\[program:(zookeeper.*)\]", render_configuration(spec), re.MULTILINE) == names


def test_zookeeper_starts_first_all_of_it_at_once_and_stops_last() -> None:
    assert _start_order(ENSEMBLE, [*THREE, "controller-101", "broker-1"]) == (THREE, ["controller-101", "broker-1"])
    assert _start_order(ALONE, ["zookeeper", "broker-1"]) == (["zookeeper"], ["broker-1"])
    assert _stop_order(ENSEMBLE)[-1] == THREE
    assert _stop_order(ALONE)[-1] == ["zookeeper"]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(declaring("127.20.0.1:2181", "127.20.0.2:2181"), id="two servers"),
        pytest.param(declaring(*(f"127.20.0.1:{port}" for port in (2181, 2182, 2183))), id="one address"),
        pytest.param(declaring("127.20.0.1:2181", chroot="/kafka"), id="a chroot"),
    ],
)
def test_anything_else_is_refused(spec: ClusterSpec) -> None:
    with pytest.raises(RunbookError, match="the lab runs one ZooKeeper server or 3, without a chroot"):
        zookeeper_servers(spec)


@pytest.mark.parametrize(("made", "declared"), [(ALONE, ENSEMBLE), (ENSEMBLE, ALONE)])
def test_a_lab_made_with_other_servers_is_refused(tmp_path: Path, made: ClusterSpec, declared: ClusterSpec) -> None:
    here, servers = Layout(tmp_path), zookeeper_servers(made)
    _require_same_servers(here, zookeeper_servers(declared))
    for server in servers:
        (tmp_path / server.service).mkdir()
    _require_same_servers(here, servers)
    with pytest.raises(Refused, match="was made with other ZooKeeper servers") as refused:
        _require_same_servers(here, zookeeper_servers(declared))
    assert servers[0].service in refused.value.problem
