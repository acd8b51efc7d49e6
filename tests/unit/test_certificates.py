"""What certificates may be used for, whom their chains lead to, and what is told of those that would not do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from observations import NOW, SPEC, WHY, both, observation, on_host
from secured import KEYS, TRUST, secured

from kraft_runbook.cluster.client_security import ClientSecurity, SecurityProtocol
from kraft_runbook.cluster.cluster_file import parse_cluster
from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import ClusterObservation, ControllerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.principals import of_certificate
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.stores import Certificate, StoreNamed, StoreSeen
from kraft_runbook.io.hosts.certificates import StoreRead, store_read, with_anchors
from kraft_runbook.io.hosts.stores import PEM, own_stores
from kraft_runbook.migration.checks import CHECKS, Verdict
from lab.secured.certificates import Authority

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "mutual-tls.yaml"
DN = "CN=node"
GOOD = Certificate(DN, NOW, NOW, ())
KEY_STORE, TRUST_STORE = KEYS["ssl.keystore.location"], TRUST["ssl.truststore.location"]
OURS = "fingerprint of our authority"


def mutual(**properties: str) -> ClusterSpec:
    """Brokers and controllers by SSL, each asking for a certificate; ``properties``: of the controllers, besides."""
    given = {key.replace("__", "."): value for key, value in properties.items()}
    spec = secured(SecurityProtocol.SSL, controllers=TRUST | KEYS | {"ssl.client.auth": "required"} | given)
    security = ClientSecurity(protocol=SecurityProtocol.SSL, ca_file="/ca", certificate_file="/own", key_file="/own")
    listener = spec.controller_listener.model_copy(update={"protocol": SecurityProtocol.SSL})
    return spec.model_copy(
        update={
            "controller_listener": listener,
            "controller_security": security,
            "authorizer": True,
            "super_users": (f"User:{DN}", "User:CN=tool"),
        }
    )


def stores(certificate: Certificate = GOOD, signed_by: str = OURS, trusts: str = OURS) -> tuple[StoreSeen, ...]:
    keys = StoreSeen("ssl.keystore.location", KEY_STORE, certificate=certificate, anchors=(signed_by,))
    return keys, StoreSeen("ssl.truststore.location", TRUST_STORE, anchors=(trusts,))


def own(certificate: Certificate | None = None, signed_by: str = OURS, trusts: str = OURS) -> tuple[StoreSeen, ...]:
    shown = certificate or replace(GOOD, subject="CN=tool")
    keys = StoreSeen("controller_security.certificate_file", "/own", certificate=shown, anchors=(signed_by,))
    return keys, StoreSeen("controller_security.ca_file", "/ca", anchors=(trusts,))


def seen(*changes: Callable[[ClusterObservation], ClusterObservation]) -> ClusterObservation:
    """Every store as it should be, but for the changes."""
    nodes = (*SPEC.broker_ids, *SPEC.controller_ids)
    right = replace(observation(Phase.ZOOKEEPER), own_stores=own())
    return both(*(on_host(i, stores=stores()) for i in nodes), *changes)(right)


def by_tool(*shown: StoreSeen) -> Callable[[ClusterObservation], ClusterObservation]:
    return lambda each: replace(each, own_stores=shown)


def told(
    code: str, *changes: Callable[[ClusterObservation], ClusterObservation], spec: ClusterSpec | None = None
) -> str:
    """The evidence of a check that fails."""
    result = CHECKS[code].run(seen(*changes), spec or mutual())
    assert result.verdict is Verdict.FAIL, result
    return result.evidence


@pytest.mark.parametrize("code", ["KRB-PRE-101", "KRB-PRE-106", "KRB-PRE-118", "KRB-PRE-116"])
def test_what_is_right_passes(code: str) -> None:
    result = CHECKS[code].run(seen(), mutual())
    assert result.passed, result
    assert "not looked at" not in result.evidence


def test_a_servers_certificate_can_not_be_shown_by_a_client() -> None:
    servers = replace(GOOD, usages=("serverAuth",))
    assert "broker 2" in (text := told("KRB-PRE-118", on_host(2, stores=stores(servers))))
    assert "lacks clientAuth: it has serverAuth" in text and "broker 1" not in text
    assert "controller 101" in told("KRB-PRE-118", on_host(101, stores=stores(servers)))
    assert "this tool" in told("KRB-PRE-118", by_tool(*own(replace(servers, subject="CN=tool"))))
    assert "digitalSignature" in told("KRB-PRE-118", on_host(2, stores=stores(replace(GOOD, signs=False))))


def test_a_clients_certificate_can_not_serve() -> None:
    clients = replace(GOOD, usages=("clientAuth",))
    assert "lacks serverAuth" in told("KRB-PRE-118", on_host(101, stores=stores(clients)))
    for usages in (None, ("serverAuth", "clientAuth"), ("anyExtendedKeyUsage",)):
        fine = seen(on_host(101, stores=stores(replace(GOOD, usages=usages))))
        assert CHECKS["KRB-PRE-118"].run(fine, mutual()).passed


def test_where_nobody_asks_for_a_clients_certificate_a_servers_will_do() -> None:
    servers = replace(GOOD, usages=("serverAuth",))
    changed = seen(on_host(2, stores=stores(servers)))
    assert CHECKS["KRB-PRE-118"].run(changed, mutual(ssl__client__auth="none")).passed


def test_what_another_authority_signed_is_trusted_by_none_that_does_not_hold_it() -> None:
    text = told("KRB-PRE-116", on_host(101, stores=stores(signed_by="another")))
    assert f"the certificate of controller 101 ({KEY_STORE}) is not trusted by" in text
    assert "broker 1" in text and "controller 102" in text
    text = told("KRB-PRE-116", on_host(2, stores=stores(signed_by="another")))
    assert text.startswith("the certificate of broker 2") and "is not trusted by 3: controller 101" in text
    assert "the certificate of this tool (/own) is not trusted by 3" in told(
        "KRB-PRE-116", by_tool(*own(signed_by="another"))
    )
    text = told("KRB-PRE-116", on_host(3, stores=stores(trusts="another")))
    assert "the certificate of controller 101" in text and f"broker 3 ({TRUST_STORE})" in text


def test_what_is_not_known_of_a_store_is_never_a_pass() -> None:
    unread = CHECKS["KRB-PRE-116"].run(seen(on_host(2, stores=WHY)), mutual())
    assert unread.verdict is Verdict.UNKNOWN and "broker 2" in unread.evidence
    keys, trust = stores(trusts="another")
    odd = CHECKS["KRB-PRE-116"].run(seen(on_host(2, stores=(keys, replace(trust, undecoded=True)))), mutual())
    assert odd.verdict is Verdict.UNKNOWN and "could not be decoded" in odd.evidence
    text = {**TRUST, "ssl.engine.factory.class": "org.example.Own", "ssl.client.auth": "required"}
    inline = secured(SecurityProtocol.SSL, controllers=text)
    assert "not looked at, 3: the certificate of controller 101" in CHECKS["KRB-PRE-116"].run(seen(), inline).evidence


def test_a_name_that_the_rules_make_must_be_a_super_user() -> None:
    rules = {"ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/"}
    spec = mutual(**{"ssl__principal__mapping__rules": "RULE:^CN=(.*)$/$1/"})
    text = told("KRB-PRE-106", spec=spec)
    assert "broker 1 calls controllers as User:node, which is no super user" in text
    assert "this tool (controller_security) calls controllers as User:tool, which is no super user" in text
    named = spec.model_copy(update={"super_users": (f"User:{DN}", "User:node", "User:tool")})
    assert CHECKS["KRB-PRE-106"].run(seen(), named).passed
    second = spec.brokers[1].model_copy(update={"properties": spec.brokers[1].properties | rules})
    apart = mutual().model_copy(update={"brokers": (spec.brokers[0], second, *spec.brokers[2:])})
    assert "controller 101 calls brokers as User:node, which is no super user" in told("KRB-PRE-106", spec=apart)


def test_this_tools_certificate_must_be_of_a_super_user() -> None:
    text = told("KRB-PRE-106", by_tool(*own(replace(GOOD, subject="CN=other"))))
    assert "this tool (controller_security) calls controllers as User:CN=other, which is no super user" in text
    none = mutual().model_copy(update={"controller_security": ClientSecurity(protocol=SecurityProtocol.SSL)})
    assert "controller_security has no certificate_file" in told("KRB-PRE-101", spec=none)


def test_who_has_no_certificate_where_one_is_only_requested_is_anonymous() -> None:
    none = mutual().model_copy(update={"controller_security": ClientSecurity(protocol=SecurityProtocol.SSL)})
    asking = {"controller_properties": TRUST | KEYS | {"ssl.client.auth": "requested"}}
    text = told("KRB-PRE-106", spec=none.model_copy(update=asking))
    assert "this tool (controller_security) calls controllers as User:ANONYMOUS, which is no super user" in text
    requested = {**TRUST, **KEYS, "ssl.client.auth": "requested"}
    bare = secured(SecurityProtocol.SSL, controllers=TRUST, brokers=requested)
    bare = bare.model_copy(update={"authorizer": True, "super_users": (f"User:{DN}",)})
    assert "controller 101 calls brokers as User:ANONYMOUS, which is no super user" in told("KRB-PRE-106", spec=bare)


def test_this_tools_certificate_that_ended_is_named() -> None:
    spec = mutual(ssl__endpoint__identification__algorithm="")
    assert "this tool: /own: its certificate ended" in told("KRB-PRE-105", spec=spec)


def at_zookeeper(subject: str) -> StoreSeen:
    return StoreSeen("zookeeper.ssl.keystore.location", "/zk.p12", certificate=replace(GOOD, subject=subject))


def test_with_certificates_alone_znodes_belong_to_the_brokers_name() -> None:
    properties = {"zookeeper.set.acl": "true", "zookeeper.ssl.keystore.location": "/zk.p12"}
    spec = mutual()
    security = spec.ensemble.security.model_copy(update={"protocol": SecurityProtocol.SSL})
    zookeeper = spec.ensemble.model_copy(update={"properties": properties, "security": security})
    spec = spec.model_copy(update={"zookeeper": zookeeper})
    nodes = (*SPEC.broker_ids, *SPEC.controller_ids)
    same = [on_host(i, stores=(*stores(), at_zookeeper("CN=kafka"))) for i in nodes]
    assert CHECKS["KRB-PRE-117"].run(seen(*same), spec).passed
    other = on_host(102, stores=(*stores(), at_zookeeper("CN=c102")))
    text = told("KRB-PRE-117", *same, other, spec=spec)
    assert "controller 102 calls ZooKeeper as CN=c102, the brokers as 1: CN=kafka" in text
    servers = replace(at_zookeeper("CN=kafka"), certificate=replace(GOOD, usages=("serverAuth",)))
    assert "controller 102, at ZooKeeper: /zk.p12" in told(
        "KRB-PRE-118", *same, on_host(102, stores=(*stores(), servers)), spec=spec
    )


def test_the_file_in_the_docs_is_one_whose_nodes_have_names() -> None:
    spec = parse_cluster(EXAMPLE.read_text(), source="mutual.yaml", environment={})
    names = {1: "CN=kafka1.example.org,OU=Kafka,O=Example", 1001: "CN=controller1.example.org,OU=Kafka,O=Example"}
    rules = controller_properties(spec, spec.controllers[0], ControllerMode.MIGRATION)["ssl.principal.mapping.rules"]
    assert {of_certificate(each, rules) for each in names.values()} == {"User:kafka"}
    assert of_certificate("CN=runbook,OU=Tools,O=Example", rules) == "User:runbook"
    assert CHECKS["KRB-PRE-101"].run(seen(), spec).passed and CHECKS["KRB-PRE-078"].run(seen(), spec).passed
    assert CHECKS["KRB-PRE-091"].run(seen(), spec).passed


# -- as decoded from files ---------------------------------------------------------------------------------------------


def read(kind: str, *files: Path) -> StoreRead:
    texts = [text for file in files for text in PEM.findall(file.read_text())]
    return store_read(StoreNamed(f"ssl.{kind}.location", str(files[0]), kind, "PEM", None), texts)


def test_a_chain_leads_to_the_authority_whose_key_signed_it_not_to_one_of_the_same_name(tmp_path: Path) -> None:
    ours, namesake = Authority(tmp_path / "ours"), Authority(tmp_path / "namesake")
    ours.pem(tmp_path / "node.pem", "node", usages=(ExtendedKeyUsageOID.SERVER_AUTH,))
    node = read("keystore", tmp_path / "node.pem")
    found = with_anchors({1: [node, read("truststore", namesake.file)], 2: [read("truststore", ours.file)], 3: WHY})
    (keys, wrong), (right,) = found[1], found[2]
    assert keys.anchors == right.anchors and len(right.anchors) == 1 and wrong.anchors == ()
    assert found[3] is WHY
    assert keys.certificate and (keys.certificate.subject, keys.certificate.usages) == (DN, ("serverAuth",))


def test_a_certificate_may_be_trusted_itself_and_a_chain_counts_as_far_as_it_is_signed(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other", "other")
    ours.pem(tmp_path / "node.pem", "node")
    alone = with_anchors({1: [read("keystore", tmp_path / "node.pem"), read("truststore", tmp_path / "node.pem")]})
    assert alone[1][0].anchors == alone[1][1].anchors != ()
    strange = with_anchors({1: [read("keystore", tmp_path / "node.pem", other.file), read("truststore", other.file)]})
    assert strange[1][0].anchors == strange[1][1].anchors == ()


def test_this_tools_files_are_read_and_one_that_is_not_there_is_told(tmp_path: Path) -> None:
    ours = Authority(tmp_path)
    ours.pem(tmp_path / "tool.pem", "tool")
    spec = mutual()
    security = spec.controller_security.model_copy(
        update={"certificate_file": str(tmp_path / "tool.pem"), "ca_file": str(tmp_path / "none.pem")}
    )
    keys, trust = (each.seen for each in own_stores(spec.model_copy(update={"controller_security": security})))
    assert keys.certificate and keys.certificate.subject == "CN=tool"
    assert trust.wrong == "this tool can't read it (No such file or directory)"


def certificate(common: str, issuer: str, ends: datetime, *names: x509.GeneralName) -> str:
    """In PEM, signed by a key that nobody has."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject, by = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (common, issuer))
    serial = x509.random_serial_number()
    made = x509.CertificateBuilder(by, subject, key.public_key(), serial, ends - timedelta(days=9), ends)
    if names:
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def as_told(*chain: str, trusted: Sequence[str] = ()) -> Certificate:
    keys = store_read(StoreNamed("ssl.keystore.location", "/k", "keystore", "PEM", None), chain)
    trust = store_read(StoreNamed("ssl.truststore.location", "/t", "truststore", "PEM", None), trusted)
    (told, _) = with_anchors({1: [keys, trust]})[1]
    assert told.certificate is not None
    return told.certificate


