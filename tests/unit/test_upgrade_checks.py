"""What blocks the software roll and a level's change, what each waits for, what lies ahead, and whether there is a way
back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asked_java import ask_java
from feature_looks import CONTROLLERS, in_log, kafka3, kafka4, look, on_disk, registered
from observations import (
    SPEC,
    WHY,
    Spoil,
    a_controller,
    both,
    broker,
    later,
    observation,
    on_host,
    part,
    topics,
    with_quorum,
)

from kraft_runbook.cluster.config_tables import topic_keys_judged
from kraft_runbook.cluster.feature_levels import (
    FeatureObservation,
    LevelsInLog,
    NamedClass,
    NamedClasses,
    NodeHost,
    NodeOnDisk,
    SoftwareLevels,
)
from kraft_runbook.cluster.observation import (
    BrokerMetrics,
    ClusterObservation,
    DynamicConfigs,
    Found,
    MinIsrGroup,
    TopicMargins,
    Unread,
)
from kraft_runbook.cluster.old_requests import OldRequests
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import QuorumKind, Software
from kraft_runbook.errors import Refused
from kraft_runbook.levels.operation import LEVELS
from kraft_runbook.procedures.dynamic_classes import with_dynamic_classes
from kraft_runbook.runbook.check_results import Severity, Verdict
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.software import conditions
from kraft_runbook.software.ahead import what_happens_next
from kraft_runbook.software.oauth import BROKERS_VALIDATOR, KEYS, VALIDATOR
from kraft_runbook.software.operation import SOFTWARE
from kraft_runbook.software.roll import Rolled
from kraft_runbook.software.stages import Gate, Step
from lab.installation import JARS, JARS4

OLD_HOME, NEW_HOME = "/opt/kafka-3", "/opt/kafka-4"
PLAIN = SPEC.model_copy(
    update={
        "kafka": SPEC.kafka.model_copy(
            update={"home": OLD_HOME, "upgrade_to": Software(version="4.1.1", home=NEW_HOME)}
        )
    }
)
DOCS = Path(__file__).resolve().parents[2] / "docs"
WELL = TopicMargins((MinIsrGroup(None, 3, Found(7, ("orders",))),), {"<default>": 2}, Found(), dynamic=DynamicConfigs())


def cluster(
    on_new: tuple[int, ...] = (),
    *,
    level: int = 21,
    disks: Mapping[int, NodeOnDisk] | None = None,
    spec: ClusterSpec = PLAIN,
) -> Any:
    """A finalized cluster, these nodes on the target, every host read; all of its software after that. Each file is as
    the cluster file renders it.
    """
    seen = observation(Phase.FINALIZED, spec)

    def version(node_id: int) -> str:
        return "4.1.1" if node_id in on_new else "3.9.2"

    features = look(kafka4() if on_new else kafka3(), level)
    software: dict[str, SoftwareLevels] = {OLD_HOME: kafka3(), NEW_HOME: kafka4()}
    hosts = {}
    for node_id, host in features.hosts.items():
        assert isinstance(host, NodeHost)
        role = "broker" if node_id in features.brokers else "controller"
        config = {"process.roles": role}
        disk = (disks or {}).get(node_id, on_disk(node_id, held=level))
        hosts[node_id] = replace(
            host,
            software=software,
            home=OLD_HOME,
            config=config,
            disk=disk,
            classes=NamedClasses(()),
            further_jars={OLD_HOME: ("agent-1.jar",), NEW_HOME: ("agent-2.jar",)},
        )
    return replace(
        seen,
        brokers={i: replace(each, software_version=version(i)) for i, each in seen.brokers.items()},
        controllers={i: replace(each, software_version=version(i)) for i, each in seen.controllers.items()},
        features=replace(features, hosts=hosts),
        margins=WELL,
    )


def features(change: Callable[[FeatureObservation], FeatureObservation]) -> Spoil:
    def spoil(seen: ClusterObservation) -> ClusterObservation:
        assert isinstance(seen.features, FeatureObservation)
        return replace(seen, features=change(seen.features))

    return spoil


def host_changed(node_id: int, **changes: Any) -> Spoil:
    def change(seen: FeatureObservation) -> FeatureObservation:
        host = seen.hosts[node_id]
        assert isinstance(host, NodeHost)
        return replace(seen, hosts={**seen.hosts, node_id: replace(host, **changes)})

    return features(change)


def declares(properties: Mapping[str, str], spec: ClusterSpec = PLAIN) -> ClusterSpec:
    """The cluster file with these properties of broker 2."""
    brokers = tuple(
        each.model_copy(update={"properties": {**each.properties, **properties}}) if each.id == 2 else each
        for each in spec.brokers
    )
    return spec.model_copy(update={"brokers": brokers})


Wrong = Spoil | Mapping[str, str]
"""What is wrong with the cluster, or what the cluster file has of broker 2."""


def with_wrong(what: Wrong, spec: ClusterSpec = PLAIN, on_new: tuple[int, ...] = ()) -> tuple[Any, ClusterSpec]:
    if isinstance(what, Mapping):
        declared = declares(what, spec)
        return cluster(on_new, spec=declared), declared
    return what(cluster(on_new)), spec


KEYS_URL = "listener.name.sasl.oauthbearer.sasl.oauthbearer.jwks.endpoint.url"


ASKS = {KEYS_URL: "https://id/keys"}
"""Broker 2 takes tokens at one listener, and asks for their keys."""


def test_a_validator_that_looks_at_signatures_lets_a_target_be_one_that_has_no_such_default() -> None:
    check = SOFTWARE.checks["KRB-UPG-027"]
    found = check.run(cluster(), declares(ASKS))
    assert found.verdict is Verdict.FAIL and f"no {VALIDATOR}: any token would be let in" in found.evidence
    validated = {**ASKS, KEYS_URL.replace(KEYS, VALIDATOR): BROKERS_VALIDATOR}
    assert check.run(cluster(), declares(validated)).passed


@pytest.mark.parametrize(("jars", "said"), [(JARS, "asks"), (JARS4, "lets in")])
def test_what_kafka_itself_does_with_a_forged_token(jars: Path, said: str) -> None:
    """3.9.2 and 4.1.1; ``oauth.py`` names what other releases of 4.x do."""
    program = Path(__file__).with_name("AskForgedToken.java")
    assert ask_java(program, "http://127.0.0.1:1/keys", jars=jars).strip() == said


@pytest.mark.parametrize(
    ("url", "allowed", "verdict", "words"),
    [
        ("https://id/keys", (), "FAIL", f"broker 2: {KEYS_URL}=https://id/keys is not allowed"),
        ("https://id/keys", ("https://id/keys/",), "FAIL", "https://id/keys is not allowed"),
        ("https://id/keys", WHY, "UNKNOWN", f"broker 2: {WHY.reason}"),
        ("${file:/etc/urls:keys}", (), "UNKNOWN", "comes from a config provider"),
        ("https://id/keys", ("https://x", "https://id/keys"), "PASS", ""),
        ("", WHY, "PASS", ""),
    ],
)
def test_the_urls_of_the_file_that_is_written_are_those_that_the_process_may_ask(
    url: str, allowed: tuple[str, ...] | Unread, verdict: str, words: str
) -> None:
    """A node without one need not run."""
    spec = declares({KEYS_URL: url})
    found = SOFTWARE.checks["KRB-UPG-026"].run(host_changed(2, allowed_urls=allowed)(cluster()), spec)
    assert found.verdict == verdict and words in found.evidence


def not_passing(
    seen: ClusterObservation, gate: str | None, operation: Operation = SOFTWARE, spec: ClusterSpec = PLAIN
) -> dict[str, tuple[str, str]]:
    stage = operation.read(seen, spec).stage
    results = operation.checks.run(seen, spec, stage, gate=gate).results
    return {r.code: (r.verdict.value, r.evidence) for r in results if r.verdict is not Verdict.PASS}


ALL = (1, 2, 3, *CONTROLLERS)
HANDLER = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler"


def names(found: object, *, unread: tuple[str, ...] = (), name: str = HANDLER) -> Spoil:
    """Broker 2's file names a class. ``found``: what the target's home has of it."""
    named = NamedClass("sasl.server.callback.handler.class", name, {OLD_HOME: "old.jar", NEW_HOME: found})  # type: ignore[dict-item]
    return host_changed(2, classes=NamedClasses((named,), unread))


def test_a_healthy_cluster_may_go_up_and_one_that_went_up_may_go_back() -> None:
    assert not_passing(cluster(), Gate.UP).keys() == {"KRB-UPG-023"}, "4.1.1 has known faults"
    assert not_passing(cluster(ALL), Gate.BACK) == {}
    assert not_passing(cluster((101, 102, 103)), Gate.UP) == {}


def margins(*groups: MinIsrGroup, of_brokers: Mapping[str, int] = WELL.of_brokers, moving: int = 0) -> Spoil:
    moved = Found(moving, tuple(f"t-{at}" for at in range(moving)))
    found = TopicMargins(groups, of_brokers, moved, dynamic=DynamicConfigs())
    return lambda seen: replace(seen, margins=found)


def held(**found: Any) -> Spoil:
    """The metadata log holds these dynamic configurations."""
    return lambda seen: replace(seen, margins=replace(WELL, dynamic=DynamicConfigs(**found)))


def group(own: int | None, replicas: int, *names: str) -> MinIsrGroup:
    return MinIsrGroup(own, replicas, Found(len(names), names))


@pytest.mark.parametrize(
    ("spoil", "code", "verdict", "words"),
    [
        (broker(2, software_version="3.8.0"), "KRB-UPG-002", "UNKNOWN", "broker 2 runs 3.8.0, neither 3.9.2 nor 4.1.1"),
        (a_controller(103, software_version=WHY), "KRB-UPG-002", "UNKNOWN", f"controller 103: {WHY.reason}"),
        (
            part(undeclared_controllers=frozenset({104})),
            "KRB-PRE-005",
            "FAIL",
            "controller 104 is a voter and not in the",
        ),
        (
            part(undeclared_brokers=frozenset({9})),
            "KRB-PRE-005",
            "FAIL",
            "broker 9 is live and not in the cluster file",
        ),
        (with_quorum(high_watermark=99_999), "KRB-UPG-003", "FAIL", "to catch up with offset 99999"),
        (topics(under_replicated_count=1, under_replicated=("a-0",)), "KRB-PRE-029", "FAIL", "a-0"),
        (
            host_changed(103, disk=on_disk(103, snapshot=None, after={0: 5, 60: 21})),
            "KRB-UPG-004",
            "FAIL",
            "controller 103 cannot run 4.1.1 yet: its log holds metadata.version 5 at offset 0",
        ),
        (host_changed(1, disk=WHY), "KRB-UPG-004", "UNKNOWN", WHY.reason),
        (
            {"log.segment.bytes": "1024"},
            "KRB-UPG-006",
            "FAIL",
            "broker 2: log.segment.bytes=1024 is below",
        ),
        (
            {"delegation.token.master.key": "<set>"},
            "KRB-UPG-007",
            "FAIL",
            "broker 2: delegation.token.master.key",
        ),
        (on_host(1, java_version="11.0.22"), "KRB-UPG-008", "FAIL", "11"),
        (host_changed(3, software={OLD_HOME: kafka3()}), "KRB-UPG-009", "FAIL", "broker 3: not looked at"),
        (
            host_changed(3, software={OLD_HOME: kafka3(), NEW_HOME: kafka3()}),
            "KRB-UPG-009",
            "FAIL",
            f"broker 3: {NEW_HOME} holds Kafka 3.9.2, not 4.1.1",
        ),
        (host_changed(3, home="/opt/other"), "KRB-UPG-009", "FAIL", "broker 3: its home_link leads to /opt/other"),
        (host_changed(3, home=WHY), "KRB-UPG-009", "UNKNOWN", WHY.reason),
        (margins(group(3, 3, "a")), "KRB-PRE-065", "FAIL", "min.insync.replicas 3 of 3 replicas: 1: a"),
        (margins(group(None, 2, "b")), "KRB-PRE-065", "FAIL", "2 (the brokers') of 2 replicas: 1: b"),
        (margins(group(None, 2, "b"), of_brokers={}), "KRB-PRE-065", "FAIL", "2 (the brokers') of 2 replicas: 1: b"),
        (margins(group(None, 1, "c")), "KRB-PRE-066", "FAIL", "of 1 replica: 1: c"),
        (lambda seen: replace(seen, margins=WHY), "KRB-PRE-065", "UNKNOWN", WHY.reason),
        (
            lambda seen: replace(seen, margins=replace(WELL, small_segments=Found(1, ("tiny",)))),
            "KRB-UPG-015",
            "FAIL",
            "1: tiny",
        ),
        (
            on_host(102, config={"process.roles": "controller", "num.io.threads": "32"}),
            "KRB-UPG-016",
            "FAIL",
            "controller 102: authorizer.class.name (not in the file)",
        ),
        (on_host(102, config=None), "KRB-UPG-016", "FAIL", "controller 102 has no file"),
        (on_host(102, config=WHY), "KRB-UPG-016", "UNKNOWN", WHY.reason),
        (
            names(None),
            "KRB-UPG-017",
            "FAIL",
            f"broker 2: sasl.server.callback.handler.class names {HANDLER}, which no jar of {NEW_HOME} has (there it is"
            " org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler)",
        ),
        (names(None), "KRB-UPG-006", "FAIL", "broker 2: it names classes that 4.1.1 lacks (KRB-UPG-017)"),
        (names(None, name="com.Mine"), "KRB-UPG-017", "FAIL", f"has (old.jar of {OLD_HOME} has it)"),
        (names(None, name=""), "KRB-UPG-017", "FAIL", "names a class (a config provider gives its name), which no jar"),
        (names(WHY), "KRB-UPG-017", "UNKNOWN", f"{HANDLER} could not be read: {WHY.reason}"),
        (names(WHY), "KRB-UPG-006", "UNKNOWN", WHY.reason),
        (names("new.jar", unread=("a login file",)), "KRB-UPG-017", "UNKNOWN", "broker 2: a login file"),
        (host_changed(2, classes=WHY), "KRB-UPG-017", "UNKNOWN", WHY.reason),
        (host_changed(2, classes=WHY), "KRB-UPG-006", "UNKNOWN", WHY.reason),
        (
            host_changed(2, further_jars={OLD_HOME: ("mine-1.0.jar", "agent-1.jar"), NEW_HOME: ("agent-2.jar",)}),
            "KRB-UPG-018",
            "FAIL",
            f"broker 2: {NEW_HOME} lacks mine-1.0.jar",
        ),
        (host_changed(2, further_jars={OLD_HOME: ()}), "KRB-UPG-018", "UNKNOWN", "broker 2: not looked at"),
        (
            held(classes={"1": {"metric.reporters": WHY}}),
            "KRB-UPG-017",
            "UNKNOWN",
            f"the class that the dynamic metric.reporters of 1 names is not known ({WHY.reason})",
        ),
        (lambda seen: replace(seen, margins=replace(WELL, dynamic=WHY)), "KRB-UPG-017", "UNKNOWN", WHY.reason),
        (lambda seen: replace(seen, margins=WHY), "KRB-UPG-017", "UNKNOWN", WHY.reason),
        (
            held(topics={"message.format.version": Found(2, ("a", "b")), "something.else": Found(1, ("a",))}),
            "KRB-UPG-019",
            "FAIL",
            "message.format.version of topics 2: a, b",
        ),
        (
            held(brokers={"<default>": {"log.segment.bytes": "500000"}}),
            "KRB-UPG-020",
            "FAIL",
            "all brokers (their dynamic default): log.segment.bytes=500000 (3.9.2 takes 14 and more, 4.1.1 takes"
            " 1048576 and more)",
        ),
        (
            held(brokers={"2": {"log.message.downconversion.enable": "true"}}),
            "KRB-UPG-021",
            "FAIL",
            "broker 2: log.message.downconversion.enable",
        ),
        (
            {"metric.reporters": "org.example.Mine"},
            "KRB-UPG-022",
            "FAIL",
            "broker 2: metric.reporters=org.example.Mine",
        ),
        (margins(moving=2), "KRB-UPG-011", "FAIL", "partitions: 2: t-0, t-1"),
        (
            broker(
                2,
                metrics=BrokerMetrics(
                    0, 0, deprecated_requests=(OldRequests("unknown", "unknown", "Fetch", "2", 1234),)
                ),
            ),
            "KRB-PRE-094",
            "FAIL",
            "Fetch 2 of software that gives no name: 1234 since its start (broker 2)",
        ),
        (
            broker(
                3,
                metrics=BrokerMetrics(
                    0, 0, deprecated_requests=tuple(OldRequests(f"x{n}", "1", "Fetch", "3", 9 - n) for n in range(7))
                ),
            ),
            "KRB-PRE-094",
            "FAIL",
            "Fetch 3 of x4 1: 5 since its start (broker 3) and 2 more",
        ),
        (broker(2, metrics=BrokerMetrics(0, 0)), "KRB-PRE-094", "UNKNOWN", "broker 2: not asked for"),
    ],
)
def test_each_reason_not_to_go_up_is_named(spoil: Wrong, code: str, verdict: str, words: str) -> None:
    seen, spec = with_wrong(spoil)
    found = not_passing(seen, Gate.UP, spec=spec)
    assert code in found, found
    assert found[code][0] == verdict and words in found[code][1], found[code]


@pytest.mark.parametrize(
    ("code", "found", "command"),
    [
        (
            "KRB-UPG-019",
            {"topics": {key: Found(1, ("a",)) for key in ("message.downconversion.enable", "message.format.version")}},
            "--entity-type topics --entity-name a --delete-config message.downconversion.enable,message.format.version",
        ),
        (
            "KRB-UPG-020",
            {"brokers": {"3": {"log.segment.bytes": "14"}}},
            "--entity-type brokers --entity-name 3 --add-config log.segment.bytes=1048576 (or --delete-config)",
        ),
    ],
)
def test_the_command_that_mends_a_dynamic_configuration_is_named(
    code: str, found: Mapping[str, Any], command: str
) -> None:
    result = SOFTWARE.checks[code].run(held(**found)(cluster()), PLAIN)
    start = f"kafka-configs.sh --bootstrap-server {PLAIN.broker_address(PLAIN.brokers[0])} --alter"
    assert result.blocks and f"{start} {command}" in result.fix


@pytest.mark.parametrize(
    ("spoil", "code", "first"),
    [
        ({"metadata.log.segment.bytes": "1048576"}, "KRB-UPG-006", "4.1.0"),
        ({"log.segment.bytes": "1024"}, "KRB-UPG-006", "4.0.0"),
        ({"num.replica.fetchers": "0"}, "KRB-UPG-006", "4.2.0"),
        ({"log.dirs": "/a,/b,"}, "KRB-UPG-006", "4.2.0"),
        ({"group.consumer.assignors": ""}, "KRB-UPG-006", "4.2.0"),
        ({"group.share.enable": "true"}, "KRB-UPG-007", "4.3.0"),
        ({"group.coordinator.new.enable": "true"}, "KRB-UPG-007", "4.1.0"),
        (
            lambda seen: replace(seen, margins=replace(WELL, small_segments=Found(1, ("tiny",)))),
            "KRB-UPG-015",
            "4.1.0",
        ),
        (held(topics={"message.format.version": Found(1, ("a",))}), "KRB-UPG-019", "4.0.0"),
        (held(brokers={"<default>": {"num.replica.fetchers": "0"}}), "KRB-UPG-020", "4.2.0"),
        (held(brokers={"<default>": {"log.segment.bytes": "500000"}}), "KRB-UPG-020", "4.0.0"),
    ],
)
def test_each_release_is_judged_by_its_own_table_and_none_is_blocked_by_a_later_ones(
    spoil: Wrong, code: str, first: str
) -> None:
    for target in ("4.0.0", "4.0.2", "4.1.0", "4.1.2", "4.2.0", "4.2.2", "4.3.0", "4.3.1", "4.4.0"):
        found = SOFTWARE.checks[code].run(*with_wrong(spoil, goes("3.9.2", target)))
        assert found.verdict is (Verdict.FAIL if target >= first else Verdict.PASS), (target, found)


WITHIN_4 = (
    ({"log.message.timestamp.difference.max.ms": "3"}, "KRB-UPG-007"),
    (held(topics={"message.format.version": Found(1, ("a",))}), "KRB-UPG-019"),
    (held(brokers={"2": {"log.segment.bytes": "500000"}}), "KRB-UPG-020"),
    (held(brokers={"2": {"log.message.downconversion.enable": "true"}}), "KRB-UPG-021"),
    ({"metric.reporters": "org.example.Mine"}, "KRB-UPG-022"),
    (broker(2, metrics=BrokerMetrics(0, 0, deprecated_requests=WHY)), "KRB-PRE-094"),
)
"""What a roll from 3.9 to 4 changes, and one from 4 to another 4 does not."""


def goes(version: str, target: str) -> ClusterSpec:
    kafka = PLAIN.kafka.model_copy(update={"version": version, "upgrade_to": Software(version=target, home=NEW_HOME)})
    return PLAIN.model_copy(update={"kafka": kafka})


@pytest.mark.parametrize(("spoil", "code"), WITHIN_4)
@pytest.mark.parametrize(
    ("version", "target"), [("4.0.2", "4.1.2"), ("4.1.2", "4.3.1"), ("4.3.1", "4.4.0"), ("8.0.1-ccs", "8.1.0-ccs")]
)
def test_a_roll_within_kafka_4_is_not_held_up_by_what_it_does_not_change(
    spoil: Wrong, code: str, version: str, target: str
) -> None:
    assert SOFTWARE.checks[code].run(*with_wrong(spoil)).verdict is not Verdict.PASS
    assert SOFTWARE.checks[code].run(*with_wrong(spoil, goes(version, target))).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("spoil", "code", "version", "target", "words"),
    [
        (
            {"metadata.log.segment.bytes": "1048576"},
            "KRB-UPG-006",
            "4.0.2",
            "4.1.2",
            "metadata.log.segment.bytes=1048576 is below the smallest that 4.1.2 takes (8388608)",
        ),
        (
            lambda seen: replace(seen, margins=replace(WELL, small_segments=Found(1, ("tiny",)))),
            "KRB-UPG-015",
            "4.0.2",
            "4.1.2",
            "1: tiny",
        ),
        (held(brokers={"2": {"num.replica.fetchers": "0"}}), "KRB-UPG-020", "4.1.2", "4.2.2", "num.replica.fetchers=0"),
        (
            held(brokers={"<default>": {"listener.name.sasl.ssl.cipher.suites": "TLS_AES_128_GCM_SHA256,"}}),
            "KRB-UPG-020",
            "4.1.2",
            "4.2.2",
            "all brokers (their dynamic default): listener.name.sasl.ssl.cipher.suites=TLS_AES_128_GCM_SHA256, has an"
            " empty entry, which 4.2.2 does not take",
        ),
        (
            held(brokers={"2": {"listeners": " "}}),
            "KRB-UPG-020",
            "4.0.2",
            "4.3.1",
            "broker 2: listeners is empty, and 4.3.1 takes no empty list",
        ),
        (
            held(topics={"max.decompressed.message.bytes": Found(1, ("a",))}),
            "KRB-UPG-019",
            "4.2.2",
            "4.3.1",
            "max.decompressed.message.bytes of topics 1: a",
        ),
        (
            {"group.share.enable": "true"},
            "KRB-UPG-007",
            "4.2.2",
            "4.3.1",
            "broker 2: group.share.enable",
        ),
    ],
)
def test_what_a_roll_within_kafka_4_does_change_is_named(
    spoil: Wrong, code: str, version: str, target: str, words: str
) -> None:
    found = SOFTWARE.checks[code].run(*with_wrong(spoil, goes(version, target)))
    assert found.verdict is Verdict.FAIL and words in found.evidence, found


@pytest.mark.parametrize(
    ("target", "drops", "refuses"),
    [
        ("4.0.2", False, True),
        ("4.1.2", False, True),
        ("4.2.0", False, True),
        ("4.2.1", True, False),
        ("4.3.0", True, False),
        ("4.4.1", True, False),
        ("4.1.3", True, True),
        ("8.1.0-ccs", True, True),
        ("8.2.0-ccs", True, True),
        ("8.3.0-ccs", True, False),
    ],
)
def test_what_the_target_does_with_a_key_that_it_does_not_know_is_said(target: str, drops: bool, refuses: bool) -> None:
    seen = held(topics={"message.format.version": Found(1, ("a",))})(cluster())
    fix = SOFTWARE.checks["KRB-UPG-019"].run(seen, goes("3.9.2", target)).fix
    assert (f"{target} drops these keys" in fix, f"{target} refuses every later change" in fix) == (drops, refuses)


@pytest.mark.parametrize(
    ("key", "before", "target", "verdict", "words"),
    [
        ("max.decompressed.message.bytes", "3.9.2", "4.4.0", "FAIL", "3.9.2 refuses every later change"),
        ("max.decompressed.message.bytes", "4.2.1", "4.2.2", "FAIL", "4.2.1 drops these keys"),
        ("max.decompressed.message.bytes", "4.3.1", "4.4.0", "FAIL", "4.3.1 drops these keys"),
        ("max.decompressed.message.bytes", "4.3.2", "4.4.0", "UNKNOWN", ""),
        ("max.decompressed.message.bytes", "8.2.0-ccs", "8.4.0-ccs", "UNKNOWN", ""),
        ("max.decompressed.message.bytes", "4.2.2", "4.4.0", "PASS", ""),
        ("max.decompressed.message.bytes", "4.2.2", "4.3.1", "PASS", ""),
        ("max.decompressed.message.bytes", "4.1.2", "4.2.1", "PASS", ""),
        ("remote.copy.lag.ms", "4.2.2", "4.4.0", "FAIL", "4.2.2 drops these keys"),
        ("remote.copy.lag.ms", "4.4.0", "4.5.0", "PASS", ""),
        ("message.format.version", "3.9.2", "4.4.0", "PASS", ""),
    ],
)
def test_before_the_way_back_a_key_that_only_the_target_knows_is_named(
    key: str, before: str, target: str, verdict: str, words: str
) -> None:
    seen = held(topics={key: Found(2, ("a", "b"))})(cluster(ALL))
    found = SOFTWARE.checks["KRB-UPG-029"].run(seen, goes(before, target))
    assert found.verdict.value == verdict and not found.blocks and words in found.fix
    assert verdict != "FAIL" or f"{key} of topics 2: a, b" in found.evidence
    assert key in topic_keys_judged(), "it is looked for in the metadata log"
    assert "KRB-UPG-029" not in {each.code for each in SOFTWARE.checks.applicable(Rolled.NEW, Gate.UP)}


@pytest.mark.parametrize("target", ["4.3.2", "8.3.0-ccs"])
@pytest.mark.parametrize(
    ("spoil", "code", "whose"),
    [
        ({"max.decompressed.message.bytes": "1"}, "KRB-UPG-007", "broker 2: "),
        (held(topics={"max.decompressed.message.bytes": Found(1, ("a",))}), "KRB-UPG-019", "topics 1: a: "),
        (held(brokers={"2": {"max.decompressed.message.bytes": "1"}}), "KRB-UPG-021", "broker 2: "),
    ],
)
def test_whether_a_target_that_was_not_asked_knows_a_key_is_unknown(
    spoil: Wrong, code: str, whose: str, target: str
) -> None:
    found = SOFTWARE.checks[code].run(*with_wrong(spoil, goes("4.2.2", target)))
    said = f"{whose}whether {target} knows max.decompressed.message.bytes is not known: 4.3.1, the last that was asked"
    assert found.verdict is Verdict.UNKNOWN and said in found.evidence, found
    assert SOFTWARE.checks[code].run(*with_wrong(spoil, goes("4.2.2", "4.4.1"))).verdict is Verdict.PASS


def test_a_target_that_no_table_knows_is_unknown_and_not_judged_by_another_one_s() -> None:
    newer = Software(version="4.9.0", home=NEW_HOME)
    spec = PLAIN.model_copy(update={"kafka": PLAIN.kafka.model_copy(update={"upgrade_to": newer})})
    for code in ("KRB-UPG-006", "KRB-UPG-007", "KRB-UPG-015", "KRB-UPG-019", "KRB-UPG-020", "KRB-UPG-021"):
        result = SOFTWARE.checks[code].run(cluster(), spec)
        assert result.verdict is Verdict.UNKNOWN and "4.0 to 4.4 were asked" in result.evidence, code


def test_dynamic_classes_are_looked_for_on_the_hosts_whom_they_concern() -> None:
    asked: dict[int, list[tuple[str, str]]] = {}

    def read(spec: object, node_ids: list[int], *, dynamic_classes: Mapping[int, Any], **_: Any) -> dict[int, Any]:
        asked.update(dynamic_classes)
        assert node_ids == list(dynamic_classes)
        return {each: WHY if each == 2 else seen.hosts[each] for each in node_ids}

    seen = cluster().features
    named = {"<default>": {"metric.reporters": ("A",)}, "2": {"sasl.login.class": ("B",), "x": WHY}}
    found = with_dynamic_classes(
        PLAIN, seen, replace(WELL, dynamic=DynamicConfigs(classes=named)), secrets=str, read=read
    )
    assert isinstance(found, FeatureObservation)
    of_all = ("the dynamic metric.reporters of all brokers", "A")
    assert asked == {i: [of_all] for i in ALL} | {2: [of_all, ("the dynamic sasl.login.class of broker 2", "B")]}
    host = found.hosts[2]
    assert isinstance(host, NodeHost) and host.classes == WHY
    assert all(with_dynamic_classes(PLAIN, seen, each, secrets=str) is seen for each in (WELL, WHY))


@pytest.mark.parametrize("spoil", [broker(2, running=False, mode=WHY, metrics=WHY), a_controller(102, running=False)])
def test_in_a_half_done_roll_a_node_that_is_down_keeps_nobody_from_going_on_or_back(spoil: Spoil) -> None:
    for gate in (Gate.UP, Gate.BACK):
        seen = both(spoil, topics(under_replicated_count=1, under_replicated=("a-0",)))(cluster((101, 103)))
        assert SOFTWARE.read(seen, PLAIN).stage is Rolled.MIXED
        assert not_passing(seen, gate) == {}


BAD = {"log.segment.bytes": "1024"}


@pytest.mark.parametrize(("gate", "differ"), [(Gate.UP, {2, 102, 103}), (Gate.BACK, {3, 101}), (None, set[int]())])
def test_in_a_half_done_roll_the_files_are_compared_of_those_that_run_and_have_not_had_their_turn(
    gate: Gate | None, differ: set[int]
) -> None:
    """Broker 1 is down, broker 3 and controller 101 run the target; a property of all came into the cluster file."""
    later = {"num.network.threads": "5"}
    spec = PLAIN.model_copy(
        update={
            "broker_properties": {**PLAIN.broker_properties, **later},
            "controller_properties": {**PLAIN.controller_properties, **later},
        }
    )
    found = not_passing(broker(1, running=False)(cluster((101, 3))), gate, spec=spec)
    said = " ".join(found.get(code, ("", ""))[1] for code in ("KRB-PRE-046", "KRB-UPG-016"))
    assert {i for i in ALL if f"broker {i} " in said or f"controller {i}:" in said} == differ


def test_in_a_half_done_roll_a_disk_that_is_not_formatted_is_named_where_the_node_runs_and_has_a_turn() -> None:
    lost = on_host(2, unformatted_dirs={"/data": "no meta.properties"})(cluster((101, 102, 103)))
    assert not_passing(lost, Gate.UP).keys() == {"KRB-PRE-087"}
    assert not_passing(lost, Gate.BACK) == {}
    assert not_passing(both(broker(2, running=False, mode=WHY), host_changed(2, home=NEW_HOME))(lost), Gate.UP) == {}


def test_what_is_judged_is_the_file_that_the_roll_writes_and_not_the_one_that_it_writes_over() -> None:
    """A broker that is down with what the target refuses, and the cluster file that is mended; and the other way
    round.
    """
    down = both(broker(1, running=False, mode=WHY), host_changed(1, config={"process.roles": "broker", **BAD}))
    assert not_passing(down(cluster(CONTROLLERS)), Gate.UP) == {}
    found = not_passing(broker(2, running=False)(cluster(CONTROLLERS)), Gate.UP, spec=declares(BAD))
    assert found.keys() == {"KRB-UPG-006"} and "broker 2: log.segment.bytes=1024 is below" in found["KRB-UPG-006"][1]


def test_a_class_that_only_the_file_names_which_is_written_over_keeps_nobody_away() -> None:
    key = "metric.reporters"
    lacks = NamedClass(key, "com.Gone", {OLD_HOME: "old.jar", NEW_HOME: None})
    seen = host_changed(2, config={key: "com.Gone , com.Other"}, classes=NamedClasses((lacks,)))(cluster())
    check = SOFTWARE.checks["KRB-UPG-017"]
    assert check.run(seen, PLAIN).passed, "the file that is written names none"
    assert check.run(seen, declares({key: "com.Other"})).passed
    assert check.run(seen, declares({key: "com.Other,com.Gone"})).verdict is Verdict.FAIL
    dynamic = NamedClasses((replace(lacks, key="the dynamic metric.reporters of broker 2"),))
    assert check.run(host_changed(2, classes=dynamic)(seen), PLAIN).verdict is Verdict.FAIL


@pytest.mark.parametrize("on_new", [(), (101,), ALL])
def test_a_quorum_that_is_not_what_the_cluster_file_says_keeps_the_roll_from_going_on(on_new: tuple[int, ...]) -> None:
    dynamic = PLAIN.model_copy(update={"quorum": QuorumKind.DYNAMIC})
    for gate in (None, *Gate):
        assert "KRB-PRE-120" in not_passing(cluster(on_new), gate, spec=dynamic)


def test_a_look_without_hosts_leaves_what_needs_them_unknown() -> None:
    found = not_passing(replace(cluster(), features=WHY, margins=WHY), Gate.UP)
    assert {code for code, (verdict, _) in found.items() if verdict == "UNKNOWN"} == {
        *(f"KRB-UPG-{number:03d}" for number in (4, 6, 9, 11, 15, 17, 18, 19, 20, 21, 26)),
        "KRB-PRE-065",
        "KRB-PRE-066",
    }


@pytest.mark.parametrize(
    ("who", "spoil"),
    [
        ("broker 2", broker(2, running=False, mode=WHY, metrics=WHY)),
        ("controller 102", a_controller(102, running=False, metrics=WHY)),
    ],
)
def test_a_node_that_was_down_before_the_roll_keeps_it_from_beginning(who: str, spoil: Spoil) -> None:
    """Its stage is MIXED too, where one node may be down; but its link does not lead to the target."""
    seen, node = spoil(cluster()), int(who.split()[1])
    assert not_passing(seen, Gate.UP) == {
        "KRB-UPG-012": ("FAIL", f"{who}: it does not run, and its home_link leads to {OLD_HOME}")
    }
    assert not_passing(host_changed(node, home=NEW_HOME)(seen), Gate.UP) == {}
    assert not_passing(host_changed(node, home=WHY)(seen), Gate.UP)["KRB-UPG-012"][0] == "UNKNOWN"
    assert not_passing(seen, Gate.BACK) == {}


def test_a_host_that_lacks_what_the_target_needs_may_go_back() -> None:
    """An old Java, or a target that is broken, may be the very reason."""
    lacking = both(
        on_host(1, java_version="11.0.22"), host_changed(1, software={OLD_HOME: kafka3(), NEW_HOME: WHY}, home="/gone")
    )
    assert not_passing(lacking(cluster((1, *CONTROLLERS))), Gate.BACK) == {}
    without = host_changed(1, software={OLD_HOME: WHY, NEW_HOME: kafka4()})
    assert not_passing(without(cluster(ALL)), Gate.BACK) == {"KRB-UPG-013": ("FAIL", f"broker 1: {WHY.reason}")}


def names_in_old(found: object, key: str) -> Spoil:
    """Broker 2's file names a class. ``found``: what the home of the version before has of it."""
    named = NamedClass(key, "com.Mine", {OLD_HOME: found, NEW_HOME: "new.jar"})  # type: ignore[dict-item]
    return host_changed(2, classes=NamedClasses((named,)))


