"""Whether a process is older than a run, judged on its host by that host's clock alone."""

from __future__ import annotations

import importlib.util
import os
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from feature_looks import host_module

from kraft_runbook.io.hosts.playbooks import playbook_directory


def on_the_host() -> ModuleType:
    for needed in ("kafka_host", "properties_text", "environment_files", "service_manager"):
        host_module(needed)
    spec = importlib.util.spec_from_file_location("kafka_service", playbook_directory() / "library/kafka_service.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("older_by", "stops"), [(-5.0, True), (5.0, False), (None, False)])
def test_a_process_that_has_run_for_longer_than_the_run_is_stopped(older_by: float | None, stops: bool) -> None:
    """The run's beginning by the clock of another machine is not compared with anything here."""
    host = on_the_host()
    running = SimpleNamespace(pid=os.getpid(), state="running", detail="running")
    service = SimpleNamespace(name="broker-1", where="here", status=lambda: running)
    age = time.time() - host.started_at_ns(os.getpid()) / 1e9
    asked: dict[str, Any] = {"name": "broker-1", "files": [], "will_change": False}
    found = host.stop_outdated(service, {**asked, "age": None if older_by is None else age + older_by}, check=True)
    assert found["changed"] is stops
