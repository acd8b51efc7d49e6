"""What each node's file holds in each mode, and that a file is read back as it was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from observations import SPEC

from kraft_runbook.cluster.controller_settings import ENFORCED, OF_THE_COPY, Enforced
from kraft_runbook.cluster.mode_settings import of_zookeeper_alone
from kraft_runbook.cluster.node_properties import (
    MIGRATION_FLAG,
    ZOOKEEPER_AUTHORIZER,
    broker_properties,
    controller_properties,
)
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.owned_properties import OWNED_PROPERTIES
from kraft_runbook.cluster.properties_text import parse_properties, render_properties
from kraft_runbook.cluster.sensitive import is_sensitive
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Authorizer
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.errors import Refused
from kraft_runbook.migration.controller_files import (
    controller_log4j,
    lacking_migration_mode,
    settled_size,
    size_in_file,
)
from kraft_runbook.migration.copy_tuning import LARGE, SIZES, SMALL, TUNED_PROPERTIES, Size

Z, H, K = (
    broker_properties(SPEC, SPEC.broker(1), mode)
    for mode in (BrokerMode.ZOOKEEPER, BrokerMode.HYBRID, BrokerMode.KRAFT)
)
C, N = (
    controller_properties(SPEC, SPEC.controller(102), mode) for mode in (ControllerMode.MIGRATION, ControllerMode.KRAFT)
)


def test_hybrid_is_zookeeper_mode_with_the_flag_and_the_quorum() -> None:
    assert {k: v for k, v in H.items() if Z.get(k) != v} == {
        MIGRATION_FLAG: "true",
        "controller.quorum.voters": SPEC.quorum_voters,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    assert Z.keys() <= H.keys()


def test_a_broker_in_kraft_mode_has_no_zookeeper_key_left() -> None:
    assert not [k for k in K if k.startswith("zookeeper.")]
    assert not {"broker.id", "inter.broker.protocol.version"} & K.keys()
    assert (K["process.roles"], K["node.id"]) == ("broker", "1")
    assert (Z["authorizer.class.name"], K["authorizer.class.name"]) == (ZOOKEEPER_AUTHORIZER, Authorizer().kraft)


@pytest.mark.parametrize(
    ("broker_id", "declared", "rendered"),
    [
        (1000, {}, None),
        (1001, {}, "false"),
        (1001, {"reserved.broker.max.id": "1001"}, None),
        (7, {"reserved.broker.max.id": " 6 "}, "false"),
        (1001, {"broker.id.generation.enable": "true"}, "false"),  # Kafka refuses the two together
        (7, {"broker.id.generation.enable": "true"}, "true"),
    ],
)
def test_a_broker_id_above_the_reserved_ones_is_allowed_where_kafka_would_refuse_it(
    broker_id: int, declared: dict[str, str], rendered: str | None
) -> None:
    broker = SPEC.broker(1).model_copy(update={"id": broker_id, "properties": declared})
    for mode in (BrokerMode.ZOOKEEPER, BrokerMode.HYBRID):
        assert broker_properties(SPEC, broker, mode).get("broker.id.generation.enable") == rendered
    assert broker_properties(SPEC, broker, BrokerMode.KRAFT).get("broker.id.generation.enable") == declared.get(
        "broker.id.generation.enable"
    )


def test_finalizing_drops_the_flag_and_zookeeper_and_nothing_else_that_matters() -> None:
    assert C[MIGRATION_FLAG] == "true"
    assert C["zookeeper.connect"] == SPEC.zookeeper.connect
    zookeepers = {
        MIGRATION_FLAG,
        "zookeeper.connect",
        "zookeeper.session.timeout.ms",
        "inter.broker.listener.name",
        "password.encoder.secret",
    }
    assert {k for k in C if k not in N} == zookeepers
    assert {k for k in N if N[k] != C.get(k)} == {"listener.security.protocol.map"}


def test_without_a_zookeeper_in_the_file_kraft_mode_is_rendered_the_same_and_no_other_mode_is() -> None:
    alone = SPEC.model_copy(update={"zookeeper": None})
    broker, controller = SPEC.broker(1), SPEC.controller(101)
    in_kraft = {
        **broker_properties(alone, broker, BrokerMode.KRAFT),
        **controller_properties(alone, controller, ControllerMode.KRAFT),
    }
    assert in_kraft == {
        **broker_properties(SPEC, broker, BrokerMode.KRAFT),
        **controller_properties(SPEC, controller, ControllerMode.KRAFT),
    }
    assert not [key for key in in_kraft if "zookeeper" in key]
    for mode in (BrokerMode.ZOOKEEPER, BrokerMode.HYBRID):
        with pytest.raises(Refused, match="names no ZooKeeper ensemble"):
            broker_properties(alone, broker, mode)
    with pytest.raises(Refused, match="names no ZooKeeper ensemble"):
        controller_properties(alone, controller, ControllerMode.MIGRATION)


# -- what controllers enforce, and what a mode leaves out --------------------------------------------------------------


@pytest.mark.parametrize(
    ("bind_host", "listeners"),
    [
        (None, "PLAINTEXT://127.10.0.11:9092"),
        ("", "PLAINTEXT://:9092"),
        ("0.0.0.0", "PLAINTEXT://0.0.0.0:9092"),
        ("::", "PLAINTEXT://[::]:9092"),
    ],
)
@pytest.mark.parametrize("mode", BrokerMode)
def test_a_broker_binds_where_it_is_told_to_and_is_advertised_by_its_host(
    mode: BrokerMode, bind_host: str | None, listeners: str
) -> None:
    first = SPEC.broker(1).listeners[0].model_copy(update={"bind_host": bind_host})
    found = broker_properties(SPEC, SPEC.broker(1).model_copy(update={"listeners": (first,)}), mode)
    assert found["listeners"] == listeners
    assert found["advertised.listeners"] == "PLAINTEXT://127.10.0.11:9092"


@pytest.mark.parametrize(
    ("bind_host", "place"),
    [(None, "127.10.0.11"), ("", "127.10.0.11"), ("0.0.0.0", "127.10.0.11"), ("10.0.0.7", "10.0.0.7")],
)
def test_a_broker_is_waited_for_where_its_own_host_reaches_it(bind_host: str | None, place: str) -> None:
    listener = SPEC.broker(1).listeners[0].model_copy(update={"bind_host": bind_host})
    assert SPEC.broker(1).waited_for(listener) == f"{place}:9092"


def with_brokers(**properties: str) -> ClusterSpec:
    """The lab with these properties on every broker (``__`` for a dot)."""
    given = {name.replace("__", "."): value for name, value in properties.items()}
    return SPEC.model_copy(update={"broker_properties": {**SPEC.broker_properties, **given}})


def of_controllers(spec: ClusterSpec, mode: ControllerMode = ControllerMode.MIGRATION) -> dict[str, str]:
    return controller_properties(spec, spec.controller(101), mode)


def test_controllers_get_what_they_enforce_from_the_brokers_and_nothing_else() -> None:
    assert (
        (C["default.replication.factor"], C["min.insync.replicas"])
        == (N["default.replication.factor"], N["min.insync.replicas"])
        == ("3", "2")
    )
    assert (
        not {
            "num.network.threads",
            "auto.create.topics.enable",
            "offsets.topic.replication.factor",
            "sasl.enabled.mechanisms",
        }
        & C.keys()
    )


@pytest.mark.parametrize("setting", ENFORCED, ids=lambda each: each.key)
def test_each_setting_that_controllers_enforce_is_carried_and_the_controllers_own_value_wins(setting: Enforced) -> None:
    declared = with_brokers(**{setting.key.replace(".", "__"): "${file:/a:b}"})
    assert of_controllers(declared)[setting.key] == "${file:/a:b}"
    assert (setting.key in of_controllers(declared, ControllerMode.KRAFT)) == (not setting.while_migrating)
    own = declared.model_copy(update={"controller_properties": {setting.key: "own"}})
    assert of_controllers(own)[setting.key] == "own"


def test_a_setting_on_which_brokers_disagree_is_not_carried_and_one_that_is_its_default_elsewhere_is() -> None:
    def on_broker_3(value: str) -> ClusterSpec:
        other = SPEC.broker(3).model_copy(update={"properties": {"delete.topic.enable": value}})
        return SPEC.model_copy(update={"brokers": (*SPEC.brokers[:2], other)})

    assert "delete.topic.enable" not in of_controllers(on_broker_3("false"))
    assert of_controllers(on_broker_3("true"))["delete.topic.enable"] == "true"


def test_what_brokers_need_of_zookeeper_migrating_controllers_have_wherever_it_is_declared() -> None:
    secret = SPEC.model_copy(
        update={"secrets": {**SPEC.secrets, "zookeeper.ssl.keystore.password": SecretRef(env="X")}}
    )
    spec = secret.model_copy(
        update={
            "broker_properties": {
                **SPEC.broker_properties,
                "zookeeper.set.acl": "true",
                "zookeeper.ssl.client.enable": "true",
            }
        }
    )
    assert {"zookeeper.set.acl", "zookeeper.ssl.client.enable", "zookeeper.ssl.keystore.password"} <= of_controllers(
        spec
    ).keys()
    for node in (of_controllers(spec, ControllerMode.KRAFT), broker_properties(spec, spec.broker(1), BrokerMode.KRAFT)):
        assert not [key for key in node if of_zookeeper_alone(key)]


def test_secrets_of_zookeeper_are_in_no_file_of_kraft_mode_and_come_back_with_the_way_back() -> None:
    assert {"password.encoder.secret", "config.providers"} <= Z.keys() & H.keys() & C.keys()
    assert "password.encoder.secret" not in K.keys() | N.keys()
    assert "delegation.token.secret.key" in K.keys() & N.keys()
    encoder_alone = SPEC.model_copy(update={"secrets": {"password.encoder.secret": SecretRef(env="X")}})
    assert "config.providers" not in of_controllers(encoder_alone, ControllerMode.KRAFT)


def test_what_a_mode_refuses_is_left_out_of_it_alone() -> None:
    spec = with_brokers(
        control__plane__listener__name="SASL", group__coordinator__rebalance__protocols="classic,consumer"
    )
    spec = spec.model_copy(update={"controller_properties": {"control.plane.listener.name": "SASL"}})
    having = {mode: broker_properties(spec, spec.broker(1), mode).keys() for mode in BrokerMode}
    assert [mode for mode in BrokerMode if "control.plane.listener.name" in having[mode]] == [
        BrokerMode.ZOOKEEPER,
        BrokerMode.HYBRID,
    ]
    assert [mode for mode in BrokerMode if "group.coordinator.rebalance.protocols" in having[mode]] == [
        BrokerMode.KRAFT
    ]
    assert not [mode for mode in ControllerMode if "control.plane.listener.name" in of_controllers(spec, mode)]
    classic = with_brokers(group__coordinator__rebalance__protocols="classic")
    assert "group.coordinator.rebalance.protocols" in broker_properties(
        classic, classic.broker(1), BrokerMode.ZOOKEEPER
    )


# -- the copy's tuning -------------------------------------------------------------------------------------------------

MIGRATION, KRAFT = ControllerMode.MIGRATION, ControllerMode.KRAFT
ONE, OTHER = SPEC.controller(101), SPEC.controller(103)
BATCH, IN_FLIGHT = "zookeeper.metadata.migration.min.batch.size", "zookeeper.max.in.flight.requests"


def test_a_large_cluster_s_controllers_get_the_copys_settings_beside_all_the_others() -> None:
    tuned = controller_properties(SPEC, ONE, MIGRATION, also=LARGE.properties)
    plain = controller_properties(SPEC, ONE, MIGRATION)
    assert {k: v for k, v in tuned.items() if k not in plain} == dict(LARGE.properties)
    assert {k: v for k, v in tuned.items() if k in plain} == plain
    assert lacking_migration_mode(tuned) == ()


def test_finalizing_leaves_nothing_of_the_copys_tuning_whoever_set_it() -> None:
    by_hand = SPEC.model_copy(update={"controller_properties": {IN_FLIGHT: "50"}})
    for spec in (SPEC, by_hand):
        assert not TUNED_PROPERTIES & controller_properties(spec, ONE, KRAFT, also=LARGE.properties).keys()
        assert not [
            key
            for key in controller_properties(spec, ONE, KRAFT, also=LARGE.properties)
            if key.startswith("zookeeper.")
        ]


def test_no_broker_gets_any_of_it() -> None:
    assert not TUNED_PROPERTIES & {*Z, *H, *K}


def test_what_a_size_sets_is_of_zookeeper_alone_and_no_brokers_value_of_it_is_carried() -> None:
    assert TUNED_PROPERTIES == OF_THE_COPY
    assert all(of_zookeeper_alone(key) for key in TUNED_PROPERTIES)
    assert not OF_THE_COPY & of_controllers(with_brokers(**{key.replace(".", "__"): "7" for key in OF_THE_COPY})).keys()


@pytest.mark.parametrize("where", ["controller_properties", "zookeeper"])
def test_what_the_cluster_file_sets_itself_comes_first(where: str) -> None:
    own = {IN_FLIGHT: "50"}
    spec = SPEC.model_copy(
        update={where: SPEC.zookeeper.model_copy(update={"properties": own}) if where == "zookeeper" else own}
    )
    rendered = controller_properties(spec, ONE, MIGRATION, also=LARGE.properties)
    assert (rendered[IN_FLIGHT], rendered[BATCH]) == ("50", LARGE.properties[BATCH])
    assert size_in_file(spec, ONE, rendered) is LARGE


@pytest.mark.parametrize("size", SIZES, ids=lambda size: size.name)
def test_a_file_tells_the_size_that_it_was_rendered_for(size: Size) -> None:
    rendered = controller_properties(SPEC, ONE, MIGRATION, also=size.properties)
    assert size_in_file(SPEC, ONE, rendered) is size
    assert size_in_file(SPEC, ONE, {**rendered, BATCH: "777"}) is None
    assert size_in_file(SPEC, ONE, controller_properties(SPEC, ONE, KRAFT, also=size.properties)) is None


def test_the_files_settle_the_size_the_controller_s_own_first() -> None:
    small = controller_properties(SPEC, ONE, MIGRATION, also=SMALL.properties)
    large = controller_properties(SPEC, OTHER, MIGRATION, also=LARGE.properties)
    assert settled_size(SPEC, {}) is None
    assert settled_size(SPEC, {103: large}, first=101) is LARGE
    assert settled_size(SPEC, {101: small, 103: large}, first=101) is SMALL
    assert settled_size(SPEC, {101: small, 103: large}, first=103) is LARGE
    assert settled_size(SPEC, {101: controller_properties(SPEC, ONE, KRAFT), 103: large}, first=101) is LARGE


def test_loggers_are_quiet_while_the_migration_lasts_and_as_declared_after_it() -> None:
    own = {"log4j.rootLogger": "INFO, stdout", "log4j.logger.org.apache.kafka.controller": "DEBUG"}
    spec = SPEC.model_copy(update={"controller_log4j": own})
    assert controller_log4j(spec, MIGRATION, LARGE) == {
        **own,
        "log4j.logger.org.apache.kafka.controller": "WARN",
        "log4j.logger.org.apache.kafka.image": "WARN",
    }
    assert controller_log4j(spec, MIGRATION, SMALL) == controller_log4j(spec, KRAFT, LARGE) == own


@pytest.mark.parametrize("properties", [Z, H, K, C, N])
def test_a_secret_is_a_reference_never_a_value(properties: dict[str, str]) -> None:
    for key in properties:
        if is_sensitive(key) and "jaas" not in key and not key.startswith("config.providers"):
            assert properties[key] == f"${{secrets:{SPEC.secrets_file}:{key}}}"


def test_an_operators_properties_can_not_touch_what_is_derived() -> None:
    derived = {
        k
        for k in (*Z, *H, *K, *C)
        if k not in {**SPEC.broker_properties, **SPEC.controller_properties, **SPEC.secrets}
        and k != "zookeeper.session.timeout.ms"
    }
    assert derived <= OWNED_PROPERTIES


KEYS = st.from_regex(r"[a-z][a-z0-9.\-]{0,20}", fullmatch=True)
VALUES = (
    st.text(
        st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"], include_characters=" \\\n=#:"),
        max_size=40,
    )
    .map(str.strip)
    .filter(lambda v: not v.endswith("\\"))
)


@given(st.dictionaries(KEYS, VALUES, max_size=8))
def test_a_rendered_file_is_read_back_as_it_was(properties: dict[str, str]) -> None:
    assert parse_properties(render_properties(properties, header="two\nlines")) == properties


def test_comments_blank_and_continued_lines_are_read_as_java_reads_them() -> None:
    text = "# c\n! c=1\n\na=1\n  b = x=y \nc=one,\\\n  two\nd: 4\ne 5\nf=ends\\\\\ng=6\na=2\nempty=\nbob\\u0020x=7\n"
    assert parse_properties(text) == {
        "a": "2",
        "b": "x=y ",
        "c": "one,two",
        "d": "4",
        "e": "5",
        "f": "ends\\",
        "g": "6",
        "empty": "",
        "bob x": "7",
    }
