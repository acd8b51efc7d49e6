"""The jars in an installation of Kafka that Kafka itself does not bring: somebody put them there."""

from __future__ import annotations

import os
import re

from ansible.module_utils.named_classes import jars_of

_VERSION = re.compile(r"(_2\.1[123])?(-\d[^/]*)?\.jar$")
_FAMILIES = ("jetty-", "jersey-", "jackson-", "netty-", "hk2-", "jakarta.", "javax.", "log4j", "scala-", "slf4j-")
# fmt: off
_BROUGHT = frozenset(
    {
        "HdrHistogram", "activation", "aopalliance-repackaged", "argparse4j", "audience-annotations", "caffeine",
        "checker-qual", "classgraph", "commons-beanutils", "commons-cli", "commons-collections",
        "commons-digester", "commons-io", "commons-lang3", "commons-logging", "commons-validator", "connect",
        "connect-api", "connect-basic-auth-extension", "connect-file", "connect-json", "connect-mirror",
        "connect-mirror-client", "connect-runtime", "connect-transforms", "error_prone_annotations", "hash4j",
        "javassist", "jaxb-api", "jline", "jopt-simple", "jose4j", "jspecify", "jsr305", "kafka", "kafka-clients",
        "kafka-coordinator-common", "kafka-group-coordinator", "kafka-group-coordinator-api",
        "kafka-log4j-appender", "kafka-metadata", "kafka-raft", "kafka-server", "kafka-server-common",
        "kafka-share-coordinator", "kafka-shell", "kafka-storage", "kafka-storage-api", "kafka-streams",
        "kafka-streams-examples", "kafka-streams-scala", "kafka-streams-test-utils", "kafka-tools",
        "kafka-tools-api", "kafka-transaction-coordinator", "lz4-java", "maven-artifact", "metrics-core",
        "opentelemetry-proto", "osgi-resource-locator", "paranamer", "pcollections", "plexus-utils",
        "protobuf-java", "re2j", "reflections", "reload4j", "rocksdbjni", "snakeyaml", "snappy-java",
        "swagger-annotations", "trogdor", "zookeeper", "zookeeper-jute", "zstd-jni",
    }
)
"""What Kafka's releases from 3.0 on have in ``libs``."""
# fmt: on


def further_jars(home: str) -> list:
    """Their file names. Raises OSError."""
    names = [os.path.basename(each) for each in jars_of(home)]
    return [each for each in names if not _is_of_kafka(artifact(each))]


def artifact(name: str) -> str:
    """A jar's name without its version."""
    return _VERSION.sub("", name)


def _is_of_kafka(name: str) -> bool:
    return name in _BROUGHT or name.startswith(_FAMILIES)
