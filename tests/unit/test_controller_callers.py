"""Callers of the controllers, and what KRaft mode does otherwise: what is in order (``test_checks`` has traps)."""

from __future__ import annotations

import pytest
from observations import SPEC, broker, observation

from kraft_runbook.cluster.client_security import SecurityProtocol
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks import CHECKS, CheckResult, Verdict
from kraft_runbook.migration.checks.kraft_differs import ALTER_POLICY, AS_KRAFT_ASKS

MECHANISM = "sasl.mechanism.controller.protocol"


def asked(code: str, spec: ClusterSpec) -> CheckResult:
    return CHECKS[code].run(observation(Phase.ZOOKEEPER), spec)


def with_listener(protocol: SecurityProtocol, properties: dict[str, str], *, authorizer: bool = True) -> ClusterSpec:
    """The lab with this listener of controllers, where the anonymous are no super users."""
    return SPEC.model_copy(
        update={
            "controller_listener": SPEC.controller_listener.model_copy(update={"protocol": protocol}),
            "broker_properties": {**SPEC.broker_properties, **properties},
            "controller_properties": properties,
            "authorizer": authorizer,
            "super_users": ("User:admin",),
        }
    )


@pytest.mark.parametrize("mechanism", ["PLAIN", "GSSAPI", "OAUTHBEARER"])
def test_a_login_that_needs_no_metadata_log_is_in_order(mechanism: str) -> None:
    spec = with_listener(SecurityProtocol.SASL_PLAINTEXT, {MECHANISM: mechanism})
    assert asked("KRB-PRE-090", spec).evidence == f"they log in by {mechanism}"
    assert asked("KRB-PRE-091", spec).passed


@pytest.mark.parametrize("prefix", ["", "listener.name.controller."])
@pytest.mark.parametrize(("client_auth", "in_order"), [("none", False), ("requested", True), ("required", True)])
def test_a_certificate_gives_a_caller_a_name(prefix: str, client_auth: str, in_order: bool) -> None:
    spec = with_listener(SecurityProtocol.SSL, {f"{prefix}ssl.client.auth": client_auth})
    assert asked("KRB-PRE-091", spec).passed is in_order


def test_a_listener_that_says_nothing_of_certificates_asks_for_none() -> None:
    result = asked("KRB-PRE-091", with_listener(SecurityProtocol.SSL, {}))
    assert result.verdict is Verdict.FAIL
    assert "asks for no certificate (ssl.client.auth=none)" in result.evidence


@pytest.mark.parametrize(
    ("properties", "authorizer"),
    [
        ({}, False),
        ({"principal.builder.class": "com.example.ByAddress"}, True),
    ],
)
def test_without_acls_or_with_a_class_that_names_callers_a_plain_listener_is_in_order(
    properties: dict[str, str], authorizer: bool
) -> None:
    assert asked("KRB-PRE-091", with_listener(SecurityProtocol.PLAINTEXT, properties, authorizer=authorizer)).passed


def test_a_rule_that_opens_what_has_no_acl_does_not_count_before_a_leader_is_elected() -> None:
    spec = with_listener(SecurityProtocol.PLAINTEXT, {"allow.everyone.if.no.acl.found": "true"})
    assert asked("KRB-PRE-091", spec).verdict is Verdict.FAIL


def test_a_policy_that_is_already_asked_as_in_kraft_mode_is_in_order() -> None:
    properties = {**SPEC.broker_properties, ALTER_POLICY: "com.example.Policy"}
    spec = SPEC.model_copy(update={"broker_properties": properties})
    assert asked("KRB-PRE-093", spec).verdict is Verdict.FAIL
    spec = SPEC.model_copy(update={"broker_properties": {**properties, AS_KRAFT_ASKS: "true"}})
    assert asked("KRB-PRE-093", spec).passed


@pytest.mark.parametrize(
    ("version", "verdict", "told"),
    [
        ("3.9.1", Verdict.FAIL, f"broker 2 runs a Kafka below 3.9.2, which ignores {AS_KRAFT_ASKS}"),
        ("3.9.0", Verdict.FAIL, f"broker 2 runs a Kafka below 3.9.2, which ignores {AS_KRAFT_ASKS}"),
        ("3.9.3", Verdict.PASS, ""),
        ("7.9.1-ccs", Verdict.UNKNOWN, f"whether 7.9.1-ccs of broker 2 knows {AS_KRAFT_ASKS}"),
        (Unread("it is down"), Verdict.UNKNOWN, "broker 2's version"),
    ],
)
def test_a_release_that_ignores_the_property_asks_the_policy_as_before(
    version: str | Unread, verdict: Verdict, told: str
) -> None:
    properties = {**SPEC.broker_properties, ALTER_POLICY: "com.example.Policy", AS_KRAFT_ASKS: "true"}
    seen = broker(2, software_version=version)(observation(Phase.ZOOKEEPER))
    result = CHECKS["KRB-PRE-093"].run(seen, SPEC.model_copy(update={"broker_properties": properties}))
    assert result.verdict is verdict and told in result.evidence
    assert CHECKS["KRB-PRE-093"].run(seen, SPEC).passed, "without a policy no version matters"
