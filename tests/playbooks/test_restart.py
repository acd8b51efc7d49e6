"""The restart: exactly when the process is older than its files, or is not there; whoever is killed, and however many
try.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from played import restart_broker, run_playbook
from stand_in_node import SECRET, Node, to

from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.properties_text import render_properties
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.hosts import ansible_runs
from kraft_runbook.io.hosts.kept_modules import kept_modules
from kraft_runbook.io.hosts.playbooks import playbook_directory
from kraft_runbook.io.secrets import environment_secrets

pytestmark = pytest.mark.usefixtures("a_provisioned_controller")

SECRETS = "Tell whether the secrets file changed"
STOP, START = (
    "Stop the service if its process is older than its files",
    "Start the service if it does not run, and wait for its port",
)


def test_a_broker_is_rendered_whole_and_started_and_a_second_run_changes_nothing(node: Node) -> None:
    first = to(node)
    assert first.changed == (SECRETS, "Write the configuration", START)
    expected = render_properties(
        broker_properties(node.spec, node.spec.broker(1), BrokerMode.HYBRID), header="Broker 1 of cluster standin"
    )
    assert Path(node.spec.broker(1).config_file).read_text() == expected
    pid = node.pid()
    second = to(node)
    assert second.changed == () and second.diffs == () and not second.restarted
    assert node.pid() == pid and node.starts() == ["True"]


def test_a_running_broker_is_restarted_once_when_its_mode_changes(node: Node) -> None:
    to(node, BrokerMode.ZOOKEEPER)
    result = to(node)
    assert result.changed == ("Write the configuration", STOP, START)
    assert result.restarted
    assert node.starts() == ["False", "True"]
    (diff,) = result.diffs
    assert "+zookeeper.metadata.migration.enable=true" in diff.render()


def test_a_restart_follows_when_only_the_secrets_changed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.run_broker(BrokerMode.HYBRID)
    monkeypatch.setenv("KRB_PLANTED_SECRET", "another")
    assert to(node).changed == (SECRETS, STOP, START)
    assert Path(node.spec.secrets_file or "").read_text().endswith("password.encoder.secret=another\n")


def test_check_mode_says_what_would_change_and_changes_nothing(node: Node) -> None:
    before = node.files()
    first = to(node, check=True)
    assert first.changed == (SECRETS, "Write the configuration", START) and not first.restarted
    assert node.files() == before and node.starts() == []
    node.run_broker()
    before, pid = node.files(), node.pid()
    result = to(node, check=True)
    assert result.changed == ("Write the configuration", STOP, START) and result.restarted
    assert "+zookeeper.metadata.migration.enable=true" in result.diffs[0].render()
    assert node.files() == before and node.pid() == pid
    assert to(node, BrokerMode.ZOOKEEPER, check=True).changed == ()


@pytest.mark.long
def test_a_file_changed_while_the_broker_was_down_asks_for_no_second_restart(node: Node) -> None:
    node.run_broker()
    node.control("stop", "broker-1")
    assert to(node).changed == ("Write the configuration", START)


@pytest.mark.long
def test_a_change_time_in_the_future_does_not_ask_for_a_restart_for_ever(node: Node) -> None:
    node.run_broker(BrokerMode.HYBRID)
    ahead = time.time() + 3600
    os.utime(node.spec.broker(1).config_file, (ahead, ahead))
    assert to(node).changed == (STOP, START)
    assert to(node).changed == ()


def test_properties_of_another_mode_are_refused_before_anything_is_written(node: Node) -> None:
    before = node.files()
    given = {"properties": broker_properties(node.spec, node.spec.broker(1), BrokerMode.KRAFT), "mode": "hybrid"}
    with pytest.raises(StepFailed, match="not those of a broker in mode hybrid; nothing was changed"):
        run_playbook(node.spec, "restart_broker", node_id=1, variables=given, secrets=environment_secrets())
    assert node.files() == before


@pytest.mark.parametrize("startsecs", [1])
def test_a_broker_that_exits_is_named_with_the_end_of_its_log(node: Node) -> None:
    node.behave("exit=3")
    with pytest.raises(StepFailed) as failed:
        to(node)
    assert "restart_broker on broker 1 (127.0.0.1)" in failed.value.problem
    assert "broker-1 does not stay up" in failed.value.problem and "told to exit" in failed.value.problem
    assert "hunter2" not in str(failed.value)
    assert "run this step again" in failed.value.way_out
    node.behave("")
    assert to(node).changed == (START,)


def test_a_port_that_another_process_took_meanwhile_is_named_and_the_broker_not_started(node: Node) -> None:
    node.run_broker()
    node.control("stop", "broker-1")
    with (
        socket.create_server(("127.0.0.1", node.ports["broker"])),
        pytest.raises(StepFailed, match=rf"127.0.0.1:{node.ports['broker']} is in use"),
    ):
        to(node)
    assert node.starts() == ["False"]
    assert to(node).changed == (START,)


def test_a_port_that_does_not_open_in_time_fails_and_the_next_run_waits_on_without_a_restart(node: Node) -> None:
    node.behave("open=6")
    impatient = node.spec.model_copy(update={"deadlines": node.spec.deadlines.model_copy(update={"registration": 2.0})})
    with pytest.raises(StepFailed, match=rf"127.0.0.1:{node.ports['broker']} is not open"):
        restart_broker(impatient, 1, BrokerMode.HYBRID, secrets=environment_secrets())
    assert to(node).changed == ()
    assert node.starts() == ["True"]


def test_an_undefined_service_is_named(node: Node) -> None:
    broker = node.spec.broker(1).model_copy(update={"service": "broker-9"})
    other = node.spec.model_copy(update={"brokers": (broker,)})
    with pytest.raises(StepFailed, match="knows no service broker-9"):
        restart_broker(other, 1, BrokerMode.HYBRID, secrets=environment_secrets())


def test_a_supervisor_that_does_not_answer_is_named(node: Node) -> None:
    manager = node.spec.service_manager.model_copy(update={"socket": "unix:///nowhere/s.sock"})
    with pytest.raises(StepFailed, match=r"supervisor at unix:///nowhere/s\.sock did not answer"):
        restart_broker(
            node.spec.model_copy(update={"service_manager": manager}),
            1,
            BrokerMode.ZOOKEEPER,
            secrets=environment_secrets(),
        )


def until_started(node: Node, starts: int) -> None:
    """Until the broker's process has begun so many times; its port opens some time after."""
    deadline = time.monotonic() + 60
    while len(node.starts()) < starts:
        assert time.monotonic() < deadline, "it was not started"
        time.sleep(0.02)


