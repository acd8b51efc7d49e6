"""The software roll and the levels say of Confluent's versions what they say of Kafka's, but for the number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from feature_looks import kafka4, look
from observations import both, broker, on_host
from test_upgrade_checks import ALL, ASKS, PLAIN, cluster, declares, goes, held, host_changed

from kraft_runbook.cluster.feature_levels import METADATA_VERSION, FeatureObservation, NodeHost
from kraft_runbook.cluster.observation import BrokerMetrics, Found
from kraft_runbook.cluster.old_requests import OldRequests
from kraft_runbook.errors import Refused
from kraft_runbook.levels.change import plan_change
from kraft_runbook.levels.obstacles import obstacles
from kraft_runbook.levels.overview import overview
from kraft_runbook.levels.preview import shuts_out
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.software.defaults import changed_defaults, table_of_defaults
from kraft_runbook.software.explain import explain
from kraft_runbook.software.old_clients import old_clients, table_of_old_clients
from kraft_runbook.software.operation import SOFTWARE
from kraft_runbook.software.stages import Gate

COMMUNITY = {"3.9.2": "7.9.2-ccs", "4.1.1": "8.1.1-ccs"}
SERVER = {"3.9.2": "7.9.5-ce", "4.1.1": "8.1.0-ce"}
BY_PATCH = {"KRB-UPG-023", "KRB-UPG-024", "KRB-UPG-025", "KRB-UPG-027"}
"""Checks of single releases of Kafka: Confluent's last number names none."""
DECLARED = {**ASKS, "log.segment.bytes": "1"}
SPOILT = both(
    on_host(1, java_version="11.0.22"),
    host_changed(2, allowed_urls=()),
    held(topics={"message.format.version": Found(1, ("a",))}, brokers={"1": {"log.segment.bytes": "500000"}}),
    broker(
        2, metrics=BrokerMetrics(0, 0, deprecated_requests=(OldRequests("unknown", "unknown", "Fetch", "2", 1234),))
    ),
)
FAIL = {"KRB-UPG-006", "KRB-UPG-008", "KRB-UPG-019", "KRB-UPG-020", "KRB-UPG-026"}
WRONG = SPOILT(cluster(spec=declares(DECLARED)))


