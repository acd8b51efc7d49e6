"""What ends a node of the roll though nothing on its own disk says so: a topic whose segments Kafka 4 does not take, a
class that it lacks, and a level that was raised and lowered while the node was down. Then kraft.version, whose level no
record of features has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import by_hand
import on_kafka4
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from labs import Lab

from kraft_runbook.cluster.feature_levels import (
    KRAFT_VERSION,
    METADATA_VERSION,
    NamedClasses,
    NodeHost,
    NodeOnDisk,
)
from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode, DynamicConfigs, Found
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.hosts.inventory import node_of
from kraft_runbook.io.kafka.dynamic_configs import Entity, EntityKind, alter_configs, read_configs
from kraft_runbook.io.kafka.feature_calls import UpgradeType, update_feature
from kraft_runbook.io.local import supervision
from kraft_runbook.levels.change import Direction
from kraft_runbook.procedures.change_level import change_level
from kraft_runbook.procedures.observe import observe
from kraft_runbook.procedures.preview_levels import preview_change
from kraft_runbook.procedures.topic_margins import topic_margins
from kraft_runbook.software.class_checks import missing_classes
from kraft_runbook.software.operation import SOFTWARE
from kraft_runbook.software.way_back import way_to
from lab.layout import layout
from lab.tools import run_class

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
OLD_DIES = "but this controller only supports versions 1-21"
NEW_DIES = "Invalid value 1000 for configuration segment.bytes"
HANDLER_KEY = "sasl.server.callback.handler.class"
HANDLER = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler"
SEGMENT = "log.segment.bytes"
MENDED, LEFT = "mended-before-the-roll", "left-as-it-was"
TINY = "tiny-segments"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Every node on 3.9, with a snapshot every ten seconds."""
    short = {"metadata.log.max.snapshot.interval.ms": "10000"}
    with on_kafka4.finalized_lab(controllers=short, brokers=short) as found:
        yield found


@pytest.fixture(scope="module")
def on_new(lab: Lab) -> Lab:
    """Every node on 4.x."""
    assert lab.spec.kafka.upgrade_to is not None
    for node_id in (*lab.spec.controller_ids, *lab.spec.broker_ids):
        on_kafka4.switch(lab, node_id, lab.spec.kafka.upgrade_to.home)
        on_kafka4.answers(lab, node_id, lambda seen: seen.supported[METADATA_VERSION].highest == 27, within=120)
    return lab


def test_a_topic_with_segments_below_a_mebibyte_is_named_and_would_end_a_broker_of_kafka_4(lab: Lab) -> None:
    assert lab.spec.kafka.upgrade_to is not None
    servers = ",".join(lab.spec.broker_address(each) for each in lab.spec.brokers)
    admin = AdminClient({"bootstrap.servers": servers})
    tiny = NewTopic(TINY, num_partitions=1, replication_factor=3, config={"segment.bytes": "1000"})
    admin.create_topics([tiny])[TINY].result(30)
    found = topic_margins(lab.spec, secrets=lab.secrets)
    assert found.small_segments == Found(1, (TINY,))
    assert found.groups and found.moving == Found()

    broker = lab.spec.brokers[0]
    on_kafka4.switch(lab, broker.id, lab.spec.kafka.upgrade_to.home)  # what the gate would have refused
    on_kafka4.wait_for_log(lab, broker.id, NEW_DIES, within=120)
    on_kafka4.ended(lab, broker, within=60)
    on_kafka4.switch(lab, broker.id, lab.spec.kafka.home)
    on_kafka4.answers(lab, broker.id, lambda seen: seen.supported[METADATA_VERSION].highest == 21, within=120)
    admin.delete_topics([TINY])[TINY].result(30)
    by_hand.wait_until(
        "the topic is gone",
        lambda: topic_margins(lab.spec, secrets=lab.secrets).small_segments == Found(),
        within=60,
    )


