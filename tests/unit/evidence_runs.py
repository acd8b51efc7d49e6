"""A whole run's evidence, as its tasks write it: forward to FINALIZED with one failure on the way, or back to
ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from observations import SPEC, observation

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.evidence.record import EvidenceRecord, make_record
from kraft_runbook.gates.proof import ParitySummary, make_proof
from kraft_runbook.metadata.canonical_rows import Kind
from kraft_runbook.migration.checks import CheckResult, Severity, Verdict
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.migration.way_back import rollback_plan
from kraft_runbook.parity import parity_report
from kraft_runbook.parity.parity_report import KindCount, Obstacle, ParityReport

START = datetime(2026, 3, 4, 9, 58, 12, tzinfo=UTC)
STOP, GO = (
    "Stop the service if its process is older than its files",
    "Start the service if it does not run, and wait for its port",
)
CHECKS = tuple(
    CheckResult(
        f"KRB-PRE-0{n:02}", f"Check number {n} holds", Severity.BLOCKING, Verdict.PASS, f"seen: {n} of {n}", "do this"
    )
    for n in range(1, 13)
)
COUNTS = tuple(
    KindCount(kind.value, 3 * n + 501 * (kind is Kind.PARTITION_STATE))
    for n, kind in enumerate(Kind, 1)
    if kind is not Kind.UNREADABLE
)


class Run:
    """Records of one run, written at made-up times. ``clock`` is the time of the next."""

    def __init__(self, dag: str = "zk_to_kraft_migration__lab") -> None:
        self.dag = dag
        self.clock = START
        self.records: list[EvidenceRecord] = []

    def write(self, task: str, outcome: str, what: Mapping[str, Any], *, after: float = 1.0) -> None:
        """One record, ``after`` seconds after the last."""
        self.clock += timedelta(seconds=after)
        body = {
            "cluster": "lab",
            "dag": self.dag,
            "run": "manual__2026-03-04T09:58:12+00:00",
            "task": task,
            "outcome": outcome,
            **what,
        }
        self.records.append(make_record(self.records[-1] if self.records else None, body, at=self.clock))

    def play(self, task: str, step: str, node: int, phase: Phase, changed: list[str], seconds: float) -> None:
        began = self.clock + timedelta(seconds=1)
        what = {
            "phase": phase.value,
            "step": step,
            "node_id": node,
            "changed": changed,
            "restarted": STOP in changed,
            "seconds": seconds,
        }
        what |= {"began_at": began, "ended_at": began + timedelta(seconds=seconds)}
        self.write(task, "played", what, after=seconds + 1.2)

    def wait(self, task: str, condition: str, node: int | None, seconds: float) -> None:
        what = {"condition": condition, "node_id": node, "began_at": self.clock, "seconds": seconds, "error": ""}
        self.write(task, "reached", what, after=seconds)

    def compare(
        self, task: str, phase: Phase, offset: int, verdict: parity_report.Verdict = parity_report.Verdict.MATCH
    ) -> ParityReport:
        began = self.clock + timedelta(seconds=4)
        obstacles = (
            ()
            if verdict is parity_report.Verdict.MATCH
            else (Obstacle("the log does not reach back to offset 7", "run it again"),)
        )
        fields = {
            "counts": COUNTS,
            "samples": (),
            "obstacles": obstacles,
            "against": "ZooKeeper",
            "migration_epoch": 3,
            "leader_id": 102,
            "leader_epoch": 3,
        }
        times = {"started_at": began, "finished_at": began + timedelta(seconds=6)}
        report = ParityReport(
            cluster="lab", verdict=verdict, migration_offset=offset, end_offset=offset + 9, rounds=1, **fields, **times
        )
        what = {
            "verdict": verdict.value,
            "digest": report.digest,
            "offset": offset,
            "report": f"{task}.json",
            "phase": phase.value,
        }
        self.write(task, "compared", {**report.to_dict(), **what}, after=12)
        return report

    def gate(self, gate: Gate, phase: Phase, parity: ParityReport | None, *, thinks: float, by: str) -> None:
        summary = (
            ParitySummary(parity.verdict, parity.digest, parity.offset, parity.finished_at.isoformat(), "| kind |")
            if parity
            else None
        )
        seen = observation(phase)
        proof = make_proof(
            gate, seen, SPEC, checks=CHECKS, parity=summary, rollback=rollback_plan(phase), made_at=self.clock
        )
        what = {
            "gate": gate.value,
            "digest": proof.digest,
            "phase": phase.value,
            "parity": parity.digest if parity else None,
            "proof": proof.to_dict(),
        }
        self.write(f"gate_{gate.value}.prove", "proven", what, after=4)
        answered = self.clock + timedelta(seconds=thinks)
        bound = {
            "gate": gate.value,
            "digest": proof.digest,
            "task_instance": f"instance-{len(self.records)}",
            "try_number": 1,
        }
        signed = {"by": by, "by_id": "17", "answered_at": answered, "task_instance": bound["task_instance"]}
        self.write(f"gate_{gate.value}.approve", "asked", {**bound, "number": 1, "needed": 1}, after=0)
        self.write(f"gate_{gate.value}.approve", "approved", {**bound, **signed}, after=thinks + 1)
        confirmed = {"gate": gate.value, "digest": proof.digest, "phase": phase.value, "signatures": [signed]}
        self.write(f"gate_{gate.value}.confirm", "confirmed", confirmed, after=3)


def forward() -> Run:
    """A migration in which broker 3 did not start at first."""
    run = Run()
    checks = {"verdict": "PASS", "results": [c.to_dict() for c in CHECKS]}
    run.write("preflight.checks", "checked", {"phase": "ZOOKEEPER", "checks": checks}, after=0)
    run.gate(Gate.START, Phase.ZOOKEEPER, None, thinks=95, by="maria")
    for node in (101, 102, 103):
        changed = ["Write the configuration", "Format the log directory with the cluster's id", GO]
        run.play(
            f"provision_controllers.controller_{node}.provision",
            "provision_controllers",
            node,
            Phase.ZOOKEEPER,
            changed,
            6.2,
        )
    run.wait("provision_controllers.quorum_ready", "quorum_ready", None, 1.7)
    for node in (1, 2, 3):
        task = f"roll_brokers_to_hybrid.broker_{node}"
        if node == 3:
            run.write(
                f"{task}.restart",
                "failed",
                {"error": "broker-3 does not stay up:\n    bad cluster.id\n  What to do: correct what the log names"},
                after=9,
            )
            run.write(
                "closing_report",
                "closed",
                {"phase": "PRE_MIGRATION", "succeeded": False, "failed": [f"{task}.restart"], "brokers_in_kraft": 0},
            )
            run.clock += timedelta(seconds=60)
        run.play(
            f"{task}.restart",
            "roll_brokers_to_hybrid",
            node,
            Phase.PRE_MIGRATION,
            ["Write the configuration", STOP, GO],
            6.9,
        )
        run.wait(f"{task}.in_sync", "broker_registered_as_migrating", node, 1.7)
        run.wait(f"{task}.in_sync", "broker_in_sync", node, 2.5)
    run.wait("await_metadata_copy", "metadata_copied", None, 5.1)
    parity = run.compare("parity_in_hybrid", Phase.HYBRID, 640)
    run.gate(Gate.DUAL_WRITE, Phase.HYBRID, parity, thinks=40, by="maria")
    for node in (1, 2, 3):
        task = f"roll_brokers_to_kraft.broker_{node}"
        phase = Phase.HYBRID if node == 1 else Phase.DUAL_WRITE
        run.play(f"{task}.restart", "roll_brokers_to_kraft", node, phase, ["Write the configuration", STOP, GO], 8.8)
        run.wait(f"{task}.in_sync", "broker_registered_in_kraft", node, 1.4)
        run.wait(f"{task}.in_sync", "broker_in_sync", node, 2.1)
    run.compare("parity_in_dual_write", Phase.DUAL_WRITE, 977)
    run.clock += timedelta(seconds=60)
    soaked = run.compare("soak", Phase.DUAL_WRITE, 1102)
    run.gate(Gate.FINALIZE, Phase.DUAL_WRITE, soaked, thinks=70, by="jon")
    run.compare("gate_finalize.parity_again", Phase.DUAL_WRITE, 1260)
    for node in (101, 103, 102):
        run.play(
            f"finalize_controllers.controller_{node}.restart",
            "finalize_controllers",
            node,
            Phase.DUAL_WRITE,
            ["Write the configuration", STOP, GO],
            7.1,
        )
    run.write(
        "closing_report", "closed", {"phase": "FINALIZED", "succeeded": True, "failed": [], "brokers_in_kraft": 3}
    )
    account = {
        "acknowledged": 20123,
        "read_back": 20123,
        "lost": 0,
        "duplicated": 0,
        "longest_producer_stall_seconds": 2.31,
        "problems": [],
    }
    run.write("workload", "workload", account)
    return run


def back() -> Run:
    """A rollback from HYBRID."""
    run = Run("zk_to_kraft_rollback__lab")
    run.compare("parity", Phase.HYBRID, 700)
    fenced = run.clock + timedelta(seconds=5)
    after = {
        "ready_at": -3.1,
        "caught_up_at": -0.2,
        "fenced_at": 0.0,
        "drained_at": 0.31,
        "proven_at": 0.52,
        "stopped_at": 0.7,
        "deleted_at": 0.74,
        "elected_at": 0.79,
        "known_at": 1.42,
    }
    what = {name: fenced + timedelta(seconds=s) for name, s in after.items()}
    run.write(
        "leave_kraft",
        "left_kraft",
        {
            **what,
            "window_seconds": 1.42,
            "migration_offset": 755,
            "high_watermark": 756,
            "touched_keys": 31,
            "raised": ["orders-1 (version 7, epoch 11)"],
            "phase": "HYBRID",
        },
        after=9,
    )
    run.write("closing_report", "closed", {"phase": "ZOOKEEPER", "succeeded": True, "failed": []})
    return run
