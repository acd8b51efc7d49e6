"""Defaults that the roll changes: of which brokers, and what is not told of any."""

from __future__ import annotations

from dataclasses import replace

import pytest
from observations import WHY
from test_upgrade_checks import PLAIN, WELL, cluster, held, host_changed

from kraft_runbook.cluster.spec_parts import Software
from kraft_runbook.software.defaults import changed_defaults, table_of_defaults

AFTER = "log.message.timestamp.after.max.ms"
GROUPS = "group.coordinator.append.linger.ms"
POOL = "remote.log.manager.thread.pool.size"


def test_a_broker_that_does_not_set_the_key_is_named_with_what_changes() -> None:
    set_by_2 = host_changed(2, config={"process.roles": "broker", AFTER: "5"})(cluster())
    found = {each.key: each for each in changed_defaults(set_by_2, PLAIN).found}
    assert (found[AFTER].before, found[AFTER].after, found[AFTER].brokers) == ("9223372036854775807", "3600000", (1, 3))
    shown = table_of_defaults(changed_defaults(set_by_2, PLAIN), "4.1.1")
    assert shown is not None and "### Defaults that change with Kafka 4.1.1" in shown
    assert "a record whose timestamp lies further ahead is refused" in shown and "| 3600000 | 1, 3 |" in shown


def test_what_is_set_dynamically_holds_as_well() -> None:
    of_one = held(brokers={"2": {AFTER: "5"}})(cluster())
    of_all = held(brokers={"<default>": {AFTER: "5"}})(cluster())
    assert {each.key: each.brokers for each in changed_defaults(of_one, PLAIN).found}[AFTER] == (1, 3)
    assert AFTER not in {each.key for each in changed_defaults(of_all, PLAIN).found}


def test_threads_of_remote_storage_matter_where_it_is_on() -> None:
    assert POOL not in {each.key for each in changed_defaults(cluster(), PLAIN).found}
    on = host_changed(3, config={"process.roles": "broker", "remote.log.storage.system.enable": "true"})(cluster())
    (found,) = (each for each in changed_defaults(on, PLAIN).found if each.key == POOL)
    assert (found.before, found.after, found.brokers) == ("10", "2", (3,))


def test_what_was_not_read_is_said() -> None:
    found = changed_defaults(replace(host_changed(1, config=WHY)(cluster()), margins=WHY), PLAIN)
    assert found.unread == (f"dynamic configurations: {WHY.reason}", f"broker 1: {WHY.reason}")
    assert all(each.brokers == (2, 3) for each in found.found)
    assert "Not read: dynamic configurations" in (table_of_defaults(found, "4.1.1") or "")


@pytest.mark.parametrize(
    ("start", "target", "changes"),
    [
        (
            "4.0.0",
            "4.1.1",
            {
                "group.coordinator.rebalance.protocols": ("classic,consumer", "classic,consumer,streams"),
                "group.share.partition.max.record.locks": ("200", "2000"),
                "share.coordinator.append.linger.ms": ("10", "5"),
            },
        ),
        ("4.1.1", "4.2.2", {key: ("5", "-1") for key in (GROUPS, "share.coordinator.append.linger.ms")}),
        ("4.3.0", "4.4.0", {}),
        ("8.1.0-ccs", "8.2.0-ccs", {key: ("5", "-1") for key in (GROUPS, "share.coordinator.append.linger.ms")}),
    ],
)
def test_a_roll_within_kafka_4_is_told_what_changes_there(
    start: str, target: str, changes: dict[str, tuple[str, str]]
) -> None:
    kafka = PLAIN.kafka.model_copy(update={"version": start, "upgrade_to": Software(version=target, home="/k")})
    found = changed_defaults(replace(cluster(), margins=WELL), PLAIN.model_copy(update={"kafka": kafka}))
    assert {each.key: (each.before, each.after) for each in found.found} == changes
    assert (table_of_defaults(found, target) is None) == (not changes) and found.unread == ()


def test_what_came_with_kafka_4_had_no_default_before() -> None:
    told = {each.key for each in changed_defaults(cluster(), PLAIN).found}
    assert AFTER in told and not {key for key in told if "share" in key}
