"""The cluster that a migration is rehearsed in: what it has of the source, and who may judge its gates."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from observations import SPEC, later, observation, tree, with_quorum, zookeeper
from recording import RecordingCluster

from kraft_runbook.cluster.addresses import split_address
from kraft_runbook.cluster.cluster_file import parse_cluster
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, Voter, was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.errors import Refused
from kraft_runbook.io.local.usage import Taken
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.migration.checks.liveness import CODE as LIVENESS
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.parity.dual_write import await_movement
from kraft_runbook.rehearsal.permission import require_throwaway
from kraft_runbook.rehearsal.throwaway import Throwaway, heaps, throwaway_of, why_left_out
from kraft_runbook.rehearsal.verdict import Verdict
from kraft_runbook.runbook.check_results import Verdict as Answer
from kraft_runbook.steps.judged_gates import JudgedPorts, judge_gate
from kraft_runbook.steps.rehearse import Climb

PLACE = PurePosixPath("/var/tmp/krb/prod")
OWN, SOURCE = "dGhyb3dhd2F5LWNsdXN0ZQ", "c291cmNlLWNsdXN0ZXItaQ"


def made(
    source: ClusterSpec = SPEC,
    brokers: tuple[int, ...] = (1, 2, 3, 17),
    configured: tuple[int, ...] = (),
    partitions: int = 9,
    **settings: Any,
) -> Throwaway:
    return throwaway_of(
        source,
        Rehearsal.model_validate(settings),
        PLACE,
        cluster_id=OWN,
        source_cluster_id=SOURCE,
        broker_ids=brokers,
        configured_ids=configured,
        partitions=partitions,
    )


def with_settings(**changes: Any) -> ClusterSpec:
    return ClusterSpec.model_validate(SPEC.model_dump(mode="json", by_alias=True) | changes)


def test_every_id_that_is_live_or_assigned_is_stood_in_for_and_the_seats_are_others() -> None:
    spec = made().spec
    assert spec.stand_in_ids == (1, 2, 3, 17)
    assert spec.broker_ids == (9001, 9002)
    assert len(spec.controllers) == 3 and not set(spec.controller_ids) & {*spec.stand_in_ids, *spec.broker_ids}
    assert made(brokers=(1, 9001)).spec.broker_ids == (9002, 9003)


def test_a_controller_whose_id_a_broker_has_gets_another() -> None:
    taken = SPEC.controller_ids[0]
    assert taken not in made(brokers=(1, taken)).spec.controller_ids


def test_no_node_has_an_id_that_a_removed_broker_left_a_config_for() -> None:
    """It would load that config: advertise a real host, at which the throwaway's controller then calls."""
    first, *others = SPEC.controller_ids
    spec = made(configured=(9001, 9003, first)).spec
    assert spec.broker_ids == (9004, 9005)
    assert spec.controller_ids == (*others, 9002)


def test_everything_is_on_loopback_in_one_directory_with_an_id_of_its_own() -> None:
    spec = made(network="127.44.0").spec
    assert (spec.cluster_id, spec.rehearses.cluster_id if spec.rehearses else "") == (OWN, SOURCE)
    hosts = [*(b.host for b in spec.brokers), *(c.host for c in spec.controllers), *spec.ensemble.servers]
    assert all(each.startswith("127.44.0.") for each in hosts)
    paths = [*(b.config_file for b in spec.brokers), *(c.log_dir for c in spec.controllers), spec.kafka.home]
    assert all(each.startswith(f"{PLACE}/") for each in paths)


def test_no_port_is_one_that_a_real_server_of_this_machine_needs_or_that_linux_gives_away() -> None:
    """A listener on a loopback address keeps a real server from its port on 0.0.0.0."""
    spec = made().spec
    ports = {split_address(each)[1] for each in spec.ensemble.servers}
    ports |= {each.port for b in spec.brokers for each in b.listeners} | {each.port for each in spec.controllers}
    ports |= {each.metrics_port for each in (*spec.brokers, *spec.controllers)}
    by_default = {2181, 2182, 2888, 3888, 7070, 7071, 8080, 8081, 8082, 8083, 9090, 9999, *range(9091, 9100)}
    assert len(ports) == 4 and not ports & by_default
    assert all(1024 < each < 32768 for each in ports)


