"""``python -m lab.demo_reassign run|down``: broker 4 joins and the cluster is evened out, broker 1 is drained, all is
put back; each by a run of the DAGs under a real Airflow, on a cluster of four brokers in two racks, while producers and
consumers work. Every record is accounted for.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.kafka.assignment_seen import assignment_seen
from lab import lifecycle
from lab.airflow_client import AirflowClient
from lab.airflow_standalone import USER, Airflow
from lab.clients import lab_secrets
from lab.cluster_file import write_cluster_file
from lab.demo import end_workloads, follow, start_workload, stop_workload, write_evidence
from lab.demo_command import Say, command
from lab.health import admin
from lab.layout import ROOT, environment, in_words, load
from lab.workload import PLAIN, TRANSACTIONS

HOME = ROOT / "build" / "demo-reassign"
RACKS = ("rack-a", "rack-b", "rack-a", "rack-b")
LISTS = ((1, 2), (2, 3), (3, 2), (2, 1))
"""Where the demo's partitions lie at first: broker 4 holds none."""
ORDERS, RECORDS, RECORD = "orders", 200, b"x" * 10_000
TOPICS = {ORDERS: 24, PLAIN: 12, TRANSACTIONS: 4}
"""The demo's topics and their partitions; the workload writes to the last two."""
THROTTLE_MB = 20
REASSIGN, RESTORE = "reassign_partitions__lab", "restore_assignment__lab"


def place() -> dict[str, str]:
    """Where this demo's lab is: beside the lab of others."""
    return {
        "KRB_LAB_DIR": str(HOME / "lab"),
        "KRB_LAB_NET": os.environ.get("KRB_DEMO_NET", "127.40.0"),
        "KRB_LAB_CLUSTERS": str(HOME / "clusters"),
        "KRAFT_RUNBOOK_CLUSTERS": str(HOME / "clusters"),
    }


def airflow_of_demo() -> Airflow:
    return Airflow(HOME / "airflow", "127.0.0.1", int(os.environ.get("KRB_AIRFLOW_PORT", "8080")))


def run(*, approve: bool, say: Say = print) -> int:
    """The whole demo. 0 where every run reached its goal and no acknowledged record was lost. Raises RunbookError."""
    began = time.time()
    down(say=say)
    airflow = airflow_of_demo()
    airflow.require_port()
    write_cluster_file(HOME / "clusters", racks=RACKS)
    spec = load({**os.environ, **place()})
    say(f"starting the lab: {in_words(spec)}")
    lifecycle.up(spec, say=say)
    fill(spec)
    say("starting Airflow")
    airflow.start({**place(), **environment(spec)}, say=say)
    workload = start_workload(spec, HOME, place())
    seconds: dict[str, float] = {}
    try:
        client = airflow.client(patience=None, say=say)
        say(f"Airflow is at {airflow.url}  (user {USER}, password {airflow.password()})")
        say("the gates are answered by this program" if approve else "answer the gates there, under Required Actions")
        counted = {"at first": replicas(spec)}
        runs: list[tuple[str, str, str]] = []

        def step(title: str, dag_id: str, form: Mapping[str, Any]) -> str:
            say(f"\n--- {len(runs) + 1}. {title}")
            started = time.time()
            run_id, name = carry_out(client, dag_id, form, approve=approve, say=say, began=began)
            runs.append((title, dag_id, run_id))
            seconds[title], counted[title] = time.time() - started, replicas(spec)
            return name

        first = step("broker 4 joins, all is evened out", REASSIGN, {"goal": "add brokers", "brokers": "4"})
        step("broker 1 is drained", REASSIGN, {"goal": "drain brokers", "brokers": "1"})
        step("all is put back", RESTORE, {"run": first})
        say("")
        account = stop_workload(workload, HOME, say=say)
    finally:
        if workload.poll() is None:
            workload.kill()
            workload.wait()
    (drawn,) = (airflow.home / "kraft-runbook" / "reassignments" / first).glob("preview-????????????????.svg")
    shutil.copyfile(drawn, HOME / "preview.svg")
    pages = [
        write_evidence(airflow, spec, run_id, account, dag_id=dag_id, page=HOME / f"evidence-{number}.html")
        for number, (_, dag_id, run_id) in enumerate(runs, 1)
    ]
    verdicts = judged(counted, account)
    say(rendered(counted, seconds, account, verdicts))
    say(f"\na picture of the first plan: {(HOME / 'preview.svg').relative_to(ROOT)}")
    say(f"the runs' evidence: {', '.join(str(page.relative_to(ROOT)) for page in pages)}")
    say("the cluster and Airflow stay up for a look, `make demo-reassign-down` ends them")
    report = {"passed": all(verdicts.values()), "verdicts": verdicts, "replicas": counted, "seconds": seconds}
    (HOME / "report.json").write_text(json.dumps({**report, "workload": account}, indent=1))
    say(f"\n{time.time() - began:.0f} s: {'PASSED' if report['passed'] else 'NOT PASSED'}")
    return 0 if report["passed"] else 1


