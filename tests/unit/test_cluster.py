"""A cluster file's problems are all reported at once, each with its line and what to write instead."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from observations import CLUSTERS, SPEC

from kraft_runbook.cluster.client_security import ZookeeperSecurity
from kraft_runbook.cluster.cluster_file import load_cluster, parse_cluster
from kraft_runbook.cluster.contradictions import contradictions
from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import ControllerMode
from kraft_runbook.cluster.sensitive import is_sensitive
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Listener
from kraft_runbook.cluster.spec_parts import IDENTIFICATION, ZooKeeper
from kraft_runbook.errors import ClusterFileError, Refused, RunbookError
from kraft_runbook.io.hosts.inventory import node_variables

TEXT = (CLUSTERS / "lab.yaml").read_text()
GIVEN = {"PROJECT_ROOT": "/project"}
SECRET_NAMES = [
    "KRB_ZK_PASS",
    "KRB_ZK_PASSPHRASE",
    "KRB_PWD",
    "KRB_ZK_PW",
    "KRB_JAAS",
    "KRB_BASIC_AUTH",
    "KRB_CREDS",
    "KRB_DSN",
]


def parse(text: str, **environment: str) -> ClusterSpec:
    return parse_cluster(text, source="lab.yaml", environment={**GIVEN, **environment})


def problems(text: str, **environment: str) -> tuple[str, ...]:
    with pytest.raises(ClusterFileError) as error:
        parse(text, **environment)
    return error.value.problems


def line_of(text: str, fragment: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if fragment in line)


def test_the_lab_is_a_good_cluster_file() -> None:
    spec = parse(TEXT)
    assert spec.broker_ids == (1, 2, 3)
    assert spec.quorum_voters == "101@127.10.0.101:9093,102@127.10.0.102:9093,103@127.10.0.103:9093"
    assert spec.bootstrap_servers == ("127.10.0.11:9092", "127.10.0.12:9092", "127.10.0.13:9092")
    assert spec.zookeeper.connect == "127.10.0.1:2181"


@pytest.mark.parametrize(
    ("where", "mechanism", "said"),
    [
        ("broker_security", "GSSAPI", "this tool has no login of that kind (Kerberos needs a ticket"),
        ("controller_security", "oauthbearer", "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, or a client certificate"),
        ("zookeeper", "GSSAPI", "DIGEST-MD5, or a client certificate"),
        ("zookeeper", "PLAIN", "ZooKeeper's login by password is DIGEST-MD5"),
    ],
)
def test_a_login_that_this_tool_does_not_have_is_refused_with_the_one_to_give(
    where: str, mechanism: str, said: str
) -> None:
    document = yaml.safe_load(TEXT)
    login = {"protocol": "SASL_SSL", "sasl_mechanism": mechanism, "username": "tool", "password": {"env": "P"}}
    document.setdefault(where, {}).update({"security": login} if where == "zookeeper" else login)
    assert any(said in each for each in problems(yaml.safe_dump(document)))


def test_the_name_of_a_zookeeper_server_is_checked_unless_the_brokers_do_not_ask() -> None:
    for stated, checked in ({}, True), ({IDENTIFICATION: "https"}, True), ({IDENTIFICATION: ""}, False):
        assert ZooKeeper(servers=("a:1",), properties=stated).names_are_checked is checked
        own = ZookeeperSecurity(check_names=not checked)
        assert ZooKeeper(servers=("a:1",), properties=stated, security=own).names_are_checked is not checked


def without_zookeeper(text: str) -> str:
    before, _, rest = text.partition("zookeeper:\n")
    return before + rest[rest.index("reach:") :]


@pytest.mark.parametrize("version", ["3.9.0", "3.9.2", "4.0.1", "4.1.1"])
def test_a_cluster_in_kraft_mode_needs_no_zookeeper_and_may_be_of_any_version_from_3_9_on(version: str) -> None:
    spec = parse(without_zookeeper(TEXT).replace("version: 3.9.2", f"version: {version}"))
    assert (spec.zookeeper, spec.kafka.version) == (None, version)
    with pytest.raises(Refused, match="the cluster file of lab names no ZooKeeper ensemble, and this needs one"):
        _ = spec.ensemble
    assert parse(TEXT).ensemble == parse(TEXT).zookeeper


def test_a_version_before_3_9_is_refused_without_zookeeper_too() -> None:
    assert "3.8.1 is too old" in problems(without_zookeeper(TEXT).replace("version: 3.9.2", "version: 3.8.1"))[0]


def test_environment_variables_move_a_lab() -> None:
    spec = parse(TEXT, KRB_LAB_NET="127.99.0", KRB_LAB_DIR="/elsewhere")
    assert spec.broker(2).host == "127.99.0.12"
    assert spec.kafka.home == "/elsewhere/kafka"


def test_several_problems_are_reported_at_once_each_with_its_line() -> None:
    text = (
        TEXT.replace("  version: 3.9.2", "  version: three")
        .replace("    metrics_port: 7071\n  - id: 102", "    metrics_prot: 7071\n  - id: 102")
        .replace("kind: local", "kind: telnet")
    )
    found = problems(text)
    assert (
        f"line {line_of(text, 'version: three')}: kafka.version: String should match pattern"
        " '^\\d+\\.\\d+\\.\\d+(-c(cs|e))?$'" in found
    )
    assert (
        f"line {line_of(text, 'metrics_prot')}: controllers.0.metrics_prot: unknown key; remove it or correct its"
        " spelling" in found
    )
    assert any(p.endswith("controllers.0.metrics_port: missing; this key is required") for p in found)
    assert any(p.startswith(f"line {line_of(text, 'telnet')}: reach.kind: ") for p in found)
    assert len(found) == 4


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "10.0.0.7", "kafka-1.internal"])
def test_a_listener_may_bind_elsewhere_than_to_the_brokers_host(host: str) -> None:
    listener = Listener(name="PLAINTEXT", port=9092, bind_host=host)
    assert listener.bind_host == host


@pytest.mark.parametrize("host", ["[::]", "0.0.0.0:9092", "fe80::1%eth0", "a b", "-"])
def test_a_bind_host_that_is_no_address_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match="bind_host"):
        Listener(name="PLAINTEXT", port=9092, bind_host=host)


@pytest.mark.parametrize("name", ["INTERNAL", "internal", "PLAIN-9092", "1-9092", "_x"])
def test_a_listeners_name_is_kept_as_kafka_keeps_it(name: str) -> None:
    assert Listener(name=name, port=9092).name == name.upper()


@pytest.mark.parametrize("name", ["", "-a", "a.b", "a:b", "a b", "ä"])
def test_a_listeners_name_that_a_cluster_file_cant_say_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no listener's name: it has letters, digits, - and _ alone"):
        Listener(name=name, port=9092)


@pytest.mark.parametrize(
    ("first", "second", "taken"),
    [("127.0.0.1", "::1", True), ("127.0.0.1", "127.0.0.2", False), ("", "::1", False), ("127.0.0.1", "host", False)],
)
def test_two_listeners_of_a_broker_share_a_port_with_an_address_of_each_family(
    first: str, second: str, taken: bool
) -> None:
    spec = parse(TEXT)
    listeners = (
        spec.brokers[0].listeners[0].model_copy(update={"bind_host": first}),
        spec.brokers[0].listeners[0].model_copy(update={"bind_host": second, "name": "OTHER"}),
    )
    broker = spec.brokers[0].model_copy(update={"listeners": listeners})
    found = list(contradictions(spec.model_copy(update={"brokers": (broker, *spec.brokers[1:])})))
    assert (not found) is taken, found


@pytest.mark.parametrize(
    ("bind_host", "listeners", "waited_for"),
    [
        ("0.0.0.0", "CONTROLLER://0.0.0.0:{port}", "{host}:{port}"),
        ("", "CONTROLLER://:{port}", "{host}:{port}"),
        ("10.1.1.1", "CONTROLLER://10.1.1.1:{port}", "10.1.1.1:{port}"),
    ],
)
def test_a_controller_that_binds_elsewhere_advertises_its_host(bind_host: str, listeners: str, waited_for: str) -> None:
    spec = parse(TEXT)
    controller = spec.controllers[0].model_copy(update={"bind_host": bind_host})
    there = {"host": controller.host, "port": controller.port}
    for mode in ControllerMode:
        rendered = controller_properties(spec, controller, mode)
        assert rendered["listeners"] == listeners.format(**there)
        assert rendered["advertised.listeners"] == f"CONTROLLER://{controller.address}"
        assert "advertised.listeners" not in controller_properties(spec, spec.controllers[0], mode)
    assert node_variables(spec, controller)["address"] == waited_for.format(**there)


def test_duplicate_ids_are_named() -> None:
    text = TEXT.replace("  - id: 2\n", "  - id: 1\n")
    assert f"line {line_of(text, 'brokers:')}: brokers: id 1 is used 2 times; each must be unique" in problems(text)


def test_a_brokers_id_used_by_a_controller_is_refused_with_a_free_one() -> None:
    text = TEXT.replace("  - id: 102\n", "  - id: 2\n")
    said = next(p for p in problems(text) if "controllers.1.id" in p)
    number = max(n for n, line in enumerate(text.splitlines(), 1) if line == "  - id: 2")
    assert (
        said
        == f"line {number}: controllers.1.id: 2 is also a broker's id; controllers need ids of their own, for example"
        " 1004. A process that is both is declared once, as a broker with 'controller' (docs/both-roles.md)"
    )


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "  version: 3.9.2",
            "  version: 3.6.1",
            "kafka.version: 3.6.1 is too old; upgrade the brokers to 3.9.2 first, the last release that can migrate",
        ),
        ("  version: 3.9.2", "  version: 4.1.0", "kafka.version: 4.1.0 has no ZooKeeper mode"),
        ("  version: 3.9.2", "  version: 4.1.0", "Where the migration is final, take 'zookeeper' out of the file"),
        (
            "default.replication.factor: 3",
            "node.id: 3",
            "broker_properties.node.id: this property follows from the cluster file and the phase; remove it",
        ),
        (
            "default.replication.factor: 3",
            "ssl.keystore.password: hunter2",
            "broker_properties.ssl.keystore.password: a secret's value must not stand in the file",
        ),
        (
            "default.replication.factor: 3",
            "ssl.key.password: ${files:/project/build/lab/../lab/secrets.properties:own}",
            "broker_properties.ssl.key.password: secrets_file /project/build/lab/secrets.properties is written whole,"
            " and own, to which this refers, is not under 'secrets'",
        ),
        (
            "  inter_broker_listener: PLAINTEXT",
            "  inter_broker_listener: INTERNAL",
            "broker 1 has no listener INTERNAL, which kafka.inter_broker_listener names; it has PLAINTEXT, SASL",
        ),
        (
            "      - {name: SASL, port: 9094,",
            "      - {name: SASL, port: 9092,",
            "broker 1 listener SASL and broker 1 listener PLAINTEXT both use 127.10.0.11:9092",
        ),
        ("{name: CONTROLLER, protocol: PLAINTEXT}", "{name: PLAINTEXT}", "PLAINTEXT is the controller listener's name"),
        (
            TEXT[TEXT.index("  - id: 103") : TEXT.index("controller_listener:")],
            "",
            "controllers: 2 voters; an even number survives no more failures than one fewer: use 1 or 3",
        ),
        ("secrets_file: ", "description_file: ", "description_file: unknown key"),
        (
            'servers: ["${KRB_LAB_NET:-127.10.0}.1:2181"]',
            "servers: [zookeeper]",
            "each server is host:port, not 'zookeeper'",
        ),
        (
            "kind: supervisor",
            "kind: systemd",
            "reach.kind: local reaches this machine alone, but the nodes name several hosts; use ssh",
        ),
    ],
)
def test_what_single_keys_cannot_show_is_found(old: str, new: str, problem: str) -> None:
    assert old in TEXT
    assert any(problem in p for p in problems(TEXT.replace(old, new, 1)))


LOG4J = """controller_log4j:
  log4j.rootLogger: INFO, stdout
  log4j.additivity.kafka.controller: false
  log4j.appender.file.File: ${kafka.logs.dir}/controller.log
