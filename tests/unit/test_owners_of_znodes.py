"""Who has zookeeper.set.acl must be somebody at ZooKeeper: a controller that is nobody ends at its start."""

from __future__ import annotations

from typing import Any

import pytest
from observations import SPEC, WHY, Spoil, both, observation, on_host, tree
from spoilt_clusters import NOW, Z

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.stores import Certificate, StoreSeen
from kraft_runbook.migration.checks import CHECKS, CheckResult, Verdict
from kraft_runbook.migration.checks.untried_logins import BY_OPTION

BY_DIGEST = ("org.apache.zookeeper.server.auth.DigestLoginModule",)
WITH_ACLS = {"zookeeper.set.acl": "true"}
BY_CERTIFICATE = {
    "zookeeper.ssl.client.enable": "true",
    "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
    "zookeeper.ssl.keystore.location": "/keys.p12",
}


def with_properties(properties: dict[str, str]) -> ClusterSpec:
    return SPEC.model_copy(update={"zookeeper": SPEC.ensemble.model_copy(update={"properties": properties})})


def logins(of_controllers: Any, of_brokers: Any = BY_DIGEST) -> ClusterObservation:
    """A look before the copy, with these logins at ZooKeeper."""
    seen = observation(Z)
    for each in SPEC.node_ids:
        of = of_controllers if each in SPEC.controller_ids else of_brokers
        seen = on_host(each, zookeeper_login=of)(seen)
    return seen


def answer(code: str, seen: ClusterObservation, properties: dict[str, str]) -> CheckResult:
    found = CHECKS.run(seen, with_properties(properties), Z, gate=None, earlier=seen).results
    return next(each for each in found if each.code == code)


@pytest.mark.parametrize("of_brokers", [BY_DIGEST, (), WHY])
def test_a_controller_with_neither_login_nor_certificate_blocks_whatever_is_seen_of_brokers(of_brokers: Any) -> None:
    result = answer("KRB-PRE-131", logins((), of_brokers), WITH_ACLS)
    assert (result.verdict, result.blocks) == (Verdict.FAIL, True)
    assert result.evidence == (
        "controllers 101, 102, 103 have zookeeper.set.acl, and neither a login nor a client certificate"
    )


@pytest.mark.parametrize(
    ("properties", "login"),
    [({}, ()), ({"zookeeper.set.acl": "false"}, ()), (WITH_ACLS | BY_CERTIFICATE, ()), (WITH_ACLS, BY_DIGEST)],
)
def test_without_acls_by_certificate_or_by_login_it_starts(properties: dict[str, str], login: Any) -> None:
    assert answer("KRB-PRE-131", logins(login), properties).passed


@pytest.mark.parametrize("lacking", BY_CERTIFICATE)
def test_a_certificate_counts_with_all_three_of_its_properties(lacking: str) -> None:
    """As Kafka has it (``KafkaConfig.zkTlsClientAuthEnabled``)."""
    given = {key: value for key, value in BY_CERTIFICATE.items() if key != lacking}
    assert answer("KRB-PRE-131", logins(()), WITH_ACLS | given).verdict is Verdict.FAIL


def test_a_login_file_that_could_not_be_read_blocks_as_unknown() -> None:
    result = answer("KRB-PRE-131", logins(WHY), WITH_ACLS)
    assert (result.verdict, result.blocks) == (Verdict.UNKNOWN, True)
    assert "controller 101: a test did not read it" in result.evidence


@pytest.mark.parametrize("of_brokers", [BY_DIGEST, ()])
def test_supervisor_which_does_not_say_it_stops_no_migration_and_a_person_is_told(of_brokers: Any) -> None:
    """Nobody could make it say so before a controller runs."""
    seen = logins(None, of_brokers)
    result = answer("KRB-PRE-131", seen, WITH_ACLS)
    assert result.passed and "supervisor does not say that of controllers 101, 102, 103" in result.evidence
    warning = answer("KRB-PRE-130", seen, WITH_ACLS)
    assert (warning.verdict, warning.blocks) == (Verdict.UNKNOWN, False)


