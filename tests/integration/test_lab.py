"""The lab: up, seed, status, down, its workload; and what it says when it can't."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka.admin import ScramCredentialInfo, UserScramCredentialUpsertion
from fault_threads import end_thread_of
from kazoo.client import KazooClient
from labs import Lab, describe_new_lab

from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.local import supervision
from kraft_runbook.io.local.ports import addresses, is_open
from lab import ROOT, lifecycle
from lab.broker_state import require_well, thread_names
from lab.health import admin
from lab.layout import layout, starts
from lab.seed import security, seed
from lab.seed.configs import alter_broker as alter

BROKERS = ("broker-1", "broker-2", "broker-3")
MakeLab = Callable[[], Lab]


@pytest.fixture(scope="module")
def own_lab() -> Iterator[Lab]:
    """One that is made by ``up`` and ``seed``: these are tested here."""
    lab = describe_new_lab()
    try:
        lifecycle.up(lab.spec)
        seed(lab.spec)
        yield lab
    finally:
        lifecycle.down(lab.spec, purge=True)


@contextmanager
def zookeeper(lab: Lab) -> Iterator[KazooClient]:
    client = KazooClient(lab.spec.zookeeper.connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def znodes(lab: Lab, path: str) -> list[str]:
    with zookeeper(lab) as client:
        return sorted(client.get_children(path))


def running(lab: Lab) -> set[str]:
    return {name for name, process in supervision.processes(layout(lab.spec)).items() if process.runs}


def wait_until_acknowledged(line: Path, count: int, *, within: float = 300) -> None:
    """Wait until the workload's status line says that so many records were acknowledged."""
    deadline = time.monotonic() + within
    said = ""
    while time.monotonic() < deadline:
        said = line.read_text() if line.exists() else said
        found = re.search(r"acknowledged (\d+)", said)
        if found and int(found.group(1)) >= count:
            return
        time.sleep(0.2)
    raise AssertionError(
        f"fewer than {count} records were acknowledged within {within:g} s; the workload said: {said!r}"
    )


def test_up_starts_zookeeper_and_the_brokers_and_leaves_the_controllers_to_the_runbook(own_lab: Lab) -> None:
    assert running(own_lab) == {"zookeeper", *BROKERS}
    assert {b.id for b in admin(own_lab.spec).list_topics(timeout=10).brokers.values()} == set(own_lab.spec.broker_ids)


def test_each_start_is_counted(own_lab: Lab) -> None:
    assert starts(own_lab.spec) == {"zookeeper": 1} | dict.fromkeys(BROKERS, 1) | {
        f"controller-{n}": 0 for n in (101, 102, 103)
    }


def test_a_second_up_starts_nothing_again(own_lab: Lab) -> None:
    before = starts(own_lab.spec)
    code, said = own_lab.command("up")
    assert (code, "starting" in said, starts(own_lab.spec)) == (0, False, before)


def test_status_names_every_service_with_its_mode_and_its_starts(own_lab: Lab) -> None:
    code, said = own_lab.command("status")
    rows = {line.split()[0]: line.split() for line in said.splitlines()[1:]}
    assert code == 0
    assert rows["broker-2"][1] == "RUNNING"
    assert rows["broker-2"][4:6] == ["1", "zookeeper"]
    assert "not provisioned" in " ".join(rows["controller-101"])


def test_nothing_listens_beyond_the_lab_s_own_loopback_network(own_lab: Lab) -> None:
    pids = {process.pid for process in supervision.processes(layout(own_lab.spec)).values() if process.pid}
    inodes = set()
    for fd in (fd for pid in pids for fd in Path(f"/proc/{pid}/fd").iterdir()):
        with suppress(FileNotFoundError):  # closed in this moment
            inodes.add(str(fd.readlink()))
    listening = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                address, _, port = fields[1].partition(":")
                listening.add((socket.inet_ntoa(bytes.fromhex(address[-8:])[::-1]), int(port, 16)))
    needed = {
        socket_
        for service, sockets in addresses(own_lab.spec).items()
        if service in running(own_lab)
        for socket_ in sockets
    }
    assert listening == needed
    assert layout(own_lab.spec).supervisor_socket.stat().st_mode & 0o077 == 0


def test_seed_makes_every_kind_of_metadata(own_lab: Lab) -> None:
    assert {"orders", "replica-order", "customers"} <= set(znodes(own_lab, "/brokers/topics"))
    assert znodes(own_lab, "/config/brokers") == ["1", "2", "<default>"]
    assert znodes(own_lab, "/config/users") == ["<default>", "admin", "alice", "bob%40x%20y", "carol"]
    assert znodes(own_lab, "/config/users/alice/clients") == ["<default>", "billing%2Feu%3A1"]
    assert znodes(own_lab, "/config/users/<default>/clients") == ["<default>", "reports"]
    assert znodes(own_lab, "/config/clients") == ["<default>", "billing%2Feu%3A1"]
    assert znodes(own_lab, "/config/ips") == ["192.0.2.7", "<default>"]
    assert znodes(own_lab, "/kafka-acl/Topic") == ["*", "orders"]
    assert znodes(own_lab, "/kafka-acl-extended/prefixed/Topic") == ["pay"]
    assert len(znodes(own_lab, "/delegation_token/tokens")) == 3


