"""What each release of Kafka 4 no longer knows and takes of what 3.9 does: keys that went, numbers whose least value
rose, lists that may have no empty entry, and defaults that changed. And what a release does not take yet that a later
one does. For the files of brokers and controllers, for their dynamic configurations, and for topics.

Made by ``tests/unit/PrintConfigBounds.java`` from the jars of 3.9.2, 4.0.0 to 4.0.2, 4.1.0 to 4.1.2, 4.2.0 to 4.2.2,
4.3.0, 4.3.1 and 4.4.0: all releases of one minor version said the same, but for one key of 4.2.2 (``_NOT_YET``). Tests
ask those that the lab has. A minor version that is not here is unknown; it is never judged by another's table. A later
release of one that is here, and Confluent's, is judged by that one's table, but for keys that ``_NOT_YET`` names there:
whether it has them is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kraft_runbook.cluster.kafka_version import KafkaVersion, release_of
from kraft_runbook.cluster.unread import Unread

MEBIBYTE = 1024 * 1024
LEAST_IN_3_9: Mapping[str, int] = {
    "log.segment.bytes": 14,
    "metadata.log.segment.bytes": 12,
    "remote.log.manager.copier.thread.pool.size": -1,
    "remote.log.manager.expiration.thread.pool.size": -1,
    "segment.bytes": 14,
}
"""Where it had a bound. ``segment.bytes`` is a topic's."""
DEFAULTS_OF_3_9: Mapping[str, str] = {
    "group.consumer.migration.policy": "disabled",
    "group.coordinator.append.linger.ms": "10",
    "group.coordinator.new.enable": "false",
    "group.coordinator.rebalance.protocols": "classic",
    "group.coordinator.threads": "1",
    "log.message.timestamp.after.max.ms": "9223372036854775807",
    "num.recovery.threads.per.data.dir": "1",
    "remote.log.manager.thread.pool.size": "10",
}
"""Of brokers, where a later release has another. Left out: keys without a default there (process.roles, node.id,
controller.listener.names), share groups, which begin with 4.0, and those that say the same in other words
(``SAME_IN_OTHER_WORDS``).
"""
SAME_IN_OTHER_WORDS = frozenset(
    {
        "group.consumer.assignors",
        "metric.reporters",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
        "sasl.oauthbearer.expected.audience",
    }
)
"""uniform and range are classes' short names; 3.9 adds JmxReporter by itself; -1 is the 10 threads of the pool that
copied and expired in 3.9; no audience is none in the list.
"""
GONE_FAMILIES = ("zookeeper.", "password.encoder.")
"""Every key of a file that begins so is gone too."""


@dataclass(frozen=True, slots=True)
class ConfigTable:
    """One release against 3.9, and of keys that came with Kafka 4 against the release that brought them. ``gone``,
    ``least``, ``greatest``: of brokers and controllers; ``topics_gone``, ``topics_least``: of topics. ``least``,
    ``greatest``: what it takes, where less or more was taken before, or is later. ``words``: of lists, those that it
    refuses and a later release takes. ``entries``: lists of brokers and controllers that may have no empty entry, such
    as a trailing comma leaves; ``filled``: those that may not be empty either. ``defaults``: of brokers, where they are
    others than in 3.9 (``DEFAULTS_OF_3_9``), or change after 4.0. ``families``: keys that begin so are gone.
    ``unsure``: keys of brokers, controllers and topics of which nobody knows whether the release has them.
    """

    gone: frozenset[str] = frozenset()
    least: Mapping[str, int] = field(default_factory=dict)
    topics_gone: frozenset[str] = frozenset()
    topics_least: Mapping[str, int] = field(default_factory=dict)
    entries: frozenset[str] = frozenset()
    filled: frozenset[str] = frozenset()
    defaults: Mapping[str, str] = field(default_factory=dict)
    greatest: Mapping[str, int] = field(default_factory=dict)
    families: tuple[str, ...] = ()
    words: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unsure: frozenset[str] = frozenset()

    def has_lost(self, key: str) -> bool:
        """Whether the release reads over this key of a broker or controller."""
        return key in self.gone or key.startswith(self.families)

    def beyond(self, before: ConfigTable) -> ConfigTable:
        """What the way up to this release from that one takes away: not what the former lacks already, and so no words.
        Defaults are those of this release.
        """

        def news(ours: Mapping[str, int], theirs: Mapping[str, int]) -> Mapping[str, int]:
            return {key: bound for key, bound in ours.items() if theirs.get(key) != bound}

        return ConfigTable(
            self.gone - before.gone,
            news(self.least, before.least),
            self.topics_gone - before.topics_gone,
            news(self.topics_least, before.topics_least),
            self.entries - before.entries,
            self.filled - before.filled,
            self.defaults,
            news(self.greatest, before.greatest),
            () if before.families else self.families,
            unsure=self.unsure - before.gone,
        )


