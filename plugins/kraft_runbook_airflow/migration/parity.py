"""Parity under Airflow: a Spark job by SparkSubmitOperator, its report kept in the state directory."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from kraft_runbook.cluster.phases import Phase, PhaseReading, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.evidence.kinds import Compared, TaskFailed
from kraft_runbook.gates.proof import ParitySummary
from kraft_runbook.gates.signatures import concluded
from kraft_runbook.io.secrets import connection_variable, references
from kraft_runbook.parity.comparison import ParityReport, Verdict
from kraft_runbook.parity.report_file import read_report
from kraft_runbook.parity.spark.settings import SETTINGS
from kraft_runbook.procedures.settled import observe_settled
from kraft_runbook_airflow.base.acting import ActsOrRehearses
from kraft_runbook_airflow.base.environment import (
    airflow_secrets,
    cluster_spec,
    clusters_directory,
    state_directory,
)
from kraft_runbook_airflow.base.gates import Shown
from kraft_runbook_airflow.base.gone import said_to_be_gone
from kraft_runbook_airflow.base.journal import (
    NOT_WRITABLE,
    record,
    records_of,
    run_file_name,
)
from kraft_runbook_airflow.migration.spark_submit import ends_with_this_process

COMPARABLE = frozenset({Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED})
"""Phases in which both stores hold the metadata, or a proven earlier state can stand in for ZooKeeper (FINALIZED)."""

PROJECT = Path(__file__).resolve().parents[3]

SPARK_CONNECTION = "spark_default"

ENVIRONMENT = {
    "PYSPARK_PYTHON": sys.executable,
    "PYSPARK_DRIVER_PYTHON": sys.executable,
    "PYTHONPATH": str(PROJECT / "include"),
}


class ParityOperator(ActsOrRehearses, SparkSubmitOperator):
    """Prove that ZooKeeper and KRaft hold the same metadata. Any verdict but MATCH fails the task, and the report says
    what differs.
    """

    template_fields: Sequence[str] = ()
    ui_color = "#dff3e3"

    def __init__(self, *, cluster: str, **kwargs: Any) -> None:
        super().__init__(
            application=str(PROJECT / "include" / "kraft_runbook" / "parity" / "spark" / "job.py"),
            name=f"kraft-runbook-parity-{cluster}",
            conn_id=SPARK_CONNECTION,
            env_vars=ENVIRONMENT,
            conf=SETTINGS,
            verbose=False,
            **kwargs,
        )
        self.cluster = cluster

    def _get_hook(self) -> SparkSubmitHook:
        """As the provider makes it; what it starts ends with this process."""
        hook = super()._get_hook()
        hook.submit = partial(hook.submit, preexec_fn=ends_with_this_process())  # type: ignore[method-assign]
        return hook

    def act(self, context: Any, spec: ClusterSpec) -> Any:
        gone = said_to_be_gone(context, spec)
        reading = detect_phase(observe_settled(spec, secrets=airflow_secrets(), tell=self.log.info, gone=gone))
        if reading.phase not in COMPARABLE:
            return self.nothing_to_compare(reading)
        return self.compare(context, reading.phase)

    def rehearse(self, context: Any, spec: ClusterSpec) -> Any:
        self.log.info("Dry run: would compare ZooKeeper with the metadata log of %s", self.cluster)

    def nothing_to_compare(self, reading: PhaseReading) -> None:
        """End the task where there are no two stores: a runbook relies on the proof."""
        raise AirflowFailException(
            f"cluster {self.cluster} is in {reading.phase} ({'; '.join(reading.reasons)}): there are no two stores to"
            " compare"
        )

    def compare(self, context: Any, phase: Phase) -> dict[str, Any]:
        """Run the Spark job once and return verdict, digest and the report's file. Raises AirflowFailException unless
        it is a MATCH.
        """
        output = report_file(context)
        proven = proven_file(self.cluster)
        proven.parent.mkdir(parents=True, exist_ok=True)
        self.application_args = [
            "--cluster",
            self.cluster,
            "--clusters-dir",
            str(clusters_directory()),
            "--output",
            str(output),
        ]
        self.application_args += ["--baseline" if phase is Phase.FINALIZED else "--save-proven", str(proven)]
        passwords = _connections(cluster_spec(self.cluster))
        self.env_vars = {**ENVIRONMENT, **passwords}
        failure: AirflowException | None = None
        try:
            if passwords:
                self.require_environment_passed()
            SparkSubmitOperator.execute(self, context)
        except AirflowException as error:  # a verdict other than MATCH is an exit code too: the report decides
            failure = error
        except OSError as error:
            if error.errno in NOT_WRITABLE:
                raise
            raise StepFailed(
                f"the parity job could not be started: {error}",
                way_out=(
                    "let spark-submit (pyspark brings it) and java be on the PATH of this worker, or name another"
                    f" binary in the extra 'spark-binary' of the connection {SPARK_CONNECTION}; then clear this task"
                ),
            ) from None
        if not output.is_file():
            record(context, self.cluster, TaskFailed(error=f"the parity job left no report: {failure}"))
            raise AirflowFailException(
                f"the parity job left no report: {failure}. Look at the Spark output above; `kraft-runbook parity"
                f" --cluster {self.cluster}` runs the same without Airflow."
            )
        report = read_report(output)
        return self.settle(context, report, output, phase)

    def require_environment_passed(self) -> None:
        """Raise Refused where SparkSubmitHook would put the job's environment into spark-submit's arguments, which
        ``ps`` and Spark's own pages show.
        """
        hook = self._get_hook()
        if hook._is_yarn or hook._is_kubernetes:
            raise Refused(
                "the cluster file takes passwords from Airflow connections, and Airflow's Spark connection"
                f" {SPARK_CONNECTION} leads to {hook._connection['master']}: they would stand in the arguments of"
                " spark-submit, for anyone to see",
                way_out=(
                    f"let {SPARK_CONNECTION} lead to local[*], or to spark://HOST:PORT with deploy-mode client: these"
                    " get the passwords in the process's environment (Airflow takes yarn where the connection is not"
                    " defined)"
                ),
            )

    def is_final(self) -> bool:
        """Whether what is compared now is what the task ends with: only that may stand at a gate."""
        return True

    def settle(self, context: Any, report: ParityReport, output: Path, phase: Phase) -> dict[str, Any]:
        """Put the report, kept in ``output``, on record and return what ``compare`` returns."""
        self.log.info("%s", report.render_text())
        compared = Compared(
            values=report.to_dict(),
            verdict=report.verdict,
            digest=report.digest,
            offset=report.migration_offset,
            report=output.name,
            final=self.is_final(),
            phase=phase.value,
        )
        record(context, self.cluster, compared)
        if report.verdict is not Verdict.MATCH:
            raise AirflowFailException(f"parity is {report.verdict}\n{report.render_text()}")
        told = {
            "verdict": report.verdict.value,
            "digest": report.digest,
            "offset": report.migration_offset,
            "final": compared.final,
        }
        return {**told, "report": os.fspath(output)}


def proven_file(cluster: str) -> Path:
    """What the last MATCH in dual write proved: what the scheduled check and a finalized cluster are compared with."""
    return state_directory() / "baselines" / cluster


def report_file(context: Any) -> Path:
    """Where this task's report goes; the one of an earlier try is removed."""
    ti = context["ti"]
    output = state_directory() / "parity" / run_file_name(ti.dag_id, ti.run_id) / f"{ti.task_id}.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.unlink(missing_ok=True)
    return output


