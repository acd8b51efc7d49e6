"""What Java and Kafka themselves make of what is rendered: files read back, configurations accepted, defaults. One JVM
answers for all tests.
"""

from __future__ import annotations

import importlib.util
import random
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest
from asked_java import ask_java
from observations import SPEC
from secured import LOGIN, secured

from kraft_runbook.cluster.client_security import SecurityProtocol
from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.controller_settings import ENFORCED, Enforced
from kraft_runbook.cluster.mode_settings import LEFT_OUT, LeftOut, Mode
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.properties_text import parse_properties, render_properties
from kraft_runbook.cluster.sensitive import is_sensitive
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Listener
from lab.installation import JARS

ROOT = Path(__file__).resolve().parents[2]
MODES: tuple[Mode, ...] = (*BrokerMode, *ControllerMode)
PIECES = [
    *"ab=:#! \t\f\n\r\\é€𝄞\x00\x1f\x7f\x85",
    "\\n",
    "\\u00e9",
    "\\u",
    "\\\n  ",
    "\r\n",
    "key",
    "value",
    "\\ ",
    "\\\\",
    "  ",
    "\n#",
    "\n!",
    "\u2028",
    "ÿ",
]


def pieces(seed: str, most: int) -> str:
    chosen = random.Random(seed)
    return "".join(chosen.choice(PIECES) for _ in range(chosen.randrange(most)))


PROPERTIES = {n: {pieces(f"key {n} {k}", 6): pieces(f"value {n} {k}", 12) for k in range(n % 6)} for n in range(300)}
TEXTS = {n: pieces(f"text {n}", 40).encode("latin-1", "ignore").decode("latin-1") for n in range(700)}
"""Any file that may lie on a host, in the characters that Latin-1 has."""


def with_all_that_is_left_out() -> ClusterSpec:
    """The lab with everything declared that some mode refuses or has no use for."""
    odd = {
        "control.plane.listener.name": "CONTROL_PLANE",
        "group.coordinator.rebalance.protocols": "classic,consumer",
        "zookeeper.set.acl": "true",
        "zookeeper.ssl.client.enable": "false",
        "authorizer.zookeeper.url": "acls:2181",
    }
    brokers = tuple(
        b.model_copy(update={"listeners": (*b.listeners, Listener(name="CONTROL_PLANE", port=9099))})
        for b in SPEC.brokers
    )
    return SPEC.model_copy(
        update={
            "broker_properties": {**SPEC.broker_properties, **odd},
            "brokers": brokers,
            "controller_properties": dict(list(odd.items())[:1]),
        }
    )


def bound_to_every_address() -> ClusterSpec:
    """The lab with brokers that bind to every address, as each of the two ways says it."""

    def bound(broker: Broker) -> Broker:
        ways = zip(broker.listeners, ("", "0.0.0.0"), strict=True)
        return broker.model_copy(
            update={"listeners": tuple(each.model_copy(update={"bind_host": way}) for each, way in ways)}
        )

    return SPEC.model_copy(update={"brokers": tuple(map(bound, SPEC.brokers))})


BOUND = {"host": None, "every": "", "zeroes": "0.0.0.0"}
"""Where a controller listener binds, as a cluster file says it."""


def with_both_roles(bind_host: str | None) -> dict[str, str]:
    """A node of the lab whose nodes are broker and controller in one process."""
    spec = load_cluster("lab", directory=ROOT / "lab" / "both", environment={"KRB_LAB_DIR": "/lab"})
    first = spec.brokers[0]
    assert first.controller is not None
    bound = first.model_copy(update={"controller": first.controller.model_copy(update={"bind_host": bind_host})})
    return broker_properties(spec, bound, BrokerMode.KRAFT)


def node_properties(spec: ClusterSpec, mode: Mode) -> dict[str, str]:
    found = (
        broker_properties(spec, spec.brokers[0], mode)
        if isinstance(mode, BrokerMode)
        else controller_properties(spec, spec.controller(101), mode)
    )
    # Kafka asks a provider for these before it looks at them: any value will do.
    return {
        key: "x" if is_sensitive(key) and value.startswith("${") else value
        for key, value in found.items()
        if not key.startswith("config.providers")
    }


