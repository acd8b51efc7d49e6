"""The tasks that cancel reassignments: list, and, behind the gate, cancel where no data is lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow.sdk.exceptions import AirflowSkipException

from kraft_runbook.cluster.assignment import Ongoing, TopicPartition
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.io.private_file import write_private
from kraft_runbook.procedures.move_replicas import cancel_moves
from kraft_runbook.procedures.settled import observe_settled
from kraft_runbook.reassignment.cancelling import unsafe_cancels
from kraft_runbook.reassignment.goals import Topics
from kraft_runbook.reassignment.operation import CANCEL, REASSIGNMENT
from kraft_runbook.runbook.digests import sha256_of
from kraft_runbook_airflow.base.approvals import begins, require_confirmation
from kraft_runbook_airflow.base.claims import take_claim
from kraft_runbook_airflow.base.environment import airflow_secrets
from kraft_runbook_airflow.base.gates import Shown
from kraft_runbook_airflow.base.journal import record
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.reassignment.checks import settled_look
from kraft_runbook_airflow.reassignment.files import files_of

LISTED = "cancelled.json"


class ListReassignments(ClusterOperator):
    """List what is being reassigned of the chosen topics, and refuse where a cancel would lose data."""

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        params = context["params"]
        chosen = Topics(tuple(str(params["topics"]).split()), tuple(str(params["exclude"] or "").split()))
        look = settled_look(spec, settings=False)
        ongoing = {p: each for p, each in sorted(look.placement.ongoing.items()) if chosen.matches(p.topic)}
        if not ongoing:
            raise AirflowSkipException("nothing of these topics is being reassigned")
        if unsafe := unsafe_cancels(ongoing, look.seen, look.placement.live):
            raise Refused(
                f"cancelling would lose data: {'; '.join(map(str, unsafe[:5]))}",
                way_out="; ".join(dict.fromkeys(each.way_out for each in unsafe[:5])),
            )
        text = _table(ongoing)
        write_private(files_of(context).directory / LISTED, json.dumps({"text": text, "partitions": _plain(ongoing)}))
        self.log.info("%s", text)
        record(context, self.cluster, Moves(what="to be cancelled", partitions=len(ongoing), told=text))
        return {"partitions": len(ongoing)}

    def rehearse(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        """The same: it changes nothing."""
        return self.act(context, spec)


def shows_reassignments(context: Any) -> Shown:
    """What is to be cancelled, for the gate. Raises Refused where nothing was listed."""
    listed = _listed(context)
    return Shown(exhibits=(Exhibit("list", sha256_of(listed["partitions"]), listed["text"]),), by="list")


class CancelReassignments(ClusterOperator):
    """Cancel what was listed and signed for, each where an original replica is alive and in sync."""

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        take_claim(context, spec)
        seen = observe_settled(spec, secrets=airflow_secrets(), tell=self.log.info)
        listed = _listed(context)["partitions"]
        require_confirmation(context, spec, REASSIGNMENT, CANCEL, seen, exhibit=sha256_of(listed))
        wanted = [TopicPartition(topic, number) for topic, number, _ in listed]
        begins(context, self.cluster, CANCEL)
        cancelled = cancel_moves(spec, settled_look(spec, settings=False), wanted, secrets=airflow_secrets())
        record(context, self.cluster, Moves(what="cancelled", partitions=len(cancelled)))
        self.log.info("Cancelled %d of %d; the others had ended", len(cancelled), len(wanted))
        return {"cancelled": len(cancelled)}

    def rehearse(self, context: Any, spec: ClusterSpec) -> None:
        self.log.info("Dry run: what is listed would be cancelled")


def _listed(context: Any) -> Mapping[str, Any]:
    path = files_of(context).directory / LISTED
    try:
        found: Mapping[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Refused(f"{path} can't be read: {error}", way_out="clear the task 'list'") from None
    return found


def _plain(ongoing: Mapping[TopicPartition, Ongoing]) -> list[list[Any]]:
    return [[p.topic, p.partition, list(each.original)] for p, each in ongoing.items()]


def _table(ongoing: Mapping[TopicPartition, Ongoing]) -> str:
    lines = [f"{len(ongoing)} reassignments:", "", "| partition | had | moves to |", "|---|---|---|"]
    lines += [f"| {p} | {list(each.original)} | {list(each.target)} |" for p, each in list(ongoing.items())[:100]]
    return "\n".join([*lines, "", "…"] if len(ongoing) > 100 else lines)