@pytest.mark.parametrize(
    ("spoil", "verdict", "words"),
    [
        (
            {"group.coordinator.rebalance.protocols": "classic,consumer,streams"},
            "FAIL",
            "broker 2: group.coordinator.rebalance.protocols holds streams, which 3.9.2 does not take. Take it out.",
        ),
        ({"group.coordinator.append.linger.ms": "-1"}, "FAIL", "is below the smallest that 3.9.2 takes (0)"),
        ({"group.consumer.assignors": "uniform"}, "FAIL", "holds uniform, which 3.9.2 does not take"),
        (names_in_old(None, "principal.builder.class"), "FAIL", f"com.Mine, which no jar of {OLD_HOME} has (new.jar"),
        (names_in_old(WHY, "principal.builder.class"), "UNKNOWN", WHY.reason),
        (host_changed(2, classes=WHY), "UNKNOWN", WHY.reason),
    ],
)
def test_what_only_the_target_takes_keeps_the_way_back_shut_until_it_is_out_of_the_files(
    spoil: Wrong, verdict: str, words: str
) -> None:
    seen, spec = with_wrong(spoil, on_new=ALL)
    ((code, (told, evidence)),) = not_passing(seen, Gate.BACK, spec=spec).items()
    assert (code, told) == ("KRB-UPG-028", verdict) and words in evidence
    seen, spec = with_wrong(spoil)
    assert "KRB-UPG-028" not in not_passing(seen, Gate.UP, spec=spec)