def with_it_left_in(rule: LeftOut, mode: Mode) -> dict[str, str]:
    spec = with_all_that_is_left_out()
    return {**node_properties(spec, mode), rule.key: spec.broker_properties[rule.key]}


GENERATED = SPEC.model_copy(update={"brokers": (SPEC.brokers[0].model_copy(update={"id": 1001}), *SPEC.brokers[1:])})
"""A broker whose id Kafka once generated: above reserved.broker.max.id."""
ID_GENERATION = "broker.id.generation.enable"
REFUSED = [(rule, mode) for rule in LEFT_OUT if rule.refused for mode in MODES if mode in rule.modes]


LISTENER = "listener.name.internal"
CALLS = [
    each for each in SecurityProtocol if each is not SecurityProtocol.SSL
]  # its stores are files, which Kafka opens


def controller_that_calls(protocol: SecurityProtocol) -> dict[str, str]:
    """A migrating controller's properties, with a login in them, and the JVM's own truststore."""
    properties = node_properties(secured(protocol, {}), ControllerMode.MIGRATION)
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required username=a password=b;"
    return properties | ({LOGIN: login} if LOGIN in properties else {})


def without_sasl(properties: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value
        for key, value in properties.items()
        if key not in ("sasl.mechanism.inter.broker.protocol", f"{LISTENER}.sasl.enabled.mechanisms")
    }


class Answers:
    """What the one run of AskKafka.java said."""

    def __init__(self, lines: list[str]) -> None:
        self.defaults: dict[str, str | None] = {}
        self.types: dict[str, str] = {}
        self.malformed: set[str] = set()
        self.read: dict[tuple[str, str], dict[str, str]] = {}
        self.refusals: dict[str, str] = {}
        for kind, name, *rest in (line.split() for line in lines):
            texts = [b64decode(each[1:]).decode("utf-16-be", "surrogatepass") for each in rest if each.startswith("=")]
            match kind:
                case "default":
                    self.defaults[name] = None if rest[1] == "true" else texts[0]
                case "type":
                    self.types[name] = rest[0]
                case "malformed":
                    self.malformed.add(name)
                case "config":
                    self.refusals[name] = texts[0]
                case _:
                    self.read.setdefault((kind, name), {})[texts[0]] = texts[1]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    directory = tmp_path_factory.mktemp("asked")
    for n, properties in PROPERTIES.items():
        (directory / f"rendered-{n:03}.text").write_bytes(
            render_properties(properties, header="é\nsecond").encode("ascii")
        )
    for n, text in TEXTS.items():
        (directory / f"any-{n:03}.text").write_bytes(text.encode("latin-1"))

    def lay_down(name: str, properties: Mapping[str, str]) -> None:
        (directory / f"{name}.config").write_bytes(render_properties(properties, header="x").encode("ascii"))

    for mode in MODES:
        lay_down(f"{type(mode).__name__}-{mode.value}", node_properties(with_all_that_is_left_out(), mode))
        lay_down(f"plain-{type(mode).__name__}-{mode.value}", node_properties(SPEC, mode))
        lay_down(f"bound-{type(mode).__name__}-{mode.value}", node_properties(bound_to_every_address(), mode))
    for name, bind_host in BOUND.items():
        lay_down(f"both-{name}", with_both_roles(bind_host))
    for mode in BrokerMode:
        generated = node_properties(GENERATED, mode)
        lay_down(f"generated-{mode.value}", generated)
        lay_down(
            f"generated-without-{mode.value}", {key: value for key, value in generated.items() if key != ID_GENERATION}
        )
    for n, (rule, mode) in enumerate(REFUSED):
        lay_down(f"refused-{n}", with_it_left_in(rule, mode))
    for protocol in CALLS:
        lay_down(f"calls-{protocol}", controller_that_calls(protocol))
        lay_down(f"calls-{protocol}-as-kafka-defaults", without_sasl(controller_that_calls(protocol)))
    ask_java(Path(__file__).with_name("AskKafka.java"), directory, jars=JARS)
    return Answers((directory / "answers.txt").read_text().splitlines())


