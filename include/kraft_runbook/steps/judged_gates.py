"""A rehearsal's run: nobody signs in it. Its gates are judged by their checks; its evidence lies with the throwaway.

For a throwaway cluster alone: each question asks for it again (``rehearsal.permission``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kind import Kind
from kraft_runbook.evidence.kinds import Checked
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.evidence.store import append_record, read_records, run_name
from kraft_runbook.io.local.cores import processors
from kraft_runbook.io.local.usage import Taken
from kraft_runbook.migration.checks import CHECKS
from kraft_runbook.migration.checks.catalogue import DUAL_WRITING
from kraft_runbook.migration.checks.liveness import dual_write_liveness
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.parity.dual_write import await_movement
from kraft_runbook.parity.standstill import LIVENESS_SECONDS
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.rehearsal import verdict
from kraft_runbook.rehearsal.permission import require_seen_as_throwaway, require_throwaway
from kraft_runbook.rehearsal.whose_fault import beside_an_election, election_in, of_check
from kraft_runbook.runbook.check_results import CheckResult, ChecksReport
from kraft_runbook.runbook.check_results import Verdict as Answer
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.migration_gates import asks_hosts
from kraft_runbook.steps.run import Run
from kraft_runbook.steps.second_look import look_and_judge

DAG = "rehearsal"
OF_A_START = ("KRB-PRE-058", "KRB-PRE-060", "KRB-PRE-061", "KRB-PRE-062")
"""Checks of the tree alone: whether a broker starts with it, one becomes the controller, and the copy takes it."""


@dataclass
class JudgedPorts:
    """The journal, signatures and claim of ``steps.run``. ``directory``: where the evidence of the throwaway goes.
    ``task``: which step is taken now. ``judged``: the gates that were judged in this climb.
    """

    cluster: Cluster
    directory: Path
    climb: str
    task: str = ""
    judged: set[str] = field(default_factory=set)
    answers: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_throwaway(self.cluster.spec)

    def run(self) -> Run:
        """With these ports."""
        return Run(self.cluster, {}, self, self, self, self.name, self.directory, self.answers.get)

    @property
    def name(self) -> str:
        return run_name(DAG, self.climb)

    def record(self, what: Kind) -> None:
        body = {"cluster": self.cluster.spec.name, "dag": DAG, "run": self.climb, "task": self.task, **what.body()}
        append_record(self.directory, self.name, body)

    def records(self) -> tuple[EvidenceRecord, ...]:
        return read_records(self.directory, self.name)

    def require_mirrored(self) -> None:
        """Nothing of a throwaway is kept elsewhere."""

    def require(
        self,
        operation: Operation,
        gate: str,
        seen: ClusterObservation,
        *,
        turn: Collection[int] = (),
        exhibit: str | None = None,
        under_way: bool = False,
    ) -> None:
        """Raises Refused unless this is the throwaway and the gate was judged."""
        require_seen_as_throwaway(self.cluster.spec, seen)
        if gate not in self.judged:
            raise Refused(f"the gate {gate} was not judged in this rehearsal", way_out="begin the rehearsal again")

    def begins(self, gate: str) -> None:
        require_throwaway(self.cluster.spec)

    def take(self) -> None:
        """Nobody else has it: a lock says so (``procedures.throwaway_place``)."""
        require_throwaway(self.cluster.spec)

    def await_groups(self) -> None:
        pass

    def renew(self) -> None:
        require_throwaway(self.cluster.spec)

    def rest(self) -> None:
        pass

    def give_back(self) -> None:
        pass

    def take_groups(self, groups: Sequence[str], *, waits: bool = False) -> None:
        raise Refused("a rehearsal moves no consumer group", way_out="begin the rehearsal again")

    def refuse_while_cluster_acts(self) -> None:
        pass

    def give_back_groups(self, groups: Sequence[str]) -> None:
        pass


def judge_gate(
    run: Run, ports: JudgedPorts, gate: str, beside: Callable[[], Taken | None] = lambda: None
) -> tuple[verdict.Finding, ...]:
    """Look as a gate of the migration does, and judge its checks; what blocks is a finding each
    (``rehearsal.whose_fault``). The gate counts as judged then. ``beside``: what those looks took of this machine,
    asked afterwards; None: not measured.

    Not asked: the log ends of partitions, which no stand-in tells.
    """
    cluster = run.cluster
    earlier = cluster.settled()
    dual = detect_phase(earlier).phase in DUAL_WRITING
    apart = LIVENESS_SECONDS if dual else cluster.spec.deadlines.poll
    if dual:
        cluster.ask(await_movement, earlier, within=apart)
    looks = [earlier]

    def judge(seen: ClusterObservation, before: ClusterObservation | None) -> tuple[CheckResult, ...]:
        looks.extend(each for each in (before, seen) if each is not None)
        return _judge(cluster, gate, seen, before)

    seen, checks = look_and_judge(
        cluster,
        judge,
        CHECKS,
        apart=apart,
        earlier=earlier,
        scope=Scope.FULL,
        with_hosts=asks_hosts(gate),
    )
    require_seen_as_throwaway(cluster.spec, seen)
    report = ChecksReport(checks)
    run.journal.record(Checked(phase=detect_phase(seen).phase.value, checks=report.to_dict()))
    ports.judged.add(gate)
    taken, cores = beside() or Taken(0.0, None, None), processors().cores
    found = tuple(
        of_check(each, gate, load=taken.load, cores=cores, throttled=taken.throttled) for each in report.blocking
    )
    if elected := election_in(looks):
        found = tuple(beside_an_election(each, elected) for each in found)
    cluster.tell(f"gate {gate}: {len(checks)} checks, {len(found)} of them block")
    for each in found:
        cluster.tell(each.what)
    return found


def of_the_tree(found: verdict.Finding) -> bool:
    """Whether a check of the tree alone failed: who runs is no matter then."""
    return found.verdict is verdict.Verdict.FAILED and found.code in CHECKS and CHECKS[found.code].needs is Needs.TREE


def judge_tree(cluster: Cluster) -> tuple[verdict.Finding, ...]:
    """What the start gate would say of the tree where no broker starts with it, so that it is never asked: each check
    that fails, by its znode. What could not be read says nothing here. Raises Refused where another cluster answers.
    """
    seen = cluster.observe(scope=Scope.FULL)
    require_seen_as_throwaway(cluster.spec, seen)
    found = (each.run(seen, cluster.spec, gate=Gate.START) for each in CHECKS.of(*OF_A_START))
    return tuple(of_check(each, Gate.START, load=None, cores=None) for each in found if each.verdict is Answer.FAIL)


def _judge(
    cluster: Cluster, gate: str, seen: ClusterObservation, earlier: ClusterObservation | None
) -> tuple[CheckResult, ...]:
    phase = detect_phase(seen).phase
    found = CHECKS.run(seen, cluster.spec, phase, gate=gate, earlier=earlier).results
    if earlier is not None and phase in DUAL_WRITING:
        found = (*found, dual_write_liveness(earlier, seen))
    return found
