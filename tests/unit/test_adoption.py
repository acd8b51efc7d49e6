"""A cluster that runs is adopted as it is: what its brokers' files say means the same when it is rendered again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from feature_looks import host_module
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_runbook.cli.app import main
from kraft_runbook.cli.asking import Asking
from kraft_runbook.cluster.adopted_file import render_adopted
from kraft_runbook.cluster.adoption import Adopted, FoundBroker, WantedController, adopt
from kraft_runbook.cluster.cluster_file import parse_cluster
from kraft_runbook.cluster.config_meaning import alike
from kraft_runbook.cluster.config_providers import FILE_CONFIG_PROVIDER
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.sensitive import is_sensitive, looks_secret
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import ClusterFileError, RunbookError
from kraft_runbook.io.hosts.foreign_inventory import inventory_of, read_inventory
from kraft_runbook.io.hosts.unknown_hosts import ReadHost
from kraft_runbook.runbook.differing_files import differing_keys

HOST = host_module("properties_text")
SET = "<set>"
GIVEN = {
    "name": "prod",
    "kafka": {"version": "3.9.2", "home": "/opt/kafka"},
    "reach": {"kind": "ssh"},
    "service_manager": {"kind": "systemd"},
}
CONTROLLERS = [WantedController(f"c{at}.example.org") for at in (1, 2, 3)]
INI = """
[kafka_broker]
kafka[1:3].example.org

[kafka_controller]
c[1:3].example.org

[all:vars]
ansible_user=ops
ansible_become=true
ansible_become_password=planted-secret
"""


def found(*files: Mapping[str, str]) -> list[FoundBroker]:
    return [
        FoundBroker(
            f"kafka{at}.example.org", "/etc/kafka/server.properties", "kafka", 7071, {"broker.id": str(at), **each}
        )
        for at, each in enumerate(files, 1)
    ]


def taken(*files: Mapping[str, str]) -> tuple[Adopted, ClusterSpec, str]:
    made = adopt(GIVEN, found(*files), CONTROLLERS)
    text = render_adopted(made, source="hosts.ini")
    return made, parse_cluster(text, source="prod.yaml", environment={}), text


def apart(spec: ClusterSpec, files: Sequence[Mapping[str, str]]) -> dict[int, tuple[str, ...]]:
    """In which keys each broker's file and what is rendered for it differ in meaning, as KRB-PRE-046 compares them."""
    rendered = {each.id: broker_properties(spec, each, BrokerMode.ZOOKEEPER) for each in spec.brokers}
    told = {
        at: differing_keys(*alike({"broker.id": str(at), **each}, rendered[at], newest_ibp="3.9"))
        for at, each in enumerate(files, 1)
    }
    return {at: keys for at, keys in told.items() if keys}


COMMON = {"zookeeper.connect": "zk1:2181,zk2:2181/kafka", "num.io.threads": "8", "log.dirs": "/data"}


def test_what_is_common_is_said_once_and_what_differs_at_its_broker() -> None:
    files = [COMMON, {**COMMON, "num.io.threads": "4"}, {**COMMON, "client.id": "odd"}, COMMON]
    _, spec, text = taken(*files)
    assert spec.broker_properties["num.io.threads"] == "8"
    assert [dict(each.properties) for each in spec.brokers] == [{}, {"num.io.threads": "4"}, {"client.id": "odd"}, {}]
    assert text.count("/etc/kafka/server.properties") == 1
    assert apart(spec, files) == {}


def test_forty_brokers_are_one_range_and_take_under_sixty_lines() -> None:
    _, spec, text = taken(*[COMMON] * 40)
    assert len(text.splitlines()) < 60
    assert "  - {id: 1-40, host: 'kafka[1:40].example.org'}\n" in text
    assert spec.broker(40).host == "kafka40.example.org"


