"""How a stopped run says whether it can go back: each answer has a beginning of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from feature_looks import on_disk
from kept_observations import all_of
from observations import SPEC, WHY, observation, part
from test_never_a_yes_unread import UNREAD
from test_upgrade_checks import ALL, PLAIN, cluster

from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.groups.operation import GROUPS
from kraft_runbook.groups.toggles.operation import TOGGLES
from kraft_runbook.levels.operation import LEVELS
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.operations import OPERATIONS
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.restart.operation import RESTARTS
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.runbook.way_back import RollbackPlan, in_words, not_known
from kraft_runbook.software.operation import SOFTWARE

TRAPPED = {101: on_disk(101, snapshot=98, after={130: 22, 140: 21})}


@pytest.mark.parametrize(
    ("plan", "mends", "told"),
    [
        (RollbackPlan(True, "why", ()), False, "There is nothing to undo: why."),
        (RollbackPlan(True, "why", ("One.", "two")), False, "To go back (trigger back__lab): why. 1. One. 2. two."),
        (RollbackPlan(False, "why.", ()), True, "It can't go back: why."),
        (
            RollbackPlan(False, "why", ("one", "two")),
            False,
            "It can't go back yet: why. Once that is over, trigger back__lab: 1. one. 2. two.",
        ),
        (
            RollbackPlan(False, "why", ("one",)),
            True,
            "It can't go back yet: why. To see to that first, trigger back__lab: 1. one.",
        ),
        (not_known("why"), True, "Whether it can go back is not known: why. If it can, trigger back__lab."),
        (
            not_known("why", ("one",)),
            True,
            "Whether it can go back is not known: why. If it can, trigger back__lab: 1. one.",
        ),
    ],
)
def test_each_answer_begins_in_its_own_way(plan: RollbackPlan, mends: bool, told: str) -> None:
    assert in_words(plan, "back__lab", mends=mends) == told
    without = re.sub(r"( \(|, )trigger back__lab\)?", "", told.removesuffix(" If it can, trigger back__lab."))
    assert in_words(plan, mends=mends) == without, "an operation without a DAG of its way back"
    lines = in_words(plan, "back__lab", mends=mends, between="\n").splitlines()
    assert " ".join(lines) == told and len(lines) == 1 + len(plan.steps)


@pytest.mark.parametrize(
    ("operation", "seen", "spec", "told"),
    [
        (
            MIGRATION,
            lambda: observation(Phase.FINALIZED),
            SPEC,
            r"It can't go back: a controller without the migration",
        ),
        (
            MIGRATION,
            lambda: all_of("controller", (101, 102, 103), running=False)(
                part(quorum=Unread("no answer"))(observation(Phase.DUAL_WRITE))
            ),
            SPEC,
            r"It can't go back yet: .*a majority of the controllers must run first\. To see to that first, trigger"
            r" zk_to_kraft_rollback__lab: 1\. restore_quorum: ",
        ),
        (
            MIGRATION,
            lambda: part(controllers={}, quorum=WHY, zookeeper=WHY)(observation(Phase.HYBRID)),
            SPEC,
            r"Whether it can go back is not known: no phase is proven\. If it can, trigger zk_to_kraft_rollback__lab",
        ),
        (
            SOFTWARE,
            lambda: cluster(ALL, level=27),
            PLAIN,
            r"It can't go back: metadata\.version is 27, 3\.9\.2 supports",
        ),
        (
            SOFTWARE,
            lambda: cluster(ALL, disks=TRAPPED),
            PLAIN,
            r"It can't go back yet: controller 101 cannot run 3\.9\.2 yet.*\. Once that is over, trigger"
            r" downgrade_software__lab: 1\. Restart brokers 1, 2, 3 on Kafka 3\.9\.2",
        ),
        (
            SOFTWARE,
            lambda: part(features=WHY)(cluster(ALL)),
            PLAIN,
            r"Whether it can go back is not known: each node's disk and the levels of Kafka 3\.9\.2 decide, and were"
            r" not read .*\. If it can, trigger downgrade_software__lab: 1\. Restart",
        ),
        (
            SOFTWARE,
            lambda: cluster(ALL),
            PLAIN,
            r"To go back \(trigger downgrade_software__lab\): every node can start",
        ),
        (
            LEVELS,
            lambda: cluster(ALL),
            PLAIN,
            r"Whether it can go back is not known: only a plan can tell\. .*\. If it",
        ),
        (RESTARTS, lambda: cluster(ALL), PLAIN, r"There is nothing to undo: a restart changes nothing"),
        (GROUPS, lambda: cluster(ALL), PLAIN, r"It can't go back: "),
        (TOGGLES, lambda: cluster(ALL), PLAIN, r"It can't go back: "),
        (REASSIGNMENT, lambda: cluster(ALL), PLAIN, r"To go back \(trigger restore_assignment__lab\): a move can be"),
    ],
)
def test_each_operation_s_own_text_follows_its_beginning(
    operation: Operation, seen: Callable[[], Any], spec: ClusterSpec, told: str
) -> None:
    said = operation.way_back_in_words(seen(), spec)
    assert re.match(told, said), said
    assert "\n" not in said and ".." not in said and "yet: not yet" not in said, said


@pytest.mark.parametrize("what", UNREAD)
def test_what_is_not_known_is_said_to_be_so_once(what: str) -> None:
    said = OPERATIONS[what.partition(":")[0]].told_back(UNREAD[what](), "lab")
    assert said.startswith(("Whether it can go back is not known: ", "It can't go back")), said
    assert said.count("not known") <= 1 and "not known: whether" not in said, said