@pytest.mark.parametrize(
    "spoil",
    [
        {"group.share.assignors": "simple"},
        {"zookeeper.connect": "x"},
        names_in_old(None, "listener.name.x.sasl.oauthbearer.jwt.validator.class"),
        names_in_old(None, "the dynamic sasl.oauthbearer.jwt.validator.class of broker 2"),
        host_changed(2, config=None),
    ],
)
def test_what_the_version_before_reads_over_or_is_given_anew_does_not_shut_the_way_back(spoil: Wrong) -> None:
    seen, spec = with_wrong(spoil, on_new=ALL)
    assert not_passing(seen, Gate.BACK, spec=spec) == {}


def test_what_only_a_process_could_tell_does_not_shut_the_way_back_to_a_node_that_is_down() -> None:
    """Its jar may lie outside of every home; but where the target's home alone has it, that is the one."""
    own = NamedClass("principal.builder.class", "com.Own", {OLD_HOME: None, NEW_HOME: None})
    seen = host_changed(2, classes=NamedClasses((own,), unasked=("which class sasl.login.class names",)))(cluster(ALL))
    assert not_passing(seen, Gate.BACK) == {}
    told = SOFTWARE.checks["KRB-UPG-028"].run(seen, PLAIN).evidence
    assert "broker 2: not judged: which class sasl.login.class names" in told
    assert "broker 2: not judged: principal.builder.class names com.Own, which no home is known to have" in told
    broken = replace(own, found={OLD_HOME: None, NEW_HOME: WHY})
    assert not_passing(host_changed(2, classes=NamedClasses((broken,), unasked=()))(cluster(ALL)), Gate.BACK) == {}
    beside = replace(own, found={OLD_HOME: None, NEW_HOME: "new.jar"})
    for named, unasked in ((own, None), (beside, ())):
        shut = host_changed(2, classes=NamedClasses((named,), unasked=unasked))(cluster(ALL))
        assert "com.Own, which no jar of" in not_passing(shut, Gate.BACK)["KRB-UPG-028"][1]


