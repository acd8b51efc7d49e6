"""What the tasks of the test DAGs see: one JSON file, read anew each time.

Keys: ``state`` (ZkMigrationState of every controller, null for none), ``brokers`` (mode of all), ``controllers_run``,
``objection`` (evidence of a failing blocking check).
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from kraft_runbook.cluster.observation import (
    BrokerMode,
    BrokerState,
    ClusterObservation,
    ControllerMetrics,
    ControllerMode,
    ControllerState,
    ControllerZnode,
    Unread,
    ZkMigrationState,
    ZookeeperState,
)
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.migration.way_back import rollback_plan
from kraft_runbook.runbook.check_results import CheckResult, Severity, Verdict
from kraft_runbook.steps.examine import Examined
from kraft_runbook_airflow.migration import words as runbook


def observation() -> ClusterObservation:
    """The cluster as the scene file has it."""
    scene = json.loads(Path(os.environ["KRB_TEST_SCENE"]).read_text())
    running = bool(scene.get("controllers_run"))
    state = scene.get("state")
    metrics = (
        ControllerMetrics(ZkMigrationState(state), active=True, migrating_zk_broker_count=0, zk_write_behind_lag=0)
        if state is not None
        else Unread("no controller runs")
    )
    return ClusterObservation(
        cluster="scene",
        observed_at=datetime.now(UTC),
        took_seconds=0.1,
        zookeeper=ZookeeperState("id", {}, ControllerZnode(1, -1), 1, None, (), False, False),
        controllers={
            101: ControllerState(
                101, running, ControllerMode.MIGRATION if running else Unread("it does not run"), metrics
            )
        },
        quorum=Unread("no controller runs"),
        brokers={1: BrokerState(1, True, BrokerMode(scene.get("brokers", "zookeeper")), Unread("not asked for"))},
        topics=Unread("not asked for"),
    )


def examine(run: object, gate: str) -> Examined:
    """In place of the deep look at a real cluster."""
    scene = json.loads(Path(os.environ["KRB_TEST_SCENE"]).read_text())
    objection = scene.get("objection")
    verdict = Verdict.FAIL if objection else Verdict.PASS
    check = CheckResult(
        "KRB-TEST-001",
        "the scene is in order",
        Severity.BLOCKING,
        verdict,
        objection or "it is",
        "put the scene in order",
    )
    seen = observation()
    return Examined(seen, (check,), rollback_plan(detect_phase(seen).phase))


runbook.examine = runbook.examine_and_keep = examine
