"""Facts of the hosts: each part read or explained, nothing changed."""

from __future__ import annotations

import os
import socket
from configparser import ConfigParser
from pathlib import Path

import pytest
from played import restart_broker
from stand_in_node import Node, lay_out

from kraft_runbook.cluster.observation import BrokerMode, Unread
from kraft_runbook.cluster.replica_directories import ReplicaDirectories
from kraft_runbook.io.hosts import host_facts
from kraft_runbook.io.hosts.host_facts import gather_host_facts
from kraft_runbook.io.hosts.playbooks import playbook_directory
from kraft_runbook.io.secrets import environment_secrets


def test_all_nodes_are_read_in_one_run_and_nothing_changes(node: Node) -> None:
    restart_broker(node.spec, 1, BrokerMode.ZOOKEEPER, secrets=environment_secrets())
    (node.directory / "data-101" / "__cluster_metadata-0").mkdir(parents=True)
    (node.directory / "data-101" / "meta.properties").write_text("cluster.id=abc\n")
    before = node.files()
    with socket.create_server(("127.0.0.1", node.ports["controller_metrics"])):
        hosts = gather_host_facts(node.spec)
    assert node.files() == before
    broker, controller = hosts[1], hosts[101]
    assert broker.service_state == "running" and controller.service_state == "stopped"
    assert broker.service_defined is controller.service_defined is True
    assert broker.ports_in_use == frozenset({node.ports["broker"]}) and controller.ports_in_use == frozenset(
        {node.ports["controller_metrics"]}
    )
    assert isinstance(broker.config, dict)
    assert (
        broker.config["broker.id"] == "1"
        and broker.config["password.encoder.secret"].startswith("${secrets:/")
        and broker.config["a.path"] == "C:\\temp"
    )
    assert controller.config is None
    assert (broker.formatted_cluster_id, controller.formatted_cluster_id) == (None, "abc")
    assert (broker.has_metadata_log, controller.has_metadata_log) == (False, True)
    assert broker.controller_threads == controller.controller_threads == ()
    assert (
        controller.unreachable_addresses == (f"127.0.0.1:{node.ports['zookeeper']}",)
        and broker.unreachable_addresses == ()
    )
    assert isinstance(broker.java_version, str) and broker.java_version.startswith("17")
    assert broker.next_java_version is None
    assert broker.clock_skew_seconds == 0.0
    assert isinstance(broker.free_bytes, dict) and broker.free_bytes[f"{node.directory}/data-1"] > 0
    assert broker.classpath_ok is True
    assert (broker.stop_seconds, controller.stop_seconds) == (60, 60)
    told = os.getuid() or None  # of root's program supervisor knows no more: its command may become another user
    assert (broker.runs_as, controller.runs_as) == (None, told)
    assert broker.stops_as is controller.stops_as is None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert broker.machine == controller.machine == f"{boot} {os.stat('/proc/self/ns/pid').st_ino}"
    assert isinstance(broker.other_kafkas, dict) and isinstance(controller.other_kafkas, dict)
    assert (broker.secrets_keys, broker.secrets_readable) == (("password.encoder.secret",), "")
    assert broker.secrets_written is True
    (node.directory / ".secrets.properties.kraft-runbook").unlink()
    assert gather_host_facts(node.spec, [1])[1].secrets_written is False


@pytest.mark.long
def test_the_threads_of_the_service_s_own_child_are_seen_too_by_the_name_that_linux_keeps(node: Node) -> None:
    node.behave("thread=zk-broker-1-to-controller-forwarding-channel-manager")
    restart_broker(node.spec, 1, BrokerMode.ZOOKEEPER, secrets=environment_secrets())
    assert gather_host_facts(node.spec, [1])[1].controller_threads == ("zk-broker-1-to-",)


@pytest.mark.long
def test_an_ipv6_address_is_reached_and_the_threads_of_listeners_are_seen(node: Node) -> None:
    node.behave("thread=/config/changes-event-process-thread")
    restart_broker(node.spec, 1, BrokerMode.ZOOKEEPER, secrets=environment_secrets())
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        servers = (f"[::1]:{server.getsockname()[1]}", "[::1]:1")
        hosts = gather_host_facts(
            node.spec.model_copy(update={"zookeeper": node.spec.zookeeper.model_copy(update={"servers": servers})})
        )
    assert hosts[101].unreachable_addresses == ("[::1]:1",)
    assert hosts[1].listener_threads == ("/config/changes",) and hosts[101].listener_threads == ()


def test_what_cannot_be_read_says_why_and_the_rest_is_read(node: Node) -> None:
    Path(node.spec.broker(1).config_file).mkdir(parents=True)
    manager = node.spec.service_manager.model_copy(update={"socket": "unix:///nowhere/s.sock"})
    host = gather_host_facts(node.spec.model_copy(update={"service_manager": manager}), [1])[1]
    assert (
        isinstance(host.service_state, Unread) and "supervisor at unix:///nowhere/s.sock" in host.service_state.reason
    )
    assert isinstance(host.config, Unread) and "Is a directory" in host.config.reason
    assert host.ports_in_use == frozenset()


