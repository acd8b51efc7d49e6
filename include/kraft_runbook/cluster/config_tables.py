"""What each release of Kafka 4 no longer knows and takes of what 3.9 does: keys that went, and numbers whose least
value rose. For the files of brokers and controllers, for their dynamic configurations, and for topics.

Made by ``tests/unit/PrintConfigBounds.java`` from the jars of 3.9.2, 4.0.0 to 4.0.2, 4.1.0 to 4.1.2, 4.2.0 to 4.2.2,
4.3.0, 4.3.1 and 4.4.0: all releases of one minor version said the same. A test asks those that the lab has. A target
that is not here is unknown; it is never judged by another's table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
GONE_FAMILIES = ("zookeeper.", "password.encoder.")
"""Every key of a file that begins so is gone too."""


@dataclass(frozen=True, slots=True)
class ConfigTable:
    """One release against 3.9. ``gone``, ``least``: of brokers and controllers; ``topics_gone``, ``topics_least``: of
    topics. ``least``: the least that it takes, where 3.9 took less.
    """

    gone: frozenset[str] = frozenset()
    least: Mapping[str, int] = field(default_factory=dict)
    topics_gone: frozenset[str] = frozenset()
    topics_least: Mapping[str, int] = field(default_factory=dict)

    def has_lost(self, key: str) -> bool:
        """Whether the release reads over this key of a broker or controller."""
        return key in self.gone or key.startswith(GONE_FAMILIES)


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
    ),
    "4.1": ConfigTable(
        frozenset({"group.coordinator.new.enable", "group.share.max.groups", "metadata.log.segment.min.bytes"}),
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
    ),
    "4.2": ConfigTable(least={"num.replica.fetchers": 1}),
    "4.3": ConfigTable(frozenset({"group.share.enable"})),
    "4.4": ConfigTable(),
}
"""What each minor version took away besides what the ones before it did."""


def config_table(version: str) -> ConfigTable | Unread:
    """What that Kafka takes no longer. Empty before 4.0; Unread for a release that was not asked."""
    if int(version.split(".")[0]) < 4:
        return ConfigTable()
    minor = ".".join(version.split(".")[:2])
    if minor not in _STEPS:
        known = list(_STEPS)
        return Unread(
            f"which configurations Kafka {version} does not take is not known: {known[0]} to {known[-1]} were asked;"
            " use a release of this tool that knows it, or another target"
        )
    upto = list(_STEPS.values())[: list(_STEPS).index(minor) + 1]
    return ConfigTable(
        frozenset().union(*(each.gone for each in upto)),
        {key: least for each in upto for key, least in each.least.items()},
        frozenset().union(*(each.topics_gone for each in upto)),
        {key: least for each in upto for key, least in each.topics_least.items()},
    )


def topic_keys_gone() -> frozenset[str]:
    """The keys of topics that some release no longer knows."""
    return frozenset().union(*(each.topics_gone for each in _STEPS.values()))


def broker_keys_judged() -> frozenset[str]:
    """The keys of brokers and controllers that some release no longer knows, or takes less of."""
    return frozenset().union(*(each.gone | each.least.keys() for each in _STEPS.values()))