"""


def with_loggers(*files: str) -> str:
    """The lab's file, its controllers with these log4j files (empty: without)."""
    text = TEXT
    for node, file in zip((101, 102, 103), files, strict=True):
        text = text.replace(
            f"    service: controller-{node}\n",
            f"    service: controller-{node}\n" + (f"    log4j_file: {file}\n" if file else ""),
        )
    return text


def test_controllers_loggers_are_declared_whole_a_file_each() -> None:
    spec = parse(with_loggers("/etc/c101", "/etc/c102", "/etc/c103") + LOG4J + "controller_heap: 6g\n")
    assert [c.log4j_file for c in spec.controllers] == ["/etc/c101", "/etc/c102", "/etc/c103"]
    assert spec.controller_log4j["log4j.additivity.kafka.controller"] == "false"
    assert spec.controller_log4j["log4j.appender.file.File"] == "${kafka.logs.dir}/controller.log"
    assert spec.controller_heap == "6g"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            with_loggers("/a", "", "/c") + LOG4J,
            "controllers: log4j_file is given for some and not for others; give it for all or for none",
        ),
        (
            with_loggers("/a", "/b", "/c"),
            "controller_log4j: what each controllers[].log4j_file is to hold; give both or neither",
        ),
        (TEXT + LOG4J, "controller_log4j: what each controllers[].log4j_file is to hold; give both or neither"),
        (
            with_loggers("/a", "/b", "/a") + LOG4J,
            (
                "controllers.2.log4j_file: /a is also the log4j_file of controller 101; each controller needs a file of"
                " its own"
            ),
        ),
        (
            with_loggers("/a", "/b", "/project/build/lab/controller-101/controller.properties") + LOG4J,
            (
                "controllers.2.log4j_file: /project/build/lab/controller-101/controller.properties is also the"
                " config_file of controller 101"
            ),
        ),
        (
            with_loggers("/a", "/b", "/c") + LOG4J + "  log4j.appender.db.password: hunter2\n",
            "log4j.appender.db.password: a secret's value must not stand",
        ),
        (TEXT + "controller_heap: 6 GB\n", "controller_heap: String should match pattern"),
    ],
)
def test_what_is_wrong_with_the_controllers_loggers_or_heap_is_named(text: str, problem: str) -> None:
    found = problems(text)
    assert any(problem in p for p in found), found
    assert "hunter2" not in "".join(found)