def test_texts_that_hold_a_brokers_id_or_host_are_common_too() -> None:
    files = [
        {
            **COMMON,
            "listeners": "CLIENTS://:9094",
            "advertised.listeners": f"CLIENTS://lb{at:02}.example.org:9094",
            "listener.security.protocol.map": "CLIENTS:PLAINTEXT",
            "inter.broker.listener.name": "CLIENTS",
            "ssl.keystore.location": f"/etc/kafka/kafka{at}.example.org.p12",
            "client.id": f"b-{at}",
        }
        for at in range(1, 41)
    ]
    _, spec, text = taken(*files)
    assert apart(spec, files) == {}
    assert "  - {id: 1-40, host: 'kafka[1:40].example.org'}\n" in text
    assert len(text.splitlines()) < 60
    for each in ("lb{id:02}.example.org", "/etc/kafka/{host}.p12", "b-{id}"):
        assert each in text


def test_secrets_are_names_and_a_provider_is_none() -> None:
    secured = {
        **COMMON,
        "listeners": "INTERNAL://:9092",
        "listener.security.protocol.map": "INTERNAL:SASL_SSL",
        "inter.broker.listener.name": "INTERNAL",
        "ssl.keystore.password": SET,
        "password.encoder.secret": SET,
        "config.providers": "secrets,vault",
        "config.providers.secrets.class": FILE_CONFIG_PROVIDER,
        "config.providers.vault.class": "org.example.Vault",
        "config.providers.vault.param.secret": SET,
    }
    files = [secured, {**secured, "delegation.token.secret.key": SET}]
    made, spec, text = taken(*files)
    assert {key: ref.env for key, ref in spec.secrets.items()} == {
        "ssl.keystore.password": "KRB_PROD_SSL_KEYSTORE_PASSWORD",
        "password.encoder.secret": "KRB_PROD_PASSWORD_ENCODER_SECRET",
    }
    assert spec.broker(2).properties["delegation.token.secret.key"].startswith("${secrets:/etc/kafka/kraft-runbook-own")
    assert SET not in text
    notes = "\n".join(made.notes)
    assert "config.providers.vault.param.secret" in notes
    assert "delegation.token.secret.key: write its value" in notes
    assert "no file tells how this tool itself logs in" in notes
    assert "sasl.mechanism.controller.protocol under broker_properties" in notes


PLUGINS = """
config.providers.vault.param.token=PLANTED
confluent.license=PLANTED
confluent.telemetry.api.key=PLANTED
confluent.schema.registry.basic.auth.user.info=user:PLANTED
rsm.config.storage.azure.account.key=PLANTED
rsm.config.storage.azure.connection.string=DefaultEndpointsProtocol=https;AccountKey=PLANTED
ranger.pwd=PLANTED
ldap.bind.passwd=PLANTED
my.key.passphrase=PLANTED
my.keystore.pass=PLANTED
my.reporter.token=PLANTED
my.proxy.url=http://user:PLANTED@proxy:8080
my.login=org.example.Login required username="a" pass="PLANTED";
my.jdbc.url=jdbc:postgresql://db/x?user=a&password=PLANTED
my.pem=-----BEGIN RSA PRIVATE KEY-----PLANTED
"""


def test_a_plugins_secrets_stay_on_the_host_whatever_they_are_called() -> None:
    found = HOST.read(PLUGINS)
    assert {value for value in found.values() if "PLANTED" in value} == set()
    assert "PLANTED" not in HOST.shown(PLUGINS)
    made, spec, text = taken({**COMMON, **found}, {**COMMON, **found})
    assert set(spec.secrets) == found.keys() - {"config.providers.vault.param.token"}
    assert SET not in text
    assert any("'config.providers.vault.param.token' is left out" in each for each in made.notes)


@pytest.mark.parametrize("line", [each for each in PLUGINS.splitlines() if each and "providers" not in each])
def test_a_cluster_file_holds_no_secret_of_a_plugin_either(line: str) -> None:
    key, _, value = line.partition("=")
    _, _, text = taken(COMMON)
    data = yaml.safe_load(text)
    data["broker_properties"][key] = value
    with pytest.raises(ClusterFileError) as refused:
        parse_cluster(yaml.safe_dump(data), source="x", environment={})
    assert "a secret's value must not stand in the file" in str(refused.value)
    assert "PLANTED" not in str(refused.value)


