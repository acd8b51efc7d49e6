"""A real cluster in ZooKeeper mode, as it is observed: whole, quickly, and honestly where a part is gone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import by_hand
import pytest
from adopting import adopt, completed
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from fault_threads import end_thread_of
from installed import install
from kazoo.client import KazooClient
from labs import Lab
from left_on_disk import drop_topic_id, leave_over, write_topic_id

from kraft_runbook.cluster.client_security import ClientSecurity, SaslMechanism, SecurityProtocol
from kraft_runbook.cluster.log_ends import LogEnds, TopicEnds
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, Loading, Unread, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.io.kafka.replica_ids import IdsHeld, ask_for_ids
from kraft_runbook.io.kafka.topics_seen import topics_seen_by
from kraft_runbook.io.local.supervision import processes
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.migration import conditions
from kraft_runbook.migration.checks import CheckResult, Severity, Verdict
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.migration.plan import make_plan
from kraft_runbook.procedures.kept_log_ends import check_log_ends
from kraft_runbook.procedures.observe import Scope, observe
from kraft_runbook.procedures.see_quorum import see_series
from kraft_runbook.quorum.checks import judge
from kraft_runbook.quorum.look import Mode
from kraft_runbook.runbook.canary import missing_numbers
from kraft_runbook.software.old_clients import old_clients
from kraft_runbook.software.operation import SOFTWARE
from lab import ROOT
from lab.layout import layout
from lab.software import with_kafka4


def look(lab: Lab, scope: Scope = Scope.LIVE, **options: bool) -> ClusterObservation:
    return observe(lab.spec, secrets=lab.secrets, scope=scope, **options)


def test_a_zookeeper_cluster_is_seen_whole(own_lab: Lab) -> None:
    seen = look(own_lab, Scope.FULL)
    assert detect_phase(seen).phase is Phase.ZOOKEEPER
    assert seen.brokers_in(BrokerMode.ZOOKEEPER) == (1, 2, 3)
    assert was_read(seen.zookeeper) and was_read(seen.zookeeper.tree) and was_read(seen.topics)
    assert {b.software_version for b in seen.brokers.values()} == {own_lab.spec.kafka.version}
    assert {b.advertised_cluster_id for b in seen.brokers.values()} == {
        seen.zookeeper.cluster_id,
        seen.topics.cluster_id,
    }
    assert {b.loading for b in seen.brokers.values()} == {Loading(groups=False, transactions=False)}
    assert seen.zookeeper.tree.topics == seen.zookeeper.topic_count == seen.topics.topic_count
    assert seen.zookeeper.tree.partitions == seen.topics.partition_count
    assert seen.zookeeper.tree.assigned_broker_ids == {1, 2, 3}
    assert seen.zookeeper.tree.acl_count > 0
    assert seen.zookeeper.server_version == "3.8.4"
    assert [c.running for c in seen.controllers.values()] == [False, False, False]
    assert {b.id: missing_numbers(b.metrics) for b in seen.brokers.values() if was_read(b.metrics)} == {
        1: (),
        2: (),
        3: (),
    }
    assert isinstance(seen.quorum, Unread)
    assert not seen.undeclared_brokers and not seen.undeclared_controllers


def test_topics_that_are_not_shown_to_this_tool_are_named(own_lab: Lab) -> None:
    """A broker leaves them out of Metadata without an error."""
    admin = AdminClient({"bootstrap.servers": own_lab.spec.bootstrap_servers[0]})
    login = UserScramCredentialUpsertion("auditor", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b"seen")
    by_hand.answered(admin.alter_user_scram_credentials([login]))
    topics = sorted(admin.list_topics(timeout=20).topics)
    hidden = topics[-1]
    where = (ResourceType.TOPIC, hidden, ResourcePatternType.LITERAL, "User:auditor", "*")
    by_hand.answered(admin.create_acls([AclBinding(*where, AclOperation.DESCRIBE, AclPermissionType.DENY)]))
    security = ClientSecurity(
        protocol=SecurityProtocol.SASL_PLAINTEXT,
        sasl_mechanism=SaslMechanism.SCRAM_SHA_256,
        username="auditor",
        password=SecretRef(env="AUDITOR"),
    )
    spec = own_lab.spec.model_copy(update={"broker_client_listener": "SASL", "broker_security": security})
    secrets = environment_secrets({**own_lab.environment, "AUDITOR": "seen"})

    by_hand.wait_until(
        "every broker knows the login and what is denied",
        lambda: all(topics_seen_by(spec, b, secrets=secrets).names == {*topics} - {hidden} for b in spec.brokers),
    )
    seen = observe(spec, secrets=secrets)
    assert was_read(seen.topics)
    assert (seen.topics.refused, seen.topics.refused_count) == ((hidden,), 1)
    found = CHECKS["KRB-PRE-100"].run(seen, spec)
    assert found.verdict is Verdict.FAIL and hidden in found.evidence
    mine = look(own_lab)
    assert was_read(mine.topics) and mine.topics.refused_count == 0


def ask_as_an_old_client(lab: Lab, broker: Broker, *, name: str = "") -> None:
    """ListOffsets version 0, as clients before Kafka 0.10.1 send it. It asks for no topic, so it changes nothing.
    ``name``: said before it, by ApiVersions version 3 with 1.0 as the software's version.
    """
    host, port = lab.spec.broker_address(broker).rsplit(":", 1)
    requests = [struct.pack(">hhih3s", 2, 0, 7, 3, b"old") + struct.pack(">ii", -1, 0)]
    if name:
        texts = b"".join(bytes([len(text) + 1]) + text for text in (name.encode(), b"1.0"))
        requests.insert(0, struct.pack(">hhih3sx", 18, 3, 6, 3, b"old") + texts + b"\0")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        for request in requests:
            connection.sendall(struct.pack(">i", len(request)) + request)
            (length,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
            assert len(connection.recv(length, socket.MSG_WAITALL)) == length


def test_requests_that_kafka_4_does_not_answer_are_counted_by_client_between_two_looks(own_lab: Lab) -> None:
    spec, old = with_kafka4(own_lab.spec), SOFTWARE.checks["KRB-PRE-094"]
    first = look(own_lab)
    assert old.run(first, spec).verdict is Verdict.PASS
    ask_as_an_old_client(own_lab, spec.brokers[1])
    ask_as_an_old_client(own_lab, spec.brokers[1], name="relic")
    second = look(own_lab)
    ask_as_an_old_client(own_lab, spec.brokers[0])
    last = look(own_lab)

    assert [each.asked for each in old_clients(second, first, "4.1.1").found] == ["ListOffsets 0"] * 2
    found = {
        (each.software, each.lately, each.total, each.brokers) for each in old_clients(last, second, "4.1.1").found
    }
    assert found == {("software that gives no name", 1, 2, (1, 2)), ("relic 1.0", 0, 1, (2,))}
    said = old.run(last, spec, second)
    assert said.verdict is Verdict.FAIL and "ListOffsets 0 of relic 1.0: 0 in the last" in said.evidence


def test_a_live_look_takes_less_than_a_second(own_lab: Lab) -> None:
    look(own_lab)
    assert min(look(own_lab).took_seconds for _ in range(3)) < 1.0


def test_a_lab_that_is_adopted_as_it_runs_would_have_no_file_written_anew(own_lab: Lab, tmp_path: Path) -> None:
    lab, spec = own_lab.spec, adopt(own_lab, tmp_path).spec
    text = (tmp_path / "adopted.yaml").read_text()
    assert not [ref for ref in lab.secrets.values() if own_lab.secrets(ref) in text]
    assert spec.broker_ids == lab.broker_ids and set(spec.secrets) >= set(lab.secrets)
    whole, secrets = completed(own_lab, tmp_path)
    seen = observe(whole.spec, secrets=secrets, scope=Scope.FULL, with_hosts=True)
    report = CHECKS.run(seen, whole.spec, Phase.ZOOKEEPER)
    assert report.verdict is Verdict.PASS, report.render_text()
    files = make_plan(seen, spec, hosts=True).files
    assert [(each.node_id, each.changes, each.unread) for each in files if each.kind == "broker"] == [
        (i, (), "") for i in lab.broker_ids
    ]


def test_preflight_of_a_fresh_lab_passes_with_hosts(own_lab: Lab) -> None:
    seen = look(own_lab, Scope.FULL, with_hosts=True)
    report = CHECKS.run(seen, own_lab.spec, Phase.ZOOKEEPER)
    assert report.verdict is Verdict.PASS, report.render_text()


def test_its_controller_and_its_zookeeper_are_healthy_and_no_quorum_is_asked_for(own_lab: Lab) -> None:
    series = see_series(own_lab.spec, secrets=own_lab.secrets)
    control = series.now.zookeeper
    assert series.now.mode is Mode.ZOOKEEPER
    assert was_read(control) and control.controller_id in own_lab.spec.broker_ids and not control.of_kraft
    assert (control.session_timeout_ms, [s.mode for s in control.servers.values() if was_read(s)]) == (
        18000,
        ["standalone"],
    )
    assert was_read(control.gauges) and control.gauges.event_queue_p99_ms is not None
    report = judge(series, own_lab.spec)
    assert [each.code for each in report.results] == [f"KRB-QRM-0{n}" for n in (13, 14, 15, 16)]
    assert report.verdict is Verdict.PASS and not [each for each in report.results if each.verdict is Verdict.UNKNOWN]


def test_log_ends_are_kept_and_a_topic_that_began_anew_and_a_loss_are_told(own_lab: Lab, tmp_path: Path) -> None:
    """As the gates do: kept in ZooKeeper mode, then compared."""
    spec, file = own_lab.spec, tmp_path / "log_ends"
    admin = AdminClient({"bootstrap.servers": ",".join(spec.bootstrap_servers)})
    by_hand.answered(admin.create_topics([NewTopic(name, 1, 3) for name in ("goes", "anew")]))
    for name in ("goes", "anew"):
        by_hand.wait_until(f"{name} is led", lambda name=name: by_hand.produced(spec, name, 0) == "")

    def check(phase: Phase, *, keeps: bool = True) -> CheckResult:
        return check_log_ends(spec, file, phase, secrets=own_lab.secrets, keeps=keeps, tell=print)

    kept = check(Phase.ZOOKEEPER)
    assert kept.verdict is Verdict.PASS, kept
    ends, _ = LogEnds.from_bytes(file.read_bytes())
    seen = look(own_lab, Scope.FULL)
    assert (len(ends.topics), ends.partitions) == (seen.tree.topics, seen.tree.partitions)
    assert ends.cluster_id == seen.zookeeper.cluster_id
    assert ends.topics["anew"].ends[0] >= 1
    assert sum(ends.topics["orders"].ends.values()) >= 300  # the lab's own records

    by_hand.answered(admin.delete_topics(["goes", "anew"]))

    def gone() -> bool:
        now = look(own_lab).zookeeper
        return was_read(now) and not now.pending_topic_deletions and now.topic_count == seen.tree.topics - 2

    by_hand.wait_until("the topics are gone", gone)
    by_hand.answered(admin.create_topics([NewTopic("anew", 1, 3)]))
    assert by_hand.produced(spec, "orders", 0) == ""
    began = check(Phase.PRE_MIGRATION)
    assert (began.severity, began.verdict) == (Severity.WARNING, Verdict.FAIL), began
    assert "made again, under another id: 1: anew (id" in began.evidence and "1 topics deleted since" in began.evidence

    more = {number: end + 1_000 for number, end in ends.topics["orders"].ends.items()}  # as if these were lost
    file.write_bytes(
        replace(ends, topics=dict(ends.topics) | {"orders": TopicEnds(ends.topics["orders"].id, more)}).to_bytes()
    )
    lost = check(Phase.HYBRID)
    assert lost.blocks and f"orders-0 (ended at {more[0]}, now at" in lost.evidence, lost

    by_hand.answered(admin.delete_topics(["anew"]))  # the tests that follow find the lab as it was
    by_hand.wait_until("the topic is gone", gone)


def test_what_pip_installs_examines_a_cluster_and_plays_a_playbook_without_the_checkout(
    own_lab: Lab, tmp_path: Path
) -> None:
    """``preflight`` plays ``gather_host_facts.yml`` on every host."""
    programs, clusters = install(tmp_path), tmp_path / "clusters"
    clusters.mkdir()
    shutil.copy(ROOT / "include" / "clusters" / "lab.yaml", clusters)
    environment = {
        name: value
        for name, value in own_lab.environment.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV", "KRAFT_RUNBOOK_PLAYBOOKS")
    } | {"PATH": f"{programs}:/usr/bin:/bin"}
    done = subprocess.run(
        [str(programs / "kraft-runbook"), "preflight", "--cluster", "lab", "--clusters-dir", str(clusters), "--json"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    answers = {each["code"]: each["verdict"] for each in json.loads(done.stdout)["results"]}
    assert answers["KRB-PRE-041"] == "PASS", "asked of the hosts"


def test_a_missing_state_znode_and_a_client_of_zookeeper_are_found(own_lab: Lab) -> None:
    """A partition without its state znode is found and named, and so is the client that took it away; the znode is put
    back.
    """
    client = KazooClient(own_lab.spec.zookeeper.connect)
    client.start()
    try:
        topic = sorted(t for t in client.get_children("/brokers/topics") if not t.startswith("__"))[0]
        path = f"/brokers/topics/{topic}/partitions/0/state"
        data, _ = client.get(path)
        client.delete(path)
        try:
            seen = look(own_lab, Scope.FULL)
        finally:
            client.create(path, data)
    finally:
        client.stop()
        client.close()
    assert was_read(seen.zookeeper) and was_read(seen.zookeeper.tree)
    assert seen.zookeeper.tree.partitions_without_state == (f"{topic}-0",)
    assert [
        r.code
        for r in CHECKS.run(seen, own_lab.spec, Phase.ZOOKEEPER, gate="start").results
        if r.verdict is Verdict.FAIL
    ] == [
        "KRB-PRE-014",
        "KRB-PRE-034",
    ]


def test_a_quota_and_a_password_that_would_end_every_controller_block_preflight_by_their_paths(own_lab: Lab) -> None:
    client = KazooClient(own_lab.spec.zookeeper.connect)
    client.start()
    path = "/config/clients/planted"
    try:
        client.create(path, b'{"version":1,"config":{"consumer_byte_rate":"abc"}}')
        try:
            seen = observe(
                own_lab.spec,
                secrets=lambda ref: "another" if ref.env == "KRB_LAB_PASSWORD_ENCODER_SECRET" else own_lab.secrets(ref),
                scope=Scope.FULL,
            )
        finally:
            client.delete(path)
    finally:
        client.stop()
        client.close()
    told = {
        r.code: r.evidence
        for r in CHECKS.run(seen, own_lab.spec, Phase.ZOOKEEPER, gate="start").blocking
        if r.verdict is Verdict.FAIL
    }
    assert told.keys() == {"KRB-PRE-027", "KRB-PRE-060", "KRB-PRE-061", "KRB-PRE-062"}
    assert (
        told["KRB-PRE-060"]
        == f"every controller dies in the metadata copy: 1: {path} (consumer_byte_rate is not a number)"
    )
    assert told["KRB-PRE-061"] == f"a broker would not start: 1: {path} (consumer_byte_rate is not a number)"
    assert told["KRB-PRE-062"].startswith(
        "1: /config/brokers/1 listener.name.sasl.scram-sha-256.sasl.jaas.config: password.encoder.secret does not"
        " decode it"
    )


def test_a_dropped_topic_id_and_a_left_over_directory_block_the_start_until_they_are_cured(own_lab: Lab) -> None:
    """As the checks say: the replicas' id is written back, the directory is moved away."""
    on_disk = {"KRB-PRE-084", "KRB-PRE-085", "KRB-PRE-086"}

    def failures() -> dict[str, str]:
        seen = look(own_lab, Scope.FULL, with_hosts=True)
        results = CHECKS.run(seen, own_lab.spec, Phase.ZOOKEEPER, gate="start").results
        return {each.code: each.evidence for each in results if each.code in on_disk and not each.passed}

    def ids() -> dict[str, str]:
        with by_hand.zookeeper_of(own_lab.spec) as client:
            names = client.get_children("/brokers/topics")
            return {name: json.loads(client.get(f"/brokers/topics/{name}")[0])["topic_id"] for name in names}

    def held_by_brokers() -> dict[int, IdsHeld]:
        spec, secrets, known = own_lab.spec, own_lab.secrets, ids()
        return {each.id: ask_for_ids(spec, each, known, secrets=secrets) for each in spec.brokers}

    directory = leave_over(own_lab.spec.broker(2))
    right, wrong = drop_topic_id(own_lab, "orders")
    by_hand.wait_until(
        "every broker has heard of the new id from its controller",
        lambda: not any(each.unread for each in held_by_brokers().values()),
    )
    told = held_by_brokers()
    assert {i: each.otherwise for i, each in told.items()} == dict.fromkeys((1, 2, 3), ("orders",))
    assert all(each.alike > 5 and not each.unread for each in told.values()), told
    assert failures() == {
        "KRB-PRE-084": f"topic orders: id {wrong} in ZooKeeper, {right} on brokers 1, 2, 3",
        "KRB-PRE-085": f"no replica of this cluster, and without partition.metadata: 1: broker 2: {directory}",
    }
    shutil.rmtree(directory)
    write_topic_id(own_lab, "orders", right)
    assert failures() == {}
    for each in own_lab.spec.brokers:
        held = ask_for_ids(own_lab.spec, each, ids(), secrets=own_lab.secrets)
        assert held.otherwise == () and not held.unread and held.alike > 5
    by_hand.wait_until("orders takes writes", lambda: not by_hand.produced(own_lab.spec, "orders", 1), within=90)


