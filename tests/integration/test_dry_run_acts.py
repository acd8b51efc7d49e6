"""What a dry run lists is what the run then does, in the same order: played both ways on one cluster."""

from __future__ import annotations

from collections.abc import Iterator

import kept_states
import pytest
from labs import Lab
from recording import Ports, run_on

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.restart.conditions import BROKER_BACK, BROKER_IN_SYNC
from kraft_runbook.steps.handle import Act, Cluster, RehearsedCluster
from kraft_runbook.steps.node_step import take_step
from kraft_runbook.steps.restart import BROKER, CONTROLLER, restart_active_controller

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=[Phase.ZOOKEEPER, Phase.HYBRID], ids=str)
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    with kept_states.lab_in(request.param) as lab:
        yield lab


def restart(cluster: Cluster) -> list[Act]:
    """A rolling restart, node by node as its DAG has them."""
    ports = Ports()
    run = run_on(cluster, ports, nodes="both")
    for controller in cluster.spec.controller_ids:
        take_step(run, CONTROLLER, controller)
    restart_active_controller(run)
    for broker in cluster.spec.broker_ids:
        take_step(run, BROKER, broker)
        cluster.wait_for(BROKER_BACK, deadline=cluster.spec.deadlines.registration, node_id=broker)
        cluster.wait_for(BROKER_IN_SYNC, deadline=cluster.spec.deadlines.in_sync, node_id=broker)
    assert bool(ports.kept) is not cluster.rehearses, "a rehearsal puts no step on record"
    return cluster.acts


def test_a_dry_run_lists_the_acts_of_the_run_in_its_order(lab: Lab) -> None:
    told: list[str] = []
    before = Cluster(lab.spec, lab.secrets, told.append).observe()
    rehearsed = restart(RehearsedCluster(lab.spec, lab.secrets, told.append))
    done = restart(Cluster(lab.spec, lab.secrets, told.append))
    assert [each.what for each in rehearsed] == [each.what for each in done]
    controllers = [each.id for each in before.controllers.values() if each.running is True]
    order = sorted(controllers, key=lambda each: (before.is_active(each), each)) + list(lab.spec.broker_ids)
    assert [each.what for each in done] == [f"play restart_node on node {each}" for each in order]
