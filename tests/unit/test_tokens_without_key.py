"""Delegation tokens in ZooKeeper, and the key that every node of KRaft mode needs for them (KRB-PRE-141)."""

from __future__ import annotations

from typing import cast

import pytest
from observations import SPEC, WHY, both, config, observation, part, tree
from test_late_configs import Znodes

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.token_key import FORMER, SECRET_KEY, has_key
from kraft_runbook.io.zookeeper.read_entities import read_entities
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.canonical_rows import Fingerprints
from kraft_runbook.metadata.znodes.copied_records import CopiedRecords
from kraft_runbook.metadata.znodes.znode_findings import PasswordSecrets, ZnodeFindings
from kraft_runbook.metadata.znodes.znode_rows import Decoding
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.runbook.check_results import CheckResult, Verdict

WITHOUT = SPEC.model_copy(update={"secrets": {key: ref for key, ref in SPEC.secrets.items() if key != SECRET_KEY}})
BY_FORMER_NAME = WITHOUT.model_copy(update={"secrets": {**WITHOUT.secrets, FORMER: SPEC.secrets[SECRET_KEY]}})
OF_CONTROLLERS = WITHOUT.model_copy(
    update={"controller_properties": {**WITHOUT.controller_properties, SECRET_KEY: "${file:/etc/kafka/keys:token}"}}
)
LACKING = "controllers 101, 102, 103 would get none; brokers 1, 2, 3 would get none"


def answer(spec: ClusterSpec, tokens: int | None, phase: Phase = Phase.ZOOKEEPER) -> CheckResult:
    return CHECKS["KRB-PRE-141"].run(tree(delegation_tokens=tokens)(observation(phase, spec)), spec)


def test_tokens_that_were_left_behind_block_where_nobody_has_a_key() -> None:
    found = answer(WITHOUT, 3)
    assert found.blocks and found.verdict is Verdict.FAIL
    assert found.evidence == f"ZooKeeper holds 3 delegation tokens, and the key for tokens is missing: {LACKING}"


def test_without_tokens_no_key_is_needed_and_no_host_is_asked() -> None:
    seen = both(tree(delegation_tokens=0), part(hosts=WHY))(observation(Phase.ZOOKEEPER, WITHOUT))
    assert CHECKS["KRB-PRE-141"].run(seen, WITHOUT).passed


@pytest.mark.parametrize("spec", [SPEC, BY_FORMER_NAME], ids=["secret.key", "master.key"])
@pytest.mark.parametrize("phase", [Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE])
def test_a_key_by_either_name_is_enough(spec: ClusterSpec, phase: Phase) -> None:
    found = answer(spec, 3, phase)
    assert found.passed and found.evidence == "it holds 3 delegation tokens, and all have one"


def test_a_key_of_the_controllers_alone_is_none_for_brokers_in_kraft_mode() -> None:
    assert answer(OF_CONTROLLERS, 3).evidence.endswith("is missing: brokers 1, 2, 3 would get none")


@pytest.mark.parametrize(
    ("spec", "phase", "missing"),
    [
        (SPEC, Phase.ZOOKEEPER, False),  # the brokers make it when they are restarted
        (SPEC, Phase.HYBRID, False),
        (SPEC, Phase.DUAL_WRITE, True),
        (OF_CONTROLLERS, Phase.ZOOKEEPER, True),
        (OF_CONTROLLERS, Phase.HYBRID, True),
        (WITHOUT, Phase.DUAL_WRITE, False),
    ],
)
def test_a_first_token_needs_a_znode_that_only_brokers_on_zookeeper_make(
    spec: ClusterSpec, phase: Phase, missing: bool
) -> None:
    """Else the next elected controller never takes up dual write (NoNode; measured on 3.9.2)."""
    found = answer(spec, None, phase)
    assert found.passed is not missing
    assert ("nobody makes it" in found.evidence and "create /delegation_token/tokens" in found.fix) is missing


def test_a_file_of_a_broker_in_zookeeper_mode_needs_none_yet() -> None:
    seen = config(2, delegation__token__secret__key=None)(observation(Phase.ZOOKEEPER))
    assert CHECKS["KRB-PRE-141"].run(seen, SPEC).passed


def test_tokens_that_were_not_counted_are_unknown() -> None:
    seen = tree(delegation_tokens=WHY)(observation(Phase.ZOOKEEPER))
    assert CHECKS["KRB-PRE-141"].run(seen, SPEC).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("properties", "has"),
    [
        ({SECRET_KEY: "a"}, True),
        ({FORMER: "a"}, True),
        ({SECRET_KEY: " ", FORMER: "a"}, False),
        ({SECRET_KEY: "", FORMER: ""}, False),
        ({}, False),
    ],
)
def test_the_former_name_counts_only_where_the_present_one_is_not_set_at_all(
    properties: dict[str, str], has: bool
) -> None:
    assert has_key(properties) is has


def test_tokens_are_counted_whatever_they_hold() -> None:
    findings = ZnodeFindings(Decoding(Fingerprints(b"salt")), PasswordSecrets())
    znodes = dict.fromkeys((f"/delegation_token/tokens/{name}" for name in "abc"), b"no JSON")
    reader = cast(ZookeeperReader, Znodes({**znodes, "/delegation_token/token_changes/token_change_0": b"a"}))
    assert read_entities(reader, findings, topics=("t",), copied=CopiedRecords()).delegation_tokens == 3
    nothing = cast(ZookeeperReader, Znodes({}))
    assert read_entities(nothing, findings, topics=("t",), copied=CopiedRecords()).delegation_tokens is None
