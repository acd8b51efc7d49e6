"""What the start gate asks of the last rehearsal, and what changed at the cluster since."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.rehearsal_record import OnRecord
from kraft_runbook.evidence.rehearsals import last_rehearsal
from kraft_runbook.gates.proof import digest_of_file
from kraft_runbook.io.own_code import version_of_code
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.copy_tree import look_since
from kraft_runbook.rehearsal.required import judged
from kraft_runbook.rehearsal.since import KeptPaths, changes_since
from kraft_runbook.runbook.check_results import CheckResult


def check_rehearsal(
    spec: ClusterSpec, directory: Path, *, secrets: Secrets, source: str | None, now: datetime
) -> CheckResult:
    """KRB-PRE-110, from the evidence in ``directory``. ``source``: the cluster's id as ZooKeeper holds it; None: it was
    not read.
    """
    last = last_rehearsal(directory, spec.name, now=now)
    return judged(
        last,
        cluster=spec.name,
        within=spec.rehearsal.required_within if spec.rehearsal else None,
        now=now,
        cluster_file=digest_of_file(spec),
        kafka=spec.kafka.version,
        tool=version_of_code(),
        source=source,
        changes=_changes(spec, last, secrets) if isinstance(last, OnRecord) else "",
    )


def _changes(spec: ClusterSpec, last: OnRecord, secrets: Secrets) -> str:
    """What changed at the source since, in words, or why that is not known. It decides nothing: a person reads it."""
    try:
        found = changes_since(KeptPaths.from_dict(last.told.kept), look_since(spec, secrets=secrets))
    except RunbookError as error:
        return f"the changes since then are not known: {error.problem}"
    except OSError as error:
        return f"the changes since then are not known: {error}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return "the changes since then are not known: the record does not say what was copied"
    return f"the changes since then are not known: {found.reason}" if isinstance(found, Unread) else str(found)
