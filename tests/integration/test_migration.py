"""The whole way from ZooKeeper to KRaft on a real cluster under a real Airflow. The tests build on one another, in this
order.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import time
from pathlib import Path

import by_hand
import pytest
from kazoo.client import KazooClient
from labs import Lab
from stage import ENDED, MIGRATION, PARITY, Stage, at_work, kill_worker_of_playbook

from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.evidence.store import read_records
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from kraft_runbook.io.local import supervision
from kraft_runbook.procedures.observe import observe
from kraft_runbook_airflow.base.journal import run_file_name
from lab.layout import layout, starts


def everything(lab: Lab) -> dict[str, object]:
    """Every host file that the runbook may write, every process start, every znode with its version of data and
    children. But for what Kafka writes by itself: its controller gives partitions back to their preferred leaders every
    five minutes (auto.leader.rebalance.enable), and leaders change their ISRs.
    """
    nodes = (*lab.spec.brokers, *lab.spec.controllers)
    files = {n.config_file: Path(n.config_file) for n in nodes} | {"secrets": Path(lab.spec.secrets_file or "")}
    seen: dict[str, object] = {
        name: (f.stat().st_mtime_ns, hashlib.sha256(f.read_bytes()).hexdigest()) if f.exists() else None
        for name, f in files.items()
    }
    seen |= {c.log_dir: Path(c.log_dir).exists() for c in lab.spec.controllers}
    seen["starts"] = starts(lab.spec)
    zookeeper = KazooClient(lab.spec.zookeeper.connect)
    zookeeper.start()

    def walk(path: str) -> None:
        if path == "/isr_change_notification" or re.fullmatch(r"/brokers/topics/[^/]+/partitions/\d+/state", path):
            return
        _, stat = zookeeper.get(path)
        seen[path] = (stat.mzxid, stat.pzxid)
        for child in zookeeper.get_children(path):
            walk(f"{path.rstrip('/')}/{child}")

    walk("/")
    zookeeper.stop()
    zookeeper.close()
    return seen


def phase(stage: Stage) -> Phase:
    return detect_phase(observe(stage.lab.spec, secrets=stage.lab.secrets)).phase


@pytest.mark.long
def test_a_dry_run_plays_every_step_and_changes_nothing(stage: Stage) -> None:
    before = everything(stage.lab)
    run_id = stage.start(MIGRATION, dry_run=True)
    assert stage.run_to_its_end(MIGRATION, run_id) == "success", stage.failures(MIGRATION, run_id)
    assert everything(stage.lab) == before
    assert {t["state"] for t in stage.client.tasks(MIGRATION, run_id)} == {"success"}
    assert "+zookeeper.metadata.migration.enable=true" in stage.log(
        MIGRATION, run_id, "roll_brokers_to_hybrid.broker_1.restart"
    )
    assert "+process.roles=broker" in stage.log(MIGRATION, run_id, "roll_brokers_to_kraft.broker_1.restart")


@pytest.mark.long
def test_there_is_nothing_to_compare_while_zookeeper_is_the_only_store(stage: Stage) -> None:
    """Every day: test_parity_check and test_parity_tasks."""
    run_id = stage.start(PARITY)
    assert stage.wait(PARITY, run_id, "parity", ENDED) == "skipped"


def test_the_cluster_leaves_zookeeper_with_no_acknowledged_record_lost(stage: Stage, tmp_path: Path) -> None:
    with at_work(stage.lab, tmp_path / "account.json") as workload:
        run_id = stage.start(MIGRATION, soak_minutes=0.1)
        stage.wait(MIGRATION, run_id, "gate_start.approve", {"awaiting_input"})
        a_second_run_is_refused_by_name(stage, run_id)
        stage.client.answer(MIGRATION, run_id, "gate_start.approve", "Approve")
        stage.wait(MIGRATION, run_id, "provision_controllers.controller_101.provision", {"running"})
        break_broker_3(stage.lab)
        a_killed_worker_costs_no_needless_restart(stage, run_id)
        a_broker_that_cant_start_stops_the_roll_and_the_report_names_it(stage, run_id)
        killed = the_active_controller_is_killed_while_a_broker_comes_back_and_nothing_fails(stage, run_id)
        assert stage.run_to_its_end(MIGRATION, run_id) == "success", stage.failures(MIGRATION, run_id)
        workload.send_signal(signal.SIGTERM)
        assert workload.wait(timeout=180) == 0
    assert phase(stage) is Phase.FINALIZED
    account = json.loads((tmp_path / "account.json").read_text())
    assert account["acknowledged"] > 0
    assert (account["lost"], account["duplicated"]) == (0, 0)
    counted = starts(stage.lab.spec)
    assert {b.id: counted[b.service] for b in stage.lab.spec.brokers if b.id != 3} == {1: 3, 2: 3}, (
        "each broker is restarted exactly twice"
    )
    assert counted["broker-3"] >= 4, "and broker 3 in vain, besides"
    assert {c.id: counted[c.service] for c in stage.lab.spec.controllers} == {101: 2, 102: 2, 103: 2} | {killed: 3}, (
        "each controller is started exactly twice, and the one that was killed once more, by hand"
    )
    every_parity_run_matched_and_every_gate_was_signed(stage, run_id)


def a_second_run_is_refused_by_name(stage: Stage, first: str) -> None:
    second = stage.start(MIGRATION)
    assert stage.wait(MIGRATION, second, "preflight.claim_cluster", ENDED) == "failed"
    assert first in stage.log(MIGRATION, second, "preflight.claim_cluster")
    assert stage.wait(MIGRATION, second, "gate_start.prove", ENDED) == "upstream_failed"


def a_killed_worker_costs_no_needless_restart(stage: Stage, run_id: str) -> None:
    restart = "roll_brokers_to_hybrid.broker_2.restart"
    stage.wait(MIGRATION, run_id, restart, {"running"})
    kill_worker_of_playbook(stage, "restart_broker")
    assert stage.wait(MIGRATION, run_id, restart, ENDED) == "failed"
    stage.resume(MIGRATION, run_id, restart)


def meta_properties(lab: Lab) -> Path:
    return Path(lab.spec.broker(3).log_dirs[0]) / "meta.properties"


def break_broker_3(lab: Lab) -> None:
    """Give its log directory to another cluster: the process runs on, and will not start again."""
    file = meta_properties(lab)
    file.with_suffix(".kept").write_text(file.read_text())
    file.write_text("version=0\nbroker.id=3\ncluster.id=another-cluster-0000000\n")


def a_broker_that_cant_start_stops_the_roll_and_the_report_names_it(stage: Stage, run_id: str) -> None:
    restart = "roll_brokers_to_hybrid.broker_3.restart"
    assert stage.wait(MIGRATION, run_id, restart, ENDED) == "failed"
    assert stage.wait(MIGRATION, run_id, "closing_report", ENDED) == "failed"
    told = stage.log(MIGRATION, run_id, "closing_report")
    assert restart in told
    assert "PRE_MIGRATION" in told
    file = meta_properties(stage.lab)
    file.with_suffix(".kept").replace(file)
    stage.resume(MIGRATION, run_id, restart)


def the_active_controller_is_killed_while_a_broker_comes_back_and_nothing_fails(stage: Stage, run_id: str) -> int:
    """The last broker, in KRaft mode; the controller is started again five seconds later. Returns which one it was."""
    spec, roll = stage.lab.spec, "roll_brokers_to_kraft"
    stage.run_until(MIGRATION, run_id, f"{roll}.broker_2.in_sync", {"success"})
    before = starts(spec)["broker-3"]
    by_hand.wait_until("broker 3 starts again", lambda: starts(spec)["broker-3"] > before)
    active = describe_quorum(spec, secrets=stage.lab.secrets).leader_id
    here, service = layout(spec), spec.controller(active).service
    os.kill(supervision.processes(here)[service].pid, signal.SIGKILL)
    assert stage.task(MIGRATION, run_id, f"{roll}.broker_3.in_sync")["state"] != "success", "the fault came too late"
    time.sleep(5)
    supervision.start(here, service)
    ended = stage.wait(MIGRATION, run_id, f"{roll}.broker_3.in_sync", ENDED)
    assert ended == "success", stage.failures(MIGRATION, run_id)
    return active


def every_parity_run_matched_and_every_gate_was_signed(stage: Stage, run_id: str) -> None:
    for task in ("parity_in_hybrid", "parity_in_dual_write", "soak", "gate_finalize.parity_again"):
        assert stage.client.xcom(MIGRATION, run_id, task)["verdict"] == "MATCH"
    for gate in ("start", "dual_write", "finalize"):
        proven = stage.client.xcom(MIGRATION, run_id, f"gate_{gate}.prove")[-1]["digest"]
        assert stage.client.xcom(MIGRATION, run_id, f"gate_{gate}.approve")["proof_digest"] == proven
    records = read_records(stage.airflow.home / "kraft-runbook" / "evidence", run_file_name(MIGRATION, run_id))
    outcomes = [r.body["outcome"] for r in records]
    assert outcomes.count("approved") == 3
    assert outcomes[-1] == "closed"


def test_after_finalization_parity_compares_with_the_last_proven_state(stage: Stage) -> None:
    run_id = stage.start(PARITY)
    assert stage.wait(PARITY, run_id, "parity", ENDED) == "success", stage.failures(PARITY, run_id)
    assert "baseline" in stage.log(PARITY, run_id, "parity")


def test_the_command_line_says_where_a_finalized_cluster_stands(stage: Stage) -> None:
    told = stage.command("explain", "--cluster", "lab")
    assert told.returncode == 0, told.stderr
    assert "FINALIZED" in told.stdout


def test_no_secret_reached_a_log_an_xcom_or_an_artifact(stage: Stage) -> None:
    secrets = [
        v.encode()
        for k, v in stage.lab.environment.items()
        if k in {"KRB_LAB_PASSWORD_ENCODER_SECRET", "KRB_LAB_TOKEN_SECRET"}
    ]
    assert len(secrets) == 2
    leaks = [str(f) for f in stage.airflow.home.rglob("*") if f.is_file() and any(s in f.read_bytes() for s in secrets)]
    assert leaks == []
