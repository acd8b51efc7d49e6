"""What the metadata log holds that the target takes no longer: configurations of topics and dynamic ones of brokers."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.config_tables import (
    LEAST_IN_3_9,
    config_table,
    drops_unknown_keys,
    knows_is_unknown,
    lacks_topic_key,
)
from kraft_runbook.cluster.java_values import java_int, trim
from kraft_runbook.cluster.observation import ClusterObservation, DynamicConfigs
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.check_results import Finding, Severity, failed, sample, settle
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.read_parts import needed
from kraft_runbook.software.checklist import CHECKS, EVERY_BROKER, both, taken_away
from kraft_runbook.software.file_keys import refused_lists
from kraft_runbook.software.stages import Gate

check = CHECKS.check


@check(
    "KRB-UPG-019",
    severity=Severity.BLOCKING,
    gates={Gate.UP},
    needs=Needs.HOSTS,
    fix="delete these keys from each of the topics before the roll (kafka-configs --alter --delete-config)",
)
def no_topic_holds_a_key_that_the_target_does_not_know(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No topic has a configuration set that the target does not know.

    Kafka 4.0, 4.1 and 4.2.0 refuse every later change of such a topic's configuration (INVALID_CONFIG) until the key is
    deleted. Later ones drop the key without a word as they read the metadata log (KAFKA-19851): it is gone after a way
    back too, once a snapshot was taken. A key that the version before does not know either is not told: the roll
    changes nothing of it.
    """
    table = needed(taken_away(spec))
    held = _dynamic(seen).topics
    gone = {key: found for key, found in held.items() if key in table.topics_gone}
    if not gone:
        unsure = ((key, held[key]) for key in sorted(held.keys() & table.unsure))
        told = (f"topics {sample(found.samples, found.count)}: {_unsure(key, spec)}" for key, found in unsure)
        return settle((), told, "none has")
    topic = next(iter(gone.values())).samples[0]
    keys = ",".join(key for key, found in gone.items() if topic in found.samples)
    return failed(
        "; ".join(f"{key} of topics {sample(found.samples, found.count)}" for key, found in gone.items()),
        f"{_of_unknown(both(spec)[-1].version)}. Before the roll, for each topic, such as: {_command(spec)}"
        f" --entity-type topics --entity-name {topic} --delete-config {keys}",
    )


def _of_unknown(version: str) -> str:
    """What that Kafka does with a topic's key that it does not know."""
    refuses = f"{version} refuses every later change of these topics' configurations until the keys are deleted"
    drops = f"{version} drops these keys, and once it took a snapshot they are gone from the version before too"
    known = drops_unknown_keys(version)
    return f"either {drops}, or {refuses}" if known is None else drops if known else refuses


@check(
    "KRB-UPG-029",
    severity=Severity.WARNING,
    gates={Gate.BACK},
    needs=Needs.HOSTS,
    fix="delete these keys from each of the topics before the way back (kafka-configs --alter --delete-config)",
)
def no_topic_holds_a_key_that_the_version_before_does_not_know(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No topic has a configuration set that the target brought and the version before does not know.

    What happens to such a topic there is what KRB-UPG-019 says of the way up; before Kafka 4 changes are refused too.
    """
    before, target = spec.kafka.version, both(spec)[-1].version
    held = _dynamic(seen).topics
    lacking = {key: lacks_topic_key(key, before) for key in held if lacks_topic_key(key, target) is not True}
    wrong = [f"{key} of topics {sample(held[key].samples, held[key].count)}" for key, lacks in lacking.items() if lacks]
    unsure = [f"whether {before} knows {key} is not known" for key, lacks in lacking.items() if lacks is None]
    if not wrong:
        return settle((), unsure, "none has")
    key = next(key for key, lacks in lacking.items() if lacks)
    return failed(
        "; ".join(wrong),
        f"{_of_unknown(before)}. Before the way back, for each, such as: {_command(spec)} --entity-type topics"
        f" --entity-name {held[key].samples[0]} --delete-config {key}",
    )


@check(
    "KRB-UPG-020",
    severity=Severity.BLOCKING,
    gates={Gate.UP},
    needs=Needs.HOSTS,
    fix="correct them, or delete them, before the roll (kafka-configs --alter --entity-type brokers)",
)
def no_dynamic_value_is_one_that_the_target_does_not_take(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No dynamic configuration of a broker, or of all, is below what the target takes, or a list with an empty entry.

    The target reads over such a value with an error in its log, and uses its file's or its default (of ciphers: all);
    another change of the same broker may not take effect either.
    """
    target, now = both(spec)[-1], spec.kafka.version
    table, first = needed(taken_away(spec)), ""
    bounds = {**LEAST_IN_3_9, **needed(config_table(now)).least}
    wrong: list[str] = []
    for whose, key, value in _of_brokers(seen):
        number, least = java_int(trim(value)), table.least.get(key)
        if least is not None and number is not None and number < least:
            before = f"{now} takes {bounds[key]} and more" if key in bounds else f"{now} has no bound"
            wrong.append(f"{_who(whose)}: {key}={number} ({before}, {target.version} takes {least} and more)")
            first = first or f"{_of_entity(spec, whose)} --add-config {key}={least} (or --delete-config)"
    for whose, held in _dynamic(seen).brokers.items():
        for each in refused_lists(held, target.version, table):
            wrong.append(f"{_who(whose)}: {each.problem}")
            first = (
                first or f"{_of_entity(spec, whose)} --delete-config {each.key} (or --add-config without that entry)"
            )
    if not wrong:
        return settle((), (), "none is")
    return failed("; ".join(wrong), f"before the roll, for each, such as: {first}")


@check(
    "KRB-UPG-021",
    severity=Severity.WARNING,
    gates={Gate.UP},
    needs=Needs.HOSTS,
    fix="delete them, or set what takes their place (docs/software.md)",
)
def no_dynamic_key_is_read_over_by_the_target(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No dynamic configuration of a broker, or of all, has a key that the target reads over in silence.

    Kafka then leaves the key out, without a word. A key that the version before reads over too is not told.
    """
    table = needed(taken_away(spec))
    held = [(_who(whose), key) for whose, key, _ in _of_brokers(seen)]
    wrong = [f"{who}: {key}" for who, key in held if table.has_lost(key)]
    return settle(wrong, (f"{who}: {_unsure(key, spec)}" for who, key in held if key in table.unsure), "none has")


def _dynamic(seen: ClusterObservation) -> DynamicConfigs:
    return needed(needed(seen.margins).dynamic)


def _of_brokers(seen: ClusterObservation) -> Iterator[tuple[str, str, str]]:
    for whose, held in _dynamic(seen).brokers.items():
        for key, value in held.items():
            yield whose, key, value


def _unsure(key: str, spec: ClusterSpec) -> str:
    return knows_is_unknown(key, both(spec)[-1].version)


def _who(whose: str) -> str:
    return "all brokers (their dynamic default)" if whose == EVERY_BROKER else f"broker {whose}"


def _of_entity(spec: ClusterSpec, whose: str) -> str:
    entity = "--entity-default" if whose == EVERY_BROKER else f"--entity-name {whose}"
    return f"{_command(spec)} --entity-type brokers {entity}"


def _command(spec: ClusterSpec) -> str:
    return f"kafka-configs.sh --bootstrap-server {spec.broker_address(spec.brokers[0])} --alter"