def test_its_file_can_be_read_again() -> None:
    import yaml

    spec = made().spec
    text = yaml.safe_dump(spec.model_dump(mode="json", by_alias=True, exclude_none=True))
    assert parse_cluster(text, source="x", environment={}) == spec


def test_a_rehearsal_with_the_id_of_the_source_is_refused() -> None:
    with pytest.raises(Refused, match="would have the id of"):
        throwaway_of(
            SPEC,
            Rehearsal(),
            PLACE,
            cluster_id=SOURCE,
            source_cluster_id=SOURCE,
            broker_ids=(1,),
            configured_ids=(),
            partitions=9,
        )


def test_settings_are_the_files_and_logins_paths_and_classes_are_not() -> None:
    source = with_settings(
        broker_properties={
            "default.replication.factor": "3",
            "listener.name.sasl.scram-sha-256.sasl.jaas.config": "ScramLoginModule required;",
            "create.topic.policy.class.name": "com.example.Policy",
            "ssl.keystore.location": "/etc/store",
        },
        controller_properties={"metadata.max.idle.interval.ms": "700", "controller.quorum.fetch.timeout.ms": "6000"},
    )
    found = made(source)
    seat = broker_properties(found.spec, found.spec.brokers[0], BrokerMode.ZOOKEEPER)
    controller = controller_properties(found.spec, found.spec.controllers[0], ControllerMode.MIGRATION)
    assert seat["default.replication.factor"] == "3"
    assert controller["metadata.max.idle.interval.ms"] == "700"
    assert seat["auto.leader.rebalance.enable"] == controller["auto.leader.rebalance.enable"] == "false"
    assert controller["controller.quorum.fetch.timeout.ms"] == "20000", "its quorum is patient"
    assert not [key for key in seat if "jaas" in key or "policy" in key or "keystore" in key]
    assert [each.partition(":")[0] for each in found.left_out] == [
        "broker_properties.listener.name.sasl.scram-sha-256.sasl.jaas.config",
        "broker_properties.create.topic.policy.class.name",
        "broker_properties.ssl.keystore.location",
        "controller_properties.controller.quorum.fetch.timeout.ms",
        "auto.leader.rebalance.enable",
    ]


def test_what_the_throwaway_has_of_its_own_no_setting_of_the_file_replaces_and_each_is_named() -> None:
    given = {"num.io.threads": "64", "num.network.threads": "2"}
    found = made(with_settings(broker_properties=given, broker_properties_in_kraft=given))
    for mode in BrokerMode:
        assert broker_properties(found.spec, found.spec.brokers[0], mode)["num.io.threads"] == "4"
    assert [each for each in found.left_out if "threads" in each] == [
        f"{where}.num.io.threads: the throwaway has a value of its own"
        for where in ("broker_properties", "broker_properties_in_kraft")
    ]


def test_no_limit_of_connections_is_the_throwaways_and_each_is_named() -> None:
    """There all peers have a few loopback addresses: a limit per address would be reached by three of them."""
    limits = {
        "max.connections.per.ip": "5",
        "max.connections.per.ip.overrides": "10.0.0.1:5",
        "max.connections": "10",
        "max.connection.creation.rate": "2",
        "listener.name.sasl.max.connections": "4",
    }
    source = with_settings(broker_properties=limits, broker_properties_in_kraft=limits, controller_properties=limits)
    found = made(source)
    seat, controller = found.spec.brokers[0], found.spec.controllers[0]
    rendered = [broker_properties(found.spec, seat, mode) for mode in BrokerMode]
    rendered += [controller_properties(found.spec, controller, mode) for mode in ControllerMode]
    assert [key for each in rendered for key in each if "max.connection" in key] == []
    assert [each for each in found.left_out if "max.connection" in each] == [
        f"{where}.{key}: a limit of connections: all peers have a few loopback addresses here"
        for where in ("broker_properties", "broker_properties_in_kraft", "controller_properties")
        for key in limits
    ]


