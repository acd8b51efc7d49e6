"""Under systemd: the same steps through systemctl, here a stand-in that keeps a record and runs the process itself."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from played import provision_controller, restart_broker
from stand_in_node import CLUSTER_ID, SECRET, Node, lay_out

from kraft_runbook.cluster.observation import BrokerMode, Unread
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.hosts.host_facts import gather_host_facts
from kraft_runbook.io.secrets import environment_secrets

SYSTEMCTL = """#!{python}
import os, pathlib, signal, subprocess, sys, time
here = pathlib.Path({directory!r})
verb, unit, pid_file = sys.argv[1], sys.argv[-1], here / "unit.pid"
def pid():
    found = int(pid_file.read_text()) if pid_file.exists() else 0
    try:
        return found if ") Z" not in pathlib.Path(f"/proc/{{found}}/stat").read_text() else 0
    except OSError:
        return 0
if verb == "cat":
    print((here / "unit_file").read_text())
    sys.exit()
if verb != "show":
    with open(here / "systemctl.log", "a") as log:
        log.write(f"{{verb}} {{unit}}\\n")
def begin():
    no = subprocess.DEVNULL
    process = subprocess.Popen({command!r}, stdin=no, stdout=no, stderr=no, start_new_session=True)
    pid_file.write_text(str(process.pid))
if verb == "show":
    own = pid() if unit == "broker-1" else 0
    if not own and unit == "broker-1" and (here / "restart_always").exists() and pid_file.exists():
        begin()
        own = pid()
    state = "active" if own else "inactive"
    load = "loaded" if unit in ("broker-1", "controller-101") else "not-found"
    if "TimeoutStopUSec" in sys.argv[2]:
        print("TimeoutStopUSec=" + (here / "stop_time").read_text())
        sys.exit()
    if "ExecStop" in sys.argv[2]:
        print((here / "stop_commands").read_text())
        sys.exit()
    if "User" in sys.argv[2]:
        print((here / "user").read_text())
        sys.exit()
    if "Environment" in sys.argv[2]:
        print((here / "environment").read_text())
        sys.exit()
    print(f"LoadState={{load}}\\nActiveState={{state}}\\nSubState=x\\nMainPID={{own}}\\nResult=success")
elif verb == "start":
    begin()
    time.sleep(0.2)
elif verb == "stop":
    os.kill(pid(), signal.SIGTERM)
    while pid():
        time.sleep(0.05)