def test_old_clients_are_no_matter_of_a_roll_that_stays_below_or_above_4() -> None:
    old = broker(2, metrics=BrokerMetrics(0, 0, deprecated_requests=(OldRequests("x", "1", "Fetch", "2", 1),)))(
        cluster()
    )
    for version, target in (("3.9.1", "3.9.2"), ("4.0.0", "4.1.1")):
        kafka = PLAIN.kafka.model_copy(
            update={"version": version, "upgrade_to": Software(version=target, home=NEW_HOME)}
        )
        result = SOFTWARE.checks["KRB-PRE-094"].run(old, PLAIN.model_copy(update={"kafka": kafka}))
        assert result.evidence == "the roll does not lead from Kafka 3 to Kafka 4"


def test_a_quorum_without_a_majority_during_a_restart_is_named() -> None:
    small = PLAIN.model_copy(update={"controllers": PLAIN.controllers[:1]})
    result = SOFTWARE.checks["KRB-UPG-014"].run(cluster(), small)
    assert result.verdict is Verdict.FAIL and not result.blocks and "lead the controller's home_link" in result.fix
    assert SOFTWARE.checks["KRB-UPG-014"].run(cluster(), PLAIN).verdict is Verdict.PASS


def test_the_trap_shuts_the_way_back_until_the_snapshot_and_a_star_shuts_it_for_good() -> None:
    trapped = {101: on_disk(101, snapshot=98, after={130: 22, 140: 21})}
    (said,) = not_passing(cluster(ALL, disks=trapped), Gate.BACK).values()
    assert "controller 101 cannot run 3.9.2 yet" in said[1] and "Wait for a snapshot past 130" in said[1]
    plan = SOFTWARE.way_back(cluster(ALL, disks=trapped), PLAIN)
    assert not plan.possible and plan.steps
    seen = cluster(ALL, disks=trapped)
    assert isinstance(seen.features, FeatureObservation)
    unled = replace(seen, features=replace(seen.features, log=Unread("no controller leads")))
    result = SOFTWARE.checks["KRB-UPG-005"].run(unled, PLAIN)
    assert result.verdict is Verdict.UNKNOWN and "not yet" not in result.evidence, "it may be closed for good"
    assert not SOFTWARE.way_back(unled, PLAIN).known
    stuck = not_passing(cluster(ALL, level=27), Gate.BACK)["KRB-UPG-005"]
    assert stuck[0] == "FAIL" and stuck[1].startswith("closed: metadata.version is 27") and "yet" not in stuck[1]
    closed = SOFTWARE.way_back(cluster(ALL, level=27), PLAIN)
    assert not closed.possible and not closed.steps and "23 (4.0-IV1) between changed metadata" in closed.why


