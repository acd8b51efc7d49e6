"""What the demo proves, in one table and one JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.parity.parity_report import Verdict
from lab.airflow_client import AirflowClient

FORWARD = (Gate.START, Gate.DUAL_WRITE, Gate.FINALIZE)
"""The gates of the migration's DAG."""


def summarize(
    client: AirflowClient,
    dag_id: str,
    run_id: str,
    *,
    state: str,
    phase: Phase,
    starts: Mapping[str, int],
    workload: Mapping[str, Any] | None,
    seconds: float,
) -> dict[str, Any]:
    """Join what Airflow, the lab and the workload say. ``passed`` only where all of ``verdicts`` hold."""
    tasks = [t for t in client.tasks(dag_id, run_id) if t["start_date"] and t["end_date"]]
    tasks.sort(key=lambda t: t["start_date"])
    gates = {gate.value: _gate(client, dag_id, run_id, gate) for gate in FORWARD}
    parity = {
        name: client.xcom(dag_id, run_id, name)
        for name in ("parity_in_hybrid", "parity_in_dual_write", "soak", "gate_finalize.parity_again")
    }
    brokers = {service: count for service, count in starts.items() if service.startswith("broker")}
    controllers = {service: count for service, count in starts.items() if service.startswith("controller")}
    verdicts = {
        "the run succeeded": state == "success",
        "FINALIZED was observed": phase is Phase.FINALIZED,
        "every gate was signed on its proof": all(
            g["digest"] and g["digest"] == g["signed_digest"] for g in gates.values()
        ),
        "every parity run was a MATCH": all(p and p["verdict"] == Verdict.MATCH for p in parity.values()),
        "no acknowledged record was lost": (
            workload is not None and workload["lost"] == 0 and workload["acknowledged"] > 0
        ),
        "no record was duplicated": workload is not None and workload["duplicated"] == 0,
        "each broker was restarted exactly twice": set(brokers.values()) == {3},
        "each controller was started exactly twice": set(controllers.values()) == {2},
    }
    first, last = _time(tasks[0]["start_date"]), max(_time(t["end_date"]) for t in tasks)
    return {
        "passed": all(verdicts.values()),
        "verdicts": verdicts,
        "phase": phase.value,
        "run": {"dag_id": dag_id, "run_id": run_id, "state": state},
        "seconds": {"all": round(seconds, 1), "migration": round((last - first).total_seconds(), 1)},
        "steps": [
            {
                "task": t["task_id"],
                "state": t["state"],
                "seconds": round((_time(t["end_date"]) - _time(t["start_date"])).total_seconds(), 1),
            }
            for t in tasks
        ],
        "gates": gates,
        "parity": {
            name: {k: p[k] for k in ("verdict", "digest", "offset")} if p else None for name, p in parity.items()
        },
        "starts": dict(starts),
        "workload": dict(workload) if workload else None,
    }


def _gate(client: AirflowClient, dag_id: str, run_id: str, gate: Gate) -> dict[str, Any]:
    proven = (client.xcom(dag_id, run_id, f"gate_{gate.value}.prove") or [{}])[-1]
    signed = client.xcom(dag_id, run_id, f"gate_{gate.value}.approve") or {}
    return {
        "digest": proven.get("digest"),
        "signed_digest": signed.get("proof_digest"),
        "approved_by": signed.get("approved_by"),
        "approved_at": signed.get("approved_at"),
    }


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def render(report: Mapping[str, Any]) -> str:
    """The report for a terminal."""
    lines = ["", f"{'step':<58}{'seconds':>9}  state"]
    lines += [f"{s['task']:<58}{s['seconds']:>9.1f}  {s['state']}" for s in report["steps"]]
    lines += ["", f"{'gate':<14}{'approved by':<14}proof digest"]
    lines += [f"{name:<14}{g['approved_by'] or '-':<14}{g['digest'] or '-'}" for name, g in report["gates"].items()]
    lines += ["", "process starts: " + ", ".join(f"{service} {count}" for service, count in report["starts"].items())]
    account = report["workload"]
    if account:
        names = (
            "acknowledged",
            "read_back",
            "lost",
            "duplicated",
            "failed",
            "longest_producer_stall_seconds",
            "longest_consumer_stall_seconds",
        )
        lines += ["", "workload:"] + [
            f"  {name.replace('_', ' '):<34}{account[name]}" for name in names if name in account
        ]
    lines += [""] + [f"{'yes' if held else 'NO ':<5}{verdict}" for verdict, held in report["verdicts"].items()]
    lines += [
        "",
        (
            f"migration {report['seconds']['migration']} s, all in all {report['seconds']['all']} s:"
            f" {'PASSED' if report['passed'] else 'NOT PASSED'}"
        ),
    ]
    return "\n".join(lines)
