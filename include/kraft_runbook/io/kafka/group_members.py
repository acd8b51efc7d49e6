"""Removing static members (group.instance.id) from a group by their names (LeaveGroup, KIP-345), at its coordinator."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kafka.protocol.consumer import LeaveGroupRequest

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.kafka.connection import Connect, connect_to
from kraft_runbook.io.kafka.group_commits import coordinator_of
from kraft_runbook.io.secrets import Secrets

LEAVE_VERSION = 4
NOT_AUTHORIZED, UNKNOWN_MEMBER = 30, 25


def remove_static_members(
    spec: ClusterSpec,
    group: str,
    instance_ids: Sequence[str],
    *,
    secrets: Secrets,
    timeout: float = 10.0,
    connect: Connect = connect_to,
) -> None:
    """Remove the members with these group.instance.ids. One that is not there any more is no error. Raises Refused
    where this tool's identity may not, StepFailed, Unreachable.
    """
    ask = partial(connect, spec, secrets=secrets, timeout=timeout)
    node = coordinator_of(spec, ask, group)
    broker = next((each for each in spec.brokers if each.id == node), None)
    if broker is None:
        raise StepFailed(f"group {group} has no coordinator that the cluster file names", way_out="look again later")
    member = LeaveGroupRequest.MemberIdentity
    with ask(broker) as connection:
        answer = connection.send(
            LeaveGroupRequest(
                version=LEAVE_VERSION,
                group_id=group,
                members=[member(member_id="", group_instance_id=each) for each in instance_ids],
            )
        )
    if answer.error_code == NOT_AUTHORIZED:
        raise Refused(
            f"this tool's identity may not remove members of group {group}", way_out="grant it READ on the group"
        )
    codes = [answer.error_code, *(each.error_code for each in answer.members)]
    if bad := [code for code in codes if code not in (0, UNKNOWN_MEMBER)]:
        raise StepFailed(f"members of group {group} were not removed: error {bad[0]}", way_out="look again later")