def test_seeding_again_leaves_every_value_as_it_is(own_lab: Lab) -> None:
    def values() -> dict[str, str]:
        paths = [
            "/config/users/alice",
            "/config/users/<default>",
            "/config/ips/<default>",
            "/config/brokers/2",
            "/config/topics/payments",
        ]
        with zookeeper(own_lab) as client:
            found = {path: client.get(path)[0].decode() for path in paths}
            acls = json.loads(client.get("/kafka-acl/Topic/orders")[0])["acls"]
            tokens = client.get_children("/delegation_token/tokens")
            return found | {"ACLs": str(sorted(map(str, acls))), "tokens": str(sorted(tokens))}

    before = values()
    seed(own_lab.spec)
    assert values() == before


def test_no_secret_is_in_a_log_a_configuration_or_a_process(own_lab: Lab) -> None:
    secret_files = [own_lab.directory / name for name in ("secrets.env", "secrets.properties", "scram-users.json")]
    assert all(path.stat().st_mode & 0o077 == 0 for path in secret_files)
    planted = {
        line.partition("=")[2]
        for path in secret_files[:2]
        for line in path.read_text().splitlines()
        if not line.startswith("#")
    }
    planted |= set(json.loads(secret_files[2].read_text()).values())
    assert len(planted) >= 6
    here = layout(own_lab.spec)
    texts = {
        str(path): path.read_text(errors="replace")
        for path in (*here.logs.iterdir(), *own_lab.directory.glob("*/*.properties"))
    }
    for name, process in supervision.processes(here).items():
        if process.pid:
            texts[f"environment of {name}"] = Path(f"/proc/{process.pid}/environ").read_text(errors="replace")
    assert [where for where, text in texts.items() if any(secret in text for secret in planted)] == []


def test_the_workload_accounts_for_every_record_while_a_broker_restarts(own_lab: Lab, tmp_path: Path) -> None:
    report, line = tmp_path / "report.json", tmp_path / "status"
    process = subprocess.Popen(
        [sys.executable, "-m", "lab", "workload", "--report", str(report), "--status", str(line)],
        env=own_lab.environment,
        cwd=ROOT,
    )
    try:
        wait_until_acknowledged(line, 200)
        # A paused broker rather than a stopped one: the session's count of starts stays what it is.
        paused = supervision.processes(layout(own_lab.spec))["broker-2"].pid
        os.kill(paused, signal.SIGSTOP)
        time.sleep(2)
        os.kill(paused, signal.SIGCONT)
        wait_until_acknowledged(line, 500)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=200) == 0
    finally:
        process.kill()
    account = json.loads(report.read_text())
    assert account["acknowledged"] >= 500
    assert (account["lost"], account["duplicated"], account["reordered"]) == (0, 0, 0)
    assert account["read_back"] >= account["acknowledged"]
    assert account["slowest_acknowledgement_seconds"] >= 1.5


@pytest.mark.long
def test_every_process_ends_when_it_has_no_memory(own_lab: Lab) -> None:
    running = [process for process in supervision.processes(layout(own_lab.spec)).values() if process.pid]
    assert len(running) == 4
    for process in running:
        assert "-XX:+ExitOnOutOfMemoryError" in Path(f"/proc/{process.pid}/cmdline").read_text().split("\0"), (
            process.service
        )


@pytest.mark.long
def test_changes_of_the_cleaner_by_several_at_once_leave_every_broker_whole(own_lab: Lab) -> None:
    """With Kafka's own dedupe buffer of 128 MiB and the lab's heap, every broker lost the listener of /config/changes
    within ten such rounds.
    """
    spec = own_lab.spec
    with ThreadPoolExecutor(len(spec.brokers)) as pool:
        for number in range(10):
            alter(spec, spec.brokers[0], "", {"log.cleaner.threads": "1" if number % 2 else "2"})
            list(
                pool.map(
                    lambda broker, n=number: alter(
                        spec, broker, str(broker.id), {"log.cleaner.backoff.ms": str(15_000 + n)}
                    ),
                    spec.brokers,
                )
            )
    alter(spec, spec.brokers[0], "", {"log.cleaner.threads": "2"})  # as seeded
    cleaners = {f"kafka-log-cleaner-thread-{n}"[:15] for n in (0, 1)}
    for broker in spec.brokers:
        pid = supervision.processes(layout(spec))[broker.service].pid
        until = time.monotonic() + 300
        while not cleaners <= (names := set(thread_names(pid))):
            assert time.monotonic() < until, f"broker {broker.id} has no cleaner: {sorted(names)}"
            time.sleep(0.1)
        require_well(spec, brokers=[broker])


