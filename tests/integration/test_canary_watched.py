"""A broker that is watched after its restart, on a real cluster with producers at work: a healthy one, and one that
fails requests. The numbers come from the brokers' own metrics.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import by_hand
import pytest
from labs import Lab
from stage import at_work

from kraft_runbook.cluster.canary_broker import CanaryBroker
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.local.supervision import processes
from kraft_runbook.restart.conditions import BROKER_IN_SYNC, CANARY_HOLDS
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.waiting import Wait
from lab.layout import layout

SOAK = 40.0


@pytest.fixture
def cluster(own_lab: Lab, tmp_path: Path) -> Iterator[Cluster]:
    """Broker 2 is the canary; producers and consumers are at work."""
    spec = own_lab.spec.model_copy(update={"canary": CanaryBroker(broker=2, soak=SOAK)})
    with at_work(own_lab, tmp_path / "account.json"):
        time.sleep(5)
        yield Cluster(spec, own_lab.secrets, lambda line: print(time.strftime("%H:%M:%S"), line))


def watch(cluster: Cluster) -> float:
    """Seconds until it held. Raises StepFailed."""
    began, wait = time.monotonic(), Wait(cluster, CANARY_HOLDS, 60.0, 2)
    while not wait.look():
        cluster.pause(cluster.spec.deadlines.poll)
    return time.monotonic() - began


@pytest.mark.long
def test_a_broker_that_was_just_restarted_under_load_holds_for_its_whole_soak(cluster: Cluster) -> None:
    by_hand.restart(cluster.spec.broker(2), cluster.spec)
    cluster.wait_for(BROKER_IN_SYNC, deadline=120.0, node_id=2)
    assert watch(cluster) >= SOAK


@pytest.mark.long
def test_one_that_hangs_ends_the_watch_by_name(cluster: Cluster, own_lab: Lab) -> None:
    pid = processes(layout(own_lab.spec))["broker-2"].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(StepFailed, match="the metrics of broker 2"):
            watch(cluster)
    finally:
        os.kill(pid, signal.SIGCONT)
