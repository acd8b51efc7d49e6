"""How Kafka 3.9 types each key of a broker's file, and its default. Pure.

From ``KafkaConfig.configDef`` of 3.9.2 (``tests/unit/PrintConfigDefaults.java``; a test compares it). None: it has no
default, or none that may be taken for the key's absence:

- releases of Kafka 4 have another one (``config_tables``): it is kept by setting the key;
- Java decides it (``ssl.protocol`` and its like), or a system property counts where the file does not set the key
  (``zookeeper.ssl.*``, ``KafkaConfig.zkStringConfigOrSystemPropertyWithDefaultValue``);
- it follows from other keys (listeners, node ids, log directories), which ``config_meaning`` knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kraft_runbook.cluster.java_values import java_long, trim
from kraft_runbook.cluster.known_properties import is_known

LISTS: Mapping[str, str | None] = {
    "controller.quorum.bootstrap.servers": "",
    "controller.quorum.voters": "",
    "group.consumer.assignors": None,
    "group.coordinator.rebalance.protocols": None,
    "kafka.metrics.reporters": "",
    "log.cleanup.policy": "delete",
    "metric.reporters": None,
    "process.roles": None,
    "sasl.enabled.mechanisms": "GSSAPI",
    "sasl.kerberos.principal.to.local.rules": "DEFAULT",
    "sasl.oauthbearer.expected.audience": None,
    "ssl.cipher.suites": "",
    "ssl.enabled.protocols": None,
    "zookeeper.ssl.cipher.suites": None,
    "zookeeper.ssl.enabled.protocols": None,
}
BOOLEANS: Mapping[str, str | None] = {
    "alter.config.policy.kraft.compatibility.enable": "false",
    "auto.create.topics.enable": "true",
    "auto.include.jmx.reporter": "true",
    "auto.leader.rebalance.enable": "true",
    "broker.id.generation.enable": "true",
    "controlled.shutdown.enable": "true",
    "delete.topic.enable": "true",
    "eligible.leader.replicas.enable": "false",
    "group.coordinator.new.enable": None,
    "group.share.enable": "false",
    "log.cleaner.enable": "true",
    "log.message.downconversion.enable": "true",
    "log.preallocate": "false",
    "remote.log.storage.system.enable": "false",
    "ssl.allow.dn.changes": "false",
    "ssl.allow.san.changes": "false",
    "transaction.partition.verification.enable": "true",
    "unclean.leader.election.enable": "false",
    "unstable.api.versions.enable": "false",
    "unstable.feature.versions.enable": "false",
    "zookeeper.metadata.migration.enable": "false",
    "zookeeper.set.acl": "false",
    "zookeeper.ssl.client.enable": None,
    "zookeeper.ssl.crl.enable": None,
    "zookeeper.ssl.ocsp.enable": None,
}
NUMBERS: Mapping[str, str | None] = {
    "alter.log.dirs.replication.quota.window.num": "11",
    "alter.log.dirs.replication.quota.window.size.seconds": "1",
    "background.threads": "10",
    "broker.heartbeat.interval.ms": "2000",
    "broker.id": None,
    "broker.session.timeout.ms": "9000",
    "compression.gzip.level": "-1",
    "compression.lz4.level": "9",
    "compression.zstd.level": "3",
    "connection.failed.authentication.delay.ms": "100",
    "connections.max.idle.ms": "600000",
    "connections.max.reauth.ms": "0",
    "controlled.shutdown.max.retries": "3",
    "controlled.shutdown.retry.backoff.ms": "5000",
    "controller.quorum.append.linger.ms": "25",
    "controller.quorum.election.backoff.max.ms": "1000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
    "controller.quorum.request.timeout.ms": "2000",
    "controller.quorum.retry.backoff.ms": "20",
    "controller.quota.window.num": "11",
    "controller.quota.window.size.seconds": "1",
    "controller.socket.timeout.ms": "30000",
    "default.replication.factor": "1",
    "delegation.token.expiry.check.interval.ms": "3600000",
    "delegation.token.expiry.time.ms": "86400000",
    "delegation.token.max.lifetime.ms": "604800000",
    "delete.records.purgatory.purge.interval.requests": "1",
    "fetch.max.bytes": "57671680",
    "fetch.purgatory.purge.interval.requests": "1000",
    "group.consumer.heartbeat.interval.ms": "5000",
    "group.consumer.max.heartbeat.interval.ms": "15000",
    "group.consumer.max.session.timeout.ms": "60000",
    "group.consumer.max.size": "2147483647",
    "group.consumer.min.heartbeat.interval.ms": "5000",
    "group.consumer.min.session.timeout.ms": "45000",
    "group.consumer.session.timeout.ms": "45000",
    "group.coordinator.append.linger.ms": None,
    "group.coordinator.threads": None,
    "group.initial.rebalance.delay.ms": "3000",
    "group.max.session.timeout.ms": "1800000",
    "group.max.size": "2147483647",
    "group.min.session.timeout.ms": "6000",
    "group.share.delivery.count.limit": "5",
    "group.share.heartbeat.interval.ms": "5000",
    "group.share.max.groups": "10",
    "group.share.max.heartbeat.interval.ms": "15000",
    "group.share.max.record.lock.duration.ms": "60000",
    "group.share.max.session.timeout.ms": "60000",
    "group.share.max.size": "200",
    "group.share.min.heartbeat.interval.ms": "5000",
    "group.share.min.record.lock.duration.ms": "15000",
    "group.share.min.session.timeout.ms": "45000",
    "group.share.partition.max.record.locks": None,
    "group.share.record.lock.duration.ms": "30000",
    "group.share.session.timeout.ms": "45000",
    "initial.broker.registration.timeout.ms": "60000",
    "kafka.metrics.polling.interval.secs": "10",
    "leader.imbalance.check.interval.seconds": "300",
    "leader.imbalance.per.broker.percentage": "10",
    "log.cleaner.backoff.ms": "15000",
    "log.cleaner.dedupe.buffer.size": "134217728",
    "log.cleaner.delete.retention.ms": "86400000",
    "log.cleaner.io.buffer.size": "524288",
    "log.cleaner.max.compaction.lag.ms": "9223372036854775807",
    "log.cleaner.min.compaction.lag.ms": "0",
    "log.cleaner.threads": "1",
    "log.dir.failure.timeout.ms": "30000",
    "log.flush.interval.messages": "9223372036854775807",
    "log.flush.interval.ms": None,
    "log.flush.offset.checkpoint.interval.ms": "60000",
    "log.flush.scheduler.interval.ms": "9223372036854775807",
    "log.flush.start.offset.checkpoint.interval.ms": "60000",
    "log.index.interval.bytes": "4096",
    "log.index.size.max.bytes": "10485760",
    "log.initial.task.delay.ms": "30000",
    "log.local.retention.bytes": "-2",
    "log.local.retention.ms": "-2",
    "log.message.timestamp.after.max.ms": None,
    "log.message.timestamp.before.max.ms": "9223372036854775807",
    "log.message.timestamp.difference.max.ms": "9223372036854775807",
    "log.retention.bytes": "-1",
    "log.retention.check.interval.ms": "300000",
    "log.retention.hours": "168",
    "log.retention.minutes": None,
    "log.retention.ms": None,
    "log.roll.hours": "168",
    "log.roll.jitter.hours": "0",
    "log.roll.jitter.ms": None,
    "log.roll.ms": None,
    "log.segment.bytes": "1073741824",
    "log.segment.delete.delay.ms": "60000",
    "max.connection.creation.rate": "2147483647",
    "max.connections": "2147483647",
    "max.connections.per.ip": "2147483647",
    "max.incremental.fetch.session.cache.slots": "1000",
    "max.request.partition.size.limit": "2000",
    "message.max.bytes": "1048588",
    "metadata.log.max.record.bytes.between.snapshots": "20971520",
    "metadata.log.max.snapshot.interval.ms": "3600000",
    "metadata.log.segment.bytes": "1073741824",
    "metadata.log.segment.min.bytes": "8388608",
    "metadata.log.segment.ms": "604800000",
    "metadata.max.idle.interval.ms": "500",
    "metadata.max.retention.bytes": "104857600",
    "metadata.max.retention.ms": "604800000",
    "metrics.num.samples": "2",
    "metrics.sample.window.ms": "30000",
    "min.insync.replicas": "1",
    "node.id": None,
    "num.io.threads": "8",
    "num.network.threads": "3",
    "num.partitions": "1",
    "num.recovery.threads.per.data.dir": None,
    "num.replica.alter.log.dirs.threads": None,
    "num.replica.fetchers": "1",
    "offset.metadata.max.bytes": "4096",
    "offsets.commit.required.acks": "-1",
    "offsets.commit.timeout.ms": "5000",
    "offsets.load.buffer.size": "5242880",
    "offsets.retention.check.interval.ms": "600000",
    "offsets.retention.minutes": "10080",
    "offsets.topic.compression.codec": "0",
    "offsets.topic.num.partitions": "50",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.segment.bytes": "104857600",
    "password.encoder.iterations": "4096",
    "password.encoder.key.length": "128",
    "producer.id.expiration.check.interval.ms": "600000",
    "producer.id.expiration.ms": "86400000",
    "producer.purgatory.purge.interval.requests": "1000",
    "queued.max.request.bytes": "-1",
    "queued.max.requests": "500",
    "quota.window.num": "11",
    "quota.window.size.seconds": "1",
    "remote.fetch.max.wait.ms": "500",
    "remote.log.index.file.cache.total.size.bytes": "1073741824",
    "remote.log.manager.copier.thread.pool.size": None,
    "remote.log.manager.copy.max.bytes.per.second": "9223372036854775807",
    "remote.log.manager.copy.quota.window.num": "11",
    "remote.log.manager.copy.quota.window.size.seconds": "1",
    "remote.log.manager.expiration.thread.pool.size": None,
    "remote.log.manager.fetch.max.bytes.per.second": "9223372036854775807",
    "remote.log.manager.fetch.quota.window.num": "11",
    "remote.log.manager.fetch.quota.window.size.seconds": "1",
    "remote.log.manager.task.interval.ms": "30000",
    "remote.log.manager.task.retry.backoff.max.ms": "30000",
    "remote.log.manager.task.retry.backoff.ms": "500",
    "remote.log.manager.thread.pool.size": None,
    "remote.log.metadata.custom.metadata.max.bytes": "128",
    "remote.log.reader.max.pending.tasks": "100",
    "remote.log.reader.threads": "10",
    "replica.fetch.backoff.ms": "1000",
    "replica.fetch.max.bytes": "1048576",
    "replica.fetch.min.bytes": "1",
    "replica.fetch.response.max.bytes": "10485760",
    "replica.fetch.wait.max.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "5000",
    "replica.lag.time.max.ms": "30000",
    "replica.socket.receive.buffer.bytes": "65536",
    "replica.socket.timeout.ms": "30000",
    "replication.quota.window.num": "11",
    "replication.quota.window.size.seconds": "1",
    "request.timeout.ms": "30000",
    "reserved.broker.max.id": "1000",
    "sasl.kerberos.min.time.before.relogin": "60000",
    "sasl.login.connect.timeout.ms": None,
    "sasl.login.read.timeout.ms": None,
    "sasl.login.refresh.buffer.seconds": "300",
    "sasl.login.refresh.min.period.seconds": "60",
    "sasl.login.retry.backoff.max.ms": "10000",
    "sasl.login.retry.backoff.ms": "100",
    "sasl.oauthbearer.clock.skew.seconds": "30",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": "3600000",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "10000",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "100",
    "sasl.server.max.receive.size": "524288",
    "server.max.startup.time.ms": "9223372036854775807",
    "socket.connection.setup.timeout.max.ms": "30000",
    "socket.connection.setup.timeout.ms": "10000",
    "socket.listen.backlog.size": "50",
    "socket.receive.buffer.bytes": "102400",
    "socket.request.max.bytes": "104857600",
    "socket.send.buffer.bytes": "102400",
    "telemetry.max.bytes": "1048576",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "10000",
    "transaction.max.timeout.ms": "900000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "3600000",
    "transaction.state.log.load.buffer.size": "5242880",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "50",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.segment.bytes": "104857600",
    "transactional.id.expiration.ms": "604800000",
    "unclean.leader.election.interval.ms": "300000",
    "zookeeper.connection.timeout.ms": None,
    "zookeeper.max.in.flight.requests": "10",
    "zookeeper.metadata.migration.min.batch.size": "200",
    "zookeeper.session.timeout.ms": "18000",
}
FRACTIONS: Mapping[str, str | None] = {
    "log.cleaner.io.buffer.load.factor": "0.9",
    "log.cleaner.io.max.bytes.per.second": "1.7976931348623157E308",
    "log.cleaner.min.cleanable.ratio": "0.5",
    "remote.log.manager.task.retry.jitter": "0.2",
    "sasl.kerberos.ticket.renew.jitter": "0.05",
    "sasl.kerberos.ticket.renew.window.factor": "0.8",
    "sasl.login.refresh.window.factor": "0.8",
    "sasl.login.refresh.window.jitter": "0.05",
}
TEXTS: Mapping[str, str | None] = {
    "authorizer.class.name": "",
    "compression.type": "producer",
    "log.message.format.version": "3.0-IV1",
    "log.message.timestamp.type": "CreateTime",
    "max.connections.per.ip.overrides": "",
    "metrics.recording.level": "INFO",
    "password.encoder.cipher.algorithm": "AES/CBC/PKCS5Padding",
    "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    "remote.log.metadata.manager.class.name": "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",  # noqa: E501
    "remote.log.metadata.manager.impl.prefix": "rlmm.config.",
    "remote.log.storage.manager.impl.prefix": "rsm.config.",
    "sasl.kerberos.kinit.cmd": "/usr/bin/kinit",
    "sasl.mechanism.controller.protocol": "GSSAPI",
    "sasl.mechanism.inter.broker.protocol": "GSSAPI",
    "sasl.oauthbearer.scope.claim.name": "scope",
    "sasl.oauthbearer.sub.claim.name": "sub",
    "ssl.client.auth": "none",
    "ssl.endpoint.identification.algorithm": "https",
    "ssl.keystore.type": "JKS",
    "ssl.principal.mapping.rules": "DEFAULT",
    "ssl.truststore.type": "JKS",
}
"""With a default only. Text is compared as it stands, but for blanks around it."""
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
"""``ConfigDef.COMMA_WITH_WHITESPACE``."""
_FRACTION = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
OF_LISTENER = re.compile(r"listener\.name\.[^.]+\.")
"""What stands before a listener's own config."""
_REFERENCE = "${"
"""A value that a config provider resolves before it is parsed."""