@pytest.mark.parametrize("properties", [{}, WITH_ACLS | BY_CERTIFICATE])
def test_supervisor_is_asked_for_nothing_where_no_login_is_needed(properties: dict[str, str]) -> None:
    assert answer("KRB-PRE-130", logins(None, ()), properties).passed


def test_brokers_that_were_not_read_may_have_a_login() -> None:
    result = answer("KRB-PRE-130", tree(znode_acl_restricted=True)(logins((), WHY)), {})
    assert result.verdict is Verdict.UNKNOWN and "broker 1: a test did not read it" in result.evidence


def with_options(seen: ClusterObservation, options: Any) -> ClusterObservation:
    for each in SPEC.controller_ids:
        seen = on_host(each, zookeeper_options=options)(seen)
    return seen


BY_OPTIONS = {BY_OPTION[key]: value for key, value in BY_CERTIFICATE.items()}


@pytest.mark.parametrize("by_property", [(), *((each,) for each in BY_CERTIFICATE), tuple(BY_CERTIFICATE)])
def test_what_no_property_says_of_a_certificate_the_jvms_options_do(by_property: tuple[str, ...]) -> None:
    """As Kafka has it (``KafkaConfig.zooKeeperClientProperty``)."""
    properties = WITH_ACLS | {key: BY_CERTIFICATE[key] for key in by_property}
    options = {BY_OPTION[key]: value for key, value in BY_CERTIFICATE.items() if key not in by_property}
    seen = with_options(logins(()), options)
    assert answer("KRB-PRE-131", seen, properties).passed
    for lacking in options:
        without = {key: value for key, value in options.items() if key != lacking}
        assert answer("KRB-PRE-131", with_options(seen, without), properties).verdict is Verdict.FAIL


def test_a_property_comes_before_the_jvms_option() -> None:
    properties = WITH_ACLS | {"zookeeper.ssl.client.enable": "false"}
    assert answer("KRB-PRE-131", with_options(logins(()), BY_OPTIONS), properties).verdict is Verdict.FAIL


def test_options_that_could_not_be_read_may_name_a_certificate() -> None:
    seen = with_options(logins(()), WHY)
    result = answer("KRB-PRE-131", seen, WITH_ACLS)
    assert (result.verdict, result.blocks) == (Verdict.UNKNOWN, True)
    assert "controller 101: a test did not read it" in result.evidence
    assert answer("KRB-PRE-131", with_options(logins(BY_DIGEST), WHY), WITH_ACLS).passed


DN = "CN=kafka,O=Example"


def shown(subject: str, *nodes: int) -> Spoil:
    """These nodes show ZooKeeper a certificate of that name."""
    store = StoreSeen("zookeeper.ssl.keystore.location", "/keys.p12", certificate=Certificate(subject, NOW, NOW, ()))
    return both(*(on_host(each, stores=(store,)) for each in nodes))


@pytest.mark.parametrize(
    ("spoil", "verdict", "says"),
    [
        (shown(DN, *SPEC.node_ids), Verdict.PASS, "they have"),
        (
            both(shown(DN, *SPEC.node_ids), shown("CN=other", 102)),
            Verdict.FAIL,
            "controller 102 has no login for ZooKeeper (no login file, or no section Client in it), and no certificate"
            " of the brokers' name; brokers 1, 2, 3 log in",
        ),
        (shown(DN, *SPEC.broker_ids), Verdict.UNKNOWN, "controller 101: whether its certificate at ZooKeeper has the"),
        (shown(DN, *SPEC.controller_ids), Verdict.UNKNOWN, "brokers' name was not read"),
    ],
)
def test_a_certificate_of_the_brokers_name_is_as_good_as_their_login(spoil: Spoil, verdict: Verdict, says: str) -> None:
    result = answer("KRB-PRE-130", spoil(logins(())), WITH_ACLS | BY_CERTIFICATE)
    assert result.verdict is verdict and says in result.evidence


def test_a_certificate_that_a_jvms_option_names_is_not_compared() -> None:
    seen = shown(DN, *SPEC.broker_ids)(with_options(logins(()), BY_OPTIONS))
    result = answer("KRB-PRE-130", seen, WITH_ACLS)
    assert result.verdict is Verdict.UNKNOWN and "brokers' name was not read" in result.evidence
