"""A drill on a real cluster, in both modes: the fault, what clients saw of it, and nothing left that is stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import by_hand
import pytest
from both_ways import listed, names
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kept_journal import Kept
from labs import Lab, lab_of
from recording import run_on

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.evidence.kinds import Drilled
from kraft_runbook.io.hosts.playbooks import PlaybookResult
from kraft_runbook.io.kafka.drill_probes import PREFIX
from kraft_runbook.io.local.supervision import processes
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.see_quorum import see_quorum
from kraft_runbook.quorum.drill import WHOLE, account
from kraft_runbook.quorum.faults import Fault, session_timeout_ms
from kraft_runbook.quorum.silences import CHANGES, Measured
from kraft_runbook.runbook.plays import Play
from kraft_runbook.steps import drill
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.run import Run
from lab.layout import layout


@dataclass(frozen=True, kw_only=True)
class Changed(Lab):
    """A lab whose cluster file says something else than when its secrets were read."""

    read: Secrets
    as_made: ClusterSpec

    @property
    def secrets(self) -> Secrets:
        return self.read


def with_spec(lab: Lab, **changes: object) -> Changed:
    return Changed(
        lab.spec.model_copy(update=changes),
        lab.directory,
        lab.network,
        lab.clusters,
        read=lab.secrets,
        as_made=lab.spec,
    )


SHORT = {"broker": None, "repeats": 1, "stall_budget": 60.0, "seconds": 2.0}


@pytest.fixture(scope="module")
def kraft(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Changed]:
    with lab_of(("a",), mode=BrokerMode.KRAFT, clusters=tmp_path_factory.mktemp("clusters")) as lab:
        yield with_spec(lab, zookeeper=None)


@pytest.fixture(scope="module")
def kraft_of_three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_of(("a", "b", "c"), mode=BrokerMode.KRAFT, clusters=tmp_path_factory.mktemp("clusters")) as lab:
        yield with_spec(lab, zookeeper=None)


@pytest.fixture(scope="module")
def zookeeper_of_three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_of(("a", "b", "c"), mode=BrokerMode.ZOOKEEPER, clusters=tmp_path_factory.mktemp("clusters")) as lab:
        yield lab


def run_of(lab: Lab, fault: Fault, **form: object) -> tuple[Run, Kept, list[str]]:
    kept, told = Kept(), list[str]()
    cluster = Cluster(lab.spec, lab.secrets, told.append)
    return run_on(cluster, kept, state=lab.directory / "runs", **SHORT | {"fault": fault.value} | form), kept, told


def drilled(lab: Lab, fault: Fault, **form: object) -> tuple[Measured, Measured, Kept]:
    run, kept, _ = run_of(lab, fault, **form)
    would = listed(run, drill.measure_baseline, drill.cause_faults, drill.end)
    drill.measure_baseline(run)
    drill.cause_faults(run)
    assert drill.end(run)["topics_deleted"] > 2, "those of metadata changes too"
    assert names(run.cluster.acts) == would
    assert not [each for each in topics(lab) if each.startswith(PREFIX)]
    assert drill.stopped(kept.records()) == []
    measured = [Measured.from_dict(each) for each in kept.bodies if each["what"] in ("baseline", "fault")]
    assert len(measured) == 2
    assert measured[1].answered > 0 and measured[1].failed == 0
    assert account(kept.bodies)
    return measured[0], measured[1], kept


def topics(lab: Lab) -> list[str]:
    admin = AdminClient({"bootstrap.servers": ",".join(lab.spec.bootstrap_servers)})
    return list(admin.list_topics(timeout=30).topics)


def whole(lab: Lab) -> bool:
    cluster = Cluster(lab.spec, lab.secrets, lambda _: None)
    return WHOLE.progress(cluster.observe(), lab.spec).done


def test_in_kraft_mode_the_leader_is_stopped_another_leads_and_it_comes_back_warm(kraft: Lab) -> None:
    before = see_quorum(kraft.spec, secrets=kraft.secrets).quorum
    _, fault, kept = drilled(kraft, Fault.FAILOVER)
    look = see_quorum(kraft.spec, secrets=kraft.secrets, ask_brokers=True)
    after = look.quorum
    assert kept.bodies[2]["node_id"] == before.leader_id  # type: ignore[union-attr]
    assert after.leader_epoch > before.leader_epoch  # type: ignore[union-attr]
    assert fault.of_changes is not None and fault.of_changes > 0
    assert whole(kraft)
    (broker,) = look.brokers.values()
    assert was_read(broker.applied) and broker.applied.last_applied_offset > 0, broker
    assert broker.applied.last_applied_lag_ms is not None, broker


@pytest.mark.long
def test_partitions_that_the_operator_names_are_written_to_and_stay(kraft: Lab) -> None:
    made_topic(kraft, "orders")
    _, measured, _ = drilled(kraft, Fault.FAILOVER, partitions="orders-1")
    assert set(measured.silences) == {CHANGES, "orders-1"}
    assert [ends(kraft, "orders", each) > 0 for each in (0, 1)] == [False, True]
    with pytest.raises(Refused, match="no partition orders-7"):
        drill.cause_faults(with_baseline_of(kraft, Fault.FAILOVER, partitions="orders-7"))


def made_topic(lab: Lab, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": ",".join(lab.spec.bootstrap_servers)})
    topic = NewTopic(name, num_partitions=2, replication_factor=1, config={"cleanup.policy": "compact"})
    admin.create_topics([topic])[name].result(30)


def ends(lab: Lab, topic: str, number: int) -> int:
    consumer = Consumer({"bootstrap.servers": ",".join(lab.spec.bootstrap_servers), "group.id": "none"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=30)[1])
    finally:
        consumer.close()


def with_baseline_of(lab: Lab, fault: Fault, **form: object) -> Run:
    run, kept, _ = run_of(lab, fault, **form)
    kept.record(Drilled(values=Measured(2.0, {CHANGES: 1.0}).to_dict(), what="baseline", fault="none", node_id=None))
    return run


@pytest.mark.long
@pytest.mark.parametrize("fault", [Fault.SHUTDOWN, Fault.KILL])
def test_the_other_faults_in_kraft_mode(kraft_of_three: Lab, fault: Fault) -> None:
    _, measured, _ = drilled(allowing_sigkill(kraft_of_three), fault)
    require_handover(measured, of_broker=fault is Fault.SHUTDOWN)
    assert set(measured.control) == {f"controller {each}" for each in kraft_of_three.spec.controller_ids}
    by_hand.wait_until("all is whole", lambda: whole(kraft_of_three))


@pytest.mark.long
@pytest.mark.parametrize("fault", [Fault.FAILOVER, Fault.SHUTDOWN])
def test_the_faults_in_zookeeper_mode(zookeeper_of_three: Lab, fault: Fault) -> None:
    before = {each.pid for each in processes(layout(zookeeper_of_three.spec)).values() if each.pid}
    _, measured, _ = drilled(zookeeper_of_three, fault)
    after = {each.pid for each in processes(layout(zookeeper_of_three.spec)).values() if each.pid}
    assert (before == after) == (fault is Fault.FAILOVER), "only a shutdown restarts a process"
    require_handover(measured, of_broker=fault is Fault.SHUTDOWN)
    assert set(measured.control) <= set(measured.processors.by_name), measured.processors.unread
    assert any(each.startswith("ZooKeeper") for each in measured.control)
    assert CHANGES in measured.silences
    by_hand.wait_until("all is whole", lambda: whole(zookeeper_of_three))


@pytest.mark.long
def test_a_controller_killed_in_zookeeper_mode_is_missed_once_its_session_ends(zookeeper_of_three: Lab) -> None:
    lab = allowing_sigkill(zookeeper_of_three)
    _, measured, kept = drilled(lab, Fault.KILL, stall_budget=180.0)
    session = session_timeout_ms(lab.spec, kept.bodies[-1]["node_id"]) / 1000
    assert measured.loss is not None
    assert session * 0.5 < measured.loss.noticed < session + 30, "a busy machine notices later"
    assert measured.loss.served is not None
    assert measured.of_changes is not None and measured.of_changes > measured.loss.noticed * 0.5
    require_handover(measured, of_broker=True)
    by_hand.wait_until("all is whole", lambda: whole(lab))
    alone = made_alone(lab)
    with pytest.raises(Refused, match=rf"too few replicas in sync: .*{alone}-\d"):
        drill.cause_faults(with_baseline_of(lab, Fault.KILL, stall_budget=180.0))


def made_alone(lab: Lab) -> str:
    """A topic with one replica on each broker: whoever is killed leads a partition that nobody else can lead."""
    admin = AdminClient({"bootstrap.servers": ",".join(lab.spec.bootstrap_servers)})
    assignment = [[each] for each in lab.spec.broker_ids]
    topic = NewTopic("alone", num_partitions=len(assignment), replica_assignment=assignment)
    admin.create_topics([topic])["alone"].result(30)
    return "alone"


def require_handover(measured: Measured, *, of_broker: bool) -> None:
    assert (measured.handover is not None) == of_broker
    if measured.handover is not None:
        assert measured.handover.led > 0
        assert measured.handover.seconds is not None and measured.handover.seconds < 60


def allowing_sigkill(lab: Lab) -> Lab:
    return with_spec(lab, quorum_drill=lab.spec.quorum_drill.model_copy(update={"sigkill": True}))


class Killed(BaseException):
    """In the place of a worker's end: nothing that follows is done."""