def test_no_problem_text_shows_a_secret() -> None:
    assert "hunter2" not in " ".join(
        problems(TEXT.replace("default.replication.factor: 3", "ssl.keystore.password: hunter2"))
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: lab: x", "line 1, column 10: not YAML"),
        ("- a list\n", "the file must be a mapping of keys"),
        ("", "the file must be a mapping of keys"),
        ("just text", "the file must be a mapping of keys"),
    ],
)
def test_a_malformed_file_is_refused(text: str, problem: str) -> None:
    assert problem in problems(text)[0]


def test_a_variable_that_is_not_set_is_named_with_its_key() -> None:
    text = TEXT.replace("user: admin", "").replace("description: One", "description: ${KRB_NOBODY_SET_THIS} One")
    assert problems(text) == (
        (
            "description: environment variable KRB_NOBODY_SET_THIS is not set; set it, or give a default as"
            " ${KRB_NOBODY_SET_THIS:-…}"
        ),
    )


@pytest.mark.parametrize(
    "name",
    [
        "AIRFLOW__CORE__FERNET_KEY",
        "HOME",
        "KRB_FERNET_KEY",
        "KRB_ADMIN_PASSWORD",
        "AIRFLOW_CONN_X",
        "KRB_ANOTHER_TOKEN_SECRET",
        *SECRET_NAMES,
    ],
)
@pytest.mark.parametrize("how", ["${%s}", "${%s:-none}", "${KRB_UNSET:-${%s}}"])
def test_a_cluster_file_reads_no_variable_that_it_may_not(name: str, how: str) -> None:
    text = TEXT.replace("description: One", f"description: {how % name} One")
    (problem,) = problems(text, **{name: "hunter2"})
    assert f"description: a cluster file may not read the environment variable {name}." in problem
    assert "KRAFT_RUNBOOK_MAY_READ" in problem and "hunter2" not in problem
    assert parse(text, **{name: "shown", "KRAFT_RUNBOOK_MAY_READ": f"OTHER, {name}"}).description.startswith(
        "shown One"
    )


