"""By which principals nodes and this tool call, and whether these are super users."""

from __future__ import annotations

from pathlib import Path

from asked_java import ask_java
from observations import NOW, SPEC, WHY, both, observation, on_host
from secured import secured

from kraft_runbook.cluster.client_security import ClientSecurity, SaslMechanism, SecurityProtocol
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.principals import of_certificate, of_login
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.cluster.stores import Certificate, StoreSeen
from kraft_runbook.migration.checks import CHECKS, Verdict
from lab.installation import JARS

DN = "CN=c101,OU=Kafka,O=Example"


RULES = [
    (DN, "DEFAULT", f"User:{DN}"),
    (DN, "", None),
    (DN, ",DEFAULT,", f"User:{DN}"),
    (DN, "RULE:^CN=(.*?),OU=Kafka.*$/$1/", "User:c101"),
    (DN, "RULE:^CN=(.*?),OU=Other.*$/$1/,RULE:^CN=([^,]*),.*$/kafka-$1/U", "User:KAFKA-C101"),
    (DN, "RULE:^CN=(.*?),OU=Other.*$/$1/, DEFAULT", f"User:{DN}"),
    (DN, "RULE:^CN=(.*?),OU=Other.*$/$1/", None),
    (DN, r"RULE:.*CN[\s]?=[\s]?([a-zA-Z0-9.]*).*/$1/", "User:c101"),
    (DN, "RULE:.*CN[c]?=[c]?([a-zA-Z0-9.]*).*/$1/", "User:101"),  # where a file has lost a backslash before c
    (DN, "RULE:^CN=(/$1/", None),
    (DN, "what is no rule", None),
    (DN, "RULE:(.*)/$1/L, what is no rule", None),
    # applied to each place where the pattern is found, however little of the name that is
    ("CN=b1,OU=x", "RULE:^CN=(.*?)(,.*)?/$1/", "User:b1,OU=x"),
    ("CN=b1", "RULE:.*/kafka/", "User:kafkakafka"),
    ("CN=b1", "RULE:.*?/k/", "User:kCkNk=kbk1k"),
    ("CN=b1,OU=x", r"RULE:([A-Z]+=(\w+),?)*/$2;/", "User:x;;"),
    # what a replacement may say
    ("CN=b1,OU=x", r"RULE:^CN=(.*?),OU=(.*?)$/$1\/$2/", "User:b1/x"),
    ("CN=b1,OU=x", r"RULE:^CN=(.*?),.*$/\n$0-$12/", "User:nCN=b1,OU=x-b12"),
    ("CN=b1,OU=x", "RULE:^CN=(.*?),.*$/$1@$2/", "User:b1@$2"),
    ("CN=b1,OU=x", "RULE:^CN=(z)?.*$/a$1b/", "User:ab"),
    ("CN=b1,OU=x", "RULE:^CN=.*$/$1/", None),
    ("CN=b1,OU=x", "RULE:^CN=.*$/$x/", None),
    # letters beyond ASCII are none to Java's classes
    ("CN=\u00e91", r"RULE:CN=(\w*).*/$1/", "User:"),
    ("CN=\u00c91", "RULE:CN=(.*)/$1/L", "User:\u00e91"),
]


def test_a_certificates_name_goes_through_the_rules_as_in_kafka() -> None:
    expected = [principal for *_, principal in RULES]
    assert [of_certificate(subject, rules) for subject, rules, _ in RULES] == expected
    asked = "".join(f"{subject}\t{rules}\n" for subject, rules, _ in RULES)
    by_kafka = ask_java(Path(__file__).with_name("AskPrincipals.java"), jars=JARS, given=asked).splitlines()
    assert by_kafka == [principal or "none" for principal in expected]


def test_what_only_java_can_follow_is_not_guessed() -> None:
    assert of_certificate("CN=b1", "RULE:[A-Z=b&&[^a]]*.*/k/") is None
    assert of_certificate("CN=b1", "RULE:CN=(?<name>.*)/${name}/") is None


