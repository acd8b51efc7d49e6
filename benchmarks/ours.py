"""Our side of the parity benchmarks: what the gate calls, timed by itself. Each gives a ``peers.Done`` with the facts that the peers must give too."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from benchmarks.facts import summary_of_rows
from benchmarks.peers import Done
from benchmarks.scale.cluster import NAME, Plan, load_spec
from kraft_runbook.clients.decoding import decoding_of
from kraft_runbook.clients.metadata_quorum import describe_quorum
from kraft_runbook.clients.quorum_facts import replay_log
from kraft_runbook.clients.secrets import environment_secrets
from kraft_runbook.clients.zookeeper import ZookeeperReader
from kraft_runbook.clients.zookeeper_tree import read_topics, topic_names
from kraft_runbook.errors import StepFailed


def zookeeper(plan: Plan) -> Done:
    """Every topic's znodes to canonical rows, through one session."""
    spec, secrets = load_spec(plan), environment_secrets({})
    decoding = decoding_of(spec, secrets=secrets)
    with ZookeeperReader(spec.zookeeper, secrets=secrets, timeout=60) as reader:
        began = time.perf_counter()
        summary = summary_of_rows(read_topics(reader, topic_names(reader), decoding), plan.shape.topics)
        took = time.perf_counter() - began
    return Done(took, summary)


def log(plan: Plan) -> Done:
    """The metadata log over the network to the state at its end; its rows are rendered for the comparison of facts alone, outside the time."""
    spec, secrets = load_spec(plan), environment_secrets({})
    fingerprints = decoding_of(spec, secrets=secrets).fingerprints
    began = time.perf_counter()
    quorum = describe_quorum(spec, secrets=secrets)
    end = quorum.high_watermark - 1
    replay = replay_log(spec, quorum.leader_id, quorum.leader_epoch, start=end, end=end, fingerprints=fingerprints, secrets=secrets, timeout=60)
    took = time.perf_counter() - began
    return Done(took, summary_of_rows(replay.image.rows(), plan.shape.topics), f"{replay.records} records")


def gate(plan: Plan) -> Done:
    """``kraft-runbook parity`` as an operator runs it: a new process, Spark's start included. It must say MATCH."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "kraft_runbook.cli", "parity", "--cluster", NAME, "--clusters-dir", str(plan.clusters)]
    done = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if done.returncode:
        raise StepFailed(f"the gate did not say MATCH (exit code {done.returncode}):\n{(done.stdout + done.stderr)[-2000:]}", way_out="read its report")
    return Done(took, None, done.stdout.splitlines()[0])