def test_the_way_back_is_open_after_the_roll_and_names_its_restarts_brokers_first() -> None:
    plan = SOFTWARE.way_back(cluster(ALL), PLAIN)
    assert plan.possible and "Restart brokers 1, 2, 3 on Kafka 3.9.2" in plan.steps[0]
    assert "Restart controller" in plan.steps[1]
    quick = SOFTWARE.way_back(replace(cluster(ALL), features=WHY), PLAIN)
    assert quick.answer == "not known" and "were not read" in quick.why and len(quick.steps) == 2
    assert SOFTWARE.way_back(cluster(), PLAIN).steps == ()


# -- the table ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_new", "may"),
    [
        ((), {Step.CONTROLLERS_UP, Step.CONTROLLERS_BACK}),
        ((101,), set(Step)),
        (ALL, {Step.BROKERS_UP, Step.BROKERS_BACK}),
    ],
)
def test_a_mixed_roll_goes_on_forward_or_back(on_new: tuple[int, ...], may: set[Step]) -> None:
    reading = SOFTWARE.read(cluster(on_new), PLAIN)
    allowed = set()
    for step in Step:
        try:
            SOFTWARE.table.require(step, reading)
        except Refused:
            continue
        allowed.add(step)
    assert allowed == may


def test_what_is_done_is_behind_and_what_is_left_lies_ahead() -> None:
    assert SOFTWARE.is_behind(Gate.UP, cluster(ALL), PLAIN) and not SOFTWARE.is_behind(Gate.UP, cluster((101,)), PLAIN)
    assert SOFTWARE.is_behind(Gate.BACK, cluster(), PLAIN) and not SOFTWARE.is_behind(Gate.BACK, cluster(ALL), PLAIN)
    ahead = what_happens_next(Gate.UP, cluster((102, 1)), PLAIN)
    assert "Restart controllers 103, 101 on Kafka 4.1.1" in ahead[0] and "Restart brokers 2, 3" in ahead[1]