def test_a_class_that_kafka_4_lacks_is_named_by_the_host_and_would_end_a_broker(lab: Lab) -> None:
    broker, target = lab.spec.brokers[-1], lab.spec.kafka.upgrade_to
    assert target is not None
    file = broker_properties(lab.spec, broker, BrokerMode.KRAFT)
    on_kafka4.switch(lab, broker.id, lab.spec.kafka.home, properties={**file, HANDLER_KEY: HANDLER})
    on_kafka4.answers(lab, broker.id, lambda seen: seen.supported[METADATA_VERSION].highest == 21, within=120)
    for node_id, host in on_kafka4.look(lab).hosts.items():
        assert isinstance(host, NodeHost) and isinstance(host.classes, NamedClasses) and not host.classes.unread, host
        assert isinstance(host.config, Mapping)
        said = [str(each).partition(", which")[0] for each in missing_classes(host, target, written=host.config)]
        assert said == ([f"{HANDLER_KEY} names {HANDLER}"] if node_id == broker.id else [])
        assert list(missing_classes(host, lab.spec.kafka, written=host.config)) == []

    on_kafka4.switch(lab, broker.id, target.home)  # what the gate would have refused
    on_kafka4.wait_for_log(lab, broker.id, f"Class {HANDLER} could not be found", within=120)
    on_kafka4.ended(lab, broker, within=60)
    on_kafka4.switch(lab, broker.id, lab.spec.kafka.home, properties=file)
    on_kafka4.answers(lab, broker.id, lambda seen: seen.supported[METADATA_VERSION].highest == 21, within=120)


def test_what_the_log_holds_that_kafka_4_does_not_take_is_named_with_the_command_that_mends_it(lab: Lab) -> None:
    """The mended topic's keys go, on 3.9. The other topic and the broker's value go along, for what comes next."""
    servers = ",".join(lab.spec.broker_address(each) for each in lab.spec.brokers)
    admin = AdminClient({"bootstrap.servers": servers})
    config = {"message.format.version": "2.8-IV1", "message.downconversion.enable": "true"}
    made = [NewTopic(each, num_partitions=1, replication_factor=3, config=config) for each in (MENDED, LEFT)]
    for done in admin.create_topics(made).values():
        done.result(30)
    broker = Entity(EntityKind.BROKER, str(lab.spec.brokers[0].id))
    alter_configs(lab.spec, {broker: {SEGMENT: "500000"}}, secrets=lab.secrets)

    seen = observe(lab.spec.model_copy(update={"zookeeper": None}), secrets=lab.secrets, with_hosts=True)
    topics = SOFTWARE.checks["KRB-UPG-019"].run(seen, lab.spec)
    assert topics.blocks and f"message.format.version of topics 2: {LEFT}, {MENDED}" in topics.evidence
    assert f"--entity-name {LEFT} --delete-config message.downconversion.enable,message.format.version" in topics.fix
    brokers = SOFTWARE.checks["KRB-UPG-020"].run(seen, lab.spec)
    assert brokers.blocks and f"broker {broker.name}: {SEGMENT}=500000 (3.9 takes 14 and more" in brokers.evidence
    for code in ("KRB-UPG-006", "KRB-UPG-017", "KRB-UPG-018", "KRB-UPG-021"):
        result = SOFTWARE.checks[code].run(seen, lab.spec)
        assert result.passed, result

    tool, *arguments = topics.fix.partition("such as: ")[2].replace(LEFT, MENDED).split()
    assert tool == "kafka-configs.sh"  # which is this class
    run_class(lab.spec, "kafka.admin.ConfigCommand", arguments)

    def is_mended() -> bool:
        found = topic_margins(lab.spec, secrets=lab.secrets).dynamic
        return isinstance(found, DynamicConfigs) and {each.samples for each in found.topics.values()} == {(LEFT,)}

    by_hand.wait_until("the keys of the mended topic are gone", is_mended, within=60)


def set_level(lab: Lab, level: int, kind: UpgradeType) -> None:
    """Without the wait for every node: one of them is down."""
    leader = on_kafka4.leader(lab)
    answer = update_feature(lab.spec, leader, METADATA_VERSION, level, kind, validate_only=False, secrets=lab.secrets)
    assert answer.accepted, answer.refusal