def test_a_configuration_that_another_run_wrote_meanwhile_is_not_taken_for_success(node: Node) -> None:
    def meddle(line: str) -> None:
        if ": start the service" in line:
            until_started(node, 1)
            Path(node.spec.broker(1).config_file).write_text("broker.id=1\n")

    node.behave("open=3")
    with pytest.raises(StepFailed, match="was changed while broker-1 started"):
        to(node, on_event=meddle)
    node.behave("")
    with pytest.raises(StepFailed, match="another hand changed"):
        to(node)
    Path(node.spec.broker(1).config_file).with_name(".server.properties.kraft-runbook").unlink()
    assert to(node).changed == ("Write the configuration", STOP, START)


# -- interruptions -----------------------------------------------------------------------------------------------------


def run_elsewhere(node: Node) -> subprocess.Popen[str]:
    """The same call in another process, which prints each line of news."""
    (node.directory / "cluster.yaml").write_text(node.text)
    program = textwrap.dedent(f"""
        from pathlib import Path
        from played import restart_broker
        from kraft_runbook.io.secrets import environment_secrets
        from kraft_runbook.cluster.cluster_file import parse_cluster
        from kraft_runbook.cluster.observation import BrokerMode
        spec = parse_cluster(Path({str(node.directory / "cluster.yaml")!r}).read_text(), source="x", environment={{}})
        def tell(line): print(line, flush=True)
        restart_broker(spec, 1, BrokerMode.HYBRID, secrets=environment_secrets(), on_event=tell)
    """)
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "KRB_PLANTED_SECRET": SECRET, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = list(children.get(pid, []))
    for each in found:
        found += children.get(each, [])
    return found