def test_a_broker_whose_listener_died_blocks_preflight_with_the_way_out(own_lab: Lab) -> None:
    end_thread_of(processes(layout(own_lab.spec))["broker-3"].pid, "/config/changes-event-process-thread")
    by_hand.wait_until("the thread ends", lambda: not answer_064(own_lab)[0])
    told, fix = answer_064(own_lab)[1:]
    assert told == "broker 3 notices no change at /config/changes"
    assert "Then restart the broker at once, before its turn in the roll" in fix


def answer_064(lab: Lab) -> tuple[bool, str, str]:
    (found,) = [
        r for r in CHECKS.run(look(lab, with_hosts=True), lab.spec, Phase.ZOOKEEPER).results if r.code == "KRB-PRE-064"
    ]
    return found.passed, found.evidence, found.fix


def test_a_broker_that_is_killed_is_down_and_the_rest_is_still_seen(own_lab: Lab) -> None:
    before = look(own_lab)
    os.kill(processes(layout(own_lab.spec))["broker-2"].pid, signal.SIGKILL)
    time.sleep(0.5)
    seen = look(own_lab)
    assert seen.brokers[2].running is False
    assert isinstance(seen.brokers[2].mode, Unread)
    assert seen.brokers_in(BrokerMode.ZOOKEEPER) == (1, 3)
    assert was_read(seen.zookeeper) and was_read(seen.topics)
    assert not conditions.BROKER_IN_SYNC.progress(seen, own_lab.spec, node_id=2, earlier=before).hopeless
    assert conditions.BROKER_IN_SYNC.progress(look(own_lab), own_lab.spec, node_id=2, earlier=seen).hopeless


