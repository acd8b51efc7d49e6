"""A real finalized cluster, half-way from 3.9 to 4.x, goes on to its end and its level to the newest, under a real
Airflow, a workload, and clients that only 3.9 answers. The tests build on one another, in this order.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import on_kafka4
import pytest
import scala_clients
from confluent_kafka.admin import NewTopic
from labs import Lab
from stage import ENDED, Stage, a_stage, kill_worker_of_playbook, no_acknowledged_record_is_lost

from kraft_runbook.cluster.feature_levels import METADATA_VERSION, LevelsInLog
from lab.health import admin
from lab.layout import starts
from lab.software import write_cluster_file

UP, BACK, LEVELS = "upgrade_software__lab", "downgrade_software__lab", "upgrade_features__lab"
RELICS, READER = "relics", "billing"
"""The topic of the old clients, and the client id of the one that reads."""
LAST_ON_3 = 2
"""The broker that is still on 3.9 when the run begins."""
pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with on_kafka4.finalized_lab(on_new=(1, 3, 101, 103)) as found:
        yield found


@pytest.fixture(scope="module")
def stage(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    clusters = write_cluster_file(tmp_path_factory.mktemp("files") / "clusters").parent
    with a_stage(lab, tmp_path_factory.mktemp("airflow"), clusters=clusters) as opened:
        yield opened


@pytest.mark.begins
def test_a_half_done_roll_goes_on_and_the_level_rises_and_no_acknowledged_record_is_lost(
    stage: Stage, lab: Lab, tmp_path: Path
) -> None:
    began = starts(lab.spec)
    old_clients_are_answered_by_3_9(lab)
    with no_acknowledged_record_is_lost(lab, tmp_path / "account.json"):
        run_id = stage.start(UP)
        stage.wait(UP, run_id, "gate_software_up.approve", {"awaiting_input"})
        asked = stage.client.gate(UP, run_id, "gate_software_up.approve")["body"]
        assert "### Defaults that change with Kafka 4.1.1" in asked and "log.message.timestamp.after.max.ms" in asked
        the_gate_names_the_old_clients(asked)
        stage.client.answer(UP, run_id, "gate_software_up.approve", "Approve")
        a_killed_worker_costs_no_needless_restart(stage, run_id)
        assert stage.run_to_its_end(UP, run_id) == "success", stage.failures(UP, run_id)
        assert on_kafka4.versions(lab) == {"4.1.1"}
        again = stage.registered_anew(UP, run_id)
        raised = stage.start(LEVELS, feature=METADATA_VERSION, level="4.1")
        assert stage.run_to_its_end(LEVELS, raised) == "success", stage.failures(LEVELS, raised)
    old_clients_are_refused_by_4(lab)
    ended = starts(lab.spec)
    restarted = {
        node.service
        for node in (*lab.spec.brokers, *lab.spec.controllers)
        if began[node.service] != ended[node.service]
    }
    assert restarted == {"broker-2", "controller-102", *again}
    assert all(ended[each] == began[each] + 1 for each in restarted - again), "once, although a worker was killed"
    seen = on_kafka4.look(lab)
    assert isinstance(seen.log, LevelsInLog) and seen.log.levels[METADATA_VERSION] == 27


def old_clients_are_answered_by_3_9(lab: Lab) -> None:
    """They talk to the one broker that is still on 3.9, whose request log says who they are."""
    others = [each for each in lab.spec.broker_ids if each != LAST_ON_3]
    made = NewTopic(RELICS, num_partitions=1, replica_assignment=[[LAST_ON_3, *others]])
    client = admin(lab.spec)  # its requests end with it
    client.create_topics([made])[RELICS].result(30)
    on_kafka4.log_requests(lab, LAST_ON_3)
    address = lab.spec.broker_address(lab.spec.broker(LAST_ON_3))
    sent = scala_clients.produce(address, RELICS, ["one", "two"])
    assert sent.returncode == 0, sent.stderr
    read = scala_clients.consume(address, RELICS, 2, client_id=READER)
    assert read.stdout.split() == ["one", "two"], read.stderr


def the_gate_names_the_old_clients(asked: str) -> None:
    """By their requests, as the broker counts them, and by client id, principal and address, as its log says."""
    assert "KRB-PRE-094" in asked
    for request in ("Produce 2", "Fetch 3", "ListOffsets 0"):
        assert f"| software that gives no name | {request} |" in asked, asked
    for client_id, request in (("console-producer", "PRODUCE 2"), (READER, "FETCH 3"), (READER, "LIST_OFFSETS 0")):
        assert f"| {client_id} | User:ANONYMOUS | 127.0.0.1 | {request} |" in asked, asked


def old_clients_are_refused_by_4(lab: Lab) -> None:
    """The broker closes the connection: the client is told nothing else."""
    address = lab.spec.broker_address(lab.spec.broker(LAST_ON_3))
    sent = scala_clients.produce(address, RELICS, ["three"])
    assert sent.returncode == 1 and "java.io.EOFException" in sent.stderr, sent.stderr
    assert "Failed to send messages after 3 tries" in sent.stderr, sent.stderr
    read = scala_clients.consume(address, RELICS, 2, client_id=READER)
    assert (read.returncode, read.stdout) == (1, "") and "java.io.EOFException" in read.stderr, read


def a_killed_worker_costs_no_needless_restart(stage: Stage, run_id: str) -> None:
    restart = "roll_brokers_up.broker_2.restart"
    stage.wait(UP, run_id, restart, {"running"})
    kill_worker_of_playbook(stage, "switch_software")
    assert stage.wait(UP, run_id, restart, ENDED) == "failed"
    stage.resume(UP, run_id, restart)


@pytest.mark.long
def test_the_java_clients_of_the_same_release_are_answered_by_4(lab: Lab) -> None:
    """They speak Produce 5 and Fetch 7: it is the version of a request that counts, not of the client."""
    servers = ",".join(lab.spec.bootstrap_servers)
    sent = scala_clients.produce_by_java(servers, RELICS, ["three"])
    assert sent.returncode == 0, sent.stderr
    read = scala_clients.consume_by_java(servers, RELICS, 3)
    assert read.stdout.split() == ["one", "two", "three"], read.stderr


@pytest.mark.long
def test_what_was_signed_shows_the_plan_and_the_servers_answer(stage: Stage) -> None:
    run_id = stage.start(LEVELS, feature="group.version", level="1")
    stage.wait(LEVELS, run_id, "gate_level.approve", {"awaiting_input"})
    body = stage.client.gate(LEVELS, run_id, "gate_level.approve")["body"]
    assert "group.version 0 -> 1 (GV_1), by the table of Kafka 4.1.1" in body
    assert "the quorum's leader accepts it (validate-only, nothing was changed)" in body
    stage.client.answer(LEVELS, run_id, "gate_level.approve", "Reject")
    assert stage.wait(LEVELS, run_id, "closing_report", ENDED) == "failed"


@pytest.mark.long
def test_what_can_t_be_had_is_refused_at_its_plan(stage: Stage) -> None:
    for level, down, words in (
        ("22", False, "trigger the run anew, with 'Lower it' ticked"),
        ("22", True, "crosses what changed metadata: 23 (4.0-IV1"),
        ("28", False, "Kafka 4.1.1 supports metadata.version 7-27; 28 is beyond that"),
    ):
        run_id = stage.start(LEVELS, feature=METADATA_VERSION, level=level, down=down)
        assert stage.wait(LEVELS, run_id, "plan", ENDED) == "failed"
        assert words in stage.log(LEVELS, run_id, "plan"), stage.log(LEVELS, run_id, "plan")
        assert stage.wait(LEVELS, run_id, "closing_report", ENDED) == "failed"


@pytest.mark.long
def test_the_way_back_is_closed_and_nobody_is_asked(stage: Stage, lab: Lab) -> None:
    began = starts(lab.spec)
    run_id = stage.start(BACK)
    assert stage.wait(BACK, run_id, "gate_software_back.prove", ENDED) == "failed"
    said = stage.log(BACK, run_id, "gate_software_back.prove")
    assert "KRB-UPG-005" in said and "23 (4.0-IV1) between changed metadata" in said
    assert stage.wait(BACK, run_id, "closing_report", ENDED) == "failed"
    assert starts(lab.spec) == began