def command_of(pid: int) -> bytes:
    """The command line of a process; empty once it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def kill_at(node: Node, run: subprocess.Popen[str], moment: str, whole_tree: bool) -> None:
    """Kill the run once it has said ``moment``, or the service is started and its port not open; ``whole_tree``: and
    all that it has started.
    """
    assert run.stdout
    word = ": start the service" if moment == PORT_NOT_OPEN else moment
    for line in run.stdout:
        if word in line:
            break
    else:
        pytest.fail(f"the run never said {word!r}")
    if moment == PORT_NOT_OPEN:
        until_started(node, 2)
    victims = descendants(run.pid) if whole_tree else []
    run.kill()
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    run.wait()


PORT_NOT_OPEN = "after the start, before the port opens"
MOMENTS = [": wrote ", ": stop the service", ": stopped", ": start the service", PORT_NOT_OPEN]
EVERY_DAY = ((": stop the service", False), (": stopped", True))
"""An orphan whose task is at work, so that it ends later; and the moment at which the broker is down."""


@pytest.mark.parametrize(
    ("moment", "whole_tree"),
    [
        pytest.param(moment, whole, marks=[] if (moment, whole) in EVERY_DAY else pytest.mark.long)
        for whole in (False, True)
        for moment in MOMENTS
    ],
    ids=lambda given: given if isinstance(given, str) else "all-killed" if given else "orphaned",
)
def test_killed_at_any_moment_and_run_again_the_broker_is_restarted_once(
    node: Node, moment: str, whole_tree: bool
) -> None:
    node.behave("stop=0.7 open=0.7")
    node.run_broker()
    kill_at(node, run_elsewhere(node), moment, whole_tree)
    to(node)
    time.sleep(1.0)  # an orphan's last task would act now
    assert node.starts() == ["False", "True"]
    assert to(node).changed == ()


def test_ansible_does_not_outlive_the_process_that_started_it(node: Node) -> None:
    run = run_elsewhere(node)
    assert run.stdout and run.stdout.readline()
    ansible = [pid for pid in descendants(run.pid) if b"ansible-playbook" in command_of(pid)]
    assert ansible
    run.kill()
    run.wait()
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in ansible):
        assert time.monotonic() < deadline, "ansible-playbook lives on"
        time.sleep(0.05)


def test_two_runs_at_once_restart_the_broker_once(node: Node) -> None:
    node.behave("stop=0.7 open=0.7")
    node.run_broker()
    other = run_elsewhere(node)
    result = to(node)
    output, _ = other.communicate(timeout=60)
    assert other.returncode == 0, output
    assert node.starts() == ["False", "True"]
    assert result.ok == 7


@pytest.mark.long
def test_an_exception_in_the_calling_thread_ends_ansible_and_leaves_nothing(node: Node, temporary_files: Path) -> None:
    def interrupt(line: str) -> None:
        if "stop the service" in line:
            raise KeyboardInterrupt

    node.run_broker()
    with pytest.raises(KeyboardInterrupt):
        to(node, on_event=interrupt)
    assert list(temporary_files.iterdir()) == []
    assert [t.name for t in threading.enumerate() if t.name.startswith("ansible-")] == []
    to(node)
    assert node.starts() == ["False", "True"]


def test_progress_is_told_in_short_lines(node: Node) -> None:
    lines: list[str] = []
    to(node, on_event=lines.append)
    assert f"broker 1: wrote {node.spec.broker(1).config_file}" in lines
    assert f"broker 1: {START[0].lower()}{START[1:]}" in lines
    assert any(
        line.startswith("broker 1: started broker-1 (process ")
        and f"127.0.0.1:{node.ports['broker']} is open (" in line
        for line in lines
    )


def test_the_playbooks_are_found_beside_the_package() -> None:
    assert (playbook_directory() / "restart_broker.yml").is_file()


def test_the_modules_are_packed_once_for_all_runs_and_for_each_where_they_can_not_be_kept(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = kept_modules(playbook_directory(), tmp_path / "kept")
    assert kept is not None
    monkeypatch.setattr(ansible_runs, "kept_modules", lambda _: kept)
    to(node)
    packed = {path.name: path.stat().st_mtime_ns for path in kept.iterdir()}
    ours = ("kafka_file", "kafka_service")
    assert {f"ansible.legacy.{name}-ZIP_DEFLATED-none" for name in ours} <= set(packed)
    assert to(node, BrokerMode.KRAFT).restarted
    assert {path.name: path.stat().st_mtime_ns for path in kept.iterdir()} == packed
    monkeypatch.setattr(ansible_runs, "kept_modules", lambda _: None)
    assert to(node).restarted