def test_before_the_migration_is_final_no_step_may_run() -> None:
    seen = observation(Phase.DUAL_WRITE, PLAIN)
    assert SOFTWARE.read(seen, PLAIN).stage == Rolled.UNKNOWN
    with pytest.raises(Refused):
        SOFTWARE.table.require(Step.CONTROLLERS_UP, SOFTWARE.read(seen, PLAIN))


# -- waits -------------------------------------------------------------------------------------------------------------


def test_a_broker_counts_when_it_shows_the_target_and_is_registered_anew_and_in_sync() -> None:
    condition = conditions.BROKER_ON_TARGET
    before = condition.progress(cluster(), PLAIN, node_id=1)
    assert before.waiting_for == "waiting for broker 1 to run Kafka 4.1.1: it shows 3.9.2"
    assert condition.progress(cluster((1,)), PLAIN, node_id=1).done
    assert conditions.BROKER_ON_FORMER.progress(cluster(), PLAIN, node_id=1).done


def test_a_broker_that_lives_and_never_serves_is_waited_for_and_named() -> None:
    """Measured: on software that does not know the level its port is open, and the quorum never registers it."""
    seen = cluster((1,))
    assert seen.quorum.registrations
    fenced = {**seen.quorum.registrations, 1: replace(seen.quorum.registrations[1], fenced=True)}
    found = conditions.BROKER_ON_TARGET.progress(with_quorum(registrations=fenced)(seen), PLAIN, node_id=1)
    assert not found.done and "waiting for broker 1 to register in KRaft mode" in found.waiting_for


