"""``make demo-groups``: KIP-125's example with real members. Two old consumers of Kafka 1.1.1 are replaced by migrating
ones, the group is toggled to Kafka's assignment, and these are replaced by KafkaConsumers of 3.9, while records come.
After each step a picture: who owns what. At the end every record is accounted for; ``build/demo-groups/report.html``
shows all of it.

``python -m lab.demo_groups``; nothing is left running.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError, StepFailed
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.proof import ConsumptionProof, HandedOut, prove
from kraft_runbook.groups.report import GroupReport, report
from kraft_runbook.groups.toggles.toggle import Toggle, plan_toggle
from kraft_runbook.procedures.see_groups import look_at_groups
from kraft_runbook.procedures.toggle_group import toggle_group
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.toggles.toggling import see_twice
from kraft_runbook.steps.toggles.waiting import Settling
from lab import lifecycle
from lab.clients import lab_secrets
from lab.demo_groups_page import Page
from lab.health import admin, wait_until_healthy
from lab.installation import JARS
from lab.layout import ROOT, in_words, load

GROUP = TOPIC = "example"
PARTITIONS, RATE = 6, 60
"""Records a second, all partitions together."""
COMMIT_SECONDS = 0.5
STEP_SECONDS = 120.0
"""How long a step may take until the group has settled."""
OLD_JARS = ROOT / "build" / "jars-old"
HOME = ROOT / "build" / "demo-groups"
REPORT = HOME / "report.html"
PRINTED = re.compile(r"(\d+) (\d+)$", re.MULTILINE)
Say = Callable[[str], None]


@dataclass(frozen=True)
class Stage:
    """One step of the example. ``starts``, ``stops``: members; ``toggles``: to Kafka's assignment; ``then``: what the
    group is once it has settled.
    """

    title: str
    then: GroupClass
    starts: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    toggles: bool = False


EXAMPLE = (
    Stage("two old members", GroupClass.ALL_OLD, starts=("old-1", "old-2")),
    Stage("one is replaced by a migrating member", GroupClass.MIXED_OLD, ("migrating-1",), ("old-1",)),
    Stage("so is the other one", GroupClass.ALL_MIGRATING, ("migrating-2",), ("old-2",)),
    Stage("the group is toggled", GroupClass.ALL_MIGRATING, toggles=True),
    Stage("a KafkaConsumer replaces one, as a canary", GroupClass.MIXED_NEW, ("new-1",), ("migrating-1",)),
    Stage("and the other one", GroupClass.ALL_NEW, ("new-2",), ("migrating-2",)),
)


@dataclass
class Members:
    """Processes, by their names; each prints what it reads into a log of that name."""

    spec: ClusterSpec
    where: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    command: Callable[[str, ClusterSpec, Path], list[str]] = field(default_factory=lambda: command)

    def start(self, name: str) -> None:
        with (self.where / f"{name}.log").open("wb") as log, (self.where / f"{name}.err").open("wb") as errors:
            self.running[name] = subprocess.Popen(self.command(name, self.spec, self.where), stdout=log, stderr=errors)

    def stop(self, name: str) -> None:
        """In an orderly way: it commits."""
        process = self.running.pop(name)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def ended(self) -> list[str]:
        return [name for name, process in self.running.items() if process.poll() is not None]

    def proof(self, sent: Mapping[int, int]) -> ConsumptionProof:
        """Of what they have printed. ``sent``: how many records each partition has. When is not known of old ones."""
        records = (
            HandedOut(TOPIC, int(partition), int(number), log.stem)
            for log in self.where.glob("*.log")
            for partition, number in PRINTED.findall(log.read_text())
        )
        return prove(records, {(TOPIC, partition): (0, count) for partition, count in sent.items()})


def command(name: str, spec: ClusterSpec, where: Path) -> list[str]:
    """How a member is started. Old and migrating ones get their name as consumer.id, a new one as client.id."""
    brokers, zookeeper = ",".join(spec.bootstrap_servers), spec.ensemble.connect
    if name.startswith("migrating"):
        settings = {
            "group.id": GROUP,
            "consumer.id": name,
            "zookeeper.connect": zookeeper,
            "auto.offset.reset": "smallest",
            "auto.commit.interval.ms": f"{COMMIT_SECONDS * 1000:.0f}",
            "coordination.migration.enabled": "true",
            "coordination.migration.bootstrap.servers": brokers,
        }
        given = [f"{key}={value}" for key, value in settings.items()]
        return [sys.executable, "-m", "kraft_runbook_consumer", "--topic", TOPIC, *given]
    if name.startswith("new"):
        properties = {"client.id": name, "auto.offset.reset": "none", "auto.commit.interval.ms": "500"}
        options = [each for k, v in properties.items() for each in ("--consumer-property", f"{k}={v}")]
        java = ["java", "-Xmx128m", "-cp", f"{JARS}/*", "org.apache.kafka.tools.consumer.ConsoleConsumer"]
        return [*java, "--bootstrap-server", brokers, "--topic", TOPIC, "--group", GROUP, *options]
    file = where / f"{name}.properties"
    file.write_text(
        f"group.id={GROUP}\nconsumer.id={name}\nauto.offset.reset=largest\nauto.commit.interval.ms=500\n"
        "zookeeper.session.timeout.ms=6000\nrebalance.backoff.ms=500\n"
    )
    java = ["java", "-Xmx128m", "-cp", f"{OLD_JARS}/*", "kafka.tools.ConsoleConsumer"]
    return [*java, "--zookeeper", zookeeper, "--topic", TOPIC, "--consumer.config", str(file)]


def owners(found: GroupReport) -> dict[str, list[str]]:
    """Partitions by the member that reads them, by the name that this demo gave it. Who owns a partition in ZooKeeper
    reads it; without such an owner it is who Kafka assigns it to.
    """
    of_member: dict[str, list[str]] = {}
    for row in found.partitions:
        owner = row.zookeeper_owner.rpartition("-")[0] if row.zookeeper_owner else row.kafka_owner
        if owner is not None:
            of_member.setdefault(owner.removeprefix(f"{GROUP}_"), []).append(row.partition.rpartition("-")[2])
    return of_member


def picture(number: int, stage: Stage, found: GroupReport, sent: int) -> str:
    """Who owns what, in text."""
    follows = f"the offsets of {found.follows} count" if found.follows else "nobody can tell whose offsets count"
    lines = [f"{number} · {stage.title}: {found.group_class}, {follows}, {sent:,} records so far"]
    for member, partitions in sorted(owners(found).items()):
        lines.append(f"    {member:12} {'■ ' * len(partitions)}{' '.join(partitions)}")
    return "\n".join(lines)


class Records(threading.Thread):
    """They come until it is told to stop. ``sent``: of each partition."""

    def __init__(self, spec: ClusterSpec) -> None:
        super().__init__()
        self.sent = dict.fromkeys(range(PARTITIONS), 0)
        self._ended = threading.Event()
        settings = {"bootstrap.servers": ",".join(spec.bootstrap_servers), "enable.idempotence": True, "linger.ms": 0}
        self._producer = Producer(settings)

    def run(self) -> None:
        number = 0
        while not self._ended.wait(1 / RATE):
            partition = number % PARTITIONS
            self._producer.produce(TOPIC, f"{partition} {self.sent[partition]}".encode(), partition=partition)
            self._producer.poll(0)
            self.sent[partition] += 1
            number += 1
        self._producer.flush(30)

    def stop(self) -> None:
        self._ended.set()
        self.join()


def run(say: Say = print) -> int:
    """The whole demo. Exit code 0 only where no record is lost or came twice."""
    place = {"KRB_LAB_DIR": str(HOME / "lab"), "KRB_LAB_NET": os.environ.get("KRB_DEMO_NET", "127.41.0")}
    os.environ.update(place)
    spec = load()
    lifecycle.down(spec, purge=True)
    HOME.mkdir(parents=True, exist_ok=True)
    for file in (each for kind in ("log", "err", "properties") for each in HOME.glob(f"*.{kind}")):
        file.unlink()
    cluster, members, records = Cluster(spec, lab_secrets(spec), say), Members(spec, HOME), None
    page, proof = Page(spec.name), None
    try:
        say(f"starting the lab: {in_words(spec)}")
        lifecycle.up(spec, say=lambda line: None)
        wait_until_healthy(spec, say=lambda line: None)
        client = admin(spec)  # kept: a temporary one does not answer
        for made in client.create_topics([NewTopic(TOPIC, PARTITIONS, 3)]).values():
            made.result(60)
        for number, stage in enumerate(EXAMPLE, 1):
            take(cluster, members, stage)
            if records is None:
                records = Records(spec)
                records.start()
            time.sleep(2)
            found = seen(cluster)
            say(told := picture(number, stage, found, sum(records.sent.values())))
            page.step(number, stage.title, told, owners(found), PARTITIONS)
        assert records is not None
        records.stop()
        sent = records.sent
        await_that(members, "every record to be read", lambda: not members.proof(sent).count("lost"))
        proof = members.proof(sent)
        say(proof.render_text())
        return 0 if proof.holds else 1
    except RunbookError as error:
        say(str(error))
        return 1
    finally:
        if records is not None and records.is_alive():
            records.stop()
        for name in list(members.running):
            members.stop(name)
        lifecycle.down(spec, purge=True)
        page.end(proof)
        REPORT.write_text(page.html())
        say(f"the report: {REPORT}")


def take(cluster: Cluster, members: Members, stage: Stage) -> None:
    """One step of the example, until the group has settled: who comes starts before who goes stops."""
    for name in stage.starts:
        members.start(name)
    if stage.stops:
        await_that(members, f"{', '.join(stage.starts)} to join", lambda: joined(cluster, stage.starts))
    for name in stage.stops:
        members.stop(name)
    if stage.toggles:
        toggle(cluster, members)
    await_that(members, f"the group to be {stage.then}", lambda: settled(cluster, stage.then, members.running))


def toggle(cluster: Cluster, members: Members) -> None:
    """As a run of toggle_consumer_group does it, without its gate. Raises RunbookError."""
    ready: list[Toggle] = []

    def planned() -> bool:
        earlier, now = see_twice(cluster, [GROUP])
        found = plan_toggle(earlier[0], now[0], Direction.TO_KAFKA)
        if isinstance(found, Toggle):
            cluster.do(toggle_group, found, earlier[0], would=())
            ready.append(found)
        return bool(ready)

    await_that(members, "the group to be ready for a toggle", planned)
    settling = Settling({GROUP: Direction.TO_KAFKA.value}, COMMIT_SECONDS)
    await_that(members, "the toggled group to settle", lambda: settling.look(cluster))


def seen(cluster: Cluster) -> GroupReport:
    (look,) = cluster.ask(look_at_groups, names=[GROUP])
    return report(look)


def joined(cluster: Cluster, names: Iterable[str]) -> bool:
    """Whether these members own something."""
    return set(names) <= owners(seen(cluster)).keys()


def settled(cluster: Cluster, expected: GroupClass, names: Collection[str]) -> bool:
    """Whether the group is of this class, and each of these members owns something and nobody else does."""
    looks = cluster.ask(look_at_groups, names=[GROUP])
    if not looks:
        return False
    found = report(looks[0])
    of_member = owners(found)
    every = sum(map(len, of_member.values())) == PARTITIONS
    return found.group_class is expected and set(of_member) == set(names) and every


def await_that(members: Members, what: str, holds: Callable[[], bool]) -> None:
    """Raises StepFailed where a member has ended by itself, or it does not hold in time."""
    ends = time.monotonic() + STEP_SECONDS
    while not holds():
        if ended := members.ended():
            raise StepFailed(f"{', '.join(ended)} ended", way_out=f"read its .err in {HOME}")
        if time.monotonic() > ends:
            raise StepFailed(f"waited {STEP_SECONDS:.0f} s for {what}", way_out=f"read the members' .err in {HOME}")
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(run())
