"""``make demo-quorum``: what does the migration change where a controller or a broker fails? A drill of each in
ZooKeeper mode, the migration, the same drills in KRaft mode, and both sides in one picture, each by a run of the DAGs
under a real Airflow.

``python -m lab.demo_quorum [--approve auto] [--partitions N] [--seconds S]``; ``python -m lab.demo down`` ends it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from confluent_kafka.admin import NewTopic

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.quorum.before_after import KeptFault, draw, pairs, told
from kraft_runbook.quorum.faults import BY_QUORUM, Fault
from kraft_runbook.steps.kept_drills import read_kept
from lab import lifecycle
from lab.airflow_standalone import USER
from lab.demo import BUILD, DAG, clean_up, demo_airflow, follow, observed_phase
from lab.demo_command import Say, command
from lab.health import admin, wait_until_healthy
from lab.layout import ROOT, environment, in_words, load
from lab.seed import seed

DRILL = "quorum_drill__lab"
FAULTS = (Fault.FAILOVER, Fault.SHUTDOWN)
Pair = tuple[KeptFault, KeptFault]


def run(*, approve_automatically: bool, partitions: int, seconds: float, say: Say) -> int:
    """The whole demo. Exit code 0 only where every run succeeded, the cluster is in KRaft mode for good and each fault
    was measured on both sides. What was measured is shown, and judged by nobody.
    """
    began = time.time()
    spec, airflow = load(), demo_airflow()
    clean_up(purge=True, say=say)
    airflow.require_port()
    say(f"starting the lab: {in_words(spec)}")
    lifecycle.up(spec, say=say)
    seed(spec)
    fill(spec, partitions, say=say)
    say("starting Airflow")
    airflow.start(environment(spec), say=say)
    client = airflow.client(patience=None, say=say)
    say(f"Airflow is at {airflow.url}  (user {USER}, password {airflow.password()})")
    states: dict[str, str] = {}
    planned = runs(seconds)
    for number, (title, dag_id, form) in enumerate(planned, 1):
        say(f"\n{number} of {len(planned)}: {title} ({dag_id})")
        client.wait_for_dag(dag_id)
        run_id = client.trigger(dag_id, dict(form))
        states[f"{number}. {title}"] = follow(
            client, run_id, approve_automatically=approve_automatically, say=say, began=began, dag_id=dag_id
        )
        if states[f"{number}. {title}"] != "success":
            break
    both, _ = pairs(read_kept(airflow.home / "kraft-runbook", spec.name))
    verdicts = judged(states, len(planned), observed_phase(spec), both)
    report = {
        "passed": all(verdicts.values()),
        "verdicts": verdicts,
        "runs": states,
        "partitions": partitions,
        "faults": [[each.to_dict() for each in sides] for sides in both],
        "seconds": round(time.time() - began, 1),
    }
    file, page = BUILD / "demo-quorum-report.json", BUILD / "demo-quorum.html"
    file.write_text(json.dumps(report, indent=1))
    page.write_text(picture(both))
    say(rendered(states, both, verdicts))
    say(f"\nthe picture: {page.relative_to(ROOT)}; in figures: {file.relative_to(ROOT)}")
    say("the cluster and Airflow stay up for a look, `make demo-down` ends them")
    say(f"\n{report['seconds']} s: {'PASSED' if report['passed'] else 'NOT PASSED'}")
    return 0 if report["passed"] else 1


def runs(seconds: float) -> list[tuple[str, str, Mapping[str, Any]]]:
    """What is triggered, in order: title, DAG, form."""
    drills = [(each.value, DRILL, {"fault": each.value, "seconds": seconds}) for each in FAULTS]
    return [
        *((f"{title}, in ZooKeeper mode", dag_id, form) for title, dag_id, form in drills),
        ("the migration", DAG, {"soak_minutes": 0.25}),
        *((f"{title}, in KRaft mode", dag_id, form) for title, dag_id, form in drills),
    ]


def fill(spec: ClusterSpec, partitions: int, *, say: Say) -> None:
    """So many partitions of three replicas besides, in topics of 100."""
    left, client = partitions, admin(spec, answers_within=120)  # its requests end with it
    if left:
        say(f"making {partitions} partitions")
    while left > 0:
        here = min(100, left)
        topic = NewTopic(f"demo-{left}", num_partitions=here, replication_factor=min(3, len(spec.brokers)))
        client.create_topics([topic], operation_timeout=60)[topic.topic].result(120)
        left -= here
    wait_until_healthy(spec, say=say)


def judged(states: Mapping[str, str], planned: int, phase: Phase, both: Sequence[Pair]) -> dict[str, bool]:
    """Whether the demo did what it is for."""
    measured = {sides[0].fault for sides in both}
    return {
        "every run succeeded": len(states) == planned and set(states.values()) == {"success"},
        "the cluster is in KRaft mode for good": phase in BY_QUORUM,
        **{f"{each.value} was measured on both sides": each.value in measured for each in FAULTS},
    }


def rendered(states: Mapping[str, str], both: Sequence[Pair], verdicts: Mapping[str, bool]) -> str:
    """The end, for a terminal."""
    lines = ["", *(f"{name:<55}{state}" for name, state in states.items())]
    for sides in both:
        lines += ["", told(*sides)]
    return "\n".join([*lines, "", *(f"{'yes' if held else 'NO ':<5}{verdict}" for verdict, held in verdicts.items())])


def picture(both: Sequence[Pair]) -> str:
    """A page that needs nothing else: of each fault both sides, drawn and told."""
    parts = [f"{draw(*sides)}<pre>{escape(told(*sides))}</pre>" for sides in both]
    return (
        '<!doctype html><meta charset="utf-8"><title>Before and after the migration</title>'
        f'<body style="font-family: sans-serif; margin: 2em">{"".join(parts) or "Nothing was measured on both sides."}'
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.demo_quorum", description=__doc__)
    parser.add_argument("--approve", choices=("auto", ""), default="", help="auto: answer the gates by REST")
    parser.add_argument("--partitions", type=int, default=0, help="how many there are besides those of the seed")
    parser.add_argument("--seconds", type=float, default=30, help="of each baseline, and of each fault at least")
    given = parser.parse_args(arguments)

    automatic = given.approve == "auto"
    return command(
        lambda say: run(approve_automatically=automatic, partitions=given.partitions, seconds=given.seconds, say=say)
    )


if __name__ == "__main__":
    sys.exit(main())
