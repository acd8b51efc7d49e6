"""The table of rights against Kafka's own classes: each request's handler asks for the operations that the table names.

``javap`` shows which values of ``AclOperation`` and ``ResourceType`` a method uses.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from kraft_runbook.runbook.rights import KAFKA, Acl
from lab.installation import fetch_jars, java
from lab.layout import load

BROKER, CONTROLLER, CONFIGS = "kafka.server.KafkaApis", "kafka.server.ControllerApis", "kafka.server.ConfigHelper"
HANDLERS = {
    "MetadataRequest": (BROKER, "handleTopicMetadataRequest"),
    "DescribeClusterRequest": (CONTROLLER, "handleDescribeCluster"),
    "DescribeQuorumRequest": (CONTROLLER, "handleDescribeQuorum"),
    "FetchRequest": (CONTROLLER, "handleFetch"),
    "FetchRequest on brokers": (BROKER, "handleFetchRequest"),
    "FetchSnapshotRequest": (CONTROLLER, "handleFetchSnapshot"),
    "DescribeConfigsRequest": (CONFIGS, "handleDescribeConfigsRequest"),
    "DescribeLogDirsRequest": (BROKER, "handleDescribeLogDirsRequest"),
    "ListOffsetsRequest": (BROKER, "handleListOffsetRequestV1AndAbove"),
    "ListPartitionReassignmentsRequest": (BROKER, "handleListPartitionReassignmentsRequest"),
    "FindCoordinatorRequest": (BROKER, "getCoordinator"),
    "DescribeGroupsRequest": (BROKER, "handleDescribeGroupsRequest"),
    "ListGroupsRequest": (BROKER, "handleListGroupsRequest"),
    "OffsetFetchRequest": (BROKER, "fetchAllOffsetsForGroup"),
    "OffsetCommitRequest": (BROKER, "handleOffsetCommitRequest"),
    "LeaveGroupRequest": (BROKER, "handleLeaveGroupRequest"),
    "JoinGroupRequest": (BROKER, "handleJoinGroupRequest"),
    "SyncGroupRequest": (BROKER, "handleSyncGroupRequest"),
    "HeartbeatRequest": (BROKER, "handleHeartbeatRequest"),
    "AlterPartitionReassignmentsRequest": (BROKER, "handleAlterPartitionReassignmentsRequest"),
    "ElectLeadersRequest": (BROKER, "handleElectLeaders"),
    "AlterReplicaLogDirsRequest": (BROKER, "handleAlterReplicaLogDirsRequest"),
    "IncrementalAlterConfigsRequest": (BROKER, "processIncrementalAlterConfigsRequest"),
    "CreateTopicsRequest": (BROKER, "handleCreateTopicsRequest"),
    "DeleteTopicsRequest": (BROKER, "handleDeleteTopicsRequest"),
    "InitProducerIdRequest": (BROKER, "handleInitProducerIdRequest"),
    "ProduceRequest": (BROKER, "handleProduceRequest"),
    "UpdateFeaturesRequest": (CONTROLLER, "handleUpdateFeatures"),
    "UnregisterBrokerRequest": (CONTROLLER, "handleUnregisterBroker"),
    "AddRaftVoterRequest": (CONTROLLER, "handleAddRaftVoter"),
    "RemoveRaftVoterRequest": (CONTROLLER, "handleRemoveRaftVoter"),
}
"""Where Kafka asks for the right. ConsumerGroupDescribe's topics are asked for since 4.0."""


@cache
def uses(name: str) -> dict[str, set[str]]:
    """By method of this class, its lambdas with it, the operations and resources that its code names."""
    javap = shutil.which("javap", path=str(Path(java()).resolve().parent)) or shutil.which("javap")
    if javap is None:
        pytest.skip("this Java has no javap")
    jars = f"{fetch_jars(load().kafka.version)}/*"
    done = subprocess.run([javap, "-p", "-c", "-cp", jars, name], capture_output=True, text=True, check=True)
    found: dict[str, set[str]] = defaultdict(set)
    method = ""
    for line in done.stdout.splitlines():
        if begins := re.match(r"  \S.* (?:\$anonfun\$)?([\w$]+)\(.*\).*;$", line):
            method = begins[1].partition("$")[0]
        for each in re.findall(r"acl/AclOperation\.([A-Z_]+)|resource/ResourceType\.([A-Z_]+)", line):
            found[method] |= {*each} - {""}
    return found


@pytest.mark.parametrize("name", HANDLERS)
def test_a_handler_asks_for_what_the_table_names(name: str) -> None:
    asks, _, where = name.partition(" on ")
    needs = {
        each
        for right in KAFKA
        if right.asks == asks
        for each in right.needs
        if isinstance(each, Acl) and (asks != "FetchRequest" or each.at == (where or "controllers"))
    }
    handler = uses(HANDLERS[name][0])[HANDLERS[name][1]]
    operations = {re.sub(r"(?<!^)(?=[A-Z])", "_", each.operation).upper() for each in needs}
    missing = operations - handler
    if name == "OffsetFetchRequest":  # the group is asked for by the method that calls this one
        missing -= uses(BROKER)["fetchOffsets"] | uses(BROKER)["handleOffsetFetchRequestFromCoordinator"]
    assert needs and not missing, (needs, handler)


def test_every_line_has_its_handler() -> None:
    named = {name.partition(" on ")[0] for name in HANDLERS}
    assert {each.asks for each in KAFKA if each.needs} == named | {"ConsumerGroupDescribeRequest"}
