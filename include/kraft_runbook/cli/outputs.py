"""What the command line prints with ``--json``: one type a command, and its JSON schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from kraft_runbook.cluster.feature_levels import FeatureObservation, SoftwareLevels
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase, PhaseReading
from kraft_runbook.dashboard.facts import Clusters
from kraft_runbook.evidence.run_report import RunReport
from kraft_runbook.groups.checks import GROUP_CHECKS
from kraft_runbook.groups.moves import Moves
from kraft_runbook.groups.proof import ConsumptionProof
from kraft_runbook.groups.report import GroupScan
from kraft_runbook.groups.toggles.several import Toggles
from kraft_runbook.levels.preview import Preview
from kraft_runbook.migration.checks import CheckResult, Verdict
from kraft_runbook.migration.eligibility import NotEligible, not_eligible, zookeeper_behind, zookeeper_write_ms
from kraft_runbook.migration.plan import Plan
from kraft_runbook.operations import OF_GATES, OPERATIONS
from kraft_runbook.parity.parity_report import ParityReport
from kraft_runbook.quorum.checks import QUORUM_CHECKS
from kraft_runbook.quorum.look import Mode, QuorumLook
from kraft_runbook.reassignment.disks import DiskPreview
from kraft_runbook.reassignment.preview import Preview as MovesPreview
from kraft_runbook.reassignment.verifying import Verification
from kraft_runbook.runbook.checklist import Check
from kraft_runbook.runbook.explanation import Explanation
from kraft_runbook.software.file_keys import FileFinding
from kraft_runbook.software.way_back import SoftwareWay


@dataclass(frozen=True, slots=True)
class ObserveOutput:
    """``observe``: the phase, and everything that was read. What was not is an object with a ``reason``.

    ``not_eligible``: who is not ready for the migration, and why. ``zookeeper_behind``: committed records that are not
    written to ZooKeeper; ``zookeeper_write_ms``: what 99 % of its writes took at most; both null outside dual write.
    """

    phase: PhaseReading
    not_eligible: tuple[NotEligible, ...]
    zookeeper_behind: int | None
    zookeeper_write_ms: float | None
    observation: ClusterObservation

    @classmethod
    def of(cls, reading: PhaseReading, seen: ClusterObservation) -> ObserveOutput:
        return cls(reading, not_eligible(seen), zookeeper_behind(seen), zookeeper_write_ms(seen), seen)


@dataclass(frozen=True, slots=True)
class PreflightOutput:
    """``preflight``: the answer of every check that applies."""

    cluster: str
    phase: Phase
    verdict: Verdict
    results: tuple[CheckResult, ...]


@dataclass(frozen=True, slots=True)
class CheckEntry:
    """One check of the list."""

    code: str
    title: str
    severity: str
    phases: tuple[str, ...]
    gates: tuple[str, ...]
    needs: str
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class ChecksOutput:
    """``checks``: the list of checks."""

    checks: tuple[CheckEntry, ...]


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One run that left evidence. ``problem``: why it can't be trusted; None where its chain is whole."""

    run: str
    cluster: str
    began: datetime | None
    ended: datetime | None
    records: int
    outcome: str
    good: bool | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class EvidenceOutput:
    """``evidence``: the runs in a directory, or one of them with its report. Times are UTC."""

    directory: str
    runs: tuple[RunEntry, ...]
    report: RunReport | None


@dataclass(frozen=True, slots=True)
class OtherSoftware:
    """Another version of Kafka that the cluster file names: whether every node can start on it, and what its file holds
    that this version refuses or reads over, by node.
    """

    version: str
    home: str
    open: bool
    way: SoftwareWay
    files: Mapping[int, tuple[FileFinding, ...]]


@dataclass(frozen=True, slots=True)
class FeaturesOutput:
    """``features``: one look. ``software``: the levels of the version that every node runs; a reason where that is not
    known. ``change``: the preview of the level that was asked for.
    """

    cluster: str
    observation: FeatureObservation
    software: SoftwareLevels | str
    findings: tuple[str, ...]
    others: tuple[OtherSoftware, ...]
    change: Preview | None = None


@dataclass(frozen=True, slots=True)
class StuckEntry:
    """A partition that does not get on: why, about which brokers, and what to do."""

    partition: str
    cause: str
    brokers: tuple[int, ...]
    way_out: str


@dataclass(frozen=True, slots=True)
class ReassignStatusOutput:
    """``reassign status``. ``moving``: partitions; ``stage``: of the plan that was named, None without one. ``hidden``:
    what moves and this tool's user may not describe, in words; empty: nothing.
    """

    cluster: str
    moving: int
    stage: str | None
    progress: str
    stuck: tuple[StuckEntry, ...]
    throttles: tuple[str, ...]
    hidden: str = ""


@dataclass(frozen=True, slots=True)
class GroupsScanOutput:
    """``groups scan``: every group, and the answer of each check of them."""

    scan: GroupScan
    checks: tuple[CheckResult, ...]


@dataclass(frozen=True, slots=True)
class QuorumOutput:
    """``quorum``: the last of three looks, who controls the cluster, and the answer of each check. What was not read is
    an object with a ``reason``.
    """

    look: QuorumLook
    mode: Mode
    verdict: Verdict
    checks: tuple[CheckResult, ...]


OUTPUTS: Mapping[str, TypeAdapter[Any]] = {
    "observe": TypeAdapter(ObserveOutput),
    "preflight": TypeAdapter(PreflightOutput),
    "parity": TypeAdapter(ParityReport),
    "plan": TypeAdapter(Plan),
    "explain": TypeAdapter(Explanation),
    "features": TypeAdapter(FeaturesOutput),
    "checks": TypeAdapter(ChecksOutput),
    "clusters": TypeAdapter(Clusters),
    "evidence": TypeAdapter(EvidenceOutput),
    "groups-plan": TypeAdapter(Moves),
    "groups-proof": TypeAdapter(ConsumptionProof),
    "groups-scan": TypeAdapter(GroupsScanOutput),
    "groups-toggle-plan": TypeAdapter(Toggles),
    "quorum": TypeAdapter(QuorumOutput),
    "reassign-disks": TypeAdapter(DiskPreview),
    "reassign-plan": TypeAdapter(MovesPreview),
    "reassign-status": TypeAdapter(ReassignStatusOutput),
    "reassign-verify": TypeAdapter(Verification),
}
"""By command."""


def every_check() -> Iterator[Check]:
    """Each check once: the migration's, what its gates and other operations have besides, those of consumer groups
    and of the quorum.
    """
    seen: set[str] = set()
    for operation in OPERATIONS.values():
        yield from operation.checks.without(seen).values()
        seen |= set(operation.checks)
    yield from OF_GATES.values()
    yield from GROUP_CHECKS.values()
    yield from QUORUM_CHECKS.without(seen).values()


def checks_output() -> ChecksOutput:
    """The list of checks as a value."""
    return ChecksOutput(
        tuple(
            CheckEntry(
                c.code,
                c.title,
                c.severity.value,
                tuple(p.value for p in Phase if c.stages is None or p in c.stages),
                tuple(sorted(c.gates)),
                c.needs.value,
                c.why,
                c.fix,
            )
            for c in every_check()
        )
    )


def to_json(command: str, value: object) -> str:
    """The output of a command as indented JSON."""
    return json.dumps(OUTPUTS[command].dump_python(value, mode="json"), indent=2, ensure_ascii=False)


def schema(command: str) -> str:
    """The JSON schema of a command's output, as it lies in docs/schemas."""
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **OUTPUTS[command].json_schema(mode="serialization"),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