@given(st.text(max_size=40), st.text(max_size=40))
def test_the_hosts_judge_secrets_as_the_project_does(key: str, value: str) -> None:
    own = f"config.providers.{key}.param.{value}"
    for name, text in (
        (key, value),
        (f"my.{key}.token", value),
        (key, f"http://{value}:{key}@x pass={value}"),
        (own, value),
        (f"{own}.token", value),
        (f"config.providers.x.param.{value}{key}key", value),
        (f"config.providers.x.param.secret{value}.ttl.ms", value),
        (f"config.providers.x.param.password_{key}-file", value),
    ):
        assert HOST.is_sensitive(name) == is_sensitive(name)
        assert bool(HOST.SECRET_VALUE.search(text)) == looks_secret(text)


def test_a_reference_to_a_provider_of_the_operators_stays_as_it_is() -> None:
    file = {
        **COMMON,
        "config.providers": "securepass,secretsmanager",
        "config.providers.securepass.class": "io.confluent.SecurePassConfigProvider",
        "config.providers.secretsmanager.class": "com.example.SecretsManager",
        "ssl.keystore.password": "${securepass:/etc/kafka/security.properties:keystore}",
        "ssl.key.password": SET,
    }
    files = [HOST.read("\n".join(f"{key}={value}" for key, value in file.items()))] * 2
    made, spec, _ = taken(*files)
    assert any("refer to securepass stay as they are: where controllers need" in each for each in made.notes)
    assert spec.broker_properties["ssl.keystore.password"] == file["ssl.keystore.password"]
    assert set(spec.secrets) == {"ssl.key.password"}
    assert apart(spec, files) == {}


def test_a_providers_own_setting_is_no_secret_by_its_providers_name() -> None:
    """Kafka hands it to the provider as it is written, so a reference in its place would be the setting."""
    region, own = "config.providers.secretsmanager.param.region", "config.providers.secretsmanager.param.token"
    file = {
        **COMMON,
        "config.providers": "secretsmanager",
        "config.providers.secretsmanager.class": "com.example.SecretsManager",
        region: "us-west-2",
        own: "${env:TOKEN}",
        "ssl.keystore.password": "${secretsmanager:kafka/ssl:ks}",
    }
    files = [HOST.read("\n".join(f"{key}={value}" for key, value in file.items()))] * 2
    made, spec, _ = taken(*files)
    assert spec.broker_properties[region] == "us-west-2" and not spec.secrets
    assert apart(spec, files) == dict.fromkeys((1, 2), (f"{own} (only in the file)",))
    assert any(f"{own!r} is left out" in each and "by its own means" in each for each in made.notes)


@pytest.mark.parametrize(
    ("of_file", "told"),
    [
        ({"secrets": {"{}.region": {"env": "KRB_X"}}}, "secrets.{}.region: a config provider's own setting"),
        ({"broker_properties": {"{}.region": "${secrets:/f:x}"}}, "broker_properties.{}.region: a secret or a refer"),
        ({"controller_properties": {"{}.token": "planted"}}, "controller_properties.{}.token: a secret or a refer"),
        ({"broker_properties": {"{}.token": "${secrets:/f:x}"}}, "broker_properties.{}.token: a secret or a refer"),
    ],
)
def test_what_kafka_would_not_follow_in_a_providers_setting_is_refused(of_file: dict[str, Any], told: str) -> None:
    parameter = "config.providers.vault-secrets.param"
    _, _, text = taken(COMMON)
    data = {"secrets_file": "/etc/kafka/s.properties", **yaml.safe_load(text)}
    for part, properties in of_file.items():
        data[part] = data.get(part, {}) | {key.format(parameter): value for key, value in properties.items()}
    with pytest.raises(ClusterFileError) as refused:
        parse_cluster(yaml.safe_dump(data), source="x", environment={})
    (problem,) = refused.value.problems
    assert told.format(parameter) in problem and "by its own means" in problem and "planted" not in problem