def _connections(spec: ClusterSpec) -> dict[str, str]:
    """The passwords that the cluster file takes from Airflow connections, for the job's process, which has no Airflow
    to ask.
    """
    secrets = airflow_secrets()
    wanted = [ref for ref in references(spec) if ref.airflow_connection is not None]
    return {connection_variable(ref): json.dumps({"conn_type": "generic", "password": secrets(ref)}) for ref in wanted}


@dataclass(frozen=True, slots=True)
class ShowsParity:
    """What a gate shows of the comparison that this task of its run made."""

    task: str

    def __call__(self, context: Any) -> Shown:
        return Shown(parity=load_summary(context, self.task), by=self.task)


def load_summary(context: Any, parity_task: str) -> ParitySummary | None:
    """The report of a parity task of this run, as a gate keeps it. None where that task has no report on record.

    The task's XCom only points: the report is the one in the run's evidence, where a value written by hand is not.
    """
    compared = context["ti"].xcom_pull(task_ids=parity_task)
    if not compared:
        return None
    found = concluded(records_of(context), parity_task, compared.get("digest", ""))
    if found is None:
        raise Refused(
            f"the latest parity report of {parity_task} in this run's evidence is not the one that the task names",
            way_out=f"clear {parity_task} with its downstream tasks",
        )
    report = found.parity_report()
    rendered = report.render_markdown()
    return ParitySummary(
        report.verdict, report.digest, report.migration_offset, report.finished_at.isoformat(), rendered, parity_task
    )