def as_parsed(key: str, value: str) -> str:
    """The value as ``ConfigDef.parseType`` reads it: blanks, also around the commas of a list, capitals of a boolean, a
    number's sign and zeros. What Kafka would refuse stays as it is. So does a key that Kafka does not define: plugins
    are given the text of the file, with its blanks (``AbstractConfig.originals``).
    """
    if not _is_parsed(key):
        return value
    text = trim(value)
    if _REFERENCE in text:
        return text
    if OF_LISTENER.sub("", key, count=1) in LISTS:
        return ",".join(_COMMA.split(text))
    if key in BOOLEANS:
        return text.lower() if text.lower() in ("true", "false") else text
    if key in NUMBERS:
        number = java_long(text)
        return text if number is None else str(number)
    return repr(float(text)) if key in FRACTIONS and _FRACTION.fullmatch(text) else text


def _is_parsed(key: str) -> bool:
    """Whether Kafka defines the key, or for a listener what stands after its name or after its mechanism's
    (``AbstractConfig.valuesWithPrefixOverride``).
    """
    own = OF_LISTENER.match(key)
    if not own:
        return is_known(key)
    base = key[own.end() :]
    return is_known(base) or is_known(base.partition(".")[2])


def is_default(key: str, value: str) -> bool:
    """Whether a file that sets the key to this says no more than one without it."""
    for table in (LISTS, BOOLEANS, NUMBERS, FRACTIONS, TEXTS):
        if (default := table.get(key)) is not None:
            return as_parsed(key, value) == as_parsed(key, default)
    return False
