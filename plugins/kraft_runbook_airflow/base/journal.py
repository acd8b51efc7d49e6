"""What each task saw and did, appended to the run's evidence file and copied to an object store where one is set."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from kraft_runbook.errors import Refused, RunbookError
from kraft_runbook.evidence.kind import Kind
from kraft_runbook.evidence.kinds import TaskFailed, TaskRefused
from kraft_runbook.evidence.outcomes import BAD_OUTCOMES, outcome_of
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.evidence.store import append_record, evidence_directory, read_records, run_name
from kraft_runbook.evidence.unwritten import disk_in_words, said_where_unwritten
from kraft_runbook_airflow.base.evidence_mirror import mirror

log = logging.getLogger(__name__)


def run_file_name(dag_id: str, run_id: str) -> str:
    """A file name for one run, and for no other."""
    return run_name(dag_id, run_id)


def record_for(cluster: str, dag_id: str, run_id: str, task_id: str, what: Kind) -> EvidenceRecord:
    """Append one record for a task of a run. Its digest goes to the task's log: an anchor outside the file.

    A store that can't be written is an error in the log and no exception: the step has been taken, and its record is
    kept here.
    """
    run = run_file_name(dag_id, run_id)
    body = {"cluster": cluster, "dag": dag_id, "run": run_id, "task": task_id, **what.body()}
    written = append_record(evidence_directory(os.environ), run, body)
    log.info("Evidence record %d (%s), digest %s", written.sequence, what.outcome, written.digest)
    try:
        mirror(evidence_directory(os.environ), run)
    except RunbookError as error:
        log.error("%s", error)
    return written


def record(context: Any, cluster: str, what: Kind) -> EvidenceRecord:
    """Append one record for the task that runs now."""
    ti = context["ti"]
    return record_for(cluster, ti.dag_id, ti.run_id, ti.task_id, what)


def records_of(context: Any) -> tuple[EvidenceRecord, ...]:
    """All records of the current run. Raises RunbookError when the chain is broken."""
    ti = context["ti"]
    return read_records(evidence_directory(os.environ), run_file_name(ti.dag_id, ti.run_id))


def require_shared_state(context: Any) -> None:
    """Raise Refused where this host's state directory does not hold what the run's first task left: proofs would be
    missing too.

    Every run's first task leaves a record; a worker or triggerer that does not find one does not share the directory.
    """
    ti = context["ti"]
    require_shared(ti.dag_id, ti.run_id)


def require_shared(dag_id: str, run_id: str) -> None:
    """The same for a run that is named. Raises Refused."""
    directory = evidence_directory(os.environ)
    found = {outcome_of(record.body) for record in read_records(directory, run_file_name(dag_id, run_id))}
    if not found - BAD_OUTCOMES:  # what a worker that refused left itself is no sign of an earlier task
        raise Refused(
            f"{directory} on {socket.gethostname()} holds no record of run {run_id} of {dag_id}, though an earlier task"
            " left one: the state directory is not shared by all workers and the triggerer",
            way_out=(
                "let KRAFT_RUNBOOK_STATE name one directory that every worker and the triggerer share (docs/hosts.md),"
                " then trigger the run anew"
            ),
        )


@contextmanager
def told_to_a_person(context: Any, cluster: str) -> Iterator[None]:
    """An error meant for a person goes on record and fails the task at once, without a traceback or a retry."""
    try:
        with disk_in_words():
            yield
    except RunbookError as error:
        log.error("%s", error)
        with said_where_unwritten(log):
            record(
                context,
                cluster,
                TaskRefused(error=str(error)) if isinstance(error, Refused) else TaskFailed(error=str(error)),
            )
        raise AirflowFailException(error.problem) from None


def require_mirrored(context: Any) -> None:
    """Raise NotMirrored unless all records of the run so far are in the object store, where one is set.

    Asked before anything is changed, so that a store that can't be written stops a run at its start; and at the end.
    """
    ti = context["ti"]
    mirror(evidence_directory(os.environ), run_file_name(ti.dag_id, ti.run_id))
