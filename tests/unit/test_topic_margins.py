"""How many replicas may be down, and what is being moved, by the metadata log."""

from __future__ import annotations

from metadata_encoding import ABORT, BEGIN, TOPIC_A, TOPIC_B, batch, change, config, log, partition, record, topic

from kraft_runbook.cluster.observation import DynamicConfigs, Found, MinIsrGroup, TopicMargins, Unread
from kraft_runbook.metadata.log.log_chunks import Chunk, SnapshotId
from kraft_runbook.metadata.log.record_schemas import RecordType
from kraft_runbook.metadata.log.topic_margins import MIN_ISR, SEGMENT, MarginRecords


def margins(*values: bytes) -> TopicMargins:
    state = MarginRecords()
    state.apply(Chunk(log(*values), up_to=10_000))
    return state.seen()


def group(replicas: int, own: int | None, *names: str) -> MinIsrGroup:
    return MinIsrGroup(own, replicas, Found(len(names), names))


A, B = (topic("a"), partition(0)), (topic("b", TOPIC_B), partition(0, TOPIC_B))


def test_topics_are_grouped_by_their_replicas_and_their_own_setting() -> None:
    found = margins(*A, partition(1, replicas=(1, 2)), *B, config(MIN_ISR, "2", "b"))
    assert found.groups == (group(2, None, "a"), group(3, None, "a"), group(3, 2, "b"))
    unset = margins(*A, config(MIN_ISR, "2", "a"), config(MIN_ISR, None, "a"))
    assert unset.groups == (group(3, None, "a"),)


def test_the_brokers_settings_are_kept_by_id_and_the_default_as_in_zookeeper() -> None:
    others = config("other", "9", "1", 4), config(MIN_ISR, "1", "x", 16)
    found = margins(config(MIN_ISR, "2", "", 4), config(MIN_ISR, "3", "1", 4), *others)
    assert found.of_brokers == {"<default>": 2, "1": 3}


def test_a_reassignment_counts_from_its_first_change_to_its_last() -> None:
    begin = change(0, replicas=(1, 2, 3, 4), adding_replicas=(4,), removing_replicas=(1,))
    end = change(0, replicas=(2, 3, 4), adding_replicas=(), removing_replicas=())
    assert [margins(*A, begin, each).moving.count for each in (change(0, leader=2), end)] == [1, 0]
    assert margins(*A, begin).moving.samples == ("a-0",)
    gone = record(RecordType.REMOVE_TOPIC, topic_id=TOPIC_A)
    assert margins(*A, begin, gone) == TopicMargins((), {}, Found(), dynamic=DynamicConfigs())


def test_a_topic_with_segments_that_kafka_4_does_not_take_is_kept_until_it_is_changed_or_gone() -> None:
    small = config(SEGMENT, "1048575", "a")
    assert margins(*A, small).small_segments == Found(1, ("a",))
    for after in (config(SEGMENT, "1048576", "a"), config(SEGMENT, None, "a")):
        assert margins(*A, small, after).small_segments == Found()
    assert margins(*A, small, record(RecordType.REMOVE_TOPIC, topic_id=TOPIC_A)).small_segments == Found()


def test_a_topic_that_is_created_again_has_nothing_of_what_was_set_for_the_former_one() -> None:
    """No record takes the former settings away: the topic's end does (``ConfigurationsDelta``)."""
    former = (
        *A,
        config(SEGMENT, "14", "a"),
        config(MIN_ISR, "3", "a"),
        record(RecordType.REMOVE_TOPIC, topic_id=TOPIC_A),
    )
    found = margins(*former, topic("a", TOPIC_B), partition(0, TOPIC_B))
    assert found == margins(topic("a", TOPIC_B), partition(0, TOPIC_B))


def test_what_was_aborted_or_stands_before_a_snapshot_does_not_count() -> None:
    assert margins(BEGIN, topic("a"), partition(0), ABORT).groups == ()
    state = MarginRecords()
    state.apply(Chunk(log(topic("a"), partition(0)), up_to=10))
    state.apply(Chunk(batch(0, topic("b", TOPIC_B), partition(0, TOPIC_B, replicas=(1,))), snapshot=SnapshotId(90, 1)))
    assert state.seen().groups == (group(1, None, "b"),)


def dynamic(*values: bytes) -> DynamicConfigs:
    found = margins(*values).dynamic
    assert isinstance(found, DynamicConfigs) and "Hunter2" not in str(found)
    return found


def test_keys_of_topics_that_kafka_4_does_not_know_are_kept_until_they_are_deleted_or_the_topic_is_gone() -> None:
    old = config("message.format.version", "2.8-IV1", "a")
    other = config(SEGMENT, "104857600", "a")
    assert dynamic(*A, old, other).topics == {"message.format.version": Found(1, ("a",))}
    for after in (config("message.format.version", None, "a"), record(RecordType.REMOVE_TOPIC, topic_id=TOPIC_A)):
        assert dynamic(*A, old, after).topics == {}
    both = (*A, *B, old, config("message.format.version", "3.0-IV1", "b"))
    assert dynamic(*both, config("message.downconversion.enable", "true", "b")).topics == {
        "message.downconversion.enable": Found(1, ("b",)),
        "message.format.version": Found(2, ("a", "b")),
    }


def test_of_brokers_what_another_kafka_may_not_take_is_kept_and_of_logins_the_classes_alone() -> None:
    login = "org.example.Login required password=Hunter2;"
    found = dynamic(
        config("log.segment.bytes", "500000", "", 4),
        config("log.segment.bytes", "1", "2", 4),
        config("log.segment.bytes", None, "2", 4),
        config("log.retention.ms", "1", "2", 4),
        config("delegation.token.master.key", "Hunter2", "2", 4),
        config("listener.name.b.plain.sasl.jaas.config", login, "1", 4),
        config("listener.name.c.sasl.jaas.config", "Hunter2", "1", 4),
        config("metric.reporters", "org.example.A, org.example.B", "", 4),
        config("ssl.engine.factory.class", "Hunter2!", "2", 4),
        config("listener.name.b.ssl.cipher.suites", "TLS_A,", "2", 4),
        config("metric.reporters", "Hunter2!", "2", 4),
        config("principal.builder.class", "org.example.P", "2", 4),
        config("principal.builder.class", None, "2", 4),
    )
    assert found.brokers == {
        "<default>": {"log.segment.bytes": "500000", "metric.reporters": "org.example.A, org.example.B"},
        "2": {
            "delegation.token.master.key": "<set>",
            "listener.name.b.ssl.cipher.suites": "TLS_A,",
            "metric.reporters": "<set>",
        },
    }
    unread = found.classes["1"].pop("listener.name.c.sasl.jaas.config")  # type: ignore[attr-defined]
    assert isinstance(unread, Unread) and "required, optional" in unread.reason
    assert isinstance(found.classes["2"].pop("metric.reporters"), Unread)  # type: ignore[attr-defined]
    assert isinstance(found.classes["2"].pop("ssl.engine.factory.class"), Unread)  # type: ignore[attr-defined]
    assert found.classes == {
        "1": {"listener.name.b.plain.sasl.jaas.config": ("org.example.Login",)},
        "2": {},
        "<default>": {"metric.reporters": ("org.example.A", "org.example.B")},
    }
