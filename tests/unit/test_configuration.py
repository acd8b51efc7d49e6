"""What each node's file holds in each mode, and that a file is read back as it was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from observations import SPEC

from kraft_runbook.cluster import OWNED_PROPERTIES, is_sensitive
from kraft_runbook.configuration import (
    KRAFT_AUTHORIZER,
    MIGRATION_FLAG,
    ZOOKEEPER_AUTHORIZER,
    broker_properties,
    controller_log4j,
    controller_properties,
    lacking_migration_mode,
    parse_properties,
    render_properties,
    settled_size,
    size_in_file,
)
from kraft_runbook.copy_tuning import LARGE, SIZES, SMALL, TUNED_PROPERTIES, Size
from kraft_runbook.observation import BrokerMode, ControllerMode

Z, H, K = (broker_properties(SPEC, SPEC.broker(1), mode) for mode in (BrokerMode.ZOOKEEPER, BrokerMode.HYBRID, BrokerMode.KRAFT))
C, N = (controller_properties(SPEC, SPEC.controller(102), mode) for mode in (ControllerMode.MIGRATION, ControllerMode.KRAFT))


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
    assert (Z["authorizer.class.name"], K["authorizer.class.name"]) == (ZOOKEEPER_AUTHORIZER, KRAFT_AUTHORIZER)


def test_finalizing_drops_the_flag_and_zookeeper_and_nothing_else_that_matters() -> None:
    assert C[MIGRATION_FLAG] == "true"
    assert C["zookeeper.connect"] == SPEC.zookeeper.connect
    assert {k for k in C if k not in N} == {MIGRATION_FLAG, "zookeeper.connect", "zookeeper.session.timeout.ms", "inter.broker.listener.name"}
    assert {k for k in N if N[k] != C.get(k)} == {"listener.security.protocol.map"}


# -- the copy's tuning --------------------------------------------------------------------------------------------------

MIGRATION, KRAFT = ControllerMode.MIGRATION, ControllerMode.KRAFT
ONE, OTHER = SPEC.controller(101), SPEC.controller(103)
BATCH, IN_FLIGHT = "zookeeper.metadata.migration.min.batch.size", "zookeeper.max.in.flight.requests"


def test_a_large_cluster_s_controllers_get_the_copys_settings_beside_all_the_others() -> None:
    tuned = controller_properties(SPEC, ONE, MIGRATION, LARGE)
    plain = controller_properties(SPEC, ONE, MIGRATION)
    assert {k: v for k, v in tuned.items() if k not in plain} == dict(LARGE.properties)
    assert {k: v for k, v in tuned.items() if k in plain} == plain
    assert lacking_migration_mode(tuned) == ()


def test_finalizing_leaves_nothing_of_the_copys_tuning_whoever_set_it() -> None:
    by_hand = SPEC.model_copy(update={"controller_properties": {IN_FLIGHT: "50"}})
    for spec in (SPEC, by_hand):
        assert not TUNED_PROPERTIES & controller_properties(spec, ONE, KRAFT, LARGE).keys()
        assert not [key for key in controller_properties(spec, ONE, KRAFT, LARGE) if key.startswith("zookeeper.")]


def test_no_broker_gets_any_of_it() -> None:
    assert not TUNED_PROPERTIES & {*Z, *H, *K}


@pytest.mark.parametrize("where", ["controller_properties", "zookeeper"])
def test_what_the_cluster_file_sets_itself_comes_first(where: str) -> None:
    own = {IN_FLIGHT: "50"}
    spec = SPEC.model_copy(update={where: SPEC.zookeeper.model_copy(update={"properties": own}) if where == "zookeeper" else own})
    rendered = controller_properties(spec, ONE, MIGRATION, LARGE)
    assert (rendered[IN_FLIGHT], rendered[BATCH]) == ("50", LARGE.properties[BATCH])
    assert size_in_file(spec, ONE, rendered) is LARGE


@pytest.mark.parametrize("size", SIZES, ids=lambda size: size.name)
def test_a_file_tells_the_size_that_it_was_rendered_for(size: Size) -> None:
    rendered = controller_properties(SPEC, ONE, MIGRATION, size)
    assert size_in_file(SPEC, ONE, rendered) is size
    assert size_in_file(SPEC, ONE, {**rendered, BATCH: "777"}) is None
    assert size_in_file(SPEC, ONE, controller_properties(SPEC, ONE, KRAFT, size)) is None


def test_the_files_settle_the_size_the_controller_s_own_first() -> None:
    small, large = controller_properties(SPEC, ONE, MIGRATION, SMALL), controller_properties(SPEC, OTHER, MIGRATION, LARGE)
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
    derived = {k for k in (*Z, *H, *K, *C) if k not in SPEC.broker_properties and k not in SPEC.secrets and k != "zookeeper.session.timeout.ms"}
    assert derived <= OWNED_PROPERTIES


KEYS = st.from_regex(r"[a-z][a-z0-9.\-]{0,20}", fullmatch=True)
VALUES = (
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"], include_characters=" \\\n=#:"), max_size=40)
    .map(str.strip)
    .filter(lambda v: not v.endswith("\\"))
)


@given(st.dictionaries(KEYS, VALUES, max_size=8))
def test_a_rendered_file_is_read_back_as_it_was(properties: dict[str, str]) -> None:
    assert parse_properties(render_properties(properties, header="two\nlines")) == properties


def test_comments_blank_and_continued_lines_are_read_as_java_reads_them() -> None:
    text = "# c\n! c=1\n\na=1\n  b = x=y \nc=one,\\\n  two\nd: 4\ne 5\nf=ends\\\\\ng=6\na=2\nempty=\nbob\\u0020x=7\n"
    assert parse_properties(text) == {"a": "2", "b": "x=y", "c": "one,two", "d": "4", "e": "5", "f": "ends\\", "g": "6", "empty": "", "bob x": "7"}
