"""Which configs of topics, brokers, users, clients and addresses Kafka 3.9 knows, and may so hold no secret of anybody
else's: what a custom reporter keeps in a broker's dynamic config Kafka stores as it is.
"""

from __future__ import annotations

import re

from kraft_runbook.metadata.znodes.topic_config_values import is_known as is_topic_config

QUOTAS = frozenset(
    {
        "consumer_byte_rate",
        "connection_creation_rate",
        "controller_mutation_rate",
        "producer_byte_rate",
        "request_percentage",
    }
)

_BROKERS = frozenset(
    """
    advertised.listeners background.threads compression.gzip.level compression.lz4.level compression.type
    compression.zstd.level follower.replication.throttled.rate leader.replication.throttled.rate
    listener.security.protocol.map listeners log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size
    log.cleaner.delete.retention.ms log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size
    log.cleaner.io.max.bytes.per.second log.cleaner.max.compaction.lag.ms log.cleaner.min.cleanable.ratio
    log.cleaner.min.compaction.lag.ms log.cleaner.threads log.cleanup.policy log.flush.interval.messages
    log.flush.interval.ms log.index.interval.bytes log.index.size.max.bytes log.local.retention.bytes
    log.local.retention.ms log.message.downconversion.enable log.message.timestamp.after.max.ms
    log.message.timestamp.before.max.ms log.message.timestamp.difference.max.ms log.message.timestamp.type
    log.preallocate log.retention.bytes log.retention.ms log.roll.jitter.ms log.roll.ms log.segment.bytes
    log.segment.delete.delay.ms max.connection.creation.rate max.connections max.connections.per.ip
    max.connections.per.ip.overrides message.max.bytes metric.reporters min.insync.replicas num.io.threads
    num.network.threads num.recovery.threads.per.data.dir num.replica.fetchers principal.builder.class
    producer.id.expiration.ms remote.fetch.max.wait.ms remote.log.index.file.cache.total.size.bytes
    remote.log.manager.copy.max.bytes.per.second remote.log.manager.fetch.max.bytes.per.second
    replica.alter.log.dirs.io.max.bytes.per.second sasl.enabled.mechanisms sasl.jaas.config sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.mechanism.inter.broker.protocol ssl.cipher.suites ssl.client.auth ssl.enabled.protocols
    ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm
    ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type
    ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates
    ssl.truststore.location ssl.truststore.password ssl.truststore.type transaction.partition.verification.enable
    unclean.leader.election.enable
    """.split()  # noqa: SIM905 - one name a line would be a hundred lines
)
"""``DynamicBrokerConfig.AllDynamicConfigs`` of 3.9.2, and the rates of ``DynamicConfig.Broker``."""
_LISTENER = re.compile(r"listener\.name\.[^.]+\.(?:[^.]+\.(?=sasl\.))?")
"""What stands before a config of one listener (``ListenerName.configPrefix``), and of one SASL mechanism there."""


def of_any_listener(name: str) -> str:
    """A broker's config without the listener, and the SASL mechanism there, that it is for alone."""
    prefix = _LISTENER.match(name)
    return name[prefix.end() if prefix else 0 :]


def is_known(kind: str, name: str) -> bool:
    """Whether Kafka 3.9 knows this config. ``kind``: the name below /config: ``topics``, ``brokers``, ``users``,
    ``clients`` or ``ips``.
    """
    if kind == "topics":
        return is_topic_config(name)
    if kind == "brokers":
        return of_any_listener(name) in _BROKERS
    return name in QUOTAS
