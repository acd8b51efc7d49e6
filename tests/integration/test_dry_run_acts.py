"""What a dry run of a DAG lists is what its run then does, in the same order: played both ways on one cluster. The
tests of a cluster build on one another, in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import kept_states
import on_kafka4
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from dag_files import dags_of
from dag_steps import InsteadOf, acts_of
from kept_journal import Kept
from labs import Lab

from kraft_runbook.cluster.feature_levels import METADATA_VERSION
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.evidence.kinds import Compared
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from kraft_runbook.parity.parity_report import Verdict
from kraft_runbook.steps.handle import Act, Cluster, RehearsedCluster
from kraft_runbook.steps.run import Run
from lab import ROOT
from lab.software import write_cluster_file

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
CLUSTERS = ROOT / "include" / "clusters"
PARITY = "parity_before_leaving"


@pytest.fixture(scope="module")
def migrating() -> Iterator[Lab]:
    with kept_states.lab_in(Phase.ZOOKEEPER) as lab:
        yield lab


@pytest.fixture(scope="module")
def finalized() -> Iterator[Lab]:
    """As its cluster file is once the migration is final."""
    with on_kafka4.finalized_lab() as lab:
        yield replace(lab, spec=lab.spec.model_copy(update={"zookeeper": None}))


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
    placed = [[1, 2], [2, 1], [1, 2]]
    topic = NewTopic(name, 3, replica_assignment=placed, config={"min.insync.replicas": "1"})
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


def proven(run: Run, journal: Kept) -> dict[str, str]:
    """In the place of the last parity before the fence, as if it had compared all until now."""
    if not run.cluster.rehearses:
        offset = describe_quorum(run.spec, secrets=run.cluster.secrets).high_watermark - 1
        journal.record(
            Compared(
                values={}, verdict=Verdict.MATCH, digest="d", offset=offset, report="", final=True, phase="DUAL_WRITE"
            )
        )
    return {"digest": "d"}


def test_a_rollback_from_dual_write_and_one_that_is_half_done(migrating: Lab, both_ways: BothWays) -> None:
    spec = migrating.spec
    done = both_ways(migrating, "zk_to_kraft_rollback", until="set_controllers_aside", instead={PARITY: proven})
    roll = on_each("restart_broker", spec.broker_ids)
    assert done == [*roll, "leave KRaft in this order", *roll]
    done = both_ways(migrating, "zk_to_kraft_rollback")
    assert done == [
        "let the brokers follow a ZooKeeper controller",
        *on_each("set_controller_aside", spec.controller_ids),
    ]
    assert phase(migrating) is Phase.ZOOKEEPER


def test_a_reassignment_in_kraft_mode(finalized: Lab, both_ways: BothWays) -> None:
    done = both_ways(finalized, "reassign_partitions", **move_of(finalized, "drained"), throttle_mb=50)
    assert (
        len(done) == 6
        and done[0].startswith("throttle")
        and done[-2:]
        == [
            "put throttles back",
            "elect the first replica of 3 partitions",
        ]
    )


def test_a_level_goes_down_and_up(finalized: Lab, both_ways: BothWays, tmp_path: Path) -> None:
    clusters = write_cluster_file(tmp_path / "clusters").parent
    form = {"clusters": clusters, "feature": METADATA_VERSION}
    assert both_ways(finalized, "upgrade_features", level="20", down=True, **form) == ["set metadata.version 21 -> 20"]
    assert both_ways(finalized, "upgrade_features", level="21", **form) == ["set metadata.version 20 -> 21"]


def test_a_roll_to_kafka_4_and_one_that_is_half_done(finalized: Lab, both_ways: BothWays, tmp_path: Path) -> None:
    clusters, spec = write_cluster_file(tmp_path / "clusters").parent, finalized.spec
    first = both_ways(
        finalized, "upgrade_software", clusters=clusters, until="roll_brokers_up.broker_2", some_twice=True
    )
    order = leader_last(finalized)
    assert set(first[:3]) == set(on_each("switch_software", order)) and first[3:] == on_each("switch_software", [1])
    rest = both_ways(finalized, "upgrade_software", clusters=clusters)
    assert rest == on_each("switch_software", [each for each in spec.broker_ids if each != 1])
    assert on_kafka4.versions(finalized) == {"4.1.1"}
