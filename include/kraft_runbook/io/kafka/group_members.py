"""Removing static members (group.instance.id) from a group by their names (LeaveGroup, KIP-345), at its coordinator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka.protocol.consumer import LeaveGroupRequest

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.kafka.connection import Connect, connect_to
from kraft_runbook.io.kafka.coordinator import AGAIN_SECONDS, NOT_AUTHORIZED, NOT_AVAILABLE, NOT_READY, Coordinator
from kraft_runbook.io.secrets import Secrets

LEAVE_VERSION = 4
UNKNOWN_MEMBER = 25


def remove_static_members(
    spec: ClusterSpec,
    group: str,
    instance_ids: Sequence[str],
    *,
    secrets: Secrets,
    timeout: float = 10.0,
    apart: float = AGAIN_SECONDS,
    connect: Connect = connect_to,
) -> None:
    """Remove the members with these group.instance.ids. One that is not there any more is no error. A coordinator that
    moves is looked for again, for ``timeout`` seconds. Raises Refused where this tool's identity may not, StepFailed,
    Unreachable.
    """
    member = LeaveGroupRequest.MemberIdentity
    request = LeaveGroupRequest(
        version=LEAVE_VERSION,
        group_id=group,
        members=[member(member_id="", group_instance_id=each) for each in instance_ids],
    )
    coordinator = Coordinator(spec, group, secrets=secrets, timeout=timeout, apart=apart, connect=connect)
    while (codes := _codes(coordinator.ask(request))) & NOT_READY and coordinator.again():
        pass
    if NOT_AUTHORIZED in codes:
        raise Refused(
            f"this tool's identity may not remove members of group {group}", way_out="grant it READ on the group"
        )
    if bad := sorted(codes - {0, UNKNOWN_MEMBER}):
        raise StepFailed(f"members of group {group} were not removed: error {bad[0]}", way_out="do this step again")


def _codes(answer: Any) -> set[int]:
    if answer is None:
        return {NOT_AVAILABLE}
    return {int(answer.error_code), *(int(each.error_code) for each in answer.members)}