@pytest.mark.parametrize("key", ["a\nb=c", "a b", "a=b", "a:b", "", "#a", "!a", "a\u2028b", "é", "a\x00"])
@pytest.mark.parametrize("where", ["broker_properties", "controller_properties", "secrets"])
def test_what_is_no_property_s_name_is_refused(key: str, where: str) -> None:
    one = f"{json.dumps(key)}: {'{env: X}' if where == 'secrets' else 'x'}"
    given = (
        TEXT.replace(f"\n{where}:", f"\n{where}:\n  {one}", 1)
        if f"\n{where}:" in TEXT
        else f"{TEXT}\n{where}:\n  {one}\n"
    )
    assert any("is no property's name" in each and each.count("\n") == 0 for each in problems(given))


def test_a_control_character_in_a_value_is_refused() -> None:
    given = TEXT.replace("\nbroker_properties:", '\nbroker_properties:\n  a.b: "x\\0y"', 1)
    assert any("the value of 'a.b' holds a control character" in each for each in problems(given))


def test_an_unknown_cluster_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(TEXT)
    with pytest.raises(RunbookError) as error:
        load_cluster("nope", directory=tmp_path, environment={})
    assert error.value.problem == f"no cluster named 'nope' in {tmp_path} (known: other)"
    assert "KRAFT_RUNBOOK_CLUSTERS" in error.value.way_out
    with pytest.raises(ClusterFileError) as error:
        load_cluster("other", directory=tmp_path, environment={})
    assert "the file is called other.yaml but names the cluster 'lab'; make them the same" in str(error.value)


