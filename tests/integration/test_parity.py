"""Parity on a real cluster in dual write: what matches, what does not whatever it looks like, and every kind of planted
difference.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import by_hand
import pytest
from by_hand import answered
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, NewTopic
from confluent_kafka.admin import AlterConfigOpType as Op
from kazoo.client import KazooClient
from labs import Lab
from pyspark.sql import SparkSession
from zookeeper_log import CLOSE_SESSION, CREATE_SESSION, transactions

from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.errors import RunbookError, SecretMissing
from kraft_runbook.io.kafka.metadata_log_reader import MetadataLogReader, Position
from kraft_runbook.io.kafka.metadata_quorum import broker_mode, controller_mode, describe_quorum
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata import canonical_rows, metadata_version
from kraft_runbook.metadata.canonical_rows import Fingerprints, Kind
from kraft_runbook.metadata.image.log_replay import LogReplay
from kraft_runbook.metadata.log.record_schemas import RecordType
from kraft_runbook.parity import comparison, coverage
from kraft_runbook.parity.comparison import ParityReport, Verdict
from kraft_runbook.parity.dual_write import read_migration
from kraft_runbook.parity.final_proof import FinalProof, what_lies_behind
from kraft_runbook.parity.log_follower import LogFollower
from kraft_runbook.parity.proven import read_head, read_rows, read_state, write_proven
from kraft_runbook.parity.quorum_facts import declared_rows
from kraft_runbook.parity.since import compare_since
from kraft_runbook.parity.spark.full_comparison import run_parity
from kraft_runbook.procedures.raise_versions import raise_all
from lab.layout import zookeeper_servers

Edit = Callable[[bytes], bytes | None]


@pytest.fixture(scope="module")
def own_lab(dual_write: Lab) -> Lab:
    return dual_write


@pytest.fixture(scope="module")
def baseline(dual_write: Lab, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("baseline") / "lab"
    report = run_parity(dual_write.spec, secrets=dual_write.secrets, spark=spark, save_proven=[path])
    assert report.verdict is Verdict.MATCH, report.render_text()
    return path


@pytest.fixture
def caught_up(dual_write: Lab) -> None:
    """No state znode lies behind. Some do after any start of the cluster: a controller writes a znode once for several
    changes of a partition.
    """
    proven = describe_quorum(dual_write.spec, secrets=dual_write.secrets).high_watermark
    until_written(dual_write)
    with FinalProof(dual_write.spec, since=proven, secrets=dual_write.secrets) as proof:
        raise_all(proof, tell=print)
    assert what_lies_behind(dual_write.spec, secrets=dual_write.secrets) is None


def compare(lab: Lab, spark: SparkSession, **options: Any) -> ParityReport:
    return run_parity(lab.spec, secrets=lab.secrets, spark=spark, **options)


def until_written(lab: Lab) -> None:
    """Wait until /migration has passed what is acknowledged by now: what is counted is the metadata at that offset."""
    end = describe_quorum(lab.spec, secrets=lab.secrets).high_watermark
    with ZookeeperReader(lab.spec.zookeeper, secrets=lab.secrets) as reader:
        by_hand.wait_until(f"/migration at {end}", lambda: read_migration(reader).kraft_metadata_offset >= end)


@contextmanager
def planted(zookeeper: KazooClient, edits: dict[str, Edit]) -> Iterator[None]:
    """The znodes changed (None: deleted), and put back afterwards, with a version that does not lie behind."""
    before = {path: zookeeper.get(path) for path in edits}
    try:
        for path, edit in edits.items():
            after = edit(before[path][0])
            zookeeper.delete(path) if after is None else zookeeper.set(path, after)
        yield
    finally:
        for path, (data, stat) in before.items():
            if not zookeeper.exists(path):
                zookeeper.create(path, data)
            while zookeeper.set(path, data).version < stat.version:
                pass


@contextmanager
def added(zookeeper: KazooClient, znodes: dict[str, bytes]) -> Iterator[None]:
    """Znodes that were not there, and are gone afterwards."""
    try:
        for path, data in znodes.items():
            zookeeper.create(path, data)
        yield
    finally:
        for path in znodes:
            zookeeper.delete(path)


def field(*path: str, to: Any) -> Edit:
    """An edit of one field of a JSON znode; ``to`` a value, or a function of the old one."""

    def edit(data: bytes) -> bytes:
        parsed = json.loads(data)
        inner = parsed
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = to(inner[path[-1]]) if callable(to) else to
        return json.dumps(parsed).encode()

    return edit


def respelt(data: bytes) -> bytes:
    """The same JSON with other spacing and another order of keys."""
    return json.dumps(dict(reversed(json.loads(data).items())), indent=3).encode()


def test_dual_write_matches_in_every_kind_and_shows_no_secret(dual_write: Lab, spark: SparkSession) -> None:
    report = compare(dual_write, spark)
    assert report.verdict is Verdict.MATCH, report.render_text()
    assert {each.kind for each in report.counts} == {
        kind.value for kind in Kind if kind not in (Kind.UNREADABLE, Kind.WHOLE_TOPIC, Kind.MANY_EPOCHS)
    }
    assert 0 < report.migration_offset <= report.end_offset
    shown = json.dumps(report.to_dict()) + report.render_text() + report.render_markdown()
    assert not [
        name
        for name, value in dual_write.environment.items()
        if name.startswith("KRB_LAB_") and "SECRET" in name and value in shown
    ]


def test_harmless_differences_are_none(dual_write: Lab, zookeeper: KazooClient, spark: SparkSession) -> None:
    state = "/brokers/topics/orders/partitions/0/state"
    edits: dict[str, Edit] = {
        state: lambda data: field("isr", to=lambda isr: isr[::-1])(field("controller_epoch", to=99)(data)),
        "/brokers/topics/orders": respelt,
        "/config/topics/payments": respelt,
        "/config/users/alice": respelt,
        "/kafka-acl/Topic/orders": field("acls", to=lambda acls: acls[::-1]),
        "/cluster/id": respelt,
    }
    with planted(zookeeper, edits):
        report = compare(dual_write, spark)
    assert report.verdict is Verdict.MATCH, report.render_text()


@pytest.mark.usefixtures("caught_up")
def test_a_state_znode_that_was_made_anew_is_no_difference_and_is_told_until_its_version_has_caught_up(
    dual_write: Lab, zookeeper: KazooClient, spark: SparkSession
) -> None:
    state = "/brokers/topics/orders/partitions/5/state"
    epoch = by_hand.make_state_anew(zookeeper, "orders", 5)
    zookeeper.set(
        "/brokers/topics/orders/partitions/4/state", zookeeper.get("/brokers/topics/orders/partitions/4/state")[0]
    )  # ahead: nothing to tell
    told = compare(dual_write, spark)
    assert (told.verdict, told.behind) == (Verdict.MATCH, 1), told.render_text()
    assert [(s.kind, s.key, s.zookeeper, s.kraft) for s in told.samples] == [
        ("partition epoch", f"orders-5 ({state})", "0", str(epoch))
    ]
    assert "forbids leaving" in told.summary
    looked = what_lies_behind(dual_write.spec, secrets=dual_write.secrets)
    partitions = next(each.both + each.differ for each in told.counts if each.kind == "partition epoch")
    assert (
        looked
        == f"1 of {partitions} state znodes have a version lower than their partition epoch: orders-5 (version 0, epoch"
        f" {epoch})"
    )
    for _ in range(epoch):
        zookeeper.set(state, zookeeper.get(state)[0])
    assert compare(dual_write, spark).behind == 0
    assert what_lies_behind(dual_write.spec, secrets=dual_write.secrets) is None


@pytest.mark.usefixtures("caught_up")
def test_a_planted_difference_of_every_kind_is_found_and_named(
    dual_write: Lab, zookeeper: KazooClient, spark: SparkSession
) -> None:
    token = zookeeper.get_children("/delegation_token/tokens")[0]
    orders = "/brokers/topics/orders/partitions"
    edits: dict[str, Edit] = {
        "/brokers/topics/customers": field("topic_id", to="AAAAAAAAAAAAAAAAAAAAAQ"),
        "/brokers/topics/replica-order": field("partitions", "0", to=lambda replicas: replicas[::-1]),
        f"{orders}/0/state": field("leader_epoch", to=lambda epoch: epoch + 1),
        f"{orders}/1/state": lambda _: None,
        f"{orders}/2/state": lambda _: b"{ not json",
        "/config/topics/payments": field("config", "retention.ms", to="1"),
        "/config/brokers/<default>": field("config", "log.cleaner.threads", to="7"),
        "/config/clients/<default>": field("config", "consumer_byte_rate", to="1"),
        "/config/users/carol": field(
            "config", "SCRAM-SHA-512", to=lambda text: text.replace("iterations=4096", "iterations=8192")
        ),
        "/kafka-acl/Group/billing": field("acls", to=lambda acls: [acls[0] | {"permissionType": "Deny"}]),
        f"/delegation_token/tokens/{token}": field("renewers", to=["User%3Amallory"]),
        "/latest_producer_id_block": field("block_start", to="77000"),
        "/cluster/id": field("id", to="another-cluster"),
        "/brokers/ids/2": field("rack", to="elsewhere"),
        "/controller": field("kraftControllerEpoch", to=77),
    }
    with planted(zookeeper, edits):
        report = compare(dual_write, spark)
    assert report.verdict is Verdict.MISMATCH, report.render_text()
    named = {(sample.kind, sample.key.split(" (")[0], sample.side) for sample in report.samples}
    assert named == {
        ("topic", "customers", "differ"),
        ("replica assignment", "replica-order-0", "differ"),
        ("partition state", "orders-0", "differ"),
        ("partition state", "orders-1", "only in KRaft"),
        ("partition state", "orders-2", "only in KRaft"),
        ("unreadable znode", f"{orders}/2/state", "only in ZooKeeper"),
        ("topic config", "payments: retention.ms", "differ"),
        ("broker config", "every broker: log.cleaner.threads", "differ"),
        ("client quota", "client-id <default>: consumer_byte_rate", "differ"),
        ("SCRAM credential", "user carol, SCRAM-SHA-512", "differ"),
        ("ACL", "DENY READ on LITERAL GROUP 'billing' to User:alice from *", "only in ZooKeeper"),
        ("ACL", "ALLOW READ on LITERAL GROUP 'billing' to User:alice from *", "only in KRaft"),
        (
            "delegation token",
            next(s.key for s in report.samples if s.kind == "delegation token").split(" (")[0],
            "differ",
        ),
        ("producer id block", "/latest_producer_id_block", "differ"),
        ("cluster id", "/cluster/id and the controllers' meta.properties", "differ"),
        ("hybrid broker", "broker 2", "differ"),
        ("controller", "/controller", "differ"),
    }
    missing = next(s for s in report.samples if s.key.startswith("orders-1"))
    assert f"{orders}/1/state" in missing.key and missing.zookeeper == "absent"
    restored = compare(dual_write, spark)
    assert restored.verdict is Verdict.MATCH, restored.render_text()


def test_what_stands_under_another_spelling_of_a_name_is_read_where_it_was_seen(
    dual_write: Lab, zookeeper: KazooClient, spark: SparkSession
) -> None:
    """Kafka reads + as a space in these names, and writes %20 itself: a path made from the name would miss both."""
    quota = json.dumps({"version": 1, "config": {"producer_byte_rate": "1024"}}).encode()
    with added(zookeeper, {"/config/users/CN%3Dx%2C+O%3Dy": quota, "/config/clients/a+b": quota}):
        report = compare(dual_write, spark)
    assert report.verdict is Verdict.MISMATCH, report.render_text()
    assert {(sample.key, sample.side) for sample in report.samples} == {
        ("user CN=x, O=y: producer_byte_rate (/config/users/CN%3Dx%2C+O%3Dy)", "only in ZooKeeper"),
        ("client-id a b: producer_byte_rate (/config/clients/a+b)", "only in ZooKeeper"),
    }

    alice = zookeeper.get("/config/users/alice")[0]
    with added(zookeeper, {"/config/users/%61lice": alice, "/config/clients/100%": quota}):
        report = compare(dual_write, spark)
    assert report.verdict is Verdict.MISMATCH, report.render_text()
    assert {(sample.kind, sample.key) for sample in report.samples} == {
        *((kind, f"{key} (/config/users/%61lice, /config/users/alice)") for kind, key in ALICE),
        ("unreadable znode", "/config/clients/100%"),
    }
    assert all("it 2 times:" in sample.zookeeper for sample in report.samples if "alice" in sample.key)


ALICE = (
    ("SCRAM credential", "user alice, SCRAM-SHA-256"),
    ("SCRAM credential", "user alice, SCRAM-SHA-512"),
    ("client quota", "user alice: request_percentage"),
)


def test_every_znode_below_the_root_is_compared_or_listed_as_not_compared(
    dual_write: Lab, zookeeper: KazooClient
) -> None:
    known = {path.split("/")[1] for path in coverage.ZNODES}
    assert {name for name in zookeeper.get_children("/") if name != "zookeeper"} <= known


def test_a_version_that_does_not_cover_the_brokers_protocol_is_a_difference(
    dual_write: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(metadata_version.LEVELS, "3.9-IV0", 22)
    replay = LogReplay(
        describe_quorum(dual_write.spec, secrets=dual_write.secrets).high_watermark - 1,
        Fingerprints(b""),
        dual_write.spec.kafka.ibp,
    )
    with LogFollower(dual_write.spec, replay, secrets=dual_write.secrets) as log:
        log.read_to(replay.start)
    versions = [v for v in replay.versions_beside_topics() if v.kind is Kind.METADATA_VERSION]
    (difference,) = comparison.compare(declared_rows(dual_write.spec), versions).differences
    assert "covered false" in str(difference)


def test_it_writes_nothing_to_either_store(dual_write: Lab, spark: SparkSession, tmp_path: Path) -> None:
    """By both logs: the sessions that came while it compared changed no znode, and no request changed the metadata."""
    spec, secrets = dual_write.spec, dual_write.secrets
    (server,) = zookeeper_servers(spec)
    before = list(transactions(server.data))
    quorum = describe_quorum(spec, secrets=secrets)
    proven = tmp_path / "proven"
    assert compare(dual_write, spark, save_proven=[proven]).verdict is Verdict.MATCH
    assert compare_since(spec, proven, secrets=secrets).verdict is Verdict.MATCH
    what_lies_behind(spec, secrets=secrets)
    end = describe_quorum(spec, secrets=secrets)

    meanwhile = list(transactions(server.data))[len(before) :]
    begun = {each.session for each in meanwhile if each.type == CREATE_SESSION}
    assert len(begun) >= 2, "the driver's session and those of Spark's workers"
    assert {each.type for each in meanwhile if each.session in begun} == {CREATE_SESSION, CLOSE_SESSION}
    known = {each.session for each in before}
    assert {each.session for each in meanwhile} - begun <= known, "the rest is of the cluster's own sessions"
    start = Position(quorum.high_watermark, quorum.leader_epoch)
    with MetadataLogReader(spec, end.leader_id, end.leader_epoch, secrets=secrets) as reader:
        chunks = reader.chunks(end=end.high_watermark - 1, start=start)
        found = {record.api_key for chunk in chunks for record in chunk.records()}
    assert found <= {RecordType.NO_OP, RecordType.PARTITION_CHANGE}, "what a quorum writes by itself"


def test_it_matches_while_everything_changes(dual_write: Lab, spark: SparkSession) -> None:
    stop, made = threading.Event(), [0]

    def churn() -> None:
        admin = AdminClient({"bootstrap.servers": ",".join(dual_write.spec.bootstrap_servers)})
        while not stop.is_set():
            name = f"churn-{made[0]}"
            answered(admin.create_topics([NewTopic(name, 5, 3)]))
            entry = ConfigEntry("retention.ms", str(100000 + made[0]), incremental_operation=Op.SET)
            changed = ConfigResource(ConfigResource.Type.TOPIC, "orders", incremental_configs=[entry])
            answered(admin.incremental_alter_configs([changed]))
            if made[0] % 3 == 2:
                answered(admin.delete_topics([f"churn-{made[0] - 1}"]))
            made[0] += 1

    worker = threading.Thread(target=churn)
    worker.start()
    try:
        reports = [compare(dual_write, spark) for _ in range(3)]
    finally:
        stop.set()
        worker.join()
    assert made[0] > 5
    assert [report.verdict for report in reports] == [Verdict.MATCH] * 3, "\n".join(r.render_text() for r in reports)


def test_a_look_at_what_changed_since_the_proof_finds_a_difference_in_what_was_touched(
    dual_write: Lab, zookeeper: KazooClient, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, secrets, proven = dual_write.spec, dual_write.secrets, tmp_path / "proven"
    readers: list[MetadataLogReader] = []
    begin = MetadataLogReader.__init__

    def counted(self: MetadataLogReader, *args: Any, **more: Any) -> None:
        readers.append(self)
        begin(self, *args, **more)

    until_written(dual_write)  # what a test before changed would be touched since the proof
    with monkeypatch.context() as patch:
        patch.setattr(MetadataLogReader, "__init__", counted)
        compare(dual_write, spark, save_proven=[proven])
    assert len(readers) == 1, "the log is read once, for the comparison and for what is kept of it"
    nothing = compare_since(spec, proven, secrets=secrets)
    assert nothing.verdict is Verdict.MATCH, nothing.render_text()

    admin = AdminClient({"bootstrap.servers": ",".join(spec.bootstrap_servers)})
    entry = ConfigEntry("retention.ms", "123456", incremental_operation=Op.SET)
    changed = ConfigResource(ConfigResource.Type.TOPIC, "clicks", incremental_configs=[entry])
    answered(
        admin.create_topics([NewTopic("since-1", 3, 3), NewTopic("since-2", 3, 3, config={"retention.ms": "654321"})])
    )
    answered(admin.incremental_alter_configs([changed]))
    answered(admin.delete_topics(["since-2"]))
    until_written(dual_write)
    after = compare_since(spec, proven, secrets=secrets)
    assert after.verdict is Verdict.MATCH, after.render_text()
    counted = {each.kind: each.both for each in after.counts}
    assert (counted["topic"], counted["partition state"], counted["topic config"]) == (1, 3, 1)

    with planted(zookeeper, {"/config/topics/clicks": field("config", "retention.ms", to="1")}):
        found = compare_since(spec, proven, secrets=secrets)
    assert found.verdict is Verdict.MISMATCH, found.render_text()
    assert [sample.key for sample in found.samples] == ["clicks: retention.ms (/config/topics/clicks)"]
    with added(zookeeper, {"/config/topics/since-2": b"{ not json"}):
        found = compare_since(spec, proven, secrets=secrets)
    assert found.verdict is Verdict.MISMATCH, found.render_text()
    assert [sample.key for sample in found.samples] == ["/config/topics/since-2"], (
        "what can't be read is not absent, though the log deleted it"
    )
    assert compare_since(spec, proven, secrets=secrets).verdict is Verdict.MATCH


def test_a_proof_that_is_too_old_is_not_built_on(dual_write: Lab, spark: SparkSession, tmp_path: Path) -> None:
    compare(dual_write, spark, save_proven=[tmp_path / "proven"])
    proof, secrets = tmp_path / "proven", dual_write.secrets
    report = compare_since(dual_write.spec, proof, secrets=secrets, full_after=timedelta(0))
    assert report.verdict is Verdict.INCONCLUSIVE
    assert "the last full comparison ended at" in report.summary and "--save-proven" in report.obstacles[0].way_out
    with pytest.raises(RunbookError, match="there is no proven state"):
        compare_since(dual_write.spec, tmp_path / "none", secrets=dual_write.secrets)


def test_without_the_encoders_secret_it_is_inconclusive_and_says_what_to_do(
    dual_write: Lab, spark: SparkSession
) -> None:
    def without(ref: SecretRef) -> str:
        raise SecretMissing(f"{ref} is not set", way_out="export it")

    report = run_parity(dual_write.spec, secrets=without, spark=spark)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert "broker config broker 1" in report.summary and "is not set" in report.summary
    assert "password.encoder.secret" in report.obstacles[0].way_out


def test_after_finalization_it_compares_with_the_last_proven_state(
    dual_write: Lab, spark: SparkSession, baseline: Path, tmp_path: Path
) -> None:
    spec, secrets = dual_write.spec, dual_write.secrets
    by_hand.roll_brokers(spec, BrokerMode.KRAFT, secrets=secrets)
    between = compare(dual_write, spark)
    assert between.verdict is Verdict.MATCH, between.render_text()
    by_hand.finalize(spec, secrets=secrets)

    assert {broker_mode(spec, each, secrets=secrets) for each in spec.brokers} == {BrokerMode.KRAFT}
    assert {controller_mode(spec, each, secrets=secrets) for each in spec.controllers} == {ControllerMode.KRAFT}

    pretending = compare(dual_write, spark)
    assert pretending.verdict is Verdict.INCONCLUSIVE
    assert "finalized" in pretending.summary

    report = compare(dual_write, spark, baseline=baseline)
    assert report.verdict is Verdict.MATCH, report.render_text()
    assert report.against.startswith("the baseline ")

    rows, payments = list(read_rows(baseline)), canonical_rows.whole_topic("payments", "").key
    changed = [replace(row, value='"8 1 0123"') if row.key == payments else row for row in rows]
    assert changed != rows
    write_proven(tmp_path / "changed", read_head(baseline), changed, read_state(baseline))
    refuted = compare(dual_write, spark, baseline=tmp_path / "changed")
    assert refuted.verdict is Verdict.MISMATCH, refuted.render_text()
    assert [sample.key for sample in refuted.samples] == ["payments"]
