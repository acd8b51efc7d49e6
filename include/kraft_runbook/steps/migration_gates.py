"""What is looked at before a gate of the migration: the checks, whether dual write is alive, and the way back."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.phases_on_record import phases_on_record
from kraft_runbook.evidence.rehearsals import last_rehearsal
from kraft_runbook.evidence.store import evidence_directory
from kraft_runbook.gates.proof import ParitySummary
from kraft_runbook.gates.signatures import concluded
from kraft_runbook.migration import after_another
from kraft_runbook.migration.checks.catalogue import BEFORE_THE_COPY, CHECKS, DUAL_WRITING
from kraft_runbook.migration.checks.liveness import CODE, dual_write_liveness
from kraft_runbook.migration.transitions import TABLE, Gate
from kraft_runbook.migration.way_back import quorum_is_lost, way_back
from kraft_runbook.parity.dual_write import await_movement
from kraft_runbook.parity.final_proof import what_lies_behind
from kraft_runbook.parity.standstill import LIVENESS_SECONDS
from kraft_runbook.procedures.kept_log_ends import check_log_ends
from kraft_runbook.procedures.last_rehearsal import check_rehearsal
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.runbook.check_results import CheckResult, Verdict
from kraft_runbook.runbook.way_back import RollbackPlan
from kraft_runbook.steps.examine import Examined, Shown
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.run import Run
from kraft_runbook.steps.second_look import look_and_judge
from kraft_runbook.steps.soak_watch import soak_in_words
from kraft_runbook.steps.way_back_facts import (
    epoch_not_writable,
    examine_the_hosts_of_those_down,
    not_deletable,
)


def log_ends_file(run: Run) -> Path:
    """Where the log ends from before the metadata copy are kept."""
    return run.state / "log_ends" / run.spec.name


def examine(run: Run, gate: str, *, keeps: bool = False) -> Examined:
    """Observe deeply, run the gate's checks, compare the log ends, and find the way back; once dual writes should flow,
    look twice to see that they do.

    ``keeps``: as in ``check_log_ends``.
    """
    cluster, spec = run.cluster, run.spec
    earlier = cluster.settled()
    dual_writing = TABLE.gate(gate).needs_parity or detect_phase(earlier).phase in DUAL_WRITING
    apart = LIVENESS_SECONDS if dual_writing else spec.deadlines.poll
    if dual_writing:
        cluster.ask(await_movement, earlier, within=apart)
    deep: dict[str, Any] = {"scope": Scope.FULL, "with_hosts": asks_hosts(gate)}
    seen, checks = look_and_judge(cluster, partial(judge, spec, gate), CHECKS, apart=apart, earlier=earlier, **deep)
    ends = cluster.ask(
        check_log_ends,
        log_ends_file(run),
        detect_phase(seen).phase,
        keeps=keeps and gate != Gate.ROLLBACK,
        blocking=gate != Gate.ROLLBACK,
        replicas=seen.replicas,
        tell=cluster.tell,
    )
    told = (*checks, ends, *on_record(cluster, gate, seen))
    return Examined(seen, told, _way_back(cluster, gate, seen, checks))


def asks_hosts(gate: str) -> bool:
    """The way back asks nothing of the hosts but of controllers that are down; of ZooKeeper, what would keep a
    restarted broker down.
    """
    return gate != Gate.ROLLBACK


def on_record(cluster: Cluster, gate: str, seen: ClusterObservation) -> tuple[CheckResult, ...]:
    """What the start gate asks of the evidence of other runs: of this cluster's last rehearsal, and of the cluster that
    is to be migrated first. Both ask whether the migration may begin, so neither is asked once the metadata is copied:
    what the gate guards then is the repair of a controller (``migration.ahead.is_behind``), and no rehearsal could be
    made (``procedures.source_at_work``).
    """
    if gate != Gate.START or detect_phase(seen).phase not in BEFORE_THE_COPY:
        return ()
    return (*_rehearsed(cluster, seen), *_after_another(cluster))


def _rehearsed(cluster: Cluster, seen: ClusterObservation) -> tuple[CheckResult, ...]:
    """What the last rehearsal says, where the file has rehearsals. Where none is required, and there was none, nothing
    is said.
    """
    settings, directory = cluster.spec.rehearsal, evidence_directory(os.environ)
    if settings is None:
        return ()
    now = datetime.fromtimestamp(cluster.now(), UTC)
    if settings.required_within is None and last_rehearsal(directory, cluster.spec.name, now=now) is None:
        return ()
    source = seen.zookeeper.cluster_id if was_read(seen.zookeeper) else None
    return (cluster.ask(check_rehearsal, directory, source=source, now=now),)


def _after_another(cluster: Cluster) -> tuple[CheckResult, ...]:
    """Whether the cluster that is to be migrated first has come far enough, where the file names one."""
    after = cluster.spec.after
    if after is None:
        return ()
    found = phases_on_record(evidence_directory(os.environ), after.cluster)
    return (after_another.judged(after, found, datetime.fromtimestamp(cluster.now(), UTC)),)


examine_and_keep = partial(examine, keeps=True)


def judge(
    spec: ClusterSpec, gate: str, seen: ClusterObservation, earlier: ClusterObservation | None
) -> tuple[CheckResult, ...]:
    """The gate's checks of one look, and of two whether dual write is alive."""
    phase = detect_phase(seen).phase
    found = CHECKS.run(seen, spec, phase, gate=gate, earlier=earlier).results
    if earlier is not None and (TABLE.gate(gate).needs_parity or (phase in DUAL_WRITING and not quorum_is_lost(seen))):
        return (*found, dual_write_liveness(earlier, seen))
    return found