"""


@pytest.fixture
def unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    node = lay_out(tmp_path, manager="{kind: systemd, stop_timeout: 60}")
    node.configure_controller()
    monkeypatch.setenv("KRB_PLANTED_SECRET", SECRET)
    tools = tmp_path / "tools"
    tools.mkdir()
    command = [
        sys.executable,
        f"{tmp_path}/stand_in.py",
        "broker-1",
        f"127.0.0.1:{node.ports['broker']}",
        node.spec.broker(1).config_file,
    ]
    (tools / "systemctl").write_text(SYSTEMCTL.format(python=sys.executable, directory=str(tmp_path), command=command))
    (tmp_path / "stop_time").write_text("1min 30s\n")
    (tmp_path / "stop_commands").write_text("")
    (tmp_path / "unit_file").write_text("")
    (tmp_path / "user").write_text("")
    (tmp_path / "environment").write_text("Environment=")
    (tools / "journalctl").write_text("#!/bin/sh\necho the journal says no\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    yield node
    pid = tmp_path / "unit.pid"
    if pid.exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGTERM)


def asked_for(node: Node) -> list[str]:
    log = node.directory / "systemctl.log"
    return log.read_text().splitlines() if log.exists() else []


def test_a_unit_is_stopped_and_started_exactly_when_needed(unit: Node) -> None:
    restart_broker(unit.spec, 1, BrokerMode.ZOOKEEPER, secrets=environment_secrets())
    assert asked_for(unit) == ["start broker-1"]
    assert gather_host_facts(unit.spec, [1])[1].service_state == "running"
    restart_broker(unit.spec, 1, BrokerMode.HYBRID, secrets=environment_secrets(), check=True)
    restart_broker(unit.spec, 1, BrokerMode.ZOOKEEPER, secrets=environment_secrets())
    assert asked_for(unit) == ["start broker-1"]
    restart_broker(unit.spec, 1, BrokerMode.HYBRID, secrets=environment_secrets())
    assert asked_for(unit) == ["start broker-1", "stop broker-1", "start broker-1"]
    assert unit.starts() == ["False", "True"]


def test_a_unit_that_exits_is_named_with_its_journal(unit: Node) -> None:
    unit.behave("exit=1")
    with pytest.raises(StepFailed, match=r"(?s)broker-1 does not stay up \(inactive.*the journal says no"):
        restart_broker(unit.spec, 1, BrokerMode.HYBRID, secrets=environment_secrets())


def test_a_unit_that_systemd_starts_again_is_followed_until_one_process_stays(unit: Node) -> None:
    """As a broker that was killed: each new one is refused its registration until the old session has ended."""
    (unit.directory / "restart_always").touch()
    unit.behave("exit=1")

    def third_time() -> None:
        while len(unit.starts()) < 3:
            time.sleep(0.05)
        unit.behave("")

    session = threading.Thread(target=third_time, daemon=True)
    session.start()
    restart_broker(unit.spec, 1, BrokerMode.HYBRID, secrets=environment_secrets())
    session.join(60)
    assert asked_for(unit) == ["start broker-1"]


@pytest.mark.parametrize(
    ("shown", "seconds"), [("1min 30s", 90), ("5min 30s", 330), ("infinity", None), ("1h 500ms", 3600.5)]
)
def test_the_time_that_systemd_gives_a_stop_is_read(unit: Node, shown: str, seconds: float | None) -> None:
    (unit.directory / "stop_time").write_text(f"{shown}\n")
    assert gather_host_facts(unit.spec, [1])[1].stop_seconds == seconds


def test_what_systemd_runs_to_stop_a_unit_is_read(unit: Node) -> None:
    rest = "ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }"
    (unit.directory / "stop_commands").write_text(
        f"ExecStop={{ path=/opt/kafka/bin/kafka-server-stop.sh ; argv[]=/opt/kafka/bin/kafka-server-stop.sh ; {rest}\n"
        f"ExecStopPost={{ path=/bin/sh ; argv[]=/bin/sh -c rm -f x ; true ; {rest}\n"
    )
    found = gather_host_facts(unit.spec, [1])[1].stop_commands
    assert found == ("/opt/kafka/bin/kafka-server-stop.sh", "/bin/sh -c rm -f x ; true")


@pytest.mark.parametrize(
    ("lines", "root"),
    [
        ("ExecStop=/opt/kafka/bin/kafka-server-stop.sh\nExecStart=+/bin/true\n#ExecStop=+/bin/true", False),
        ("ExecStop=-/bin/sh -c 'a + b'\nPermissionsStartOnly=no", False),
        ("ExecStop=-+/opt/kafka/bin/kafka-server-stop.sh", True),
        ("ExecStopPost = !/opt/kafka/bin/kafka-server-stop.sh", True),
        ("PermissionsStartOnly=true\nExecStop=/opt/kafka/bin/kafka-server-stop.sh", True),
    ],
)
def test_who_runs_kafka_and_its_stop_is_read(unit: Node, lines: str, root: bool) -> None:
    (unit.directory / "user").write_text("User=daemon\nGroup=\n")
    (unit.directory / "unit_file").write_text(f"# /etc/systemd/system/broker-1.service\n[Service]\n{lines}\n")
    found = gather_host_facts(unit.spec, [1])[1]
    daemon = pwd.getpwnam("daemon").pw_uid
    assert (found.stops_as, found.runs_as) == (0 if root else daemon, daemon)


def test_who_stops_a_unit_that_names_no_user_or_one_whom_nobody_knows(unit: Node) -> None:
    (unit.directory / "user").write_text("User=\nGroup=\n")
    found = gather_host_facts(unit.spec, [1])[1]
    assert (found.stops_as, found.runs_as) == (0, 0)
    (unit.directory / "user").write_text("User=nobody-knows\nGroup=\n")
    assert isinstance(gather_host_facts(unit.spec, [1])[1].stops_as, Unread)
    (unit.directory / "user").write_text("")
    found = gather_host_facts(unit.spec, [1])[1]
    assert (found.stops_as, found.runs_as) == (None, None)


def test_a_time_that_is_none_is_unread(unit: Node) -> None:
    (unit.directory / "stop_time").write_text("soon\n")
    found = gather_host_facts(unit.spec, [1])[1].stop_seconds
    assert isinstance(found, Unread) and "'soon'" in found.reason


def a_java(place: Path, version: str) -> Path:
    java = place / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return place


def test_java_is_the_one_that_the_unit_leads_to(unit: Node) -> None:
    there = unit.directory
    first, second = a_java(there / "jdk 21", "21.0.2"), a_java(there / "jdk-11", "11.0.2")

    def read() -> str | Unread:
        return gather_host_facts(unit.spec, [1])[1].java_version

    shown = there / "environment"
    shown.write_text(f"Environment=KAFKA_HEAP=-Xmx1g $'JAVA_HOME={first}' $'KAFKA_OPTS=-a -b'\n")
    assert read() == "21.0.2"
    (there / "defaults").write_text(f'# Java\nexport NOT=this\nJAVA_HOME="{second}"\n')
    named = f"EnvironmentFiles=/nowhere (ignore_errors=yes)\nEnvironmentFiles={there}/defaults (ignore_errors=no)\n"
    shown.write_text(shown.read_text() + named)
    assert read() == "11.0.2"
    shown.write_text(f"Environment=PATH={second}/bin:/usr/bin\n")
    assert read() == "11.0.2"
    shown.write_text("Environment=JAVA_HOME=/gone\n")
    found = read()
    assert isinstance(found, Unread)
    assert found.reason == "broker-1 has JAVA_HOME=/gone, and /gone/bin/java is no program there"
    shown.write_text(f"EnvironmentFiles={there} (ignore_errors=no)\n")
    found = read()
    assert isinstance(found, Unread) and "could not be read" in found.reason


def test_a_controller_is_formatted_with_its_unit_s_java(unit: Node) -> None:
    there = unit.directory
    (there / "environment").write_text(f"Environment=JAVA_HOME={a_java(there / 'jdk', '21')}\n")
    tool = there / "kafka" / "bin" / "kafka-storage.sh"
    kept = f"import os; open({str(there / 'java-of-format')!r}, 'w').write(os.environ['JAVA_HOME'])"
    tool.write_text(f"{tool.read_text()}{kept}\n")
    with pytest.raises(StepFailed, match="controller-101 does not stay up"):  # the stand-in runs the broker alone
        provision_controller(unit.spec, 101, CLUSTER_ID, secrets=environment_secrets())
    assert (there / "java-of-format").read_text() == f"{there}/jdk"


def test_a_unit_that_is_not_there_is_named(unit: Node) -> None:
    broker = unit.spec.broker(1).model_copy(update={"service": "broker-9"})
    spec = unit.spec.model_copy(update={"brokers": (broker,)})
    with pytest.raises(StepFailed, match="systemd knows no service broker-9"):
        restart_broker(spec, 1, BrokerMode.HYBRID, secrets=environment_secrets())
    host = gather_host_facts(spec, [1])[1]
    assert host.service_defined is False and host.service_state == "absent"
