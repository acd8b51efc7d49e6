"""``make demo``: a real cluster leaves ZooKeeper under a real Airflow while a workload runs, and every record is
accounted for.

``python -m lab.demo run [--approve auto] [--soak-minutes M]`` and ``python -m lab.demo down``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kraft_runbook.cli.evidence_command import show_evidence
from kraft_runbook.cluster.observation import was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kinds import Workload
from kraft_runbook.evidence.store import append_record, run_name
from kraft_runbook.procedures.observe import observe
from lab import lifecycle
from lab.airflow_client import AirflowClient
from lab.airflow_standalone import USER, Airflow
from lab.clients import lab_secrets
from lab.demo_command import command
from lab.demo_report import render, summarize
from lab.layout import ROOT, environment, in_words, load, starts
from lab.seed import seed

DAG = "zk_to_kraft_migration__lab"
ENDED = frozenset({"success", "failed"})
BUILD = ROOT / "build"


def demo_airflow() -> Airflow:
    """The demo's Airflow, in build/airflow; ``KRB_AIRFLOW_PORT`` moves it."""
    return Airflow(home=BUILD / "airflow", host="127.0.0.1", port=int(os.environ.get("KRB_AIRFLOW_PORT", "8080")))


def run(*, approve_automatically: bool, soak_minutes: float, say: Callable[[str], None]) -> int:
    """The whole demo. Exit code 0 only where FINALIZED was observed, every gate matched and no record was lost."""
    began = time.time()
    spec = load()
    airflow = demo_airflow()
    clean_up(purge=True, say=say)
    airflow.require_port()
    say(f"starting the lab: {in_words(spec)}")
    lifecycle.up(spec, say=say)
    seed(spec)
    say("starting Airflow")
    airflow.start(environment(spec), say=say)
    workload = start_workload(spec)
    try:
        client = airflow.client(patience=None, say=say)
        client.wait_for_dag(DAG)
        run_id = client.trigger(DAG, {"soak_minutes": soak_minutes})
        say(f"Airflow is at {airflow.url}/dags/{DAG}/runs/{run_id}  (user {USER}, password {airflow.password()})")
        say(
            "the gates are answered by this program, by the REST call that a click makes"
            if approve_automatically
            else "answer the gates there, under Required Actions"
        )
        state = follow(client, run_id, approve_automatically=approve_automatically, say=say, began=began)
        account = stop_workload(workload, say=say)
    finally:
        if workload.poll() is None:
            workload.kill()
            workload.wait()
    report = summarize(
        client,
        DAG,
        run_id,
        state=state,
        phase=observed_phase(spec),
        starts=starts(spec),
        workload=account,
        seconds=time.time() - began,
    )
    file = BUILD / "demo-report.json"
    file.write_text(json.dumps(report, indent=1))
    say(render(report))
    page = write_evidence(airflow, spec, run_id, account)
    say(f"the run's evidence: {page.relative_to(ROOT)}")
    say(f"written to {file.relative_to(ROOT)}; the cluster and Airflow stay up for a look, `make demo-down` ends them")
    return 0 if report["passed"] else 1


def clean_up(*, purge: bool, say: Callable[[str], None]) -> None:
    """End what a former demo left running; ``purge`` removes its data too, so that the demo starts from nothing."""
    end_workloads()
    airflow = demo_airflow()
    airflow.stop()
    lifecycle.down(load(), purge=purge, say=say)
    if purge and airflow.home.exists():
        subprocess.run(["rm", "-rf", "--", str(airflow.home)], check=True)


def end_workloads(at: Path | None = None) -> None:
    """End the workloads that a killed demo left running."""
    for pid in _workloads(at):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _workloads(at: Path | None = None) -> list[int]:
    """The workloads of a demo of this checkout that still run: that demo was killed, and could not end its own."""
    report = str((at or BUILD) / "workload.json")
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # gone meanwhile, or another user's
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if "workload" in words and report in words:
                found.append(int(process.name))
    return found


