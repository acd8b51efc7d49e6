"""A throwaway cluster ends by itself: its lease, and what is found of it by its directory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from feature_looks import host_module

from kraft_runbook.io.local import lease
from kraft_runbook.io.local import remains as found
from kraft_runbook.io.local.remains import end_remains, remains, started_at


@contextmanager
def process(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that sleeps, with these words in its command line."""
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", *words])
    deadline = time.monotonic() + 10
    while words[-1] not in Path(f"/proc/{started.pid}/cmdline").read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield started
    finally:
        started.kill()
        started.wait()


def test_what_runs_from_its_directory_is_found_and_ended_and_nothing_else_is(tmp_path: Path) -> None:
    one, other = tmp_path / "prod", tmp_path / "prod2"
    with (
        process(f"{one}/kafka/libs/x.jar") as ours,
        process(f"{other}/kafka/libs/x.jar") as theirs,
        process(f"{one}/logs/broker-9001.log") as reader,
    ):
        assert [each.pid for each in remains(one)] == [ours.pid]
        assert end_remains(one) == ()
        assert ours.wait(10) != 0
        assert theirs.poll() is None, "another cluster's"
        assert reader.poll() is None, "a person who reads a log there"


@pytest.mark.parametrize("whose", ["another user's", "a container's"])
def test_a_process_with_the_same_path_that_is_not_this_user_s_on_this_machine_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    """Such as a real broker's, whose installation has the same path in its container."""
    with process(f"{tmp_path}/kafka/libs/x.jar") as theirs:
        assert [each.pid for each in remains(tmp_path)] == [theirs.pid]
        if whose == "another user's":
            monkeypatch.setattr(os, "geteuid", lambda: 4711)
        else:
            monkeypatch.setattr(found, "_pid_namespace", lambda entry: 1 if entry.name == "self" else 2)
        assert remains(tmp_path) == () and end_remains(tmp_path) == ()
        assert theirs.poll() is None


def test_a_program_of_ours_is_known_by_its_module_and_its_directory(tmp_path: Path) -> None:
    with process("-m", "kraft_runbook.io.kafka.stand_ins", f"{tmp_path}/clusters") as ours:
        assert [each.pid for each in remains(tmp_path)] == [ours.pid]
        assert remains(tmp_path, but=frozenset({ours.pid})) == ()


LEASE = ("-m", "kraft_runbook.io.local.lease")


@pytest.mark.parametrize(
    "words",
    [
        (*LEASE, "{}", "600"),
        ("-m", "supervisor.supervisord", "-c", "{}/supervisord.conf"),
        ("sh", "{}/kafka/bin/run-service.sh", "broker-9001"),
        ("-Dlog4j.configuration=file:{}/kafka/config/log4j.properties", "kafka.Kafka"),
        ("-javaagent:/opt/jmx.jar=127.99.0.11:27071:{}/kafka/config/jmx-exporter.yaml", "kafka.Kafka"),
        ("-cp", "/opt/other.jar:{}/kafka/libs/a.jar", "kafka.Kafka"),
    ],
)
def test_one_whose_path_begins_with_the_other_s_or_ends_with_it_is_another_cluster(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    prod = tmp_path / "prod"
    with process(*(each.format(prod) for each in words)) as ours:
        assert [each.pid for each in remains(prod)] == [ours.pid]
    for other in (f"{prod}-eu", f"{prod}.old", f"/elsewhere{prod}"):
        with process(*(each.format(other) for each in words)):
            assert remains(prod) == ()
            assert len(remains(Path(other))) == 1


def test_a_path_with_signs_of_a_pattern_is_taken_as_it_is(tmp_path: Path) -> None:
    with process(f"{tmp_path}/a.c+d/kafka/x") as ours, process(f"{tmp_path}/abccd/kafka/x"):
        assert [each.pid for each in remains(tmp_path / "a.c+d")] == [ours.pid]


def test_a_process_is_known_by_its_start_time_too() -> None:
    assert started_at(os.getpid()) is not None
    assert started_at(2**22 + 1) is None


FIRST_THREAD_ENDS = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_whose_first_thread_has_ended_is_there_until_all_have() -> None:
    """As a JVM that gives back a large heap: it still holds its ports."""
    on_host = host_module("kafka_host").started_at_ns
    with subprocess.Popen([sys.executable, "-c", FIRST_THREAD_ENDS]) as process:
        try:
            while " Z " not in Path(f"/proc/{process.pid}/stat").read_text():
                time.sleep(0.01)
            assert (
                started_at(process.pid) is not None and host_module("kafka_host").started_at_ns(process.pid) is not None
            )
        finally:
            process.kill()
        while started_at(process.pid) is not None:  # nobody has waited for it yet
            time.sleep(0.01)
        assert on_host(process.pid) is None


def test_a_lease_is_over_when_nobody_renewed_it_and_when_it_is_gone(tmp_path: Path) -> None:
    looked = lease.Lease(tmp_path, 10, began=0)
    assert looked.is_over(0)
    lease.renew(tmp_path)
    assert not looked.is_over(5) and not looked.is_over(15) and looked.is_over(15.1)
    lease.renew(tmp_path)
    assert not looked.is_over(15.2) and looked.is_over(25.3)


@pytest.mark.parametrize("hours", [-48, 48])
def test_a_clock_that_is_set_neither_ends_a_lease_nor_makes_it_longer(tmp_path: Path, hours: int) -> None:
    looked = lease.Lease(tmp_path, 10, began=0)
    lease.renew(tmp_path)
    assert not looked.is_over(1)
    then = time.time() + hours * 3600  # a renewal after the clock was set
    os.utime(lease.lease_file(tmp_path), (then, then))
    assert not looked.is_over(10) and not looked.is_over(20) and looked.is_over(20.1)


def test_when_it_is_over_everything_below_the_directory_ends(tmp_path: Path) -> None:
    lease.renew(tmp_path)
    with process(f"{tmp_path}/kafka/libs/x.jar") as ours:
        watching = subprocess.Popen([sys.executable, "-m", "kraft_runbook.io.local.lease", str(tmp_path), "1.5"])
        try:
            for _ in range(6):  # renewed for longer than it lasts
                time.sleep(0.4)
                lease.renew(tmp_path)
                assert ours.poll() is None and watching.poll() is None
            assert watching.wait(15) == 0
            assert ours.wait(5) != 0
        finally:
            watching.kill()
            watching.wait()


def test_everything_ends_also_where_the_supervisor_is_gone_that_read_what_the_lease_says(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with process(f"{tmp_path}/kafka/libs/x.jar") as ours:
        command = [sys.executable, "-m", "kraft_runbook.io.local.lease", str(tmp_path), "1"]
        watching = subprocess.Popen(command, stdout=writes, stderr=writes)
        os.close(writes)
        try:
            watching.wait(15)
            assert ours.wait(5) != 0
        finally:
            watching.kill()
            watching.wait()


def test_a_process_that_can_not_be_ended_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with process(f"{tmp_path}/kafka/x") as ours, monkeypatch.context() as patched:
        patched.setattr(os, "kill", lambda *_: None)
        assert [each.pid for each in end_remains(tmp_path, within=0.2)] == [ours.pid]