@pytest.mark.parametrize(
    ("partitions", "given", "seats", "controllers"),
    [
        (50_000, {}, "10000", "30000"),
        (50_000, {"controller.socket.timeout.ms": "45000"}, "10000", "45000"),
        (50_000, {"controller.socket.timeout.ms": "${vault:a:b}"}, "10000", "30000"),
        (50_001, {"controller.socket.timeout.ms": "45000"}, "45000", "45000"),
    ],
)
def test_seats_notice_their_controller_soon_and_controllers_keep_the_files_patience(
    partitions: int, given: dict[str, str], seats: str, controllers: str
) -> None:
    """The controllers would get the seats' own value of it else."""
    found = made(with_settings(broker_properties=given), partitions=partitions).spec
    key = "controller.socket.timeout.ms"
    assert broker_properties(found, found.brokers[0], BrokerMode.HYBRID)[key] == seats
    assert controller_properties(found, found.controllers[0], ControllerMode.MIGRATION)[key] == controllers
    own = made(with_settings(controller_properties={key: "20000"}), partitions=partitions).spec
    assert controller_properties(own, own.controllers[0], ControllerMode.MIGRATION)[key] == "20000"


@pytest.mark.parametrize(("given", "polls"), [(1.0, 0.2), (0.1, 0.1)])
def test_looks_on_loopback_follow_each_other_soon_and_as_many_must_agree_as_the_file_says(
    given: float, polls: float
) -> None:
    deadlines = made(with_settings(deadlines={"poll": given, "healthy_in_a_row": 4})).spec.deadlines
    assert (deadlines.poll, deadlines.healthy_in_a_row) == (polls, 4)


def test_the_seats_keep_each_cleaner_the_buffer_that_kafka_asks_for() -> None:
    found = made(with_settings(broker_properties={"log.cleaner.threads": "16"}))
    seat = broker_properties(found.spec, found.spec.brokers[0], BrokerMode.ZOOKEEPER)
    assert int(seat["log.cleaner.dedupe.buffer.size"]) // int(seat["log.cleaner.threads"]) > 1024 * 1024


def with_its_own(nodes: str, *properties: dict[str, str]) -> ClusterSpec:
    """The first nodes of the file with properties of each one's own."""
    given = SPEC.model_dump(mode="json", by_alias=True)
    changed = [each | {"properties": own} for each, own in zip(given[nodes], properties, strict=False)]
    return with_settings(**{nodes: changed + given[nodes][len(changed) :]})


def test_each_controller_has_the_own_properties_of_the_files_controller_in_its_place() -> None:
    own = {"num.io.threads": "64", "controller.quorum.election.timeout.ms": "1500", "acme.api.login": "planted"}
    source = with_its_own("controllers", {}, own)
    for found in (made(source), made(source, brokers=(1, SPEC.controller_ids[0]))):
        assert [dict(each.properties) for each in found.spec.controllers] == [{}, {"num.io.threads": "64"}, {}]
        second = controller_properties(found.spec, found.spec.controllers[1], ControllerMode.MIGRATION)
        assert second["controller.quorum.election.timeout.ms"] == "10000", "its quorum is patient"
        assert {each.partition(":")[0] for each in found.left_out if each.startswith("controller ")} == {
            f"controller {SPEC.controller_ids[1]}, controllers[].properties.{key}"
            for key in ("controller.quorum.election.timeout.ms", "acme.api.login")
        }


