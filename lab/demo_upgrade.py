"""``make demo-upgrade``: the finalized cluster that ``make demo`` left goes to Kafka 4 and its level to the newest,
under a real Airflow and a workload. With ``--round-trip`` the software goes up, back and up again first.

``python -m lab.demo_upgrade [--approve auto] [--round-trip]``
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from kraft_runbook.cluster.feature_levels import METADATA_VERSION
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.properties_text import parse_properties
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, RunbookError
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures.observe_features import observe_features
from lab import lifecycle
from lab.airflow_standalone import USER, AirflowClient
from lab.demo import BUILD, demo_airflow, follow, start_workload, stop_workload
from lab.layout import config_files, environment, load, starts
from lab.software import with_kafka4, write_cluster_file

UP, BACK, LEVELS = "upgrade_software__lab", "downgrade_software__lab", "upgrade_features__lab"
Say = Callable[[str], None]


def run(*, approve_automatically: bool, round_trip: bool, say: Say) -> int:
    """The whole demo. Exit code 0 only where every run succeeded, every node shows the target and the level, and no
    acknowledged record was lost.
    """
    began = time.time()
    plain = load()
    _require_finalized(plain)
    spec, airflow = with_kafka4(plain), demo_airflow()
    say("stopping what the demo left, to let each node find Kafka through a link of its own")
    airflow.stop()
    lifecycle.down(plain, say=say)
    lifecycle.up(spec, say=say)
    clusters = write_cluster_file(BUILD / "upgrade-clusters").parent
    say("starting Airflow")
    airflow.start({**environment(spec), "KRAFT_RUNBOOK_CLUSTERS": str(clusters)}, say=say)
    before = starts(spec)
    workload = start_workload(spec)
    states: dict[str, str] = {}
    try:
        client = airflow.client(patience=None, say=say)
        say(f"Airflow is at {airflow.url}  (user {USER}, password {airflow.password()})")
        for number, (dag_id, params) in enumerate(_runs(spec, round_trip=round_trip), 1):
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
    say(_render(report))
    say("the cluster and Airflow stay up for a look, `make demo-down` ends them")
    return 0 if report["passed"] else 1


def _require_finalized(spec: ClusterSpec) -> None:
    """Raise Refused where ``make demo`` has not left a cluster in KRaft mode."""
    files = config_files(spec).values()
    found = [parse_properties(file.read_text()) for file in files if file.exists()]
    if len(found) < len(files) or any("zookeeper.connect" in each for each in found):
        raise Refused("there is no finalized cluster to upgrade", way_out="make demo APPROVE=auto, then this again")


def _runs(spec: ClusterSpec, *, round_trip: bool) -> list[tuple[str, dict[str, Any]]]:
    """What is triggered, in order."""
    target = spec.kafka.upgrade_to
    release = target.version.rpartition(".")[0] if target else ""
    there_and_back: list[tuple[str, dict[str, Any]]] = [(UP, {}), (BACK, {})] if round_trip else []
    return [*there_and_back, (UP, {}), (LEVELS, {"feature": METADATA_VERSION, "level": release})]


def _follow(
    client: AirflowClient, dag_id: str, params: Mapping[str, Any], *, approve: bool, say: Say, began: float
) -> str:
    client.wait_for_dag(dag_id)
    run_id = client.trigger(dag_id, dict(params))
    say(f"{dag_id} {' '.join(f'{key}={value}' for key, value in params.items())}")
    return follow(client, run_id, approve_automatically=approve, say=say, began=began, dag_id=dag_id)


def _report(
    spec: ClusterSpec,
    states: Mapping[str, str],
    before: Mapping[str, int],
    account: Mapping[str, Any] | None,
    *,
    seconds: float,
) -> dict[str, Any]:
    seen = observe_features(spec, secrets=environment_secrets({**os.environ, **environment(spec)}), with_hosts=False)
    target = spec.kafka.upgrade_to
    shown = {
        seen.who(i): None if isinstance(node, Unread) else (str(node.software_version), dict(node.finalized))
        for i, node in seen.nodes.items()
    }
    levels = {found[1].get(METADATA_VERSION) for found in shown.values() if found}
    verdicts = {
        "every run succeeded": bool(states) and set(states.values()) == {"success"},
        "every node runs the target": target is not None
        and all(found is not None and found[0] == target.version for found in shown.values()),
        "every node shows one level": None not in shown.values() and len(levels) == 1,
        "no acknowledged record was lost": account is not None and account["lost"] == 0 and account["acknowledged"] > 0,
    }
    after = starts(spec)
    return {
        "passed": all(verdicts.values()),
        "verdicts": verdicts,
        "runs": dict(states),
        "nodes": shown,
        "starts": {service: after[service] - before[service] for service in after},
        "workload": dict(account) if account else None,
        "seconds": round(seconds, 1),
    }


def _render(report: Mapping[str, Any]) -> str:
    lines = ["", *(f"{name:<40}{state}" for name, state in report["runs"].items()), ""]
    lines += [
        f"{who:<16}{found[0] if found else '-':<10}{found[1] if found else '-'}"
        for who, found in report["nodes"].items()
    ]
    lines += [
        "",
        "restarts: " + ", ".join(f"{service} {count}" for service, count in report["starts"].items() if count),
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
    options = parser.parse_args(arguments)

    def say(text: str) -> None:
        print(text, flush=True)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        return run(approve_automatically=options.approve == "auto", round_trip=options.round_trip, say=say)
    except RunbookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the lab and Airflow stay as they are, `make demo-down` ends them", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