def test_a_zookeeper_that_hangs_costs_its_own_part_and_little_time(own_lab: Lab) -> None:
    """Stopped, not dead: it accepts connections and never answers."""
    pid = processes(layout(own_lab.spec))["zookeeper"].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        seen = look(own_lab)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert isinstance(seen.zookeeper, Unread)
    assert own_lab.spec.zookeeper.servers[0] in seen.zookeeper.reason or "in time" in seen.zookeeper.reason
    assert seen.brokers[1].mode is BrokerMode.ZOOKEEPER
    assert seen.took_seconds < 8
    reading = detect_phase(seen)
    assert reading.phase is Phase.UNKNOWN
    assert reading.reasons[0].startswith("ZooKeeper could not be read: ")


@pytest.mark.parametrize("chroot", ["/nowhere"])
def test_a_wrong_chroot_is_named(own_lab: Lab, chroot: str) -> None:
    spec = own_lab.spec.model_copy(update={"zookeeper": own_lab.spec.zookeeper.model_copy(update={"chroot": chroot})})
    seen = observe(spec, secrets=own_lab.secrets)
    assert isinstance(seen.zookeeper, Unread)
    assert seen.zookeeper.reason.endswith(f"holds no Kafka cluster: there is no {chroot}/brokers/ids")
