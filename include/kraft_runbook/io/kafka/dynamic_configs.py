"""Dynamic configuration of topics and brokers: read, set and deleted key by key (IncrementalAlterConfigs, KIP-339).

librdkafka does not serve here: a dynamic default of all brokers is the broker entity with the empty name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from kraft_runbook.cluster.config_changes import LONGEST_TEXT, Append, ConfigChange, Subtract
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.io.kafka.connection import KafkaConnection, connect_to
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.runbook.telling import Tell, nobody

RESOURCES_A_REQUEST = 500
"""Topics in one request: a broker answers for all of them before it reads anything else from the connection."""
NOT_ALLOWED, UNKNOWN_TOPIC = (29, 31), 3
"""Of a topic, and of the cluster."""
UNKNOWN_SERVER_ERROR = -1
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
"""``AlterConfigOp.OpType``."""


class NotDescribed(Unreachable):
    """A broker answers, and can't show what it was asked for. So it is where a value has more than ``LONGEST_TEXT``
    bytes: then it shows nothing of all that was asked for with it.
    """


class EntityKind(IntEnum):
    """``org.apache.kafka.common.config.ConfigResource.Type``."""

    TOPIC = 2
    BROKER = 4


@dataclass(frozen=True, slots=True)
class Entity:
    """Whom a configuration is of. A broker with the empty name stands for all brokers: their dynamic default."""

    kind: EntityKind
    name: str

    def __str__(self) -> str:
        if self.kind is EntityKind.TOPIC:
            return f"topic {self.name}"
        return f"broker {self.name}" if self.name else "the brokers' default"


ALL_BROKERS = Entity(EntityKind.BROKER, "")
OWN_SOURCES: Mapping[EntityKind, int] = {EntityKind.TOPIC: 1, EntityKind.BROKER: 2}
DEFAULT_BROKER_SOURCE = 3
"""``DescribeConfigsResponse.ConfigSource``: a topic's own value, a broker's own dynamic one, the brokers' dynamic
default.
"""


@dataclass(frozen=True, slots=True)
class Found:
    """Values of one entity. ``own``: those set on it; ``effective``: those in force, from wherever they come."""

    own: Mapping[str, str]
    effective: Mapping[str, str]


def read_configs(
    spec: ClusterSpec,
    entities: Collection[Entity],
    keys: Sequence[str],
    *,
    secrets: Secrets,
    timeout: float = 30.0,
    tell: Tell = nobody,
    connect: Callable[..., KafkaConnection] = connect_to,
) -> dict[Entity, Found]:
    """These keys of these entities; a topic that does not exist is absent. What is of a named broker is asked of that
    broker, which must run; the rest of whichever answers first. ``tell``: hears how many were asked for.

    Raises Unreachable (NotDescribed where a broker answers so); Refused where this tool's identity may not describe
    configurations.
    """
    found: dict[Entity, Found] = {}
    done = 0
    for broker_id, asked in _by_who_answers(entities):
        with _connection(spec, broker_id, secrets, timeout, connect) as connection:
            for part in _batches(asked):
                tell("configurations", done, len(entities))
                found |= _read(connection, part, keys)
                done += len(part)
    return found


def alter_configs(
    spec: ClusterSpec,
    changes: Mapping[Entity, Mapping[str, ConfigChange]],
    *,
    secrets: Secrets,
    connect: Callable[..., KafkaConnection] = connect_to,
) -> tuple[Entity, ...]:
    """Set these keys, delete those whose value is None, append to lists or subtract from them; no other key is touched.
    Returns the topics that do not exist (any more), which is no error.

    What is set can be read some 1.5 s later, not at once (measured on 3.9.2). Raises Unreachable; Refused where none
    of it is allowed; StepFailed, which names what was refused, where the rest is done.
    """
    gone: list[Entity] = []
    denied: list[Entity] = []
    refused: list[str] = []
    wanted = [entity for entity, values in changes.items() if values]
    for broker_id, asked in _by_who_answers(wanted):
        with _connection(spec, broker_id, secrets, 30.0, connect) as connection:
            for part in _batches(asked):
                for entity, code, text in _alter(connection, {each: changes[each] for each in part}):
                    if code == UNKNOWN_TOPIC:
                        gone.append(entity)
                    elif code in NOT_ALLOWED:
                        denied.append(entity)
                    elif code:
                        refused.append(f"{entity}: error {code} {text}".rstrip())
    if denied and len(denied) == len(wanted):
        raise _not_allowed("changing", denied[0], "AlterConfigs")
    refused += [f"{each}: {_not_allowed('changing', each, 'AlterConfigs').way_out}" for each in denied]
    if refused:
        raise StepFailed(
            f"{len(refused)} configurations could not be changed: {some(refused, between='; ')}",
            way_out="correct what the text says, then do this step again: it leaves alone whatever is already so",
        )
    return tuple(gone)


def _by_who_answers(entities: Iterable[Entity]) -> Iterator[tuple[int | None, list[Entity]]]:
    anyone: list[Entity] = []
    for entity in entities:
        if entity.kind is EntityKind.BROKER and entity.name:
            yield int(entity.name), [entity]
        else:
            anyone.append(entity)
    if anyone:
        yield None, anyone


def _batches(entities: Sequence[Entity]) -> Iterator[Sequence[Entity]]:
    for at in range(0, len(entities), RESOURCES_A_REQUEST):
        yield entities[at : at + RESOURCES_A_REQUEST]


def _connection(
    spec: ClusterSpec,
    broker_id: int | None,
    secrets: Secrets,
    timeout: float,
    connect: Callable[..., KafkaConnection],
) -> KafkaConnection:
    """A connection to that broker, or to the first that answers. Raises Unreachable."""
    reasons = []
    for broker in spec.brokers:
        if broker_id not in (None, broker.id):
            continue
        connection = connect(spec, broker, secrets=secrets, timeout=timeout)
        try:
            connection.connect()
            return connection
        except Unreachable as error:
            connection.close()
            reasons.append(error.problem)
    raise Unreachable(
        "; ".join(reasons) or f"broker {broker_id} is not in the cluster file",
        way_out="start the broker, or correct the cluster file",
    )


def _read(connection: KafkaConnection, entities: Sequence[Entity], keys: Sequence[str]) -> dict[Entity, Found]:
    resource = DescribeConfigsRequest.DescribeConfigsResource
    answer = connection.send(
        DescribeConfigsRequest(
            version=3,
            resources=[
                resource(resource_type=int(e.kind), resource_name=e.name, configuration_keys=list(keys))
                for e in entities
            ],
            include_synonyms=True,
            include_documentation=False,
        )
    )
    found = {}
    for each in answer.results:
        entity = Entity(EntityKind(each.resource_type), each.resource_name)
        if each.error_code == UNKNOWN_TOPIC:
            continue
        if each.error_code in NOT_ALLOWED:
            raise _not_allowed("reading", entity, "DescribeConfigs")
        if each.error_code == UNKNOWN_SERVER_ERROR:
            raise NotDescribed(
                f"{connection.who} can't show the configuration of {entity}: error {each.error_code}",
                way_out=f"look at the log of {connection.who}; where a value has more than {LONGEST_TEXT:,} bytes,"
                " write the znode of its entity without it, or have a program delete it (IncrementalAlterConfigs)",
            )
        if each.error_code:
            raise connection.unreachable(f"{entity}: error {each.error_code} {each.error_message or ''}".rstrip())
        found[entity] = Found(
            _own(entity, each.configs), {c.name: c.value for c in each.configs if c.value is not None}
        )
    return found


def _own(entity: Entity, configs: Iterable[Any]) -> dict[str, str]:
    wanted = DEFAULT_BROKER_SOURCE if entity == ALL_BROKERS else OWN_SOURCES[entity.kind]
    own = {}
    for config in configs:
        for source, value in [(config.config_source, config.value)] + [(s.source, s.value) for s in config.synonyms]:
            if source == wanted and value is not None:
                own[config.name] = value
                break
    return own


def _alter(
    connection: KafkaConnection, changes: Mapping[Entity, Mapping[str, ConfigChange]]
) -> Iterator[tuple[Entity, int, str]]:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    answer = connection.send(
        IncrementalAlterConfigsRequest(
            version=1,
            validate_only=False,
            resources=[
                resource(
                    resource_type=int(entity.kind),
                    resource_name=entity.name,
                    configs=[
                        resource.AlterableConfig(name=key, config_operation=operation, value=given)
                        for key, (operation, given) in ((key, _operation(value)) for key, value in values.items())
                    ],
                )
                for entity, values in changes.items()
            ],
        )
    )
    for each in answer.responses:
        entity = Entity(EntityKind(each.resource_type), each.resource_name)
        yield entity, int(each.error_code), each.error_message or ""


def _operation(change: ConfigChange) -> tuple[int, str | None]:
    if isinstance(change, Append):
        return APPEND, change.entries
    if isinstance(change, Subtract):
        return SUBTRACT, change.entries
    return (DELETE, None) if change is None else (SET, change)


def _not_allowed(what: str, entity: Entity, operation: str) -> Refused:
    granted = f"--topic {entity.name}" if entity.kind is EntityKind.TOPIC else "--cluster"
    return Refused(
        f"{what} the configuration of {entity} is not allowed to this tool's identity",
        way_out=f"allow it: kafka-acls --add --operation {operation} {granted}",
    )