def test_a_host_that_cannot_be_reached_is_unread_with_the_reason(tmp_path: Path) -> None:
    node = lay_out(tmp_path, manager="{kind: systemd}", reach="{kind: ssh, user: nobody, port: 1}")
    host = gather_host_facts(node.spec, [1])[1]
    assert isinstance(host.service_state, Unread) and "can't be reached" in host.service_state.reason
    assert isinstance(host.clock_skew_seconds, Unread) and isinstance(host.config, Unread)


OLD, NEW = "ddaYNaX2RW-M4Tbe3DPT9A", "BQHmqfPtTlGeScgm5iii_A"


def test_replicas_are_read_with_their_topic_ids_in_one_pass_and_what_hides_is_named(node: Node) -> None:
    broker = node.spec.broker(1)
    data, second, lost = (node.directory / name for name in ("data-1", "data-1b", "data-1c"))
    spec = node.spec.model_copy(
        update={"brokers": (broker.model_copy(update={"log_dirs": tuple(map(str, (data, second, lost)))}),)}
    )
    unique = "0123456789abcdef0123456789abcdef"
    for at, name, topic_id in (
        (data, "orders-0", OLD),
        (data, "a-b.c-10", NEW),
        (second, "orders-1", OLD),
        (second, f"orders-2.{unique}-future", OLD),
        (data, "split-0", OLD),
        (second, "split-1", NEW),
        (data, "gone-topic-0", None),
        (second, f"gone-1.{unique}-future", None),
        (data, f"deleted-0.{unique}-delete", None),
        (data, f"{'t' * 200}.{unique}-stray", OLD),
        (second, f"orders-3.{unique}-stray", None),
        (data, "__cluster_metadata-0", None),
    ):
        (at / name).mkdir(parents=True)
        if topic_id:
            (at / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    (data / "damaged-0").mkdir()
    (data / "damaged-0" / "partition.metadata").write_text("version: 0\n")
    (data / "zero-0").mkdir()
    (data / "zero-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {'A' * 22}\n")
    (data / "orders-9").mkdir()
    (data / "orders-9" / "partition.metadata").write_bytes(f"version: 0\r\ntopic_id: {OLD}\r\n".encode())
    (data / "meta.properties").write_text("cluster.id=abc\n")
    (data / "no-replica-1").write_text("a file")
    before = node.files()
    host = gather_host_facts(spec, [1], replicas=True)[1]
    assert node.files() == before
    found = host.replicas
    assert isinstance(found, ReplicaDirectories)
    assert found.topic_ids == {"orders": OLD, "a-b.c": NEW}
    assert found.several_ids == {"split": {"split-0": OLD, "split-1": NEW}}
    assert found.without_id == (f"{data}/gone-topic-0", f"{second}/gone-1.{unique}-future")
    assert found.strays == {f"{data}/{'t' * 200}.{unique}-stray": OLD, f"{second}/orders-3.{unique}-stray": ""}
    assert found.torn == (f"{data}/damaged-0", f"{data}/zero-0") and not found.unread
    assert (found.directories, found.without_id_count, found.stray_count, found.torn_count) == (13, 2, 2, 2)
    assert host.unformatted_dirs == {str(second): "it has no meta.properties", str(lost): "it does not exist"}
    assert gather_host_facts(spec, [1])[1].replicas == Unread("not asked for")


def test_a_log_directory_that_cannot_be_looked_at_is_not_told_as_missing_and_hides_no_other(node: Node) -> None:
    """A loop of links stands for what a broken disk or a closed directory answers."""
    loop, lost, file = (node.directory / name for name in ("data-1b", "data-1c", "data-1d"))
    loop.symlink_to(loop)
    file.write_text("a file")
    broker = node.spec.broker(1)
    broker = broker.model_copy(update={"log_dirs": tuple(map(str, (loop, lost, file, file / "in-a-file")))})
    host = gather_host_facts(node.spec.model_copy(update={"brokers": (broker,)}), [1])[1]
    assert host.unread_dirs == {str(loop): f"Too many levels of symbolic links: {loop}"}
    assert host.unformatted_dirs == {
        str(lost): "it does not exist",
        str(file): "it is no directory",
        str(file / "in-a-file"): "it does not exist",
    }


def test_a_log_directory_that_is_none_is_named(node: Node) -> None:
    (node.directory / "data-1").write_text("a file")
    found = gather_host_facts(node.spec, [1], replicas=True)[1].replicas
    assert isinstance(found, ReplicaDirectories)
    assert found.unread == (f"{node.directory}/data-1: Not a directory: {node.directory}/data-1",)


def test_reading_replicas_ends_in_its_time_and_says_what_it_did_not_reach(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    (node.directory / "data-1" / "orders-0").mkdir(parents=True)
    monkeypatch.setattr(host_facts, "seconds_for_replicas", lambda _: 0.0)
    host = host_facts.gather_host_facts(node.spec, [1], replicas=True)[1]
    assert isinstance(host.replicas, ReplicaDirectories)
    assert host.replicas.unread == (f"{node.directory}/data-1: 0 of 1 directories were read in 0 s",)
    assert host.service_defined is True


def test_the_hosts_together_have_time_to_read_their_replicas() -> None:
    config = ConfigParser()
    config.read(playbook_directory() / "ansible.cfg")
    assert config.getint("defaults", "forks") == host_facts.FORKS
    assert [host_facts.seconds_for_replicas(n) for n in (1, 10, 40, 100)] == [20.0, 20.0, 15.0, 6.0]
