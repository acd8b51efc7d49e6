"""The soak's watch in the triggerer: it comes back at once when a controller's file lost its flag, and well when nothing broke."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kraft_runbook.checks import CheckResult, ChecksReport, Severity, Verdict
from kraft_runbook.cluster import ClusterSpec
from kraft_runbook.cluster_file import parse_cluster
from kraft_runbook.observation import ClusterObservation, HostState, Unread
from kraft_runbook_airflow import disk_watch, triggers
from kraft_runbook_airflow.triggers import HealthWatchTrigger

CONTROLLERS = """
name: watched
kafka: {version: 3.9.2, home: /opt/kafka}
zookeeper: {servers: ["127.0.0.1:2181"]}
reach: {kind: local}
service_manager: {kind: supervisor, socket: "unix:///s.sock"}
brokers:
  - {id: 1, host: 127.0.0.1, listeners: [{name: PLAINTEXT, port: 9092}], log_dirs: [/d], config_file: /b, service: b, metrics_port: 1}
controllers:
  - {id: 101, host: 127.0.0.1, port: 9093, log_dir: /c, config_file: /etc/controller.properties, service: c, metrics_port: 2}
"""
FLAGGED = {"zookeeper.metadata.migration.enable": "true", "zookeeper.connect": "127.0.0.1:2181", "process.roles": "controller"}


@pytest.fixture
def spec(monkeypatch: pytest.MonkeyPatch) -> ClusterSpec:
    found = parse_cluster(CONTROLLERS, source="watched.yaml", environment={})
    seen = ClusterObservation("watched", datetime.now(UTC), 0.1, Unread("not here"), {}, Unread("not here"), {}, Unread("not here"))
    monkeypatch.setattr(triggers, "cluster_spec", lambda name: found)
    monkeypatch.setattr(triggers, "airflow_secrets", lambda: None)
    monkeypatch.setattr(triggers, "observe", lambda spec, **_: replace(seen, observed_at=datetime.now(UTC)))
    monkeypatch.setattr(triggers, "run_checks", lambda *_, **__: ChecksReport(()))
    fine = CheckResult("KRB-DW-001", "alive", Severity.BLOCKING, Verdict.PASS, "it is")
    monkeypatch.setattr(triggers, "dual_write_liveness", lambda *_: fine)
    return found


def watch(monkeypatch: pytest.MonkeyPatch, config: dict[str, str] | Unread, seconds: float) -> tuple[str | None, float]:
    """What the watch says, with this configuration on the controller's disk, and how long it took."""
    unread = dict.fromkeys((f for f in HostState.__dataclass_fields__ if f != "node_id"), Unread("not asked for"))
    monkeypatch.setattr(disk_watch, "read_controllers", lambda spec: {101: HostState(101, **{**unread, "config": config})})

    async def first() -> str | None:
        async for event in HealthWatchTrigger("watched", time.time() + seconds).run():
            return event.payload["broken"]
        raise AssertionError("the watch said nothing")

    began = time.monotonic()
    return asyncio.run(first()), time.monotonic() - began


def test_a_file_without_the_flag_ends_the_watch_long_before_its_time(spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, took = watch(monkeypatch, {k: v for k, v in FLAGGED.items() if "migration" not in k}, 60.0)
    assert broken is not None and broken.startswith("KRB-PRE-047") and "/etc/controller.properties" in broken and "What to do: put back" in broken
    assert took < 20


def test_a_healthy_watch_lasts_its_time_and_ends_well(spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, took = watch(monkeypatch, FLAGGED, 1.0)
    assert broken is None and took >= 1


def test_a_watch_that_could_not_read_any_file_does_not_end_well(spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, _ = watch(monkeypatch, Unread("permission denied"), 1.0)
    assert broken is not None and "controller 101: permission denied" in broken