@pytest.mark.parametrize("name", ["../lab", "lab.yaml", "", "/etc/passwd"])
def test_a_name_can_not_leave_the_directory(name: str) -> None:
    with pytest.raises(RunbookError):
        load_cluster(name, directory=CLUSTERS, environment={})


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda c: st.lists(c, max_size=3) | st.dictionaries(st.text(max_size=10), c, max_size=3),
        max_leaves=10,
    )
)
def test_any_yaml_at_all_is_taken_or_refused_in_words(value: object) -> None:
    with pytest.raises(ClusterFileError) as error:
        parse(yaml.safe_dump(value))
    assert error.value.problems and "Traceback" not in str(error.value)


@settings(deadline=None, max_examples=30)
@given(
    st.sampled_from(sorted(ClusterSpec.model_fields)),
    st.none() | st.integers() | st.text(max_size=8) | st.lists(st.integers(), max_size=2),
)
def test_any_key_with_a_wrong_value_is_refused_or_harmless(key: str, value: object) -> None:
    data = yaml.safe_load(TEXT)
    data[key] = value
    try:
        parse(yaml.safe_dump(data))
    except ClusterFileError as error:
        assert all(isinstance(p, str) and p for p in error.problems)


@pytest.mark.parametrize(
    ("place", "told"), [(("zookeeper", "servers"), "zookeeper.servers"), (("brokers", 0, "listeners"), "listeners")]
)
def test_an_empty_list_is_a_problem_that_is_told(place: tuple[str | int, ...], told: str) -> None:
    data = yaml.safe_load(TEXT)
    inner: Any = data
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = []
    with pytest.raises(ClusterFileError) as refused:
        parse(yaml.safe_dump(data))
    assert len(refused.value.problems) == 1 and told in refused.value.problems[0]


