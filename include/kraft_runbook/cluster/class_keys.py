"""Which properties of a broker or controller name classes: by their names, as Kafka's own ``ConfigDef`` types them,
never by how a value looks. A test asks the classes of the versions that the lab has.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Names(StrEnum):
    """What a property's value is. ``CLASSES``: a list with commas between. ``LOGIN``: login modules and their options,
    which hold secrets (JAAS).
    """

    CLASS = "class"
    CLASSES = "classes"
    LOGIN = "login"


JAAS_CONFIG = "sasl.jaas.config"
TYPED_CLASS = frozenset(
    {
        "alter.config.policy.class.name",
        "client.quota.callback.class",
        "create.topic.policy.class.name",
        "group.streams.topology.description.plugin.class",
        "principal.builder.class",
        "sasl.client.callback.handler.class",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.server.callback.handler.class",
        "ssl.engine.factory.class",
    }
)
"""Every key of ``Type.CLASS``, up to Kafka 4.4."""
TYPED_OTHERWISE: Mapping[str, Names] = {
    "authorizer.class.name": Names.CLASS,
    "group.share.dlq.manager.class.name": Names.CLASS,
    "group.share.persister.class.name": Names.CLASS,
    "remote.log.metadata.manager.class.name": Names.CLASS,
    "remote.log.storage.manager.class.name": Names.CLASS,
    "replica.selector.class": Names.CLASS,
    "group.consumer.assignors": Names.CLASSES,
    "group.share.assignors": Names.CLASSES,
    "kafka.metrics.reporters": Names.CLASSES,
    "metric.reporters": Names.CLASSES,
    "security.providers": Names.CLASSES,
    JAAS_CONFIG: Names.LOGIN,
}
"""Keys of ``Type.STRING``, ``LIST`` and ``PASSWORD`` whose documentation calls the value a class, or classes."""
CAME_WITH: Mapping[str, tuple[int, int]] = {
    "group.share.assignors": (4, 1),
    "group.share.dlq.manager.class.name": (4, 4),
    "group.share.persister.class.name": (4, 0),
    "group.streams.topology.description.plugin.class": (4, 4),
    "sasl.oauthbearer.jwt.retriever.class": (4, 1),
    "sasl.oauthbearer.jwt.validator.class": (4, 1),
}
"""The release that brought a key, where 3.9 has not got it. An earlier one reads over it, and loads no class by it."""
CLASS_KEYS: Mapping[str, Names] = {**dict.fromkeys(sorted(TYPED_CLASS), Names.CLASS), **TYPED_OTHERWISE}
BUILT_IN: Mapping[str, tuple[str, ...]] = {
    "group.consumer.assignors": ("uniform", "range"),
    "group.share.assignors": ("simple",),
}
"""Words that Kafka 4 takes in the place of a class."""
LISTENER_PREFIX = "listener.name."


def of_any_listener(key: str) -> str:
    """A key without ``listener.name.<listener>.`` before it."""
    return key.split(".", 3)[3] if key.startswith(LISTENER_PREFIX) and key.count(".") > 2 else key


def class_key(key: str) -> str | None:
    """The key of ``CLASS_KEYS`` that a property is, or is for one listener (and mechanism); else None."""
    if key in CLASS_KEYS:
        return key
    if not key.startswith(LISTENER_PREFIX):
        return None
    return next((each for each in CLASS_KEYS if key.endswith(f".{each}")), None)