@pytest.mark.skipif(not shutil.which("javac"), reason="ending a thread of a broker needs a JDK")
def test_a_deaf_broker_is_named_with_its_log_s_words_and_the_command_that_helps(own_lab: Lab) -> None:
    spec = own_lab.spec
    end_thread_of(supervision.processes(layout(spec))["broker-3"].pid, "/config/changes-event-process-thread")
    # New credentials for a user: what a broker that no longer listens will never hear of, and what a seeding waits for.
    (own_lab.directory / "scram-users.json").unlink()
    (own_lab.directory / "delegation-tokens-made").unlink()
    new = UserScramCredentialUpsertion(
        "alice", ScramCredentialInfo(security.SHA_256, 8192), security.passwords(spec)["alice"].encode()
    )
    client = admin(spec)
    for future in client.alter_user_scram_credentials([new]).values():
        future.result()
    with pytest.raises(StepFailed, match="broker 3 runs, but no longer listens for /config/changes") as caught:
        security.wait_until_admitted(spec, spec.brokers[2], "alice")
    assert "ERROR [/config/changes-event-process-thread]: Error due to" in caught.value.problem
    assert "java.lang.InterruptedException" in caught.value.problem
    assert "python -m lab restart broker-3, then seed again: python -m lab seed" in caught.value.way_out
    code, said = own_lab.command("status")
    assert (code, "broker 3 runs, but no longer listens for /config/changes" in said) == (1, True)
    code, said = own_lab.command("restart", "broker-3")
    assert (code, "restarting broker-3" in said) == (0, True)
    security.wait_until_admitted(spec, spec.brokers[2], "alice")
    assert own_lab.command("status")[0] == 0


def test_a_service_that_is_none_is_refused(own_lab: Lab) -> None:
    code, said = own_lab.command("restart", "broker-9")
    assert (code, "broker-9: no such service in the lab" in said) == (1, True)


def test_down_stops_everything_and_up_goes_on_with_the_same_data(own_lab: Lab) -> None:
    cluster, begun = admin(own_lab.spec).list_topics(timeout=10).cluster_id, starts(own_lab.spec)
    lifecycle.down(own_lab.spec)
    assert not any(is_open(address) for sockets in addresses(own_lab.spec).values() for address in sockets)
    lifecycle.up(own_lab.spec)
    now = admin(own_lab.spec).list_topics(timeout=10)
    assert now.cluster_id == cluster
    assert {"orders", "replica-order", "customers"} <= set(now.topics)
    assert starts(own_lab.spec) == {name: count + 1 if count else 0 for name, count in begun.items()}


@pytest.mark.long
def test_down_also_ends_processes_that_outlived_their_supervisor(own_lab: Lab) -> None:
    """The lab does not run any more after this one."""
    here = layout(own_lab.spec)
    broker = supervision.processes(here)["broker-1"].pid
    os.kill(int((own_lab.directory / "supervisord.pid").read_text()), signal.SIGKILL)
    assert Path(f"/proc/{broker}").exists()
    code, said = own_lab.command("down")
    assert (code, f"broker-1 (pid {broker})" in said) == (0, True)
    assert not any(is_open(address) for sockets in addresses(own_lab.spec).values() for address in sockets)
    assert not supervision.answers(here)


def test_a_busy_port_is_named_with_its_holder_and_nothing_is_started(make_lab: MakeLab) -> None:
    lab = make_lab()
    with socket.create_server((lab.spec.brokers[1].host, 9092)):
        code, said = lab.command("up")
    assert code == 1
    assert f"broker-2 needs {lab.spec.brokers[1].host}:9092, which is not free" in said
    assert f"held by pid {os.getpid()} (" in said
    assert "What to do:" in said
    assert not lab.directory.exists()


def test_a_broker_that_cannot_start_is_named_and_what_was_started_is_stopped(make_lab: MakeLab) -> None:
    lab = make_lab()
    broken = Path(lab.spec.brokers[2].config_file)
    broken.parent.mkdir(parents=True)
    broken.write_text("broker.id=not-a-number\n")
    code, said = lab.command("up")
    assert code == 1
    assert "broker-3 ended by itself" in said
    assert "not-a-number" in said
    assert not any(is_open(address) for sockets in addresses(lab.spec).values() for address in sockets)
    assert not supervision.answers(layout(lab.spec))


def test_purge_removes_no_directory_that_is_not_a_lab(make_lab: MakeLab) -> None:
    lab = make_lab()
    lab.directory.mkdir()
    (lab.directory / "precious").touch()
    with pytest.raises(Refused, match="does not look like a lab"):
        lifecycle.down(lab.spec, purge=True)
    assert (lab.directory / "precious").exists()
    for left in lab.directory.iterdir():
        left.unlink()