def named(value: Any, names: Mapping[str, str]) -> Any:
    """The same value with these versions in place of those, however deep."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, tuple):
        return tuple(named(each, names) for each in value)
    if isinstance(value, Mapping):
        return {key: named(each, names) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        kept = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        changed = {name: new for name, each in kept.items() if (new := named(each, names)) is not each and new != each}
        return replace(value, **changed) if changed else value
    return value


def in_words(text: str, names: Mapping[str, str]) -> str:
    for ours, theirs in names.items():
        text = text.replace(ours, theirs)
    return text


@pytest.mark.parametrize("names", [COMMUNITY, SERVER])
@pytest.mark.parametrize("gate", [Gate.UP, Gate.BACK])
@pytest.mark.parametrize("seen", [cluster(), WRONG, cluster((101, 103)), cluster(ALL)])
def test_each_check_of_the_roll(names: dict[str, str], gate: Gate, seen: Any) -> None:
    declared = DECLARED if seen is WRONG else {}
    own, theirs, spec = declares(declared), named(seen, names), declares(declared, goes(*names.values()))
    assert SOFTWARE.read(theirs, spec).stage is SOFTWARE.read(seen, own).stage
    stage = SOFTWARE.read(seen, own).stage
    ours = {each.code: each for each in SOFTWARE.checks.run(seen, own, stage, gate=gate).results}
    found = {each.code: each for each in SOFTWARE.checks.run(theirs, spec, stage, gate=gate).results}
    assert found.keys() == ours.keys()
    assert gate != Gate.UP or seen is not WRONG or {code for code, each in found.items() if each.blocks} >= FAIL
    for code in ours.keys() - BY_PATCH:
        assert found[code].verdict is ours[code].verdict, found[code]
        assert found[code].evidence == in_words(ours[code].evidence, names)
    assert all(found[code].verdict is not Verdict.FAIL for code in BY_PATCH & ours.keys())


@pytest.mark.parametrize("names", [COMMUNITY, SERVER])
@pytest.mark.parametrize("seen", [cluster(), cluster((101, 103)), cluster(ALL), cluster(ALL, level=27)])
def test_what_explain_says(names: dict[str, str], seen: Any) -> None:
    said = explain(seen, PLAIN, earlier=seen).render_text()
    assert explain(named(seen, names), goes(*names.values()), earlier=named(seen, names)).render_text() == in_words(
        said, names
    )


@pytest.mark.parametrize("names", [COMMUNITY, SERVER])
def test_the_tables_of_the_gate(names: dict[str, str]) -> None:
    seen, spec = WRONG, goes(*names.values())
    ours = table_of_defaults(changed_defaults(seen, PLAIN), "4.1.1")
    theirs = table_of_defaults(changed_defaults(named(seen, names), spec), names["4.1.1"])
    assert ours and theirs == in_words(ours, names)
    clients = table_of_old_clients(old_clients(named(seen, names), None, names["4.1.1"]), names["4.1.1"])
    assert clients and f"Clients that Kafka {names['4.1.1']} will not answer" in clients
    on_target = old_clients(named(cluster(ALL), names), None, names["4.1.1"])
    assert on_target.found == () and on_target.unread == (), "a broker on the target is not asked"


@pytest.mark.parametrize("target", ["8.0.0-ccs", "8.0.2-ce"])
def test_a_confluent_of_4_0_may_be_4_0_0_and_then_answers_no_joingroup_1(target: str) -> None:
    asked = broker(
        1, metrics=BrokerMetrics(0, 0, deprecated_requests=(OldRequests("unknown", "unknown", "JoinGroup", "1", 4),))
    )
    names = {"3.9.2": "7.9.2-ccs", "4.1.1": target}
    check, spec = SOFTWARE.checks["KRB-PRE-094"], goes(*names.values())
    found = check.run(named(asked(cluster()), names), spec)
    assert found.verdict is Verdict.FAIL and "JoinGroup 1 of software that gives no name" in found.evidence
    none = check.run(named(cluster(), names), spec)
    assert none.verdict is Verdict.UNKNOWN
    assert f"{target} may be Kafka 4.0.0, its number does not say; Kafka 4.0.0 alone does not" in none.evidence
    assert check.run(named(cluster(), names), goes("7.9.2-ccs", "8.1.0-ccs")).verdict is Verdict.PASS


@pytest.mark.parametrize("names", [COMMUNITY, SERVER])
@pytest.mark.parametrize("wanted", ["4.1", "22", "27"])
def test_the_plan_of_a_level(names: dict[str, str], wanted: str) -> None:
    def of(seen: FeatureObservation, software: Any) -> str:
        change = plan_change(software, METADATA_VERSION, 21, wanted)
        lines = [change.render_text(), *shuts_out(seen, change), *map(str, obstacles(seen, change, software))]
        return "\n".join([*lines, overview(seen).render_text()])

    both_there = host_changed(1, software={"/old": look().hosts[1].software["/kafka-3.9.2"], "/new": kafka4()})
    seen = both_there(replace(cluster(ALL))).features
    assert isinstance(seen, FeatureObservation) and isinstance(seen.hosts[1], NodeHost)
    assert of(named(seen, names), named(kafka4(), names)) == in_words(of(seen, kafka4()), names)


def test_confluents_own_number_is_no_level_and_the_text_says_which_are() -> None:
    with pytest.raises(Refused, match=r"Kafka 8\.1\.1-ccs supports metadata\.version 7-27; 8\.1 is no level") as told:
        plan_change(named(kafka4(), COMMUNITY), METADATA_VERSION, 21, "8.1")
    assert "a release up to 4.1" in told.value.way_out
