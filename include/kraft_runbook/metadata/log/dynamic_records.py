"""What the metadata log says of dynamic configurations that another Kafka may not take: keys of topics that it does not
know, values of brokers, and classes. Values of other keys are not kept, and of login modules only their classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kraft_runbook.cluster.class_keys import CLASS_KEYS, Names, class_key, of_any_listener
from kraft_runbook.cluster.config_tables import broker_keys_judged, topic_keys_judged
from kraft_runbook.cluster.login_modules import is_class, modules_of
from kraft_runbook.cluster.observation import DynamicConfigs, Found, Unread
from kraft_runbook.cluster.sensitive import is_sensitive

TOPIC, BROKER = 2, 4
"""``ConfigResource.Type``."""
EVERY_BROKER = "<default>"
"""The name, here and in ZooKeeper, of what is set for all brokers; in the log that is the empty name."""
SAMPLE = 20
_OF_TOPICS, _OF_BROKERS = topic_keys_judged(), broker_keys_judged()


@dataclass(slots=True)
class DynamicRecords:
    """The state after the records applied so far. ``topics``: by key; ``brokers``, ``classes``: by whose they are."""

    topics: dict[str, set[str]] = field(default_factory=dict)
    brokers: dict[str, dict[str, str]] = field(default_factory=dict)
    classes: dict[str, dict[str, tuple[str, ...] | Unread]] = field(default_factory=dict)

    def apply(self, values: Mapping[str, Any]) -> None:
        """A ConfigRecord."""
        kind, name, key, value = (values[each] for each in ("resource_type", "resource_name", "name", "value"))
        if kind == TOPIC and key in _OF_TOPICS:
            held = self.topics.setdefault(key, set())
            (held.discard if value is None else held.add)(name)
        elif kind == BROKER:
            whose, base = name or EVERY_BROKER, class_key(key)
            named = None if base is None or value is None else _named(base, value)
            if of_any_listener(key) in _OF_BROKERS:
                hidden = is_sensitive(key) or isinstance(named, Unread)
                _put(self.brokers, whose, key, "<set>" if hidden and value is not None else value)
            if base is not None:
                _put(self.classes, whose, key, named)

    def forget(self, topic: str) -> None:
        """A topic is gone; its configuration goes with it, without records (``ConfigurationsDelta``)."""
        for held in self.topics.values():
            held.discard(topic)

    def seen(self, topics: set[str]) -> DynamicConfigs:
        """What is known, as a value. ``topics``: those that there are."""
        by_key = {key: sorted(held & topics) for key, held in sorted(self.topics.items())}
        return DynamicConfigs(
            {key: Found(len(held), tuple(held[:SAMPLE])) for key, held in by_key.items() if held},
            {whose: dict(held) for whose, held in self.brokers.items() if held},
            {whose: dict(held) for whose, held in self.classes.items() if held},
        )


def _put(held: dict[str, dict[str, Any]], whose: str, key: str, value: object) -> None:
    if value is None:
        held.get(whose, {}).pop(key, None)
    else:
        held.setdefault(whose, {})[key] = value


def _named(base: str, value: str) -> tuple[str, ...] | Unread:
    """The classes that a value names. What is none is not shown: it may be a secret in the wrong place."""
    if CLASS_KEYS[base] is Names.LOGIN:
        try:
            return tuple(modules_of(value))
        except ValueError as error:
            return Unread(str(error))
    names = value.split(",") if CLASS_KEYS[base] is Names.CLASSES else [value]
    given = tuple(each.strip() for each in names if each.strip())
    return given if all(map(is_class, given)) else Unread("its value is no name of a class")