@pytest.mark.parametrize(
    ("parameter", "secret"),
    [
        *((each, False) for each in ("secret.prefix", "secret.ttl.ms", "password.file", "credentials.file", "region")),
        *((each, False) for each in ("auth.secret.id.path", "secret.type", "secret.engine.version", "token_file")),
        *((each, True) for each in ("aws.secret.key", "aws.access.key", "apikey", "vault.token", "auth.secret.id")),
        *((each, True) for each in ("file.password", "path.secret", "passphrase", "connection.string", "key")),
    ],
)
def test_a_providers_setting_is_judged_by_its_last_word_on_both_sides(parameter: str, secret: bool) -> None:
    key = f"config.providers.vault.param.{parameter}"
    assert HOST.is_sensitive(key) == is_sensitive(key) == secret
    declared = {**COMMON, "config.providers": "vault", "config.providers.vault.class": "com.example.Vault"}
    held = HOST.read("\n".join(f"{key}={value}" for key, value in {**declared, key: "a/b"}.items()))
    _, spec, text = taken(held, held)
    assert spec.broker_properties.get(key) == (None if secret else "a/b")
    data = yaml.safe_load(text)
    data["broker_properties"][key] = "a/b"
    problems: tuple[str, ...] = ()
    try:
        parse_cluster(yaml.safe_dump(data), source="x", environment={})
    except ClusterFileError as refused:
        problems = refused.problems
    assert bool(problems) == secret


def test_secrets_lie_where_the_provider_may_read() -> None:
    allowed = "config.providers.secrets.param.allowed.paths"
    file = {
        **COMMON,
        "config.providers": "secrets",
        "config.providers.secrets.class": FILE_CONFIG_PROVIDER,
        allowed: "/etc/kafka/private,/srv",
        "ssl.keystore.password": "${secrets:/etc/kafka/private/p.properties:ks}",
    }
    files = [file, {**file, "ssl.key.password": "${secrets:/srv/p.properties:k}"}]
    made, spec, text = taken(*files)
    assert apart(spec, files) == {}
    assert spec.secrets_file == "/etc/kafka/private/kraft-runbook-secrets.properties"
    assert spec.broker(2).properties["ssl.key.password"].startswith("${secrets:/etc/kafka/private/kraft-runbook-own")
    assert any(f"{allowed}: Kafka reads secrets there alone" in each for each in made.notes)
    with pytest.raises(ClusterFileError, match="Kafka would read no secret from secrets_file /etc/kafka/privately/s"):
        parse_cluster(
            yaml.safe_dump({**yaml.safe_load(text), "secrets_file": "/etc/kafka/privately/s"}),
            source="x",
            environment={},
        )


def test_a_provider_that_has_the_name_of_this_tools_own_is_told() -> None:
    file = {
        **COMMON,
        "config.providers": "secrets",
        "config.providers.secrets.class": "com.example.Vault",
        "my.text": "${secrets:a:b}",
    }
    made, spec, _ = taken(file, file)
    assert any("config.providers.secrets.class=com.example.Vault: this tool takes" in each for each in made.notes)
    assert "config.providers.secrets.class" in str(apart(spec, [file, file]))


def test_what_holds_of_many_brokers_is_said_once() -> None:
    made, _, text = taken(*[{**COMMON, "client.id": "${HOME}", "config.providers.v.param.token": SET}] * 40)
    assert len(made.notes) == 3
    assert "broker 1, broker 2, broker 3, broker 4, broker 5, broker 6 and 34 more: 'client.id' is left out" in text
    assert len(text.splitlines()) < 60


def test_what_a_cluster_file_cant_say_is_a_comment() -> None:
    odd = {**COMMON, "client.id": "${HOME}", "authorizer.class.name": "org.example.Ranger", "super.users": "User:a"}
    made, spec, text = taken(odd, odd)
    assert "client.id" not in spec.broker_properties
    for each in ("'client.id' is left out", "org.example.Ranger"):
        assert each in "".join(line for line in text.splitlines() if line.startswith("#"))
    assert len(made.notes) == 3  # what holds of both brokers is one