def test_the_own_properties_of_controllers_beyond_the_third_and_of_brokers_are_named() -> None:
    given = SPEC.model_dump(mode="json", by_alias=True)["controllers"]
    fourth = given[0] | {"id": 104, "host": "c104", "properties": {"num.io.threads": "64"}}
    fifth = given[0] | {"id": 105, "host": "c105"}
    found = made(with_settings(controllers=[*given, fourth, fifth]))
    assert any(
        each.startswith("controllers[].properties.num.io.threads: of controller 104 alone") for each in found.left_out
    )
    assert not any(each.properties for each in found.spec.controllers)
    some = {"num.io.threads": "64"}
    found = made(with_its_own("brokers", some, some | {"log.retention.ms": "planted"}))
    told = [each for each in found.left_out if each.startswith("brokers[]")]
    assert [each.partition(" alone")[0] for each in told] == [
        "brokers[].properties.num.io.threads: of brokers 1, 2",
        "brokers[].properties.log.retention.ms: of broker 2",
    ]
    assert "planted" not in "".join(told)


def test_a_login_of_the_file_that_the_throwaway_does_not_have_is_named() -> None:
    secrets = {"ssl.keystore.password": {"env": "A"}, "password.encoder.secret": {"env": "B"}}
    found = made(with_settings(secrets=secrets, secrets_file="/etc/secrets.properties"))
    assert set(found.spec.secrets) == {"password.encoder.secret"}
    assert [each.partition(":")[0] for each in found.left_out if each.startswith("secrets")] == [
        "secrets.ssl.keystore.password"
    ]


@pytest.mark.parametrize("lacking", [False, True])
def test_a_key_for_tokens_from_a_config_provider_is_replaced_where_all_have_one(lacking: bool) -> None:
    """Copied tokens would else count as errors of the throwaway alone."""
    key, reference = "delegation.token.secret.key", "${file:/etc/kafka/own:key}"
    brokers = [broker.model_dump(mode="json", by_alias=True) for broker in SPEC.brokers]
    for each in brokers[lacking:]:
        each["properties"] = {**each["properties"], key: reference}
    own = {**SPEC.controller_properties, key: reference}
    found = made(with_settings(secrets={}, secrets_file=None, brokers=brokers, controller_properties=own)).spec
    assert (key in found.secrets) is not lacking
    files = [controller_properties(found, each, ControllerMode.MIGRATION) for each in found.controllers]
    files += [broker_properties(found, each, BrokerMode.KRAFT) for each in found.brokers]
    assert all((key in each) is not lacking for each in files)


@pytest.mark.parametrize("key", ["min.insync.replicas", "log.retention.ms", "num.network.threads", "message.max.bytes"])
def test_what_a_setting_of_the_metadata_says_stays(key: str) -> None:
    assert why_left_out(key, "1") is None


def test_a_value_from_a_config_provider_is_left_out() -> None:
    assert why_left_out("log.retention.ms", "${vault:path:key}") is not None


@pytest.mark.parametrize(
    "key",
    [
        "remote.log.storage.system.enable",
        "remote.log.storage.manager.class.path",
        "remote.log.metadata.manager.listener.name",
        "remote.log.reader.threads",
        "group.consumer.assignors",
        "replica.selector.class",
        "security.providers",
    ],
)
def test_what_may_need_a_class_or_a_store_of_the_sources_is_left_out(key: str) -> None:
    found = made(with_settings(broker_properties={key: "com.example.Its"}, controller_properties={key: "true"}))
    assert not {*found.spec.broker_properties, *found.spec.controller_properties} & {key}
    assert {each.partition(":")[0] for each in found.left_out} >= {
        f"broker_properties.{key}",
        f"controller_properties.{key}",
    }


def test_kafkas_own_authorizer_enforces_acls_in_the_place_of_another() -> None:
    """Another may be on this machine, and then calls the server that it calls in the source."""
    other = {"zookeeper": "com.example.Authorizer", "kraft": "com.example.Authorizer"}
    found = made(with_settings(authorizer=other, super_users=["User:kafka"]))
    seat = broker_properties(found.spec, found.spec.brokers[0], BrokerMode.ZOOKEEPER)
    controller = controller_properties(found.spec, found.spec.controllers[0], ControllerMode.MIGRATION)
    assert seat["authorizer.class.name"] == "kafka.security.authorizer.AclAuthorizer"
    assert controller["authorizer.class.name"] == "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    assert seat["super.users"] == "User:kafka;User:ANONYMOUS"
    assert [each.partition(":")[0] for each in found.left_out if each.startswith("authorizer")] == [
        "authorizer.zookeeper, com.example.Authorizer",
        "authorizer.kraft, com.example.Authorizer",
    ]
    for none in (made(with_settings(authorizer=True)), made(with_settings(authorizer=False))):
        assert not [each for each in none.left_out if each.startswith("authorizer")]
    assert "authorizer.class.name" not in broker_properties(none.spec, none.spec.brokers[0], BrokerMode.ZOOKEEPER)