def fill(spec: ClusterSpec) -> None:
    """The demo's topics on the first three brokers, one of them with data."""
    client = admin(spec)  # its requests end with it
    made = client.create_topics(
        [
            NewTopic(
                name,
                count,
                replica_assignment=[list(LISTS[number % len(LISTS)]) for number in range(count)],
                config={"min.insync.replicas": "1"},
            )
            for name, count in TOPICS.items()
        ]
    )
    for each in made.values():
        each.result(60)
    producer = Producer({"bootstrap.servers": ",".join(spec.bootstrap_servers), "acks": "all", "linger.ms": 20})
    for number in range(RECORDS):
        for partition in range(TOPICS[ORDERS]):
            producer.produce(ORDERS, RECORD, str(number), partition)
        producer.poll(0)
    producer.flush(120)


def carry_out(
    client: AirflowClient, dag_id: str, form: Mapping[str, Any], *, approve: bool, say: Say, began: float
) -> tuple[str, str]:
    """One run to its end; returns its id and its name. Raises RunbookError where it fails."""
    client.wait_for_dag(dag_id)
    run_id = client.trigger(dag_id, {"throttle_mb": THROTTLE_MB, "topics": " ".join(TOPICS), **form})
    say(f"{dag_id}  {'  '.join(f'{key}={value}' for key, value in form.items())}")

    def preview() -> None:
        say("\n" + "\n".join(part_of(client.log_lines(dag_id, run_id, "plan", 1), "goal: ", "A picture")) + "\n")

    state = follow(client, run_id, approve_automatically=approve, say=say, began=began, dag_id=dag_id, at_gate=preview)
    if state != "success":
        raise RunbookError(
            f"run {run_id} of {dag_id} ended as {state}", way_out="read the failed task's log in Airflow"
        )
    told = client.log_lines(dag_id, run_id, "carry_out.compare_assignment", 1)
    say(next((line for line in reversed(told) if "compared with the plan" in line), ""))
    return run_id, str(client.xcom(dag_id, run_id, "closing_report")["run"])


def part_of(lines: Sequence[str], first: str, last: str) -> list[str]:
    """The lines from the one that begins with ``first`` to the one before ``last``."""
    text = "\n".join(lines).split("\n")
    start = next((at for at, line in enumerate(text) if line.startswith(first)), len(text))
    end = next((at for at in range(start, len(text)) if text[at].startswith(last)), len(text))
    return text[start:end]


def judged(counted: Mapping[str, Mapping[int, int]], account: Mapping[str, Any] | None) -> dict[str, bool]:
    """What the demo claims. ``counted``: the replicas of each broker at first and after each run, in order."""
    at_first, joined, drained, back = counted.values()
    return {
        "broker 4 got its share": not at_first.get(4) and len(set(joined.values())) == 1,
        "broker 1 was drained": not drained.get(1),
        "everything is where it was": back == at_first,
        "no acknowledged record was lost": account is not None and account["lost"] == 0 and account["acknowledged"] > 0,
        "no record was duplicated": account is not None and account["duplicated"] == 0,
    }


def rendered(
    counted: Mapping[str, Mapping[int, int]],
    seconds: Mapping[str, float],
    account: Mapping[str, Any] | None,
    verdicts: Mapping[str, bool],
) -> str:
    """For a terminal: replicas of the demo's topics after each run, the workload's account, and what was claimed."""
    brokers = range(1, len(RACKS) + 1)
    lines = [
        "",
        f"{'replicas of the demo':<36}" + "".join(f"{f'broker {b}':>10}" for b in brokers) + f"{'seconds':>10}",
    ]
    for at, of in counted.items():
        took = f"{seconds[at]:>10.0f}" if at in seconds else ""
        lines.append(f"{at:<36}" + "".join(f"{of.get(b, 0):>10}" for b in brokers) + took)
    if account:
        names = ("acknowledged", "read_back", "lost", "duplicated", "failed")
        stalls = ("longest_producer_stall_seconds", "longest_consumer_stall_seconds")
        lines += ["", "workload all the while:"]
        lines += [f"  {name.replace('_', ' '):<34}{account[name]:>10}" for name in (*names, *stalls)]
    return "\n".join([*lines, "", *(f"{'yes' if held else 'NO ':<5}{claim}" for claim, held in verdicts.items())])


def replicas(spec: ClusterSpec) -> dict[int, int]:
    """How many replicas of the demo's topics each broker holds."""
    secrets = lab_secrets(spec)
    counted: dict[int, int] = {}
    for partition, seen in assignment_seen(spec, secrets=secrets).partitions.items():
        for broker in seen.replicas if partition.topic in TOPICS else ():
            counted[broker] = counted.get(broker, 0) + 1
    return counted


def down(*, say: Callable[[str], None] = print) -> None:
    """End what a former demo left running, and remove it."""
    end_workloads(HOME)
    airflow_of_demo().stop()
    if Path(HOME, "clusters", "lab.yaml").exists():
        lifecycle.down(load({**os.environ, **place()}), purge=True, say=say)
    shutil.rmtree(HOME, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "down"])
    parser.add_argument("--approve", default="", help="auto: this program answers the gates")
    options = parser.parse_args()

    def does(say: Say) -> int:
        if options.what == "run":
            return run(approve=options.approve == "auto", say=say)
        down(say=say)
        return 0

    return command(does, ends="make demo-reassign-down")


if __name__ == "__main__":
    sys.exit(main())