@pytest.mark.parametrize(
    ("files", "named"),
    [
        (
            [COMMON, {**COMMON, "broker.id": "1"}],
            "several brokers have the id 1: kafka1.example.org, kafka2.example.org",
        ),
        ([{**COMMON, "broker.id": "-1"}], "names no broker.id"),
        ([{"log.dirs": "/a"}], "names no zookeeper.connect: it is no file of a broker in ZooKeeper mode"),
        ([{**COMMON, "broker.rack": "${KRB_RACK:-a}"}], r"holds \$\{NAME\} in broker.rack"),
        ([{**COMMON, "log.dirs": "/a,${KRB_B}"}], r"holds \$\{NAME\} in log.dirs"),
        ([{**COMMON, "process.roles": "broker"}], "is not in ZooKeeper mode"),
        ([{**COMMON, "zookeeper.metadata.migration.enable": "true"}], "is not in ZooKeeper mode"),
    ],
)
def test_what_can_not_be_adopted_is_refused_by_name(files: list[dict[str, str]], named: str) -> None:
    with pytest.raises(RunbookError, match=named):
        taken(*files)


def test_a_controller_beside_a_broker_takes_none_of_its_ports() -> None:
    files = found({**COMMON, "listeners": "PLAINTEXT://:9092,SSL://:9093"})
    made = adopt(GIVEN, files, [WantedController("kafka1.example.org", {"id": 7})])
    (controller,) = made.data["controllers"]
    assert (controller["id"], controller["port"], controller["metrics_port"]) == (7, 9094, 7072)


def test_a_control_plane_listener_called_controller_is_adopted() -> None:
    """The example of Kafka's own documentation calls it so."""
    file = {
        **COMMON,
        "listeners": "INTERNAL://:9092,CONTROLLER://:9094",
        "listener.security.protocol.map": "INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "control.plane.listener.name": "CONTROLLER",
    }
    _, spec, _ = taken(file, file)
    assert spec.controller_listener.name == "KRAFT_CONTROLLER"
    assert apart(spec, [file, file]) == {}


def test_a_broker_may_name_its_id_as_kraft_does() -> None:
    file = {**COMMON, "broker.id": "", "node.id": "1"}
    _, spec, _ = taken(file)
    assert spec.broker_ids == (1,)
    assert apart(spec, [file]) == {}


def test_listener_names_of_strimzi_and_of_lower_case_are_adopted() -> None:
    file = {
        **COMMON,
        "listeners": "replication-9091://0.0.0.0:9091,Tls-9093://:9093",
        "advertised.listeners": "REPLICATION-9091://kafka1.example.org:9091,TLS-9093://lb.example.org:9093",
        "listener.security.protocol.map": "replication-9091:SSL,TLS-9093:SSL",
        "inter.broker.listener.name": "Replication-9091",
        "listener.name.replication-9091.ssl.client.auth": "required",
    }
    _, spec, _ = taken(file)
    assert apart(spec, [file]) == {}
    assert [each.name for each in spec.brokers[0].listeners] == ["REPLICATION-9091", "TLS-9093"]
    rendered = broker_properties(spec, spec.brokers[0], BrokerMode.HYBRID)
    assert rendered["inter.broker.listener.name"] == "REPLICATION-9091"
    assert rendered["listener.name.replication-9091.ssl.client.auth"] == "required"
    controller = controller_properties(spec, spec.controllers[0], ControllerMode.MIGRATION)
    assert controller["inter.broker.listener.name"] == "REPLICATION-9091"


def test_two_listeners_on_one_port_are_adopted_with_an_address_of_each_family() -> None:
    file = {
        **COMMON,
        "listeners": "FOUR://10.0.0.1:9092,SIX://[fd00::1]:9092",
        "listener.security.protocol.map": "FOUR:PLAINTEXT,SIX:PLAINTEXT",
        "inter.broker.listener.name": "FOUR",
    }
    _, spec, _ = taken(file)
    assert apart(spec, [file]) == {}


WORD = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=6)
VALUE = st.one_of(
    st.sampled_from(
        ["true", "false", "0", "08", "-1", "1e3", "yes", "null", "~", "{id}", "a: b", "# x", "'", '"', "a,b"]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=12),
)
PROPERTIES = st.dictionaries(
    st.builds(lambda a, b: f"{a}.{b}", WORD, WORD).filter(lambda key: not key.startswith(("broker.", "log.d"))),
    VALUE.filter(lambda value: "${" not in value),
    max_size=4,
)


