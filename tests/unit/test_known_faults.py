"""Which faults a target is known to have, and what is not known."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from uuid import UUID

import pytest
from observations import SPEC, Spoil, a_controller, broker, observation, with_quorum

from kraft_runbook.cluster.fault_uses import Use, unused
from kraft_runbook.cluster.kafka_version import KafkaVersion
from kraft_runbook.cluster.observation import Voter
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import QuorumKind, Software
from kraft_runbook.runbook.check_results import CheckResult, Verdict
from kraft_runbook.software.known_faults import (
    FAULTS,
    LOOKED_AT,
    better_patch,
    faults_of,
    render_faults,
    was_looked_at,
)
from kraft_runbook.software.operation import SOFTWARE
from kraft_runbook.software.roll import Rolled

SEEN = observation(Phase.FINALIZED)
DOCS = Path(__file__).resolve().parents[2] / "docs"


def judged(code: str, target: str, spoil: Spoil = lambda seen: seen, *, before: str = "3.9.2") -> CheckResult:
    to = Software(version=target, home="/opt/kafka-4")
    spec = SPEC.model_copy(update={"kafka": SPEC.kafka.model_copy(update={"upgrade_to": to, "version": before})})
    return SOFTWARE.checks[code].run(spoil(observation(Phase.FINALIZED, spec)), spec)


def issues(version: str, without: Collection[Use] = ()) -> set[str]:
    return {each.issue for each in faults_of(KafkaVersion.of(version), without)}


def told(spec: ClusterSpec) -> CheckResult:
    """Of 4.1.0, which has most of them."""
    to = Software(version="4.1.0", home="/opt/kafka-4")
    spec = spec.model_copy(update={"kafka": spec.kafka.model_copy(update={"upgrade_to": to})})
    return SOFTWARE.checks["KRB-UPG-023"].run(observation(Phase.FINALIZED, spec), spec)


@pytest.mark.parametrize(
    ("version", "has", "has_not"),
    [
        ("4.0.0", {"KAFKA-19163", "KAFKA-19427", "KAFKA-19221", "KAFKA-19690"}, {"KAFKA-20322"}),
        ("4.0.1", {"KAFKA-19690"}, {"KAFKA-19163", "KAFKA-19427", "KAFKA-19221"}),
        ("4.1.0", {"KAFKA-19690"}, {"KAFKA-19221"}),
        ("4.1.1", {"KAFKA-19862"}, {"KAFKA-19690"}),
        ("4.0.0", {"KAFKA-18991", "KAFKA-18723", "KAFKA-19367"}, {"KAFKA-20115", "KAFKA-20845"}),
        (
            "4.0.2",
            {"KAFKA-20634", "KAFKA-20845"},
            {"KAFKA-19690", "KAFKA-18991", "KAFKA-18723", "KAFKA-19862", "KAFKA-20115"},
        ),
        ("4.1.1", {"KAFKA-19862", "KAFKA-20115"}, {"KAFKA-19760", "KAFKA-20322"}),
        ("4.2.0", {"KAFKA-20322", "KAFKA-20505"}, {"KAFKA-19862"}),
        ("4.3.1", {"KAFKA-20845", "KAFKA-20732"}, {"KAFKA-20634"}),
    ],
)
def test_a_release_has_what_was_not_mended_yet(version: str, has: set[str], has_not: set[str]) -> None:
    assert has <= issues(version) and not has_not & issues(version)


def test_the_newest_release_has_none_of_them_and_3_9_is_not_judged() -> None:
    assert issues("4.4.0") == issues("3.9.2") == set()
    assert judged("KRB-UPG-023", "4.4.0").verdict is Verdict.PASS


def test_each_is_said_with_the_releases_that_do_not_have_it() -> None:
    said = {each.issue: each.mended_in for each in FAULTS}
    assert said["KAFKA-20634"] == ("4.2.2", "4.3.1", "4.4.0")
    assert said["KAFKA-20115"] == ("4.0.2", "4.1.2", "4.2.0")
    assert said["KAFKA-20732"] == ("4.4.0",)
    for each in FAULTS:
        assert each.mended_in and not any(each.is_in(KafkaVersion.of(version)) for version in each.mended_in), each


def test_the_way_out_names_the_patch_that_mends_most() -> None:
    assert better_patch(KafkaVersion.of("4.1.0")) == "4.1.2"
    assert better_patch(KafkaVersion.of("4.1.2")) is None and better_patch(KafkaVersion.of("4.4.0")) is None
    found = judged("KRB-UPG-023", "4.1.1")
    count = len(faults_of(KafkaVersion.of("4.1.1"), unused(SEEN, SPEC)))
    left = len(issues("4.1.1", unused(SEEN, SPEC)) & issues("4.1.2"))
    assert found.verdict is Verdict.FAIL and f"Kafka 4.1.1 has {count}: KAFKA-" in found.evidence
    assert f"Kafka 4.1.2 mends {count - left} of {count}" in found.fix
    assert "mends 15 of 19, and has KAFKA-20845 instead" in judged("KRB-UPG-023", "4.0.0").fix
    assert "no later 4.1 was out that mends one" in judged("KRB-UPG-023", "4.1.2").fix


@pytest.mark.parametrize("version", ["4.5.0", "4.0.3", "8.1.0-ccs"])
def test_what_was_not_looked_at_is_not_known(version: str) -> None:
    assert not was_looked_at(KafkaVersion.of(version))
    assert judged("KRB-UPG-023", version).verdict is Verdict.UNKNOWN
    assert f"says nothing of {version}" in judged("KRB-UPG-024", version).evidence
    assert judged("KRB-UPG-025", version).verdict is Verdict.UNKNOWN


def test_a_target_that_fails_beside_old_brokers_blocks_the_roll() -> None:
    found = judged("KRB-UPG-024", "4.2.0")
    assert found.verdict is Verdict.FAIL and found.blocks and "KAFKA-20322" in found.evidence
    assert "Kafka 4.2.1 has none of them" in found.fix or "Kafka 4.2.2 has none of them" in found.fix
    assert "KAFKA-20322" not in judged("KRB-UPG-023", "4.2.0").evidence
    for other in ("4.2.1", "4.1.1", "4.4.0"):
        assert judged("KRB-UPG-024", other).verdict is Verdict.PASS
        assert judged("KRB-UPG-025", other).verdict is Verdict.PASS


def test_it_blocks_while_controllers_alone_run_it_and_no_longer_once_a_broker_does() -> None:
    halted = judged("KRB-UPG-024", "4.2.0", a_controller(101, software_version="4.2.0"))
    assert halted.verdict is Verdict.FAIL
    assert Rolled.MIXED in (SOFTWARE.checks["KRB-UPG-024"].stages or ())
    assert judged("KRB-UPG-024", "4.2.0", broker(1, software_version="4.2.0")).verdict is Verdict.PASS
    back = judged("KRB-UPG-025", "4.2.0")
    assert back.verdict is Verdict.FAIL and not back.blocks


@pytest.mark.parametrize("target", ["3.9.2", "4.0.2", "4.4.0", "4.4.1"])
@pytest.mark.parametrize("before", ["3.9.0", "3.9.1"])
def test_the_way_back_to_a_release_that_may_never_load_transactions_is_named_with_a_better_one(
    target: str, before: str
) -> None:
    found = judged("KRB-UPG-025", target, before=before)
    assert found.verdict is Verdict.FAIL and not found.blocks
    assert f"Kafka {before} has KAFKA-17941: " in found.evidence and "go back to 3.9.2 instead" in found.fix
    assert "KAFKA-17941" not in judged("KRB-UPG-025", target).evidence
    both = judged("KRB-UPG-025", "4.2.0", before=before).evidence
    assert "Kafka 4.2.0 has 1: KAFKA-20322" in both and "KAFKA-17941" in both
    assert "KAFKA-17941" not in judged("KRB-UPG-025", "3.9.1", before="3.9.0").evidence


@pytest.mark.parametrize(
    ("use", "issue", "properties"),
    [
        (Use.TIERED_STORAGE, "KAFKA-20732", {"remote.log.storage.system.enable": "True"}),
        (Use.COMPRESSED_OFFSETS, "KAFKA-19760", {"offsets.topic.compression.codec": "2"}),
        (Use.REAUTHENTICATION, "KAFKA-19561", {"connections.max.reauth.ms": "3600000"}),
        (Use.REAUTHENTICATION, "KAFKA-19561", {"listener.name.a.plain.connections.max.reauth.ms": "1"}),
    ],
)
def test_a_fault_counts_once_one_broker_uses_what_it_needs(use: Use, issue: str, properties: dict[str, str]) -> None:
    first, *others = SPEC.brokers
    using = first.model_copy(update={"properties": {**first.properties, **properties}})
    spec = SPEC.model_copy(update={"brokers": (using, *others)})
    assert use in unused(SEEN, SPEC) and use not in unused(SEEN, spec)
    assert f"{issue} (only with {use})" in told(SPEC).evidence and f"{issue}: " not in told(SPEC).evidence
    assert f"{issue}: " in told(spec).evidence and f"{issue} (only with" not in told(spec).evidence


def test_directories_and_the_quorum_are_the_cluster_files() -> None:
    first, *others = SPEC.brokers
    two = first.model_copy(update={"log_dirs": ("/a", "/b")})
    spec = SPEC.model_copy(update={"brokers": (two, *others), "quorum": QuorumKind.DYNAMIC})
    assert unused(SEEN, SPEC) - unused(SEEN, spec) == {Use.DIRECTORIES, Use.DYNAMIC_QUORUM}
    assert "KAFKA-19571: " in told(spec).evidence and "KAFKA-20380: " in told(spec).evidence
    assert "KAFKA-19571, KAFKA" not in told(spec).evidence


def test_a_quorum_that_is_dynamic_already_counts_before_the_file_says_so() -> None:
    voters = tuple(Voter(i, 1000, directory=UUID(int=i)) for i in SPEC.controller_ids)
    assert Use.DYNAMIC_QUORUM in unused(SEEN, SPEC)
    assert Use.DYNAMIC_QUORUM not in unused(with_quorum(voters=voters)(SEEN), SPEC)


def test_the_list_ends_with_no_fault_of_a_release_that_was_not_looked_at() -> None:
    for each in FAULTS:
        for minor, (first, mended) in each.lines.items():
            assert 0 <= first <= LOOKED_AT[minor] and (mended is None or first < mended <= LOOKED_AT[minor]), each


def test_the_page_holds_the_table() -> None:
    assert (DOCS / "known-faults.md").read_text().endswith(f"\n\n{render_faults()}\n")