class Doomed(Cluster):
    """The worker ends between the stop and the start."""

    def play(self, what: Play) -> PlaybookResult:
        if what.playbook == "start_node":
            raise Killed
        return super().play(what)


@pytest.mark.long
def test_a_worker_that_is_killed_in_the_middle_leaves_nothing_stopped_once_the_run_has_mended(kraft: Changed) -> None:
    run, kept, _ = run_of(kraft, Fault.FAILOVER)
    drill.measure_baseline(run)
    doomed = run_on(Doomed(kraft.spec, kraft.secrets, print), kept, **run.params)
    with pytest.raises(Killed):
        drill.cause_faults(doomed)
    (node,) = drill.stopped(kept.records())
    service = kraft.spec.controller(node).service
    assert not processes(layout(kraft.as_made))[service].runs
    assert drill.end(run)["started"] == [node]
    assert processes(layout(kraft.as_made))[service].runs
    assert whole(kraft)


@pytest.mark.long
def test_a_budget_that_is_exceeded_mends_first(kraft: Lab) -> None:
    run, kept, _ = run_of(kraft, Fault.FAILOVER, stall_budget=0.05)
    drill.measure_baseline(run)
    with pytest.raises(StepFailed, match="exceeded the budget"):
        drill.cause_faults(run)
    assert drill.stopped(kept.records()) == []
    assert whole(kraft)
    assert drill.end(run)["started"] == []