def test_explain_names_the_broker_that_lives_and_never_serves_and_what_is_left_forward_and_back() -> None:
    seen = cluster((1, *CONTROLLERS))
    fenced = {**seen.quorum.registrations, 1: replace(seen.quorum.registrations[1], fenced=True)}
    found = SOFTWARE.explain(with_quorum(registrations=fenced)(seen), PLAIN)
    (waits,) = found.waits_for
    assert "broker 1 to register in KRaft mode" in waits and "its registration is fenced" in waits
    assert [each.partition(" on Kafka")[0] for each in found.forward] == ["upgrade_software: Restart brokers 2, 3"]
    assert [each.partition(" on Kafka")[0] for each in found.back] == [
        "downgrade_software: Restart broker 1",
        "downgrade_software: Restart controllers 102, 103, 101",
    ]
    assert SOFTWARE.explain(cluster(), PLAIN).waits_for == () == SOFTWARE.explain(cluster(ALL), PLAIN).forward


def test_explain_says_why_a_broker_on_the_version_before_may_live_and_never_serve() -> None:
    seen = cluster((2, 3, *CONTROLLERS), level=27)
    fenced = {**seen.quorum.registrations, 1: replace(seen.quorum.registrations[1], fenced=True)}
    (waits,) = SOFTWARE.explain(with_quorum(registrations=fenced, metadata_version=27)(seen), PLAIN).waits_for
    assert "broker 1 to register in KRaft mode" in waits
    assert "metadata.version is 27, and Kafka 3.9.2 knows no level above 21" in waits
    assert "A broker that does lives on and never serves" in waits and "start it on 4.1.1 again" in waits


