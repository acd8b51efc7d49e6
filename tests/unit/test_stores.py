"""Key stores and trust stores: which ones a node's properties name, and what their certificates are good for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from observations import NOW, SPEC, observation, on_host
from secured import secured

from kraft_runbook.cluster.client_security import SecurityProtocol
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.stores import Certificate, StoreNamed, StoreSeen, stores_named
from kraft_runbook.migration.checks import CHECKS, CheckResult

DAY = timedelta(days=1)


def test_a_store_of_a_listener_takes_what_is_not_set_there_from_the_common_property() -> None:
    named = stores_named(
        {
            "ssl.keystore.location": "/common.jks",
            "ssl.keystore.password": "x",
            "listener.name.controller.ssl.keystore.location": "/own.p12",
            "listener.name.controller.ssl.keystore.type": "pkcs12",
            "ssl.key.password": "x",
            "ssl.truststore.location": "/trust.jks",
            "listener.name.sasl.ssl.truststore.location": "/trust.jks",
            "listener.name.both.ssl.truststore.location": "/own.p12",
            "ssl.engine.factory.class": "/no/store",
        }
    )
    own, both = "listener.name.controller.ssl.keystore.location", "listener.name.both.ssl.truststore.location"
    of_key = "ssl.key.password"
    assert list(named) == [
        StoreNamed("ssl.keystore.location", "/common.jks", "keystore", "JKS", "ssl.keystore.password", of_key),
        StoreNamed(own, "/own.p12", "keystore", "PKCS12", "ssl.keystore.password", of_key),
        StoreNamed("ssl.truststore.location", "/trust.jks", "truststore", "JKS", None),
        StoreNamed(both, "/own.p12", "truststore", "JKS", None),
    ]


def test_a_path_that_another_listener_opens_with_another_password_is_told_twice() -> None:
    other = "listener.name.b.ssl.key.password"
    paths = {each: "/k.jks" for each in ("ssl.keystore.location", "listener.name.b.ssl.keystore.location")}
    found = stores_named({**paths, "ssl.keystore.password": "x", "ssl.key.password": "x", other: "y"})
    assert [each.key_password for each in found] == ["ssl.key.password", other]


@pytest.mark.parametrize(
    ("kind", "own", "opened_by"),
    [
        ("keystore", "ssl.keystore.password", ("JKS", "{}ssl.keystore.password", "ssl.key.password")),
        ("keystore", "ssl.key.password", ("JKS", "ssl.keystore.password", "{}ssl.key.password")),
        ("keystore", "ssl.keystore.type", ("OTHER", "ssl.keystore.password", "ssl.key.password")),
        ("truststore", "ssl.truststore.password", ("JKS", "{}ssl.truststore.password", None)),
        ("truststore", "ssl.truststore.type", ("OTHER", "ssl.truststore.password", None)),
    ],
)
def test_a_listener_that_opens_the_common_path_in_its_own_way_is_told_too(
    kind: str, own: str, opened_by: tuple[str, str, str | None]
) -> None:
    listener = "listener.name.controller."
    common = {
        f"{listener}{own}": "other",
        **{f"ssl.{each}.location": f"/{each}" for each in ("keystore", "truststore")},
        **{f"ssl.{each}.password": "x" for each in ("keystore", "truststore", "key")},
    }
    found = [each for each in stores_named(common) if each.key.startswith(listener)]
    key = f"{listener}ssl.{kind}.location"
    how = [each and each.format(listener) for each in opened_by]
    assert [(each.key, each.path, each.type, each.password, each.key_password) for each in found] == [
        (key, f"/{kind}", *how)
    ]
    assert len(list(stores_named(common))) == 3
    assert len(list(stores_named({**common, key: ""}))) == 2
    assert not list(stores_named({f"{listener}{own}": "other"}))


def test_zookeepers_client_has_names_of_its_own_and_goes_by_the_files_name() -> None:
    (found,) = stores_named({"zookeeper.ssl.keystore.location": "/zk.p12", "ssl.keystore.password": "x"})
    assert (found.type, found.password) == ("PKCS12", None)


@pytest.mark.parametrize(
    ("names", "host", "taken"),
    [
        (("c1.example.org",), "C1.example.org", True),
        (("*.example.org",), "c1.example.org", True),
        (("*.example.org",), "c1.sub.example.org", False),
        (("*.example.org",), "example.org", False),
        (("10.0.0.1",), "10.0.0.1", True),
        (("::1",), "0:0:0:0:0:0:0:1", True),
        ((), "c1", False),
    ],
)
def test_a_certificate_is_for_the_hosts_that_it_names(names: tuple[str, ...], host: str, taken: bool) -> None:
    assert Certificate("CN=x", NOW - DAY, NOW + DAY, names).is_for(host) is taken


OWN = "listener.name.controller.ssl.keystore.location"


def by_tls(**properties: str) -> ClusterSpec:
    """The controllers' own listener is TLS, with a key store of its own."""
    listener = SPEC.controller_listener.model_copy(update={"protocol": SecurityProtocol.SSL})
    given = {OWN: "/k.jks"} | {key.replace("__", "."): value for key, value in properties.items()}
    return SPEC.model_copy(
        update={"controller_listener": listener, "controller_properties": {**SPEC.controller_properties, **given}}
    )