CUSTOM = ("acme.api.login", "confluent.licence", "ldap.bind.word")


def test_what_kafka_does_not_know_is_left_out_and_named() -> None:
    properties = {key: "planted" for key in CUSTOM}
    found = made(with_settings(broker_properties=properties, controller_properties=properties))
    assert "planted" not in found.spec.model_dump_json() and "planted" not in "".join(found.left_out)
    assert {each.partition(":")[0] for each in found.left_out} >= {
        f"{where}_properties.{key}" for where in ("broker", "controller") for key in CUSTOM
    }


def test_controllers_have_the_files_heap_and_all_else_what_the_size_needs() -> None:
    source = with_settings(controller_heap="4g")
    spec = made(source).spec
    found = heaps(source, spec, 512)
    assert {found[c.service] for c in spec.controllers} == {"4g"}
    assert {found[b.service] for b in spec.brokers} == {found["zookeeper"]} == {"512m"}


# -- nobody signs here, and nowhere else -------------------------------------------------------------------------------


def test_gates_are_judged_in_a_throwaway() -> None:
    require_throwaway(made().spec)


def test_no_real_clusters_gates_are_judged() -> None:
    with pytest.raises(Refused, match="is not a rehearsal's throwaway"):
        require_throwaway(SPEC)


def test_nor_those_of_a_file_that_was_changed_in_memory() -> None:
    """What pydantic has not validated (``model_copy``) is asked again."""
    spec = made().spec
    elsewhere = spec.brokers[0].model_copy(update={"host": "10.1.2.3"})
    for changed in (
        {"brokers": (elsewhere, *spec.brokers[1:])},
        {"cluster_id": SOURCE},
        {"zookeeper": ZooKeeper(servers=("zk1:2181",))},
        {"reach": spec.reach.model_copy(update={"kind": "ssh"})},
    ):
        with pytest.raises(Refused, match="is not a rehearsal's throwaway"):
            require_throwaway(spec.model_copy(update=changed))


def ports(tmp_path: Path, spec: ClusterSpec) -> JudgedPorts:
    return JudgedPorts(RecordingCluster(observation(Phase.ZOOKEEPER), spec=spec), tmp_path, "forward")


def test_a_ghost_of_a_real_clusters_file_is_none_where_a_stand_in_has_its_id() -> None:
    """So a rehearsal asks the copied tree for it (``rehearsal.as_copied``)."""
    ghost = 17
    rehearsed = made(brokers=(*SPEC.broker_ids, ghost)).spec
    assert ghost in rehearsed.stand_in_ids and ghost not in SPEC.broker_ids
    for spec, assigned, verdict in (
        (rehearsed, {1, 2, 3, ghost}, Answer.PASS),
        (SPEC, {1, 2, 3, ghost}, Answer.FAIL),
        (rehearsed, {1, 2, 3, ghost, 18}, Answer.FAIL),
    ):
        seen = tree(assigned_broker_ids=frozenset(assigned))(observation(Phase.ZOOKEEPER, spec))
        answers = {each.code: each for each in CHECKS.run(seen, spec, Phase.ZOOKEEPER, gate=Gate.START).results}
        assert answers["KRB-PRE-028"].verdict is verdict, answers["KRB-PRE-028"].evidence