@st.composite
def broker_files(draw: st.DrawFn) -> list[dict[str, str]]:
    """Files of one cluster's brokers: much in common, something else at some, spelt as people spell."""
    names = draw(
        st.lists(
            st.sampled_from(["PLAINTEXT", "INTERNAL", "TLS-9093", "internal-2", "X_1"]),
            min_size=1,
            unique=True,
            max_size=3,
        )
    )
    protocols = [f"{name}:{draw(st.sampled_from(['PLAINTEXT', 'SSL', 'SASL_SSL']))}" for name in names]
    blank = draw(st.sampled_from([",", " , ", ", "]))
    common = {
        "zookeeper.connect": draw(st.sampled_from(["zk:2181", "zk1:2181, zk2:2181", "zk1:2181,zk2:2181/a/b"])),
        "listener.security.protocol.map": blank.join([*protocols, "UNUSED:SSL"]),
        "inter.broker.listener.name": draw(st.sampled_from(names)),
        draw(st.sampled_from(["log.dirs", "log.dir"])): draw(st.sampled_from(["/a", "/a,/b", " /a "])),
        **draw(PROPERTIES),
        **draw(st.sampled_from([{}, {"zookeeper.set.acl": "true"}, {"inter.broker.protocol.version": "3.9-IV0"}])),
        **draw(
            st.sampled_from(
                [
                    {},
                    {
                        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
                        "super.users": "User:b; User:a",
                    },
                    {"ssl.keystore.password": SET, "zookeeper.ssl.keystore.password": SET},
                ]
            )
        ),
    }
    files = []
    for at in range(1, draw(st.integers(1, 5)) + 1):
        where = draw(st.sampled_from(["", "0.0.0.0", f"kafka{at}.example.org"]))
        ports = [9092 + place for place in range(len(names))]
        advertised = {
            "advertised.listeners": blank.join(
                f"{name}://{draw(st.sampled_from([f'kafka{at}.example.org', 'lb.example.org']))}:{port}"
                for name, port in zip(names, ports, strict=True)
            )
        }
        files.append(
            {
                **common,
                "listeners": blank.join(f"{name}://{where}:{port}" for name, port in zip(names, ports, strict=True)),
                **(advertised if where == "0.0.0.0" or draw(st.booleans()) else {}),
                **draw(st.sampled_from([{}, {"ssl.keystore.location": f"/k/{at:02}-kafka{at}.example.org"}])),
                **draw(st.sampled_from([{}, {"broker.rack": "r"}, {"ssl.key.password": SET}])),
                **draw(st.one_of(st.just({}), PROPERTIES)),
            }
        )
    return files


@settings(deadline=None, max_examples=25)
@given(broker_files())
def test_adopt_and_render_change_no_meaning(files: list[dict[str, str]]) -> None:
    _, spec, text = taken(*files)
    assert apart(spec, files) == {}
    assert SET not in text


# -- the inventory -----------------------------------------------------------------------------------------------------


def test_ansible_itself_reads_the_inventory_and_no_password_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "hosts.ini"
    path.write_text(INI)
    read = read_inventory(path, directory=tmp_path)
    assert [each.host for each in read.group("kafka_broker")] == [f"kafka{at}.example.org" for at in (1, 2, 3)]
    (host, *_) = read.group("kafka_controller")
    assert host.reach["ansible_user"] == "ops"
    assert host.unread == ("ansible_become_password",)
    assert "planted-secret" not in repr(read)
    with pytest.raises(RunbookError, match="no group 'brokers'"):
        read.group("brokers")


def test_an_inventory_that_ansible_cant_read_is_told_without_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "hosts.yml"
    path.write_text("all: {hosts: {a: {ansible_password: planted-secret\n")
    with pytest.raises(RunbookError) as refused:
        read_inventory(path, directory=tmp_path)
    assert "planted-secret" not in str(refused.value)
    assert "could not read the inventory" in str(refused.value)