def test_a_common_name_stands_for_a_host_where_java_takes_it() -> None:
    """Java's HostnameChecker: for a host where no DNS name is among the alternative ones, for an address never."""
    dns, address = x509.DNSName("a.example.org"), x509.IPAddress(ip_address("127.0.0.1"))
    assert as_told(certificate("c1", "ca", NOW)).names == ("c1",)
    assert as_told(certificate("127.0.0.2", "ca", NOW)).names == ()
    assert as_told(certificate("c1", "ca", NOW, address)).names == ("127.0.0.1", "c1")
    assert as_told(certificate("c1", "ca", NOW, dns, address)).names == ("a.example.org", "127.0.0.1")


def test_of_a_chain_the_first_intermediate_certificate_to_end_counts_and_the_authoritys_own_does_not() -> None:
    later, sooner = NOW + timedelta(days=2), NOW + timedelta(days=1)
    own, authority = certificate("c1", "second", later), certificate("ca", "ca", NOW)
    first = certificate("first", "ca", sooner)
    chain = (own, certificate("second", "first", later), first, authority)
    told = as_told(*chain, trusted=[authority])
    assert (told.ends, told.issuers_end) == (later, sooner)
    assert as_told(*chain, trusted=[first, authority]).issuers_end == later, "Java asks no date of what is trusted"
    assert as_told(own, authority).issuers_end is None
