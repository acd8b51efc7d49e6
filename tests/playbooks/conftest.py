"""The node that the playbooks change, under a real supervisord; and the modules that run on a host."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Iterator
from getpass import getuser
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from stand_in_node import SECRET, Node, lay_out

from kraft_runbook.io.hosts.playbooks import playbook_directory


@pytest.fixture
def startsecs() -> int:
    """How long supervisor waits at each start before it says that the process runs. A test of one that exits has 1."""
    return 0


@pytest.fixture
def node(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, startsecs: int) -> Iterator[Node]:
    """The node under a real supervisord, its services defined and stopped."""
    directory = tmp_path_factory.mktemp("n")  # short: the path of a Unix socket may have 107 characters
    monkeypatch.setenv("KRB_PLANTED_SECRET", SECRET)
    node = lay_out(directory, manager=f"{{kind: supervisor, socket: 'unix://{directory}/s.sock', stop_timeout: 60}}")
    programs = "".join(
        f"\n[program:{name}]\ncommand={sys.executable} {directory}/stand_in.py {name} 127.0.0.1:{port} {config}\n"
        f"autostart=false\nautorestart=false\nstartsecs={startsecs}\nstartretries=0\nstopwaitsecs=60\nredirect_stderr=true\nstdout_logfile={directory}/{name}.log\n{further}"
        for name, port, config, further in (
            ("broker-1", node.ports["broker"], node.spec.broker(1).config_file, ""),
            ("controller-101", node.ports["controller"], node.spec.controller(101).config_file, f"user={getuser()}\n"),
        )
    )
    (directory / "supervisord.conf").write_text(
        f"[unix_http_server]\nfile={directory}/s.sock\nchmod=0700\n[supervisord]\nlogfile={directory}/supervisord.log\npidfile={directory}/supervisord.pid\n[rpcinterface:supervisor]\nsupervisor.rpcinterface_factory"
        " = supervisor.rpcinterface:make_main_rpcinterface\n" + programs
    )
    supervisord = subprocess.Popen(
        [str(Path(sys.executable).parent / "supervisord"), "-n", "-c", str(directory / "supervisord.conf")],
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 20
    while not (directory / "s.sock").exists():
        assert time.monotonic() < deadline, "supervisord did not start"
        time.sleep(0.05)
    try:
        yield node
    finally:
        supervisord.terminate()
        supervisord.wait(timeout=30)


@pytest.fixture
def a_provisioned_controller(node: Node) -> None:
    """Without one, no broker is restarted into hybrid or KRaft mode."""
    node.configure_controller()


MODULE_UTILS = (
    "kafka_host",
    "kafka_user",
    "properties_text",
    "environment_files",
    "jvm_options",
    "service_manager",
    "java",
    "written_files",
    "installation",
    "login_modules",
    "references",
    "named_classes",
    "zookeeper_login",
    "listeners",
    "replica_directories",
)
"""Each after those that it imports."""


@pytest.fixture(scope="module")
def on_the_host() -> Iterator[SimpleNamespace]:
    """The modules, loaded as Ansible loads them on a host: below its own package."""
    before = dict(sys.modules)
    loaded: dict[str, ModuleType] = {}
    for directory, prefix in (("module_utils", "ansible.module_utils."), ("library", "")):
        for name in MODULE_UTILS if prefix else ("kafka_file", "kafka_format", "kafka_host_facts", "kafka_set_aside"):
            spec = importlib.util.spec_from_file_location(
                f"{prefix}{name}", playbook_directory() / directory / f"{name}.py"
            )
            assert spec and spec.loader
            loaded[name] = sys.modules[f"{prefix}{name}"] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded[name])
    yield SimpleNamespace(**loaded)
    for name in sys.modules.keys() - before.keys():
        if name.rpartition(".")[2] in loaded:
            del sys.modules[name]