def test_a_broker_whose_port_is_closed_while_its_metrics_answer_is_not_told_as_down() -> None:
    """Measured: 3.9.2 at level 27 has no open port, and goes on asking for its registration."""
    lives = broker(1, running=False, lives=True, mode=WHY, software_version=WHY)
    seen = both(lives, with_quorum(metadata_version=27))(cluster((2, 3, *CONTROLLERS), level=27))
    found = SOFTWARE.explain(seen, PLAIN, earlier=seen)
    assert "broker 1 runs and does not serve: its port is closed, its metrics answer" in found.because
    (waits,) = (each for each in found.waits_for if each.startswith("broker 1 to serve"))
    assert "knows no level above 21" in waits and "start it on 4.1.1 again" in waits
    assert "has ended" not in waits and "does not run" not in found.render_text()
    ended = broker(1, lives=False)(seen)
    assert "broker 1 does not run" in SOFTWARE.explain(ended, PLAIN).because
    still = conditions.BROKER_ON_FORMER.progress(later(seen, 3), PLAIN, node_id=1, earlier=seen)
    assert not still.done and not still.hopeless


def test_a_controller_counts_when_it_shows_the_target_and_is_caught_up() -> None:
    condition = conditions.CONTROLLER_ON_TARGET
    assert (
        "waiting for controller 101 to run Kafka 4.1.1" in condition.progress(cluster(), PLAIN, node_id=101).waiting_for
    )
    assert condition.progress(cluster((101,)), PLAIN, node_id=101).done
    down = a_controller(101, running=False)(cluster((101,)))
    ended = condition.progress(later(down, 3), PLAIN, node_id=101, earlier=down)
    assert ended.hopeless and "controller 101's process has ended" in ended.waiting_for


# -- a level's change --------------------------------------------------------------------------------------------------


def test_a_healthy_cluster_may_change_a_level() -> None:
    assert not_passing(cluster(), "level", LEVELS) == {}


def ghost(seen: FeatureObservation) -> FeatureObservation:
    assert isinstance(seen.log, LevelsInLog)
    return in_log(seen, controllers={**seen.log.controllers, 104: registered(104, kafka3())})


def lagging(seen: FeatureObservation) -> FeatureObservation:
    node = seen.brokers[2]
    return replace(seen, brokers={**seen.brokers, 2: replace(node, finalized={"metadata.version": 20})})  # type: ignore[type-var]


def mixed(seen: FeatureObservation) -> FeatureObservation:
    return replace(seen, controllers={**seen.controllers, 101: look(kafka4()).controllers[101]})


@pytest.mark.parametrize(
    ("spoil", "code", "verdict", "words"),
    [
        (features(mixed), "KRB-FEA-002", "FAIL", "the nodes run several versions of Kafka"),
        (features(lambda seen: replace(seen, brokers={**seen.brokers, 2: WHY})), "KRB-FEA-002", "UNKNOWN", WHY.reason),
        (features(lagging), "KRB-FEA-003", "FAIL", "broker 2 shows metadata.version 20, the metadata log says"),
        (features(lambda seen: replace(seen, log=WHY)), "KRB-FEA-003", "UNKNOWN", WHY.reason),
        (features(ghost), "KRB-FEA-004", "FAIL", "controller 104 is registered and not in the cluster file"),
        (a_controller(103, running=False), "KRB-FEA-005", "FAIL", "controller 103"),
    ],
)
def test_each_reason_not_to_change_a_level_is_named(spoil: Spoil, code: str, verdict: str, words: str) -> None:
    found = not_passing(spoil(cluster()), "level", LEVELS)
    assert code in found and found[code][0] == verdict and words in found[code][1], found


def test_before_the_migration_is_final_no_level_is_changed() -> None:
    seen = observation(Phase.DUAL_WRITE, PLAIN)
    assert LEVELS.read(seen, PLAIN).stage == "UNKNOWN"
    assert not_passing(seen, "level", LEVELS)["KRB-FEA-001"] == ("FAIL", "it is in DUAL_WRITE")


@pytest.mark.parametrize(("operation", "page"), [(SOFTWARE, "software.md"), (LEVELS, "levels.md")])
def test_every_check_stands_in_its_page_with_its_title(operation: Operation, page: str) -> None:
    text = (DOCS / page).read_text()
    for each in operation.checks.values():
        severity = "blocks" if each.severity is Severity.BLOCKING else "warns"
        assert f"| `{each.code}` | {each.title} | {severity} |" in text