def test_secrets_are_recognized_by_their_names() -> None:
    assert all(
        map(
            is_sensitive,
            (
                "password.encoder.secret",
                "ssl.key.password",
                "listener.name.sasl.plain.sasl.jaas.config",
                "ssl.keystore.key",
            ),
        )
    )
    assert not any(map(is_sensitive, ("password.encoder.iterations", "log.dirs", "password.encoder.cipher.algorithm")))
    assert SPEC.broker(1).rack == "rack-a"


PLACES = {
    "metrics.password.env": (
        "metrics: {kind: prometheus}",
        "metrics: {kind: prometheus, username: x, password: {env: %s}}",
    ),
    "secrets.password.encoder.secret.env": ("{env: KRB_LAB_PASSWORD_ENCODER_SECRET}", "{env: %s}"),
    "broker_security.key_password.env": (
        "authorizer: true",
        "authorizer: true\nbroker_security: {protocol: SSL, key_password: {env: %s}}",
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "name", ["AIRFLOW__CORE__FERNET_KEY", "AIRFLOW_CONN_X", "AWS_SECRET_ACCESS_KEY", "krb_x", '"${KRB_WHICH}"']
)
def test_a_cluster_file_uses_no_variable_as_a_secret_that_it_may_not(place: str, name: str) -> None:
    old, new = PLACES[place]
    text = TEXT.replace(old, new % name)
    given = {"AIRFLOW__CORE__FERNET_KEY": "hunter2", "KRB_WHICH": "AIRFLOW__CORE__FERNET_KEY"}
    (problem,) = problems(text, **given)
    plain = "AIRFLOW__CORE__FERNET_KEY" if "$" in name else name
    assert problem.startswith(
        f"line {line_of(text, new.splitlines()[-1] % name)}: {place}: a cluster file may not use the environment"
        f" variable {plain} as a secret."
    )
    assert "KRAFT_RUNBOOK_MAY_USE" in problem and "hunter2" not in problem
    assert len(problems(text, **given, KRAFT_RUNBOOK_MAY_READ=plain)) == 1  # to show is not to use
    assert parse(text, **given, KRAFT_RUNBOOK_MAY_USE=f"OTHER, {plain}")


def test_a_secret_of_the_file_is_not_shown_by_it() -> None:
    text = TEXT.replace("{env: KRB_LAB_TOKEN_SECRET}", "{env: KRB_SESAME}").replace(
        "description: One", "description: ${KRB_SESAME} One"
    )
    (problem,) = problems(text, KRB_SESAME="hunter2")
    assert (
        "secrets.delegation.token.secret.key.env: KRB_SESAME is named as a secret here, and description shows its value"
        in problem
    )
    assert "hunter2" not in problem


def assert_refused_in_clear(key: str, value: str) -> None:
    """A file with this property of the brokers is refused for that alone; ``value`` has ``hunter2`` in it, which is not
    shown.
    """
    (problem,) = problems(TEXT.replace("default.replication.factor: 3", f"{key}: {json.dumps(value)}"))
    assert (
        f"broker_properties.{key}: a secret's value must not stand in the file" in problem and "hunter2" not in problem
    )


@pytest.mark.parametrize(
    "key",
    ["delegation.token.master.key", "ssl.keystore.certificate.chain", "listener.name.sasl.ssl.truststore.certificates"],
)
def test_what_kafka_types_as_a_password_is_refused_in_clear(key: str) -> None:
    assert_refused_in_clear(key, "hunter2")


@pytest.mark.parametrize(
    "line",
    [
        'x.OAuthBearerLoginModule required clientId="a" clientSecret="hunter2";',
        "org.apache.kafka.common.security.plain.PlainLoginModule required user_alice='hunter2';",
        'x.OAuthBearerLoginModule required extension_key = "hunter2"',
        'x.LoginModule required apiKey=hunter2 debug="${secrets:/f:k}";',
        'x.LoginModule required debug="true"; y.LoginModule required pin="hunter2";',
        "x.LoginModule required /* hunter2 */;",
        "hunter2",
    ],
)
def test_a_login_line_with_an_option_that_may_be_a_secret_is_refused(line: str) -> None:
    key = "listener.name.client.oauthbearer.sasl.jaas.config"
    assert_refused_in_clear(key, line)


@pytest.mark.parametrize(
    "line",
    [
        "org.apache.kafka.common.security.scram.ScramLoginModule required;",
        (
            "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
            ' keyTab="/etc/kafka.keytab" principal="kafka/a@B.C";'
        ),
        'x.OAuthBearerLoginModule required clientId="a" clientSecret="${secrets:/etc/kafka/secrets.properties:oauth}";',
    ],
)
def test_a_login_line_without_a_secret_is_taken(line: str) -> None:
    key = "listener.name.client.x.sasl.jaas.config"
    assert (
        parse(TEXT.replace("default.replication.factor: 3", f"{key}: {json.dumps(line)}")).broker_properties[key]
        == line
    )


# -- two versions of Kafka ---------------------------------------------------------------------------------------------


def with_target(
    text: str, *, links: bool = True, home: str = "/opt/kafka-4.1.1", version: str = "4.1.1", zookeeper: bool = False
) -> str:
    target = f"  home: /opt/kafka\n  upgrade_to: {{version: {version}, home: {home}}}\n"
    if not zookeeper:
        text = without_zookeeper(text)
    text = re.sub(r"  home: .*\n", target, text, count=1)
    return re.sub(r"( +)service: (.*)\n", r"\1service: \2\n\1home_link: /srv/\2/kafka\n", text) if links else text


def test_a_target_needs_a_link_of_its_own_at_every_node() -> None:
    spec = parse(with_target(TEXT))
    assert spec.kafka.upgrade_to is not None and spec.kafka.upgrade_to.version == "4.1.1"
    assert spec.controller(101).home_link == "/srv/controller-101/kafka"
    assert "controllers.2.home_link: needed with kafka.upgrade_to" in "\n".join(
        problems(with_target(TEXT, links=False))
    )
    shared = problems(with_target(TEXT).replace("/srv/broker-2/", "/srv/broker-1/"))
    assert "/srv/broker-1/kafka is also that of broker-1; each node needs its own" in "\n".join(shared)
    assert "kafka.upgrade_to.home: it is also kafka.home" in "\n".join(problems(with_target(TEXT, home="/opt/kafka")))


@pytest.mark.parametrize("home", ["/srv/broker-1/kafka", "/srv/broker-1/kafka/", "/srv/broker-1/kafka/dist"])
def test_a_link_that_its_own_home_is_found_through_is_refused(home: str) -> None:
    """The way back would lead the link to itself."""
    said = "\n".join(problems(with_target(TEXT).replace("  home: /opt/kafka\n", f"  home: {home}\n")))
    assert f"brokers.0.home_link: {home} is found through it, so it can't lead there" in said
    assert "brokers.1" not in said


@pytest.mark.parametrize("version", ["3.9.2", "3.9.1", "3.8.0"])
def test_a_target_that_is_not_newer_is_refused(version: str) -> None:
    """By the versions that nodes show, each node would count as rolled already."""
    said = "\n".join(problems(with_target(TEXT, version=version)))
    assert f"kafka.upgrade_to.version: {version} is not newer than kafka.version 3.9.2" in said


def test_zookeeper_is_taken_out_of_the_file_before_kafka_4_is_named() -> None:
    """Kafka 4 has no gauge of the migration's state, and its snapshots drop the record: with ZooKeeper in the file the
    phase would become UNKNOWN in the middle of the roll, and every step be refused.
    """
    said = "\n".join(problems(with_target(TEXT, zookeeper=True)))
    assert "kafka.upgrade_to: 4.1.1 has no ZooKeeper mode" in said and "take 'zookeeper' out of the file" in said
    assert parse(with_target(TEXT, version="3.9.3", zookeeper=True)).kafka.upgrade_to is not None