def asked(certificate: Certificate, spec: ClusterSpec, key: str = OWN, path: str = "/k.jks") -> CheckResult:
    node = 101 if key == OWN or key.startswith("zookeeper.") else 1
    seen = on_host(node, stores=(StoreSeen(key, path, certificate=certificate),))(observation(Phase.ZOOKEEPER))
    return CHECKS["KRB-PRE-105"].run(seen, spec)


def test_a_controllers_certificate_must_name_the_host_that_the_others_call() -> None:
    other = Certificate("CN=c9", NOW - DAY, NOW + DAY, ("c9.example.org",))
    host = SPEC.controller(101).host
    assert f"its certificate is for c9.example.org, not for {host}" in asked(other, by_tls()).evidence
    assert not asked(other, by_tls(ssl__endpoint__identification__algorithm="")).passed  # this tool looks at it too
    assert asked(other, by_tls(), "zookeeper.ssl.keystore.location", "/zk.jks").passed
    assert asked(other, SPEC).passed
    assert asked(Certificate("CN=c1", NOW - DAY, NOW + DAY, (host,)), by_tls()).passed


def test_controllers_that_check_names_look_at_those_of_brokers_who_do_not() -> None:
    key, keys = "ssl.endpoint.identification.algorithm", ("ssl.keystore.location", "/etc/kafka/keys.jks")
    other, spec = Certificate("CN=c9", NOW - DAY, NOW + DAY, ("c9.example.org",)), secured(SecurityProtocol.SSL)
    lax = spec.model_copy(update={"broker_properties": {**spec.broker_properties, key: ""}})
    assert f"not for {SPEC.broker(1).host}" in asked(other, lax, *keys).evidence
    both = lax.model_copy(update={"controller_properties": {**lax.controller_properties, key: ""}})
    assert asked(other, both, *keys).passed


def test_of_several_key_stores_the_one_of_the_listener_must_name_the_host() -> None:
    public = Certificate("CN=kafka", NOW - DAY, NOW + DAY, ("kafka.example.com",))
    assert asked(public, by_tls(ssl__keystore__location="/client.jks"), path="/client.jks").passed
    spec, external = secured(SecurityProtocol.SSL), "listener.name.external.ssl.keystore.location"
    assert asked(public, spec, external, "/external.jks").passed
    told = asked(public, spec, "ssl.keystore.location", "/etc/kafka/keys.jks").evidence
    assert f"its certificate is for kafka.example.com, not for {SPEC.broker(1).host}" in told


def test_a_certificate_that_has_ended_or_not_begun_is_named() -> None:
    host = SPEC.controller(101).host
    assert "ended at" in asked(Certificate("CN=c", NOW - 2 * DAY, NOW, (host,)), by_tls()).evidence
    chain = Certificate("CN=c", NOW - DAY, NOW + DAY, (host,), issuers_end=NOW)
    assert "an intermediate certificate of its chain ended at" in asked(chain, by_tls()).evidence
    assert "begins at" in asked(Certificate("CN=c", NOW + DAY, NOW + 2 * DAY, (host,)), by_tls()).evidence