def test_no_run_of_a_real_cluster_goes_without_signatures(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is not a rehearsal's throwaway"):
        ports(tmp_path, SPEC)


def answers_with(cluster_id: str, spec: ClusterSpec = SPEC) -> ClusterObservation:
    seen = observation(Phase.ZOOKEEPER, spec)
    assert was_read(seen.zookeeper)
    return dataclasses.replace(seen, zookeeper=dataclasses.replace(seen.zookeeper, cluster_id=cluster_id))


def test_a_gate_counts_once_it_was_judged_and_while_the_throwaway_answers(tmp_path: Path) -> None:
    judging = ports(tmp_path, made().spec)
    with pytest.raises(Refused, match="was not judged"):
        judging.require(MIGRATION, Gate.START, answers_with(OWN))
    judging.judged.add(Gate.START)
    judging.require(MIGRATION, Gate.START, answers_with(OWN))
    with pytest.raises(Refused, match=f"the cluster that answers has the id {SOURCE}"):
        judging.require(MIGRATION, Gate.START, answers_with(SOURCE))


@pytest.mark.parametrize(("gate", "asks"), [(Gate.START, True), (Gate.DUAL_WRITE, True), (Gate.ROLLBACK, False)])
def test_a_gate_asks_the_hosts_where_the_real_one_does(tmp_path: Path, gate: Gate, asks: bool) -> None:
    spec = made().spec
    cluster = RecordingCluster(answers_with(OWN, spec), spec=spec)
    judging = JudgedPorts(cluster, tmp_path, "forward")
    judge_gate(judging.run(), judging, gate)
    assert {each["with_hosts"] for each in cluster.looks if "with_hosts" in each} == {asks}


@pytest.mark.parametrize(("epoch", "verdict"), [(4, Verdict.FAILED), (5, Verdict.INCONCLUSIVE)])
def test_a_gate_that_an_election_passed_by_does_not_fail_for_what_a_new_leader_does_not_know_yet(
    tmp_path: Path, epoch: int, verdict: Verdict
) -> None:
    spec = made().spec
    seen = observation(Phase.HYBRID, spec)
    assert was_read(seen.zookeeper)
    before = dataclasses.replace(seen, zookeeper=dataclasses.replace(seen.zookeeper, cluster_id=OWN))
    after = with_quorum(leader_epoch=epoch, voters=(Voter(101, 1000), Voter(102, -1), Voter(103, 1000)))(before)
    cluster = RecordingCluster(before, after, spec=spec, answers={await_movement: None})
    judging = JudgedPorts(cluster, tmp_path, "forward")
    found = {each.code: each for each in judge_gate(judging.run(), judging, Gate.DUAL_WRITE)}
    assert found["KRB-GATE-009"].verdict is verdict
    assert ("the quorum's epoch rose from 4 to 5" in found["KRB-GATE-009"].what) is (epoch == 5)


@pytest.mark.parametrize("processors", [1, 2])
def test_a_gate_and_the_record_have_the_cores_that_the_rehearsal_may_use(tmp_path: Path, processors: int) -> None:
    """And not those of the machine."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) < processors:
        pytest.skip("this machine has one")
    spec = made().spec
    before = zookeeper(cluster_id=OWN)(observation(Phase.HYBRID, spec))
    after = with_quorum(high_watermark=2000)(later(before, 60))
    cluster = RecordingCluster(before, after, spec=spec, answers={await_movement: None})
    judging = JudgedPorts(cluster, tmp_path, "forward")
    os.sched_setaffinity(0, sorted(allowed)[:processors])
    try:
        measured = Climb().measured
        found = judge_gate(judging.run(), judging, Gate.DUAL_WRITE, lambda: Taken(1.0, 2.5, 0.0))
    finally:
        os.sched_setaffinity(0, allowed)
    assert measured.cores == processors
    (still,) = [each for each in found if each.code == LIVENESS]
    assert ("the load then was 2 on 1 cores" in still.what) is (processors == 1), still.what


def test_the_labs_file_with_that_key_is_refused_without_an_id_of_its_own() -> None:
    """A lab is on loopback addresses too: what tells them apart is the id, and what answers (``judged_gates``)."""
    given = made().spec.model_dump(mode="json", by_alias=True) | {"cluster_id": SOURCE}
    with pytest.raises(ValueError, match="is the id of the cluster that is rehearsed"):
        ClusterSpec.model_validate(given)