_STEPS: Mapping[str, ConfigTable] = {
    "4.0": ConfigTable(
        frozenset(
            {
                "alter.config.policy.kraft.compatibility.enable",
                "auto.include.jmx.reporter",
                "broker.id.generation.enable",
                "control.plane.listener.name",
                "controlled.shutdown.max.retries",
                "controlled.shutdown.retry.backoff.ms",
                "delegation.token.master.key",
                "eligible.leader.replicas.enable",
                "inter.broker.protocol.version",
                "leader.imbalance.per.broker.percentage",
                "log.message.downconversion.enable",
                "log.message.format.version",
                "log.message.timestamp.difference.max.ms",
                "offsets.commit.required.acks",
                "reserved.broker.max.id",
            }
        ),
        {
            "log.segment.bytes": MEBIBYTE,
            "node.id": 0,
            "remote.log.manager.copier.thread.pool.size": 1,
            "remote.log.manager.expiration.thread.pool.size": 1,
        },
        frozenset({"message.downconversion.enable", "message.format.version", "message.timestamp.difference.max.ms"}),
        defaults={
            "group.consumer.migration.policy": "bidirectional",
            "group.coordinator.append.linger.ms": "5",
            "group.coordinator.new.enable": "true",
            "group.coordinator.rebalance.protocols": "classic,consumer",
            "group.coordinator.threads": "4",
            "group.share.partition.max.record.locks": "200",
            "log.message.timestamp.after.max.ms": "3600000",
            "num.recovery.threads.per.data.dir": "2",
            "remote.log.manager.thread.pool.size": "2",
            "share.coordinator.append.linger.ms": "10",
        },
        families=GONE_FAMILIES,
    ),
    "4.1": ConfigTable(
        frozenset(
            {
                "group.coordinator.new.enable",
                "group.share.max.groups",
                "metadata.log.segment.min.bytes",
                "share.fetch.max.fetch.records",
            }
        ),
        {
            **dict.fromkeys(
                (
                    "controller.quorum.append.linger.ms",
                    "controller.quorum.election.backoff.max.ms",
                    "controller.quorum.election.timeout.ms",
                    "controller.quorum.fetch.timeout.ms",
                    "controller.quorum.request.timeout.ms",
                    "controller.quorum.retry.backoff.ms",
                ),
                0,
            ),
            "metadata.log.segment.bytes": 8 * MEBIBYTE,
        },
        topics_least={"segment.bytes": MEBIBYTE},
        defaults={
            "group.coordinator.rebalance.protocols": "classic,consumer,streams",
            "group.share.partition.max.record.locks": "2000",
            "share.coordinator.append.linger.ms": "5",
        },
    ),
    "4.2": ConfigTable(
        least={"num.replica.fetchers": 1},
        entries=frozenset(
            {
                "advertised.listeners",
                "config.providers",
                "controller.listener.names",
                "early.start.listeners",
                "group.consumer.assignors",
                "group.share.assignors",
                "kafka.metrics.reporters",
                "listeners",
                "log.dir",
                "log.dirs",
                "metric.reporters",
                "sasl.enabled.mechanisms",
                "sasl.kerberos.principal.to.local.rules",
                "sasl.oauthbearer.expected.audience",
                "ssl.cipher.suites",
                "ssl.enabled.protocols",
            }
        ),
        filled=frozenset(
            {
                "advertised.listeners",
                "controller.listener.names",
                "group.consumer.assignors",
                "group.coordinator.rebalance.protocols",
                "group.share.assignors",
                "listeners",
                "log.dir",
                "log.dirs",
            }
        ),
        defaults={"group.coordinator.append.linger.ms": "-1", "share.coordinator.append.linger.ms": "-1"},
    ),
    "4.3": ConfigTable(
        frozenset({"group.share.enable"}), greatest={"share.coordinator.snapshot.update.records.per.snapshot": 500}
    ),
    "4.4": ConfigTable(),
}
"""What each minor version took away besides what the ones before it did."""
_PROTOCOLS = "group.coordinator.rebalance.protocols"
_LINGERS = {"group.coordinator.append.linger.ms": 0, "share.coordinator.append.linger.ms": 0}
STRICTER: Mapping[str, ConfigTable] = {
    "3.9": ConfigTable(
        least={"group.coordinator.append.linger.ms": 0, "group.share.max.size": 10},
        greatest={"group.share.record.lock.duration.ms": 60_000},
        words={_PROTOCOLS: frozenset({"streams"}), "group.consumer.assignors": frozenset({"uniform", "range"})},
    ),
    "4.0": ConfigTable(least=_LINGERS, words={_PROTOCOLS: frozenset({"streams"})}),
    "4.1": ConfigTable(least=_LINGERS),
}
"""What each minor version refuses at its start and a later one takes. The short names of assignors are classes to 3.9,
which it does not find.
"""
_NOT_YET: Mapping[str, Mapping[str, int]] = {"4.3": {"max.decompressed.message.bytes": 1}}
"""By minor version, keys of brokers and topics that a release of an earlier one has, and the last release that was
asked and lacks them: this one came with 4.2.2 and with 4.4.0.
"""


