"""Change the voters of a dynamic quorum (KIP-853): one out, or one in. Each is asked of the leader, which answers once
the new voters are committed. A leader shows voters that it has written and not committed yet (``LeaderState`` of
Kafka's raft), so a change whose answer was lost counts once the log is committed up to where it ended at that look.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from kraft_runbook.cluster.quorum_seen import Voter, in_the_log
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.io.kafka.connection import connect_to
from kraft_runbook.io.kafka.metadata_quorum import QuorumDescription, describe_committed, quorum_cluster_id
from kraft_runbook.io.kafka.raft_voters import AddRaftVoterRequest, RemoveRaftVoterRequest
from kraft_runbook.io.secrets import Secrets

NOT_LEADER, TIMED_OUT, STOPPING, NOT_ALLOWED, UNSUPPORTED, DUPLICATE_VOTER, VOTER_NOT_FOUND = 6, 7, 8, 31, 35, 126, 127
PASSING = {
    STOPPING: "it stops (BROKER_NOT_AVAILABLE)",
    NOT_LEADER: "it does not lead any more",
    TIMED_OUT: "it had no time, or another change of the voters is under way (REQUEST_TIMED_OUT)",
    DUPLICATE_VOTER: "it has a voter with this id already",
    VOTER_NOT_FOUND: "it has no such voter",
}
"""What the next look may show to be done, or the next request may get through. ``AddVoterHandler`` of Kafka's raft says
TIMED_OUT also where its first connection to the new voter is not up yet.
"""
WITHIN = 120.0
"""Seconds in which a leader has to take it."""
AN_ANSWER = 45.0
"""Seconds for one answer: ``ADDING`` and more. A removal is given up after controller.quorum.request.timeout.ms (2 s).
"""
ADDING = 30_000
"""Milliseconds that a leader is given for adding one."""
PAUSE = 1.0
Request = Callable[[str], AddRaftVoterRequest | RemoveRaftVoterRequest]
"""A request, given the cluster's id."""


@dataclass(frozen=True, slots=True)
class Asks:
    """How the leader is looked at and asked, and how patiently."""

    describe: Callable[..., QuorumDescription] = describe_committed
    ask: Callable[[ClusterSpec, int, Request, Secrets], str | None] = lambda *given: _ask(*given)
    within: float = WITHIN
    pause: float = PAUSE


OF_KAFKA = Asks()


def add_voter(spec: ClusterSpec, controller: int, directory: UUID, *, secrets: Secrets, by: Asks = OF_KAFKA) -> bool:
    """Let this controller vote, with the id of its metadata log's directory. Whether a request changed it: False where
    it is a voter already. Raises Refused, StepFailed, Unreachable.
    """
    declared = spec.controller(controller)
    listener = AddRaftVoterRequest.Listener(name=spec.controller_listener.name, host=declared.host, port=declared.port)

    def request(cluster_id: str) -> AddRaftVoterRequest:
        return AddRaftVoterRequest(
            version=0,
            cluster_id=cluster_id,
            timeout_ms=ADDING,
            voter_id=controller,
            voter_directory_id=directory,
            listeners=[listener],
        )

    def is_in(voters: tuple[Voter, ...]) -> bool:
        return any(each.id == controller and each.directory == directory for each in voters)

    return _change(spec, f"add controller {controller} to the voters", request, is_in, secrets, by)


def remove_voter(spec: ClusterSpec, voter: int, directory: UUID, *, secrets: Secrets, by: Asks = OF_KAFKA) -> bool:
    """Take the voter with this id and this directory out. Whether a request changed it: False where there is none such.
    Raises Refused, StepFailed, Unreachable.
    """

    def request(cluster_id: str) -> RemoveRaftVoterRequest:
        return RemoveRaftVoterRequest(version=0, cluster_id=cluster_id, voter_id=voter, voter_directory_id=directory)

    def is_out(voters: tuple[Voter, ...]) -> bool:
        return all(each.id != voter or each.directory != directory for each in voters)

    return _change(spec, f"remove voter {voter}", request, is_out, secrets, by)


def await_committed(spec: ClusterSpec, *, secrets: Secrets, by: Asks = OF_KAFKA) -> None:
    """Wait until what the leader shows now is committed. Raises StepFailed."""
    _change(spec, "commit its voters", _nothing_is_asked, lambda _: True, secrets, by)


def _nothing_is_asked(_: str) -> AddRaftVoterRequest:
    raise AssertionError("what is shown is done")


def _change(
    spec: ClusterSpec,
    what: str,
    request: Request,
    done: Callable[[tuple[Voter, ...]], bool],
    secrets: Secrets,
    by: Asks,
) -> bool:
    deadline, asked = time.monotonic() + by.within, False
    shown: tuple[int, int] | None = None
    problem: str | None
    while True:
        try:
            quorum = by.describe(spec, secrets=secrets)
            if done(quorum.voters):
                shown = shown if shown is not None and shown[0] == quorum.leader_epoch else _end(quorum)
                if quorum.high_watermark >= shown[1]:
                    return asked
                problem = "the leader shows the change, and it is not committed yet"
            else:
                shown, asked = None, True
                _require_dynamic(quorum)
                problem = by.ask(spec, quorum.leader_id, request, secrets)
        except Unreachable as error:
            problem = error.problem
        if time.monotonic() > deadline:
            raise StepFailed(
                f"the quorum did not {what} within {by.within:.0f} s: {problem or 'it did, and somebody undid it'}",
                way_out="read the log of the controller that leads (kraft-runbook quorum), then clear this task: it"
                " looks first what was done",
            )
        time.sleep(by.pause)


def _end(quorum: QuorumDescription) -> tuple[int, int]:
    """The leader's epoch, and where its log ends."""
    ends = [each.log_end_offset for each in quorum.voters if each.id == quorum.leader_id]
    return quorum.leader_epoch, max([quorum.high_watermark, *ends])


def _require_dynamic(quorum: QuorumDescription) -> None:
    """A static quorum would answer UNSUPPORTED_VERSION; no request is needed to know that."""
    if not in_the_log(quorum.voters):
        raise Refused(
            "the quorum is a static one: no voter has a directory's id in the metadata log",
            way_out="raise kraft.version to 1 first (upgrade_features), on Kafka 4.1 or later",
        )


def _ask(spec: ClusterSpec, leader: int, request: Request, secrets: Secrets) -> str | None:
    """Why another look is needed; None where the leader says that it is committed."""
    asked = request(quorum_cluster_id(spec, leader, secrets=secrets))
    with connect_to(spec, spec.controller(leader), secrets=secrets, timeout=AN_ANSWER) as connection:
        answer = connection.send(asked)
    if not answer.error_code:
        return None
    said = answer.error_message or ""
    if answer.error_code in PASSING:
        return said or PASSING[answer.error_code]
    if answer.error_code == NOT_ALLOWED:
        raise Refused(
            "to change the voters is not allowed to this tool's identity at the controllers",
            way_out="allow it: Alter on the cluster (kafka-acls --cluster), then clear this task",
        )
    if answer.error_code == UNSUPPORTED:
        raise Refused(
            f"controller {leader} can't change its voters: {said or 'UNSUPPORTED_VERSION'}",
            way_out="raise kraft.version to 1 first (upgrade_features), on Kafka 4.1 or later",
        )
    raise StepFailed(
        f"controller {leader} answered error {answer.error_code} {said}".rstrip(),
        way_out="read the active controller's log, then clear this task",
    )
