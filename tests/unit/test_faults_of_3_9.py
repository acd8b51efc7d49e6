"""Which faults a release that can be migrated is said to have: its own, and none that it mended."""

from __future__ import annotations

import pytest
from observations import SPEC, broker, observation

from kraft_runbook.cluster.faults_in_both import NEVER_LOADED_IN
from kraft_runbook.cluster.kafka_version import KafkaVersion
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks import CHECKS
from kraft_runbook.migration.faults_of_3_9 import FAULTS, faults_of
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.software import known_faults

OF_BOTH = {
    "KAFKA-19480",
    "KAFKA-19294",
    "KAFKA-19990",
    "KAFKA-19411",
    "KAFKA-19026",
    "KAFKA-17941",
    "KAFKA-17076",
    "KAFKA-19390",
    "KAFKA-19690",
}
OF_3_9_0 = {"KAFKA-17507", "KAFKA-18991", "KAFKA-18723", "KAFKA-18844", "KAFKA-18281"}
OF_EACH = {"KAFKA-20732", "KAFKA-19407", "KAFKA-19571", "KAFKA-19221"}


@pytest.mark.parametrize(
    ("version", "has"),
    [
        ("3.9.0", OF_EACH | OF_BOTH | OF_3_9_0),
        ("3.9.1", OF_EACH | OF_BOTH),
        ("3.9.2", OF_EACH),
        ("3.9.3", set()),
        ("3.8.0", set()),
        ("7.9.0-ccs", set()),
    ],
)
def test_a_release_has_what_a_later_one_mends(version: str, has: set[str]) -> None:
    assert {each.issue for each in faults_of(KafkaVersion.of(version))} == has
    assert {each.issue for each in FAULTS} == OF_EACH | OF_BOTH | OF_3_9_0


def test_each_release_that_runs_is_named_with_its_own_and_older_ones_with_why_they_are_refused() -> None:
    seen = observation(Phase.ZOOKEEPER)
    for number, version in ((1, "3.9.1"), (2, "3.9.0"), (3, "3.9.1")):
        seen = broker(number, software_version=version)(seen)
    first, second = CHECKS["KRB-PRE-011"].run(seen, SPEC).evidence.split("; ")
    assert first.startswith("brokers 1, 3 run Kafka 3.9.1, which has KAFKA-") and "18723" not in first
    assert second.startswith("broker 2 runs Kafka 3.9.0, which has KAFKA-") and "18723" in second
    assert not [each for each in ("15552", "17506") if each in first + second], "3.9.0 mends these"
    assert "KAFKA-15098" in CHECKS["KRB-PRE-010"].why


def tiered() -> ClusterSpec:
    first, *others = SPEC.brokers
    using = first.model_copy(update={"properties": {**first.properties, "remote.log.storage.system.enable": "true"}})
    return SPEC.model_copy(update={"brokers": (using, *others)})


def test_what_no_3_9_mends_is_told_with_a_way_around_it_where_the_cluster_uses_what_it_needs() -> None:
    seen, check = observation(Phase.ZOOKEEPER), CHECKS["KRB-PRE-011"]
    found = check.run(seen, tiered())
    assert found.verdict is Verdict.FAIL and not found.blocks
    assert "brokers 1, 2, 3 run Kafka 3.9.2, which has KAFKA-20732 (" in found.evidence
    assert found.fix.startswith("KAFKA-20732: before you begin set retention.bytes=-1 on every topic")
    plain = check.run(seen, SPEC)
    assert plain.verdict is Verdict.PASS and "20732" not in plain.evidence and "19571" not in plain.evidence
    assert "Kafka 3.9.2, which has KAFKA-19407 (" in plain.evidence and "restarted, in every 3.9)" in plain.evidence
    old = check.run(broker(2, software_version="3.9.1")(seen), tiered())
    assert old.fix.startswith("upgrade every broker to 3.9.2 before you begin. KAFKA-20732: ")
    assert "20732" not in check.run(broker(2, software_version="3.9.1")(seen), SPEC).fix


def test_what_is_never_loaded_is_so_in_each_release_that_the_way_back_is_warned_of() -> None:
    having = [v for v in ("3.9.0", "3.9.1", "3.9.2") if "KAFKA-17941" in str(faults_of(KafkaVersion.of(v)))]
    assert tuple(having) == NEVER_LOADED_IN


def test_a_fault_that_kafka_4_has_too_is_described_once() -> None:
    later = {each.issue: each.what for each in known_faults.FAULTS}
    both = [each for each in FAULTS if each.issue in later]
    assert {each.issue for each in both} > {"KAFKA-18991", "KAFKA-18723", "KAFKA-19407", "KAFKA-19390", "KAFKA-19571"}
    assert all(each.what is later[each.issue] for each in both)