def host_side() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "properties_text", ROOT / "playbooks" / "module_utils" / "properties_text.py"
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("way", ["bytes", "characters"])
def test_java_reads_what_was_rendered_whatever_it_holds(answers: Answers, way: str) -> None:
    assert sum(len(each) for each in PROPERTIES.values()) > 500
    for n, properties in PROPERTIES.items():
        assert answers.read.get((way, f"rendered-{n:03}.text"), {}) == properties


def test_any_file_is_read_as_java_reads_it_here_and_on_the_host(answers: Answers) -> None:
    on_the_host = host_side()
    asked = {n: text for n, text in TEXTS.items() if f"any-{n:03}.text" not in answers.malformed}
    assert len(asked) > 400
    for n, text in asked.items():
        by_java = answers.read.get(("bytes", f"any-{n:03}.text"), {})
        for by_us in (parse_properties(text), on_the_host.properties_of(text)):
            # A lone backslash at the file's end is an empty key to Java.
            assert {"": "", **by_us} == {"": "", **by_java}, repr(text)


def test_a_file_is_read_back_as_it_was_rendered() -> None:
    for properties in PROPERTIES.values():
        assert parse_properties(render_properties(properties, header="a\nb")) == properties


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: f"{type(mode).__name__}-{mode.value}")
@pytest.mark.parametrize("which", ["", "plain-", "bound-"])
def test_kafka_takes_every_rendered_file_whatever_is_declared(answers: Answers, mode: Mode, which: str) -> None:
    assert answers.refusals[f"{which}{type(mode).__name__}-{mode.value}.config"] == ""


@pytest.mark.parametrize("bound", BOUND)
def test_kafka_takes_the_file_of_a_node_with_both_roles_wherever_its_controller_binds(
    answers: Answers, bound: str
) -> None:
    assert answers.refusals[f"both-{bound}.config"] == ""


def test_kafka_refuses_what_is_left_out_as_refused(answers: Answers) -> None:
    said = {
        f"{rule.key} {type(mode).__name__}": answers.refusals[f"refused-{n}.config"]
        for n, (rule, mode) in enumerate(REFUSED)
    }
    assert said["control.plane.listener.name BrokerMode"].endswith(
        "control.plane.listener.name is not supported in KRaft mode."
    )
    assert "only supported in KRaft cluster" in said["group.coordinator.rebalance.protocols BrokerMode"]
    assert all(said.values()), said


@pytest.mark.parametrize("mode", BrokerMode)
def test_kafka_takes_a_broker_id_that_it_generated_once(answers: Answers, mode: BrokerMode) -> None:
    assert answers.refusals[f"generated-{mode.value}.config"] == ""
    refused = answers.refusals[f"generated-without-{mode.value}.config"]
    assert ("not greater than reserved.broker.max.id" in refused) == (mode is not BrokerMode.KRAFT)


@pytest.mark.parametrize("protocol", CALLS)
def test_a_migrating_controller_has_what_kafka_needs_to_call_brokers(
    answers: Answers, protocol: SecurityProtocol
) -> None:
    assert answers.refusals[f"calls-{protocol}.config"] == ""
    if "SASL" in protocol:
        assert (
            "Could not find a 'KafkaServer' or 'internal.KafkaServer' entry"
            in answers.refusals[f"calls-{protocol}-as-kafka-defaults.config"]
        )


def test_every_password_of_kafkas_is_taken_for_a_secret_here_and_on_the_host(answers: Answers) -> None:
    passwords = [key for key, kind in answers.types.items() if kind == "PASSWORD"]
    assert {"delegation.token.master.key", "ssl.truststore.certificates"} < set(passwords)
    on_the_host = host_side()
    for key in (prefix + each for each in passwords for prefix in ("", "listener.name.sasl.plain.")):
        assert (is_sensitive(key), on_the_host.is_sensitive(key), on_the_host.shown(f"{key}=hunter2")) == (
            True,
            True,
            f"{key}=<set>\n",
        )


# The authorizer's own setting is in no ConfigDef.
@pytest.mark.parametrize(
    "setting", [each for each in ENFORCED if each.reader != "StandardAuthorizer"], ids=lambda each: each.key
)
def test_each_setting_is_kafkas_with_kafkas_default(answers: Answers, setting: Enforced) -> None:
    assert setting.key in answers.defaults
    assert answers.defaults[setting.key] == setting.default
