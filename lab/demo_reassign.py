"""``python -m lab.demo_reassign run|down``: broker 4 joins, the cluster is evened out, broker 1 is drained, all is put
back; each by a run of the DAGs under a real Airflow, on a cluster of four brokers in two racks.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.kafka.assignment_seen import assignment_seen
from kraft_runbook.io.secrets import environment_secrets
from lab import lifecycle
from lab.airflow_standalone import USER, Airflow, AirflowClient
from lab.cluster_file import write_cluster_file
from lab.health import admin
from lab.layout import ROOT, environment, load

HOME = ROOT / "build" / "demo-reassign"
RACKS = ("rack-a", "rack-b", "rack-a", "rack-b")
LISTS = ((1, 2), (2, 3), (3, 2), (2, 1))
"""Where the demo's partitions lie at first: broker 4 holds none."""
PARTITIONS, RECORDS, RECORD = 24, 200, b"x" * 10_000
REASSIGN, RESTORE = "reassign_partitions__lab", "restore_assignment__lab"
ENDED = frozenset({"success", "failed"})


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


def run(*, approve: bool, say: Callable[[str], None] = print) -> int:
    """The whole demo; 0 where every run reached its goal. Raises RunbookError."""
    down(say=say)
    write_cluster_file(HOME / "clusters", racks=RACKS)
    spec = load({**os.environ, **place()})
    lifecycle.up(spec, say=say)
    fill(spec)
    airflow = airflow_of_demo()
    airflow.start({**place(), **environment(spec)})
    client = airflow.client(patience=None, say=say)
    counted = {"at first": replicas(spec)}
    first = carry_out(client, airflow, REASSIGN, {"goal": "add brokers", "brokers": "4"}, approve=approve, say=say)
    counted["broker 4 has its share"] = replicas(spec)
    carry_out(client, airflow, REASSIGN, {"goal": "drain brokers", "brokers": "1"}, approve=approve, say=say)
    counted["broker 1 is drained"] = replicas(spec)
    carry_out(client, airflow, RESTORE, {"run": first}, approve=approve, say=say)
    counted["all is put back"] = replicas(spec)
    say(table(counted))
    picture = HOME / "preview.svg"
    (drawn,) = (airflow.home / "kraft-runbook" / "reassignments" / first).glob("preview-*.svg")
    shutil.copyfile(drawn, picture)
    say(f"a picture of the first plan: {picture.relative_to(ROOT)}; `make demo-reassign-down` ends all of it")
    return 0 if counted["at first"] == counted["all is put back"] and not counted["broker 1 is drained"].get(1) else 1


def fill(spec: ClusterSpec) -> None:
    """One topic with data, on the first three brokers."""
    lists = [list(LISTS[number % len(LISTS)]) for number in range(PARTITIONS)]
    topic = NewTopic("orders", PARTITIONS, replica_assignment=lists, config={"min.insync.replicas": "1"})
    client = admin(spec)  # its requests end with it
    client.create_topics([topic])["orders"].result(60)
    producer = Producer({"bootstrap.servers": ",".join(spec.bootstrap_servers), "acks": "all", "linger.ms": 20})
    for number in range(RECORDS):
        for partition in range(PARTITIONS):
            producer.produce("orders", RECORD, str(number), partition)
        producer.poll(0)
    producer.flush(120)


def carry_out(
    client: AirflowClient,
    airflow: Airflow,
    dag_id: str,
    form: Mapping[str, Any],
    *,
    approve: bool,
    say: Callable[[str], None],
) -> str:
    """One run to its end; returns its name. Raises RunbookError where it fails."""
    client.wait_for_dag(dag_id)
    run_id = client.trigger(dag_id, {"throttle_mb": 20, "topics": "orders", **form})
    say(f"{dag_id} {dict(form)}: {airflow.url}/dags/{dag_id}/runs/{run_id}  ({USER}, password {airflow.password()})")
    while (state := client.run_state(dag_id, run_id)) not in ENDED:
        for task in client.tasks(dag_id, run_id):
            if approve and task["state"] == "awaiting_input":
                client.answer(dag_id, run_id, task["task_id"], "Approve")
        time.sleep(1)
    if state != "success":
        raise RunbookError(f"run {run_id} of {dag_id} ended as {state}", way_out=f"read its logs at {airflow.url}")
    say("\n".join(line for line in client.log_lines(dag_id, run_id, "plan", 1) if "move" in line or "→" in line))
    return str(client.xcom(dag_id, run_id, "closing_report")["run"])


def replicas(spec: ClusterSpec) -> dict[int, int]:
    """How many replicas of the demo's topic each broker holds."""
    secrets = environment_secrets({**os.environ, **environment(spec)})
    counted: dict[int, int] = {}
    for partition, seen in assignment_seen(spec, secrets=secrets).partitions.items():
        for broker in seen.replicas if partition.topic == "orders" else ():
            counted[broker] = counted.get(broker, 0) + 1
    return counted


def table(counted: Mapping[str, Mapping[int, int]]) -> str:
    """Replicas a broker after each run."""
    brokers = range(1, len(RACKS) + 1)
    lines = [f"{'replicas':<26}" + "".join(f"{f'broker {b}':>10}" for b in brokers)]
    return "\n".join(
        lines + [f"{at:<26}" + "".join(f"{of.get(b, 0):>10}" for b in brokers) for at, of in counted.items()]
    )


def down(*, say: Callable[[str], None] = print) -> None:
    """End what a former demo left running, and remove it."""
    airflow_of_demo().stop()
    if Path(HOME, "clusters", "lab.yaml").exists():
        lifecycle.down(load({**os.environ, **place()}), purge=True, say=say)
    shutil.rmtree(HOME, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "down"])
    parser.add_argument("--approve", default="", help="auto: this program answers the gates")
    options = parser.parse_args()
    try:
        if options.what == "run":
            return run(approve=options.approve == "auto")
        down()
    except RunbookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