def start_workload(
    spec: ClusterSpec, at: Path | None = None, further: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Producers and consumers that run until they are told to stop. ``at``: where their account goes; ``further``:
    what leads them to another lab than the usual.
    """
    directory = at or BUILD
    directory.mkdir(exist_ok=True)
    (directory / "workload.json").unlink(missing_ok=True)
    with (directory / "workload.log").open("wb") as log:
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "lab",
                "workload",
                "--report",
                str(directory / "workload.json"),
                "--status",
                str(directory / "workload.status"),
            ],
            cwd=ROOT,
            env={**os.environ, **(further or {}), **environment(spec)},
            stdout=log,
            stderr=log,
        )


def write_evidence(
    airflow: Airflow,
    spec: ClusterSpec,
    run_id: str,
    account: Mapping[str, Any] | None,
    *,
    dag_id: str = DAG,
    page: Path | None = None,
) -> Path:
    """Add the workload's account to the run's evidence, and render all of it as the page that a person would file."""
    directory, run = airflow.home / "kraft-runbook" / "evidence", run_name(dag_id, run_id)
    append_record(
        directory,
        run,
        {
            "cluster": spec.name,
            "dag": dag_id,
            "run": run_id,
            "task": "workload",
            **Workload(values=account or {}).body(),
        },
    )
    page = page or BUILD / "demo-evidence.html"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        show_evidence(run, directory, anchor="", html=page, as_json=False)
    return page


def stop_workload(
    process: subprocess.Popen[bytes], at: Path | None = None, *, say: Callable[[str], None]
) -> dict[str, Any] | None:
    """Stop producing, let it read everything back, and return its account; None where it left none."""
    say("stopping the workload; it reads every record back")
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=180)
    except subprocess.TimeoutExpired:
        say(f"the workload did not end within 180 s: see {at or BUILD}/workload.log")
    file = (at or BUILD) / "workload.json"
    return json.loads(file.read_text()) if file.exists() else None


def follow(
    client: AirflowClient,
    run_id: str,
    *,
    approve_automatically: bool,
    say: Callable[[str], None],
    began: float,
    dag_id: str = DAG,
    at_gate: Callable[[], None] | None = None,
) -> str:
    """Print each task as it goes, who is waited for, and each gate; returns the run's final state. ``at_gate``: what is
    shown there besides.
    """
    known: dict[str, str | None] = {}
    waited: dict[str, str] = {}
    asked: set[str] = set()

    def tell(text: str) -> None:
        say(f"{time.time() - began:6.1f} s  {text}")

    while True:
        state = client.run_state(dag_id, run_id)
        for task in sorted(client.tasks(dag_id, run_id), key=lambda t: t["start_date"] or "~"):
            name, now = task["task_id"], task["state"]
            if known.get(name) != now:
                known[name] = now
                if now not in (None, "scheduled", "queued", "deferred"):
                    tell(f"{name:<55} {now}")
            if now == "deferred":
                _say_who_is_waited_for(client, dag_id, run_id, task, waited, tell)
            if now == "awaiting_input" and name not in asked:
                asked.add(name)
                shown = client.gate(dag_id, run_id, name)
                tell(f"GATE  {shown['subject']}")
                if at_gate is not None:
                    at_gate()
                if approve_automatically:
                    client.answer(dag_id, run_id, name, "Approve")
        if state in ENDED:
            return state
        time.sleep(1)  # each look costs the API server 0.07 cpu-seconds, of two cores that the migration has


def _say_who_is_waited_for(
    client: AirflowClient,
    dag_id: str,
    run_id: str,
    task: Mapping[str, Any],
    waited: dict[str, str],
    tell: Callable[[str], None],
) -> None:
    lines = [
        line for line in client.log_lines(dag_id, run_id, task["task_id"], task["try_number"]) if "waiting for" in line
    ]
    if lines and waited.get(task["task_id"]) != lines[-1]:
        waited[task["task_id"]] = lines[-1]
        tell(f"{task['task_id']:<55} {lines[-1]}")


def observed_phase(spec: ClusterSpec) -> Phase:
    """The phase as the cluster shows it now, not as the run believes."""
    seen = observe(spec, secrets=lab_secrets(spec))
    reading = detect_phase(seen)
    if reading.phase is Phase.FINALIZED and not all(
        b.running is True and was_read(b.mode) for b in seen.brokers.values()
    ):
        return Phase.UNKNOWN
    return reading.phase


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.demo", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    go = commands.add_parser("run")
    go.add_argument(
        "--approve",
        choices=("auto", ""),
        default="",
        help="auto: answer the gates by REST; otherwise a person answers them in the UI",
    )
    go.add_argument("--soak-minutes", type=float, default=0.25)
    commands.add_parser("down")
    options = parser.parse_args(arguments)

    def does(say: Callable[[str], None]) -> int:
        if options.command == "down":
            clean_up(purge=True, say=say)
            return 0
        return run(approve_automatically=options.approve == "auto", soak_minutes=options.soak_minutes, say=say)

    stays = "what runs of the lab and of Airflow stays for a look; `make demo-down` ends it, `make demo` begins anew"
    return command(does, then=stays if options.command == "run" else "")


if __name__ == "__main__":
    sys.exit(main())
