"""Deleting a group that has no members (DeleteGroups), at its coordinator."""

from __future__ import annotations

from typing import Any

from kafka.protocol.admin import DeleteGroupsRequest

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.kafka.connection import Connect, connect_to
from kraft_runbook.io.kafka.coordinator import AGAIN_SECONDS, NOT_AUTHORIZED, NOT_AVAILABLE, NOT_READY, Coordinator
from kraft_runbook.io.secrets import Secrets

DELETE_VERSION = 2
NOT_EMPTY, NOT_FOUND = 68, 69


def delete_group(
    spec: ClusterSpec,
    group: str,
    *,
    secrets: Secrets,
    timeout: float = 30.0,
    apart: float = AGAIN_SECONDS,
    connect: Connect = connect_to,
) -> None:
    """Delete the group with its offsets. One that is not there is no error. A coordinator that moves is looked for
    again, for ``timeout`` seconds.

    Raises Refused where the group has members (Kafka answers NON_EMPTY_GROUP) or this tool's identity may not do it,
    StepFailed, Unreachable.
    """
    request = DeleteGroupsRequest(version=DELETE_VERSION, groups_names=[group])
    coordinator = Coordinator(spec, group, secrets=secrets, timeout=timeout, apart=apart, connect=connect)
    while (code := _code(coordinator.ask(request), group)) in NOT_READY and coordinator.again():
        pass
    if code in (0, NOT_FOUND):
        return
    if code == NOT_EMPTY:
        raise Refused(
            f"group {group} has members in Kafka, so it is not deleted (NON_EMPTY_GROUP)",
            way_out="stop them, then do this step again",
        )
    if code == NOT_AUTHORIZED:
        raise Refused(
            f"this tool's identity may not delete group {group} in Kafka, which had members there before: offsets that"
            " are committed to it now would expire by the time at which those left",
            way_out="grant it DELETE on the group, or see that it is empty and run kafka-consumer-groups --delete"
            f" --group {group}; then do this step again",
        )
    raise StepFailed(f"group {group} was not deleted in Kafka: error {code}", way_out="do this step again")


def _code(answer: Any, group: str) -> int:
    codes = [int(each.error_code) for each in answer.results if each.group_id == group] if answer is not None else []
    return codes[0] if codes else NOT_AVAILABLE
