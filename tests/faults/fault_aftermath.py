"""Gathers what a case left, for the invariants to judge: evidence, proofs, process starts, things left behind."""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource
from fault_elsewhere import states_of
from fault_invariants import Aftermath
from fault_processes import MutatorWatch, playbooks, spark_processes, until_gone
from fault_scene import Scene
from fault_workload import Workload

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.store import read_records
from kraft_runbook.io.local import supervision
from kraft_runbook_airflow.base.journal import run_file_name
from lab.layout import layout, nodes, starts

THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)


def gather(
    scene: Scene, *, started_before: Mapping[str, int], watch: MutatorWatch, work: Workload, outcome: str
) -> Aftermath:
    """Everything the invariants look at."""
    spec, states = scene.ground.spec, states_of(scene)
    runs = [(states[0], dag, run) for dag, run in [(scene.dag, scene.run_id), *scene.other_runs] if run]
    if scene.elsewhere is not None:
        runs += [(scene.elsewhere.state, dag, run) for dag, run in scene.elsewhere.runs]
    started = starts(scene.ground.lab.spec)
    return Aftermath(
        evidence={run: read_records(state / "evidence", run_file_name(dag, run)) for state, dag, run in runs},
        proofs={file.stem: json.loads(file.read_text()) for state in states for file in state.glob("proofs/*.json")},
        account=work.account,
        samples=work.samples,
        serves=scene.case.expected.serves,
        may_fail=scene.case.expected.may_fail,
        faults=scene.faults,
        starts={service: count - started_before[service] for service, count in started.items()},
        expected_starts=Counter(scene.case.expected.starts) + scene.granted,
        mutators=watch.seen,
        left_behind=list(left_behind(spec, states, scene.temporary)),
        outcome=outcome,
        run=scene.run_id,
        states=scene.task_states() if scene.run_id else {},
        by_hand=frozenset(scene.by_hand),
        valid_for=spec.approvals.valid_for,
        allowed=frozenset(each.name for each in spec.approvals.users),
    )


def left_behind(spec: ClusterSpec, states: Iterable[Path], temporary: Path) -> Iterator[str]:
    """What should be gone once a run has ended."""
    yield from (f"playbook {name} still runs (pid {p.pid})" for p, name in playbooks(temporary))
    yield from (
        f"a process of Spark's still runs (pid {p.pid}): {p.what_runs()}"
        for p in until_gone(lambda: spark_processes(temporary))
    )
    yield from (f"temporary directory {path}" for path in temporary.glob("kraft-runbook-run-*"))
    for directory in {Path(node.config_file).parent for node in nodes(spec)}:
        for path in directory.glob("*") if directory.exists() else ():
            if path.name.endswith(".lock"):
                if _is_held(path):
                    yield f"lock {path} is held"
            elif path.name.endswith(".new") or (path.is_file() and path.name.startswith(".")):
                yield f"half-written file {path}"
    yield from (f"half-written file {path}" for state in states for path in state.rglob("*.new"))
    for service, process in supervision.processes(layout(spec)).items():
        if process.runs and _is_stopped(process.pid):
            yield f"{service} is still paused"
    yield from _throttles(spec)


def _throttles(spec: ClusterSpec) -> Iterator[str]:
    """A client that has just seen a broker go may find it late: it is asked again, by another one."""
    for last in (False, False, True):
        try:
            yield from [*_throttles_now(spec)]
            return
        except KafkaException as error:
            if last:
                client = AdminClient({"bootstrap.servers": ",".join(spec.bootstrap_servers)})
                error.add_note(f"Metadata names brokers {sorted(client.list_topics(timeout=20).brokers)}")
                raise


def _throttles_now(spec: ClusterSpec) -> Iterator[str]:
    client = AdminClient({"bootstrap.servers": ",".join(spec.bootstrap_servers)})
    topics = [t for t in client.list_topics(timeout=20).topics if not t.startswith("scale-")]
    asked = [[ConfigResource(ConfigResource.Type.BROKER, str(b.id))] for b in spec.brokers] + [
        [ConfigResource(ConfigResource.Type.TOPIC, t) for t in topics]
    ]
    for resources in asked:  # a call takes one broker at most
        for resource, future in client.describe_configs(resources, request_timeout=20).items():
            found = future.result()
            yield from (
                f"throttle {key}={found[key].value} on {resource.name}"
                for key in THROTTLES
                if key in found and not found[key].is_default
            )


def _is_held(path: Path) -> bool:
    handle = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
