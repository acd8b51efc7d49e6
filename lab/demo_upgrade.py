"""``make demo-upgrade``: the finalized cluster that ``make demo`` left goes to Kafka 4 and its level to the newest,
under a real Airflow and a workload. With ``--round-trip`` the software goes up, back and up again first. ``--to`` names
another Kafka 4 than the lab's own; Maven brings it.

``python -m lab.demo_upgrade [--approve auto] [--round-trip] [--to 4.3.1]``
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.feature_levels import METADATA_VERSION
from kraft_runbook.cluster.kafka_version import KafkaVersion
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.properties_text import parse_properties
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.procedures.observe_features import observe_features
from lab import lifecycle
from lab.airflow_client import AirflowClient
from lab.airflow_standalone import USER
from lab.clients import lab_secrets
from lab.demo import BUILD, demo_airflow, follow, start_workload, stop_workload
from lab.demo_command import Say, command
from lab.installation import fetch_jars, jars_of
from lab.layout import config_files, environment, load, starts
from lab.software import with_kafka4, write_cluster_file

UP, BACK, LEVELS = "upgrade_software__lab", "downgrade_software__lab", "upgrade_features__lab"


def run(*, approve_automatically: bool, round_trip: bool, to: str, say: Say) -> int:
    """The whole demo. Exit code 0 only where every run succeeded, every node shows the target and the level, and no
    acknowledged record was lost.
    """
    began = time.time()
    plain = load()
    require_finalized(plain)
    spec, airflow = with_kafka4(plain, to), demo_airflow()
    if to:
        say(f"bringing Kafka {to}")
        fetch_jars(to, jars=jars_of(to))  # before anything is stopped: Maven may know no such release
    say("stopping what the demo left, to let each node find Kafka through a link of its own")
    airflow.stop()
    lifecycle.down(plain, say=say)
    lifecycle.up(spec, say=say)
    clusters = write_cluster_file(BUILD / "upgrade-clusters", to).parent
    say("starting Airflow")
    airflow.start({**environment(spec), "KRAFT_RUNBOOK_CLUSTERS": str(clusters)}, say=say)
    before = starts(spec)
    workload = start_workload(spec)
    states: dict[str, str] = {}
    try:
        client = airflow.client(patience=None, say=say)
        say(f"Airflow is at {airflow.url}  (user {USER}, password {airflow.password()})")
        planned = runs(spec, round_trip=round_trip)
        for number, (dag_id, params) in enumerate(planned, 1):
            say(f"\n{number} of {len(planned)}: {what(dag_id, spec, params)} ({dag_id})")
            state = _follow(client, dag_id, params, approve=approve_automatically, say=say, began=began)
            states[f"{number}. {dag_id}"] = state
            if state != "success":
                break
        account = stop_workload(workload, say=say)
    finally:
        if workload.poll() is None:
            workload.kill()
            workload.wait()
    report = _report(spec, states, before, account, seconds=time.time() - began)
    file = BUILD / "demo-upgrade-report.json"
    file.write_text(json.dumps(report, indent=1))
    say(render(report))
    say("the cluster and Airflow stay up for a look, `make demo-down` ends them")
    return 0 if report["passed"] else 1


def require_finalized(spec: ClusterSpec) -> None:
    """Raise Refused where ``make demo`` has not left a cluster in KRaft mode, or it was upgraded since."""
    files = config_files(spec).values()
    found = [parse_properties(file.read_text()) for file in files if file.exists()]
    if len(found) < len(files) or any("zookeeper.connect" in each for each in found):
        raise Refused("there is no finalized cluster to upgrade", way_out="make demo APPROVE=auto, then this again")
    upgraded = with_kafka4(spec)
    nodes = upgraded.nodes
    links = [Path(node.home_link) for node in nodes if node.home_link]
    if any(link.exists() and link.resolve() != Path(upgraded.kafka.home).resolve() for link in links):
        raise Refused(
            "the nodes were brought to another Kafka already",
            way_out="make demo APPROVE=auto begins with a new cluster, then this again",
        )


def runs(spec: ClusterSpec, *, round_trip: bool) -> list[tuple[str, dict[str, Any]]]:
    """What is triggered, in order."""
    target = spec.kafka.upgrade_to
    release = KafkaVersion.of(target.version).minor if target else ""
    there_and_back: list[tuple[str, dict[str, Any]]] = [(UP, {}), (BACK, {})] if round_trip else []
    return [*there_and_back, (UP, {}), (LEVELS, {"feature": METADATA_VERSION, "level": release})]


def what(dag_id: str, spec: ClusterSpec, params: Mapping[str, Any]) -> str:
    """What a run does, in words."""
    target = spec.kafka.upgrade_to.version if spec.kafka.upgrade_to else ""
    order = {UP: "the controllers, the active one last, then the brokers", BACK: "the brokers, then the controllers"}
    if dag_id in order:
        source, goal = (spec.kafka.version, target) if dag_id == UP else (target, spec.kafka.version)
        return f"from Kafka {source} to {goal}, one node after the other: {order[dag_id]}. No level changes"
    return f"{params['feature']} rises to the last level of {params['level']}, on every node at once. No node restarts"


def _follow(
    client: AirflowClient, dag_id: str, params: Mapping[str, Any], *, approve: bool, say: Say, began: float
) -> str:
    client.wait_for_dag(dag_id)
    run_id = client.trigger(dag_id, dict(params))
    return follow(client, run_id, approve_automatically=approve, say=say, began=began, dag_id=dag_id)


def _report(
    spec: ClusterSpec,
    states: Mapping[str, str],
    before: Mapping[str, int],
    account: Mapping[str, Any] | None,
    *,
    seconds: float,
) -> dict[str, Any]:
    seen = observe_features(spec, secrets=lab_secrets(spec), with_hosts=False)
    target = spec.kafka.upgrade_to
    answering = {seen.who(i): node for i, node in seen.nodes.items() if not isinstance(node, Unread)}
    shown = {who: (str(node.software_version), dict(node.finalized)) for who, node in answering.items()}
    newest = {who: node.supported[METADATA_VERSION].highest for who, node in answering.items()}
    levels = {found[1].get(METADATA_VERSION, 0) for found in shown.values()}
    rolls = sum(dag_id in (UP, BACK) for dag_id in (name.split()[-1] for name in states))
    after = starts(spec)
    restarts = {service: after[service] - before[service] for service in after}
    nodes = spec.nodes
    all_answer = len(answering) == len(seen.nodes)
    verdicts = {
        "every run succeeded": bool(states) and set(states.values()) == {"success"},
        "every node runs the target": (
            all_answer and target is not None and {found[0] for found in shown.values()} == {target.version}
        ),
        f"every node is at the newest level that it knows: {METADATA_VERSION} {', '.join(map(str, sorted(levels)))}": (
            all_answer and len(levels) == 1 and levels == set(newest.values())
        ),
        f"each node was restarted once a roll: {rolls}": {restarts[each.service] for each in nodes} == {rolls},
        "no acknowledged record was lost": account is not None and account["lost"] == 0 and account["acknowledged"] > 0,
    }
    return {
        "passed": all(verdicts.values()),
        "verdicts": verdicts,
        "runs": dict(states),
        "nodes": {seen.who(i): shown.get(seen.who(i)) for i in seen.nodes},
        "restarts": restarts,
        "workload": dict(account) if account else None,
        "seconds": round(seconds, 1),
    }


def render(report: Mapping[str, Any]) -> str:
    lines = ["", *(f"{name:<40}{state}" for name, state in report["runs"].items()), ""]
    for who, found in report["nodes"].items():
        levels = ", ".join(f"{name} {level}" for name, level in found[1].items()) if found else ""
        lines.append(f"{who:<16}Kafka {found[0]:<8}{levels}" if found else f"{who:<16}does not answer")
    lines += [
        "",
        "restarts: " + ", ".join(f"{service} {count}" for service, count in report["restarts"].items() if count),
    ]
    account = report["workload"]
    names = ("acknowledged", "lost", "duplicated", "failed", "longest_producer_stall_seconds")
    if account:
        lines += ["", "workload:", *(f"  {name.replace('_', ' '):<34}{account[name]}" for name in names)]
    lines += ["", *(f"{'yes' if held else 'NO ':<5}{verdict}" for verdict, held in report["verdicts"].items())]
    return "\n".join([*lines, "", f"{report['seconds']} s: {'PASSED' if report['passed'] else 'NOT PASSED'}"])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.demo_upgrade", description=__doc__)
    parser.add_argument("--approve", choices=("auto", ""), default="", help="auto: answer the gates by REST")
    parser.add_argument("--round-trip", action="store_true", help="the software goes up, back and up again")
    parser.add_argument("--to", default="", metavar="VERSION", help="the Kafka 4 to go to (default: the lab's own)")
    options = parser.parse_args(arguments)

    automatic = options.approve == "auto"
    return command(
        lambda say: run(approve_automatically=automatic, round_trip=options.round_trip, to=options.to, say=say)
    )


if __name__ == "__main__":
    sys.exit(main())