def test_a_login_names_its_user_only_where_it_stands_there() -> None:
    assert of_login('a.B required username="kafka" password="${secrets:/s:p}";') == "User:kafka"
    assert of_login("${secrets:/s:l}") is None
    assert of_login('a.B required username="${secrets:/s:u}";') is None


def by_mutual_tls(*super_users: str) -> ClusterSpec:
    supers = ("User:ANONYMOUS", *super_users)
    return secured(SecurityProtocol.SSL).model_copy(update={"authorizer": True, "super_users": supers})


def with_certificates(seen: ClusterObservation) -> ClusterObservation:
    keys = StoreSeen("ssl.keystore.location", "/etc/kafka/keys.jks", certificate=Certificate(DN, NOW, NOW, ()))
    return both(*(on_host(i, stores=(keys,)) for i in SPEC.controller_ids))(seen)


def test_a_controller_whose_certificate_is_no_super_user_of_the_brokers_is_named() -> None:
    seen = with_certificates(observation(Phase.ZOOKEEPER))
    result = CHECKS["KRB-PRE-106"].run(seen, by_mutual_tls())
    assert result.verdict is Verdict.FAIL
    assert f"controller 101 calls brokers as User:{DN}, which is no super user" in result.evidence
    assert CHECKS["KRB-PRE-106"].run(seen, by_mutual_tls(f"User:{DN}")).passed
    unread = on_host(102, stores=WHY)(seen)
    assert CHECKS["KRB-PRE-106"].run(unread, by_mutual_tls(f"User:{DN}")).verdict is Verdict.UNKNOWN
    other = StoreSeen("ssl.keystore.location", "/etc/kafka/keys.jks", certificate=Certificate(None, NOW, NOW, ()))
    told = CHECKS["KRB-PRE-106"].run(on_host(102, stores=(other,))(seen), by_mutual_tls(f"User:{DN}"))
    assert told.verdict is Verdict.UNKNOWN and "compare it with super_users by hand" in told.evidence


def test_rules_that_are_set_and_empty_make_no_name() -> None:
    spec = by_mutual_tls(f"User:{DN}")
    rules = {"ssl.principal.mapping.rules": ""}
    brokers = tuple(b.model_copy(update={"properties": b.properties | rules}) for b in spec.brokers)
    told = CHECKS["KRB-PRE-106"].run(
        with_certificates(observation(Phase.ZOOKEEPER)), spec.model_copy(update={"brokers": brokers})
    )
    assert told.verdict is Verdict.UNKNOWN and f"ssl.principal.mapping.rules= makes no name of {DN}" in told.evidence


def test_a_pass_names_the_callers_that_it_does_not_know() -> None:
    spec = by_mutual_tls(f"User:{DN}")
    builder = {"principal.builder.class": "org.example.Own"}
    own = spec.model_copy(
        update={"brokers": tuple(b.model_copy(update={"properties": b.properties | builder}) for b in spec.brokers)}
    )
    result = CHECKS["KRB-PRE-106"].run(with_certificates(observation(Phase.ZOOKEEPER)), own)
    assert result.passed
    assert "not looked at, 9: controller 101, who calls brokers, controller 102" in result.evidence


def test_this_tool_must_be_a_super_user_of_the_controllers() -> None:
    protocol = SecurityProtocol.SASL_PLAINTEXT
    security = ClientSecurity(
        protocol=protocol, sasl_mechanism=SaslMechanism.PLAIN, username="tool", password=SecretRef(env="X")
    )
    spec = SPEC.model_copy(
        update={
            "controller_listener": SPEC.controller_listener.model_copy(update={"protocol": protocol}),
            "controller_security": security,
            "authorizer": True,
            "super_users": ("User:admin",),
        }
    )
    result = CHECKS["KRB-PRE-106"].run(observation(Phase.ZOOKEEPER), spec)
    assert "this tool (controller_security) calls controllers as User:tool, which is no super user" in result.evidence
    named = spec.model_copy(update={"super_users": ("User:admin", "User:tool")})
    assert CHECKS["KRB-PRE-106"].run(observation(Phase.ZOOKEEPER), named).passed
