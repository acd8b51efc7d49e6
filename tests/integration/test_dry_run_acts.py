"""What a dry run of a DAG lists is what its run then does, in the same order: played both ways on one cluster. The
tests of a cluster build on one another, in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kept_states
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from dag_files import dags_of
from dag_steps import InsteadOf, acts_of
from labs import Lab

from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from kraft_runbook.steps.handle import Act, Cluster, RehearsedCluster
from lab import ROOT

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
CLUSTERS = ROOT / "include" / "clusters"


@pytest.fixture(scope="module")
def migrating() -> Iterator[Lab]:
    with kept_states.lab_in(Phase.ZOOKEEPER) as lab:
        yield lab


BothWays = Callable[..., list[str]]


@pytest.fixture
def both_ways(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> BothWays:
    def play(
        lab: Lab,
        name: str,
        *,
        clusters: Path = CLUSTERS,
        instead: dict[str, InsteadOf] | None = None,
        until: str = "",
        some_twice: bool = False,
        **form: Any,
    ) -> list[str]:
        """The acts of a run of that DAG, which its dry run before it has listed. ``some_twice``: where that can't be
        known, as of a controller that is restarted once more since its registration was lost.
        """
        dag = dags_of(f"{name}.py", clusters, monkeypatch)[f"{name}__lab"]
        how: dict[str, Any] = {"until": until, "instead": instead, **form}
        listed = acts_of(dag, RehearsedCluster(lab.spec, lab.secrets, print), tmp_path, **how)
        done = acts_of(dag, Cluster(lab.spec, lab.secrets, print), tmp_path, **how)
        did = list(dict.fromkeys(names(done))) if some_twice else names(done)
        assert names(listed) == did
        told = {each.what: each.lines for each in listed}
        assert {each.what: each.lines for each in done if each.lines}.items() <= told.items()
        return did

    return play


def names(acts: list[Act]) -> list[str]:
    return [each.what for each in acts]


def on_each(playbook: str, nodes: Any) -> list[str]:
    return [f"play {playbook} on node {each}" for each in nodes]


def phase(lab: Lab) -> Phase:
    return detect_phase(Cluster(lab.spec, lab.secrets, print).settled()).phase


def leader_last(lab: Lab) -> list[int]:
    leader = describe_quorum(lab.spec, secrets=lab.secrets).leader_id
    return [*(each for each in lab.spec.controller_ids if each != leader), leader]


def move_of(lab: Lab, name: str) -> dict[str, Any]:
    """What the form says to drain a broker of a topic, which is made for it."""
    client = AdminClient({"bootstrap.servers": ",".join(lab.spec.bootstrap_servers)})
    topic = NewTopic(name, replica_assignment=[[1, 2], [2, 1], [1, 2]], num_partitions=3)
    client.create_topics([topic])[name].result(30)
    return {"goal": "drain brokers", "brokers": "1", "topics": name}


def test_a_restart_of_brokers_in_zookeeper_mode(migrating: Lab, both_ways: BothWays) -> None:
    done = both_ways(migrating, "rolling_restart", nodes="both")
    assert done == on_each("restart_node", migrating.spec.broker_ids)


def test_a_reassignment_in_zookeeper_mode(migrating: Lab, both_ways: BothWays) -> None:
    done = both_ways(migrating, "reassign_partitions", **move_of(migrating, "drained"), throttle_mb=50)
    assert done == [
        "throttle the moves to 50 MB/s a broker",
        *(f"move drained-{each}" for each in range(3)),
        "put throttles back",
        "elect the first replica of 3 partitions",
    ]


def test_a_migration_until_every_broker_is_in_kraft_mode(migrating: Lab, both_ways: BothWays) -> None:
    spec, run = migrating.spec, {"name": "zk_to_kraft_migration", "until": "parity_in_dual_write"}
    assert both_ways(migrating, **run) == [
        *on_each("provision_controller", spec.controller_ids),
        *on_each("restart_broker", spec.broker_ids),
        *on_each("restart_broker", spec.broker_ids),
    ]
    assert phase(migrating) is Phase.DUAL_WRITE
    assert both_ways(migrating, **run) == [], "all is done"


def test_a_restart_in_dual_write_ends_with_the_controller_that_leads(migrating: Lab, both_ways: BothWays) -> None:
    order = leader_last(migrating)
    done = both_ways(migrating, "rolling_restart", nodes="both")
    assert done == on_each("restart_node", [*order, *migrating.spec.broker_ids])