def config_table(version: str) -> ConfigTable | Unread:
    """What that Kafka takes no longer, or not yet. Empty before 3.9; Unread for a release that was not asked."""
    minor = KafkaVersion.of(version).minor
    stricter = STRICTER.get(minor, ConfigTable())
    if release_of(version) < (4, 0):
        return stricter
    if minor not in _STEPS:
        known = list(_STEPS)
        return Unread(
            f"which configurations Kafka {version} does not take is not known: {known[0]} to {known[-1]} were asked;"
            " use a release of this tool that knows it, or another target"
        )
    upto = list(_STEPS.values())[: list(_STEPS).index(minor) + 1]
    patch, not_yet = KafkaVersion.of(version).patch, _NOT_YET.get(minor, {})
    lacks = frozenset(key for key, last in not_yet.items() if patch is not None and patch <= last)
    gone = lacks.union(*(each.gone for each in upto))
    return ConfigTable(
        gone,
        {key: least for each in (*upto, stricter) for key, least in each.least.items()},
        lacks.union(*(each.topics_gone for each in upto)),
        {key: least for each in upto for key, least in each.topics_least.items()},
        frozenset().union(*(each.entries for each in upto)),
        frozenset().union(*(each.filled for each in upto)),
        {key: default for each in upto for key, default in each.defaults.items() if key not in gone},
        {key: greatest for each in (*upto, stricter) for key, greatest in each.greatest.items()},
        GONE_FAMILIES,
        stricter.words,
        frozenset(not_yet) - lacks,
    )


_TOPICS_GAINED: Mapping[str, Mapping[str, int]] = {
    "errors.deadletterqueue.group.enable": {"4.4": 0},
    "max.decompressed.message.bytes": {"4.2": 2, "4.4": 0},
    "remote.copy.lag.bytes": {"4.4": 0},
    "remote.copy.lag.ms": {"4.4": 0},
}
"""Keys of topics that came with Kafka 4, by minor version the first release that has them (``TopicConfig`` of each
release, without Kafka's internal ones).
"""
_DROPS_UNKNOWN: Mapping[str, int] = {"4.2": 1, "4.3": 0, "4.4": 0}
"""By minor version the first release that reads over a topic's key that it does not know as it replays the metadata log
(KAFKA-19851: ``SupportedConfigChecker`` is in its kafka-metadata).
"""


def lacks_topic_key(key: str, version: str) -> bool | None:
    """Whether that Kafka does not know a key of topics that came with Kafka 4; None where that is not known."""
    gained, kafka = _TOPICS_GAINED.get(key, {}), KafkaVersion.of(version)
    if not gained:
        return False
    if kafka.minor in gained:
        if kafka.patch is None:
            return None if gained[kafka.minor] else False
        return kafka.patch < gained[kafka.minor]
    if key in _NOT_YET.get(kafka.minor, {}):
        return True if kafka.patch is not None and kafka.patch <= _NOT_YET[kafka.minor][key] else None
    return kafka.release < max(map(release_of, gained))


def drops_unknown_keys(version: str) -> bool | None:
    """Whether that Kafka drops a topic's key that it does not know, and does not refuse changes of such a topic. None
    where that is not known: later releases of 4.0 and 4.1 than 4.0.2 and 4.1.2, and Confluent's of 4.0 to 4.2.
    """
    kafka = KafkaVersion.of(version)
    first = _DROPS_UNKNOWN.get(kafka.minor)
    if first is not None:
        return (None if first else True) if kafka.patch is None else kafka.patch >= first
    if kafka.release > max(map(release_of, _DROPS_UNKNOWN)) or kafka.release < (4, 0):
        return kafka.release >= (4, 0)
    return False if kafka.patch is not None and kafka.patch <= _LAST_ASKED else None


_LAST_ASKED = 2
"""4.0.2 and 4.1.2."""


def knows_is_unknown(key: str, version: str) -> str:
    """What is said of a key that is ``unsure`` in that Kafka's table."""
    minor = KafkaVersion.of(version).minor
    return (
        f"whether {version} knows {key} is not known: {minor}.{_NOT_YET[minor][key]}, the last that was asked, does not"
    )


def topic_keys_judged() -> frozenset[str]:
    """The keys of topics that some release no longer knows, or not yet."""
    return frozenset().union(*(each.topics_gone for each in _STEPS.values()), *_NOT_YET.values(), _TOPICS_GAINED)


def broker_keys_judged() -> frozenset[str]:
    """The keys of brokers and controllers that some release no longer knows, takes less of, or has another default of;
    and lists that may have no empty entry.
    """
    steps = (
        each.gone | each.least.keys() | each.defaults.keys() | each.entries | each.filled for each in _STEPS.values()
    )
    return frozenset().union(*steps, *_NOT_YET.values())