def test_what_the_leader_will_send_keeps_a_node_away_that_was_down_though_its_disk_is_clean(on_new: Lab) -> None:
    lab = on_new
    assert lab.spec.kafka.upgrade_to is not None
    seen = on_kafka4.look(lab)
    old = on_kafka4.software(seen, lab.spec.kafka.home)
    new = on_kafka4.software(seen, lab.spec.kafka.upgrade_to.home)
    by_hand.wait_until("every node can start on 3.9", lambda: way_to(on_kafka4.look(lab), old, new).open, within=60)
    victim = next(i for i in lab.spec.controller_ids if i != seen.leader_id)
    node = node_of(lab.spec, victim)
    supervision.begin_stop(layout(lab.spec), node.service)
    on_kafka4.ended(lab, node, within=330)
    set_level(lab, 22, UpgradeType.UPGRADE)
    set_level(lab, 21, UpgradeType.SAFE_DOWNGRADE)

    def others_are_past_it() -> bool:
        return set(way_to(on_kafka4.look(lab), old, new).in_the_way) == {victim}

    by_hand.wait_until("the others' snapshots are past the record", others_are_past_it, within=60)
    seen = on_kafka4.look(lab)
    host = seen.hosts[victim]
    assert isinstance(host, NodeHost) and isinstance(host.disk, NodeOnDisk)
    assert all(old.supports(each.feature, each.level) for each in host.disk.after)
    (said,) = way_to(seen, old, new).in_the_way[victim]
    assert "it is behind, the quorum's leader will send it metadata.version 22 at offset" in said.problem

    on_kafka4.switch(lab, victim, lab.spec.kafka.home)  # what the gate would have refused
    by_hand.wait_until("it says why it ends", lambda: OLD_DIES in on_kafka4.log_of(lab, victim, lines=2000), within=60)
    on_kafka4.ended(lab, node)
    on_kafka4.switch(lab, victim, lab.spec.kafka.upgrade_to.home)
    by_hand.wait_until("its snapshot is past it too", lambda: way_to(on_kafka4.look(lab), old, new).open, within=90)


def test_on_kafka_4_a_topic_that_was_not_mended_takes_no_change_and_a_broker_s_small_value_is_read_over(
    on_new: Lab,
) -> None:
    spec, mended, left = on_new.spec, Entity(EntityKind.TOPIC, MENDED), Entity(EntityKind.TOPIC, LEFT)
    retention = {"retention.ms": "3600000"}
    assert alter_configs(spec, {mended: retention}, secrets=on_new.secrets) == ()
    with pytest.raises(StepFailed, match="Unknown topic config name: message"):
        alter_configs(spec, {left: retention}, secrets=on_new.secrets)
    gone = dict.fromkeys(("message.format.version", "message.downconversion.enable"))
    alter_configs(spec, {left: {**gone, **retention}}, secrets=on_new.secrets)

    broker = Entity(EntityKind.BROKER, str(spec.brokers[0].id))
    found = read_configs(spec, [broker], [SEGMENT], secrets=on_new.secrets)[broker]
    assert found.effective[SEGMENT] == str(1024**3)
    alter_configs(spec, {broker: {SEGMENT: None}}, secrets=on_new.secrets)


def test_kraft_version_is_raised_once_and_is_there_afterwards(on_new: Lab) -> None:
    seen = on_kafka4.look(on_new)
    assert seen.level(KRAFT_VERSION) == 0
    preview = preview_change(on_new.spec, seen, KRAFT_VERSION, "1", secrets=on_new.secrets)
    assert preview.may_go, preview.render_text()
    assert change_level(on_new.spec, preview.change, secrets=on_new.secrets, tell=print)
    on_kafka4.shown_everywhere(on_new, 1, feature=KRAFT_VERSION)
    assert not change_level(on_new.spec, preview.change, secrets=on_new.secrets, tell=print)
    seen = on_kafka4.look(on_new)
    assert seen.level(KRAFT_VERSION) == 1
    again = preview_change(on_new.spec, seen, KRAFT_VERSION, "1", secrets=on_new.secrets)
    assert again.change.direction is Direction.NONE


def test_kraft_version_1_keeps_no_controller_from_the_software_before(on_new: Lab) -> None:
    """3.9 supports it, and reads the control records that 4.x wrote."""
    victim = next(i for i in on_new.spec.controller_ids if i != on_kafka4.leader(on_new))
    on_kafka4.switch(on_new, victim, on_new.spec.kafka.home)
    on_kafka4.answers(
        on_new,
        victim,
        lambda node: node.supported[METADATA_VERSION].highest == 21 and node.finalized.get(KRAFT_VERSION) == 1,
        within=60,
    )
