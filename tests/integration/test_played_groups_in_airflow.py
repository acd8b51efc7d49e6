"""A group of real old clients moves to Kafka's coordination and back by the DAG, in a real Airflow. Playbooks that the
cluster file names stop and start its application, of old clients and of Java's KafkaConsumer: nobody is asked.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import by_hand
import pytest
import yaml
from asked_java import SHORT_LIVED
from kazoo.client import KazooClient
from labs import Lab
from moving_groups import (
    COMMIT_SECONDS,
    GROUP,
    TOPIC,
    Records,
    begin_at_the_start,
    make_topic,
    owners,
    require_each_once,
)
from old_consumers import old_command
from played_application import start, stop
from stage import Stage, a_stage

from lab import ROOT
from lab.installation import JARS, java

SIDES = ("zookeeper", "kafka")
MOVE = "move_consumer_group__lab"
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: VERB the consumers
      ansible.builtin.command:
        argv: ["PYTHON", "PROGRAM", "VERB", "WHERE", "{{ coordination }}", "{{ kafka_group }}"]
      register: done
      changed_when: done.stdout != ""
"""


@pytest.fixture(scope="module")
def application(own_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the application lives: two old clients, or one KafkaConsumer that ends where Kafka has no offset."""
    where = tmp_path_factory.mktemp("application")
    begins = {"auto.offset.reset": "largest"}
    old = [
        old_command(own_lab.spec, GROUP, where / f"old-{number}.properties", ["--topic", TOPIC], begins)
        for number in range(2)
    ]
    new = [str(java()), *SHORT_LIVED, "-cp", f"{JARS}/*", "org.apache.kafka.tools.consumer.ConsoleConsumer"]
    new += ["--bootstrap-server", ",".join(own_lab.spec.bootstrap_servers), "--topic", TOPIC, "--group", GROUP]
    for setting in ("auto.offset.reset=none", "auto.commit.interval.ms=500"):
        new += ["--consumer-property", setting]
    (where / "commands.json").write_text(json.dumps({"zookeeper": old, "kafka": [new]}))
    program = Path(__file__).with_name("played_application.py")
    told = {"PYTHON": sys.executable, "PROGRAM": str(program), "WHERE": str(where)}
    for verb in ("stop", "start"):
        text = PLAY
        for word, value in {**told, "VERB": verb}.items():
            text = text.replace(word, value)
        (where / f"{verb}.yml").write_text(text)
    yield where
    for side in SIDES:
        stop(where, side)


@pytest.fixture(scope="module")
def stage(own_lab: Lab, application: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    make_topic(own_lab)
    document = yaml.safe_load((ROOT / "include" / "clusters" / "lab.yaml").read_text())
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    played = {verb: str(application / f"{verb}.yml") for verb in ("stop", "start")}
    document["group_applications"] = [{"groups": [GROUP], "hosts": {"app-1": here}, "keep_warm": True, **played}]
    clusters = tmp_path_factory.mktemp("clusters")
    text = yaml.safe_dump(document, sort_keys=False).replace("${PROJECT_ROOT}", str(ROOT))
    (clusters / "lab.yaml").write_text(text)
    with a_stage(own_lab, tmp_path_factory.mktemp("airflow"), clusters=clusters) as opened:
        yield opened


def read(where: Path, *sides: str) -> list[int]:
    """The numbers that the clients of these sides have printed."""
    logs = [each.read_text() for side in sides for each in where.glob(f"{side}-*.log")]
    return [int(number) for log in logs for number in re.findall(r"^record (\d+)$", log, re.MULTILINE)]


def moved(stage: Stage, application: Path, records: Records, direction: str) -> str:
    """One run, signed once by a person; returns its report. Records come again as soon as the old side is silent."""
    run = stage.start(MOVE, groups=GROUP, direction=direction, commit_interval=COMMIT_SECONDS)
    stage.wait(MOVE, run, "gate_move_groups.approve", {"awaiting_input"})
    page = stage.client.gate(MOVE, run, "gate_move_groups.approve")["body"]
    assert f"{GROUP}: stopped by {application / 'stop.yml'}" in page
    with records.hold() as sent:
        by_hand.wait_until("all is read", lambda: len({*read(application, *SIDES)}) == sent)
        stage.client.answer(MOVE, run, "gate_move_groups.approve", "Approve")
        stage.wait(MOVE, run, "wave_1.stop.silent", {"success"})
    stage.wait(MOVE, run, "closing_report", {"success"})
    return stage.log(MOVE, run, "closing_report")


@pytest.mark.long
def test_playbooks_stop_and_start_a_group_that_moves_to_kafka_and_back(
    own_lab: Lab, zookeeper: KazooClient, stage: Stage, application: Path
) -> None:
    records = Records(own_lab)
    begin_at_the_start(zookeeper)
    start(application, "zookeeper")
    by_hand.wait_until("both own partitions", lambda: len(owners(zookeeper)) == 2, within=60)
    with records.coming():
        said = moved(stage, application, records, "to Kafka")
        assert "- moved to Kafka: movers" in said and "- fenced: movers (4)" in said
        assert f"- started by playbook: movers: {application / 'start.yml'}" in said
        assert "- kept warm: movers: it left when the first member came" in said
        by_old = len(read(application, "zookeeper"))
        said = moved(stage, application, records, "back to ZooKeeper")
        assert "- moved back to ZooKeeper: movers" in said
        with records.hold() as sent:
            every = ("zookeeper", "kafka")
            by_hand.wait_until(
                "all is read", lambda: len({n for side in every for n in read(application, side)}) == sent
            )
            records.ended.set()
    assert (application / "played").read_text().splitlines() == [
        *(f"stop zookeeper {GROUP}", f"start kafka {GROUP}"),
        *(f"stop kafka {GROUP}", f"start zookeeper {GROUP}"),
    ]
    by_new, again = read(application, "kafka"), read(application, "zookeeper")
    require_each_once(records, again, by_new)
    assert min(by_old, len(by_new), len(again) - by_old) > 0