def test_a_group_has_the_hosts_of_its_children_once() -> None:
    told = {
        "_meta": {"hostvars": {"b": {"ansible_host": "10.0.0.2", "krb_id": 7, "krb_x": {"__ansible_vault": "z"}}}},
        "all": {"children": ["kafka_broker"]},
        "kafka_broker": {"children": ["one", "two"]},
        "one": {"hosts": ["a", "b"]},
        "two": {"hosts": ["b"]},
    }
    hosts = inventory_of(told).group("kafka_broker")
    assert [(each.name, each.host, dict(each.own)) for each in hosts] == [("a", "a", {}), ("b", "10.0.0.2", {"id": 7})]


@pytest.mark.parametrize("value", ["{{ private_ip }}", {"__ansible_vault": "z"}])
def test_an_address_that_ansible_would_have_to_fill_is_refused(value: object) -> None:
    told = {"_meta": {"hostvars": {"b": {"ansible_host": value}}}, "kafka_broker": {"hosts": ["b"]}}
    with pytest.raises(RunbookError, match="ansible_host of b is a template"):
        inventory_of(told)


def test_former_names_of_ansibles_variables_are_read() -> None:
    former = {
        "ansible_ssh_host": "10.0.0.2",
        "ansible_ssh_user": "ops",
        "ansible_ssh_port": 2222,
        "ansible_ssh_pass": "x",
    }
    told = {"_meta": {"hostvars": {"b": former}}, "kafka_broker": {"hosts": ["b"]}}
    (host,) = inventory_of(told).group("kafka_broker")
    assert (host.host, host.unread) == ("10.0.0.2", ("ansible_ssh_pass",))
    assert dict(host.reach) == {"ansible_host": "10.0.0.2", "ansible_user": "ops", "ansible_port": 2222}


def test_another_variable_that_ansible_would_have_to_fill_is_named() -> None:
    told = {"_meta": {"hostvars": {"b": {"ansible_user": "{{ x }}"}}}, "kafka_broker": {"hosts": ["b"]}}
    (host,) = inventory_of(told).group("kafka_broker")
    assert (dict(host.reach), host.unread) == ({}, ("ansible_user",))


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    path = tmp_path / "hosts.ini"
    path.write_text(INI)
    return path


def run(
    inventory: Path, answers: Any, capsys: pytest.CaptureFixture[str], *also: str
) -> tuple[int, str, list[dict[str, Any]]]:
    asked: list[dict[str, Any]] = []

    def read(hosts: Sequence[Any], **how: Any) -> Sequence[ReadHost]:
        del how["secrets"]
        asked.extend({"host": each.at.host, "file": each.config_file, **how} for each in hosts)
        return [answers(at) for at in range(1, len(hosts) + 1)]

    arguments = [
        "adopt",
        "--name",
        "prod",
        "--inventory",
        str(inventory),
        "--clusters-dir",
        str(inventory.parent / "c"),
    ]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, *also], Asking(brokers_files=read))
    told = capsys.readouterr()
    return int(ended.value.code or 0), told.out + told.err, asked


def answered(at: int) -> ReadHost:
    return ReadHost({**COMMON, "broker.id": str(at), "ssl.key.password": SET}, True, at != 2)