def _way_back(cluster: Cluster, gate: str, seen: ClusterObservation, checks: Iterable[CheckResult]) -> RollbackPlan:
    """The way back from here; before a rollback with everything that could stop it half-way."""
    told = {each.verdict: each.evidence for each in checks if each.code == CODE}
    stopped, unread = told.get(Verdict.FAIL), told.get(Verdict.UNKNOWN)
    if gate != Gate.ROLLBACK:
        return way_back(seen, cluster.spec, dual_write_stopped=stopped, dual_write_unread=unread)
    leads = detect_phase(seen).phase in DUAL_WRITING and not quorum_is_lost(seen)
    behind = cluster.ask(what_lies_behind) if leads else None
    asked = examine_the_hosts_of_those_down(cluster, seen)
    return way_back(
        asked,
        cluster.spec,
        dual_write_stopped=stopped,
        dual_write_unread=unread,
        gone=cluster.gone,
        not_deletable=cluster.ask(not_deletable),
        epoch_not_writable=cluster.ask(epoch_not_writable),
        lies_behind=behind,
    )


@dataclass(frozen=True, slots=True)
class ShowsParity:
    """What a gate shows of the comparison that this task of its run made, and of what it watched before, where it is a
    soak. None where that task has no report on record.

    The task's answer only points: the report is the one in the run's evidence, where a value written by hand is not.
    """

    task: str

    def __call__(self, run: Run) -> Shown:
        """Raises Refused."""
        compared = run.answer_of(self.task)
        soak = soak_in_words(run.journal.records(), self.task)
        return Shown(
            parity=self._summary(run, compared.get("digest", "")) if compared else None,
            exhibits=(soak,) if soak else (),
            by=self.task,
        )

    def _summary(self, run: Run, digest: str) -> ParitySummary:
        found = concluded(run.journal.records(), self.task, digest)
        if found is None:
            raise Refused(
                f"the latest parity report of {self.task} in this run's evidence is not the one that the task names",
                way_out=f"clear {self.task} with its downstream tasks",
            )
        report = found.parity_report()
        rendered = report.render_markdown()
        at = report.finished_at.isoformat()
        return ParitySummary(report.verdict, report.digest, report.migration_offset, at, rendered, self.task)