def test_adopt_writes_the_cluster_file_and_says_what_to_give(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told, asked = run(inventory, answered, capsys)
    written = inventory.parent / "c" / "prod.yaml"
    assert code == 0, told
    spec = parse_cluster(written.read_text(), source="prod.yaml", environment={})
    assert (spec.broker_ids, spec.reach.user, spec.reach.become) == ((1, 2, 3), "ops", True)
    assert asked[0] == {
        "host": "kafka1.example.org",
        "file": "/etc/kafka/server.properties",
        "manager": "systemd",
        "socket": None,
        "known_hosts": None,
        "become_password": None,
    }
    assert "give KRB_PROD_SSL_KEY_PASSWORD: ssl.key.password" in told
    assert "kafka2.example.org: Kafka 3.9.2 was not found at /opt/kafka" in told
    assert "ansible_become_password, which a cluster file can't say" in told
    assert "planted-secret" not in told + written.read_text()


def test_sudos_password_and_the_hosts_keys_go_into_the_file_by_their_names(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    also = ("--become-password", "KRB_SUDO", "--known-hosts", "/etc/krb/known_hosts")
    code, told, asked = run(inventory, answered, capsys, *also)
    assert code == 0, told
    spec = parse_cluster((inventory.parent / "c" / "prod.yaml").read_text(), source="prod.yaml", environment={})
    assert (spec.reach.become_password, spec.reach.known_hosts) == (SecretRef(env="KRB_SUDO"), "/etc/krb/known_hosts")
    assert asked[0]["become_password"] == SecretRef(env="KRB_SUDO")
    assert "can't say" not in told
    (inventory.parent / "c" / "prod.yaml").unlink()
    code, told, _ = run(inventory, answered, capsys, "--become-password", "the word itself")
    assert code != 0 and "names no environment variable" in told and "the word itself" not in told


def test_of_confluents_software_its_own_places_are_taken(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told, _ = run(inventory, answered, capsys, "--kafka-version", "7.9.2-ce")
    assert code == 0, told
    text = (inventory.parent / "c" / "prod.yaml").read_text()
    spec = parse_cluster(text, source="prod.yaml", environment={})
    assert (spec.kafka.home, spec.kafka.ibp, spec.kafka.inter_broker_protocol_version) == ("/usr", "3.9", None)
    assert {each.service for each in spec.brokers} == {"confluent-server"}
    controller = spec.controllers[0]
    assert (controller.service, controller.config_file, controller.log_dir) == (
        "confluent-kcontroller",
        "/etc/controller/server.properties",
        "/var/lib/controller/data",
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[kafka_broker]\n[kafka_controller]\n", "group 'kafka_broker' has no host"),
        ("[kafka_broker]\na krb_metrics_port=x\n[kafka_controller]\nb\n", "krb_metrics_port of a is no number"),
        ("[kafka_broker]\na krb_id=x\n[kafka_controller]\nb\n", "krb_id of a is no number"),
    ],
)
def test_a_mistake_in_the_inventory_is_told_by_its_name(
    inventory: Path, capsys: pytest.CaptureFixture[str], text: str, named: str
) -> None:
    inventory.write_text(text)
    code, told, _ = run(inventory, answered, capsys)
    assert code == 3
    assert named in told


def test_adopt_names_the_properties_that_kafka_does_not_know(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told, _ = run(
        inventory, lambda at: ReadHost({**COMMON, "broker.id": str(at), "kafka.rest.auth": "x"}, True, True), capsys
    )
    assert code == 0, told
    assert "1 properties whose values are in this file are unknown to Kafka" in told
    assert "kafka.rest.auth" in told


def test_adopt_overwrites_no_file(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (inventory.parent / "c").mkdir()
    (inventory.parent / "c" / "prod.yaml").write_text("mine")
    code, told, asked = run(inventory, answered, capsys)
    assert (code, asked) == (3, [])
    assert "overwrites no file" in told
    assert (inventory.parent / "c" / "prod.yaml").read_text() == "mine"


def test_adopt_writes_nothing_while_a_host_is_not_read(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lost = ReadHost(Unread("Permission denied"), Unread("x"), Unread("x"))
    code, told, _ = run(inventory, lambda at: lost if at == 2 else answered(at), capsys)
    assert code == 3
    assert "the files of 1 of 3 brokers could not be read: kafka2.example.org: Permission denied" in told
    assert not (inventory.parent / "c").exists()


def test_adopt_says_what_a_cluster_file_cant_say(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strimzis = {**COMMON, "listeners": "PLAIN-9092://:9092", "listener.security.protocol.map": "PLAIN-9092:PLAINTEXT"}
    code, told, _ = run(inventory, lambda at: ReadHost({**strimzis, "broker.id": str(at)}, True, True), capsys)
    assert code == 3
    assert "a cluster file can't say what was found" in told
    assert not (inventory.parent / "c").exists()
