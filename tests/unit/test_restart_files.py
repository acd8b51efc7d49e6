"""A rolling restart that writes where the quorum is into each node's file, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from observations import SPEC, WHY, Spoil, both, broker, config, observation, on_host
from recording import RecordingCluster, run_on

from kraft_runbook.cluster.node_properties import kraft_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, HostState, Unread, was_read
from kraft_runbook.cluster.operation_settings import RollingRestart
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.sensitive import HIDDEN
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import QuorumKind
from kraft_runbook.errors import Refused
from kraft_runbook.restart.checks import CHECKS
from kraft_runbook.restart.files import Files, digest, page
from kraft_runbook.restart.operation import RESTARTS, restarts_with
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.steps.node_step import Look, NodeStep
from kraft_runbook.steps.restart import BROKER, CONTROLLER, prepare, shows_files

WRITES: dict[str, Any] = {"nodes": "both", "files": Files.ADDRESSES.value}
DYNAMIC = SPEC.model_copy(update={"quorum": QuorumKind.DYNAMIC})
MOVED = SPEC.model_copy(
    update={"controllers": tuple(c.model_copy(update={"port": 19093}) if c.id == 103 else c for c in SPEC.controllers)}
)
VOTERS, ADDRESSES = "controller.quorum.voters", "controller.quorum.bootstrap.servers"


def as_written(seen: ClusterObservation) -> ClusterObservation:
    """Every node's file as this tool wrote it, in a static quorum: a secret is a reference there."""
    return both(*(on_host(node, config=kraft_properties(SPEC, node)) for node in SPEC.node_ids))(seen)


def became_dynamic(seen: ClusterObservation) -> ClusterObservation:
    assert was_read(seen.quorum)
    voters = tuple(replace(each, directory=UUID(int=each.id)) for each in seen.quorum.voters)
    return replace(seen, quorum=replace(seen.quorum, voters=voters))


def look(node: int, *spoils: Spoil, spec: ClusterSpec = DYNAMIC, phase: Phase = Phase.FINALIZED, **form: Any) -> Look:
    begins: tuple[Spoil, ...] = (as_written, became_dynamic) if spec is DYNAMIC else (as_written,)
    seen = observation(phase) if phase is not Phase.FINALIZED else both(*begins, *spoils)(observation(phase))
    facts: Mapping[int, HostState] = {i: each for i, each in seen.hosts.items() if not isinstance(each, Unread)}
    return Look(
        RecordingCluster(seen, spec=spec, facts=facts), node, seen, RESTARTS.read(seen, spec), form or WRITES, 1000.0
    )


@pytest.mark.parametrize(("step", "node"), [(BROKER, 1), (CONTROLLER, 102)])
@pytest.mark.parametrize(
    ("spec", "key", "other"), [(DYNAMIC, ADDRESSES, VOTERS), (MOVED, VOTERS, ADDRESSES)], ids=["dynamic", "moved"]
)
def test_each_file_gets_where_the_quorum_is(step: NodeStep, node: int, spec: ClusterSpec, key: str, other: str) -> None:
    at = look(node, spec=spec)
    step.guard(at)
    given = step.play(at).variables
    assert given["properties"][key] == spec.quorum_properties[key] and other not in given["properties"]
    assert given["older_than"] == 1000.0
    assert step.signed(at) == digest(spec) != digest(SPEC)


def test_files_stay_as_they_are_where_nothing_else_is_asked_for() -> None:
    at = look(1, nodes="both")
    BROKER.guard(at)
    assert "properties" not in BROKER.play(at).variables and BROKER.signed(at) is None
    assert "KRB-PRE-046" in restarts_with(Files.AS_THEY_ARE).checks
    assert "KRB-ROLL-005" not in restarts_with(Files.AS_THEY_ARE).checks


@pytest.mark.parametrize(("step", "node"), [(BROKER, 1), (CONTROLLER, 102)])
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda node: config(node, num__io__threads="99"), "num.io.threads"),
        (lambda node: config(node, config__providers=None), "config.providers"),
        (lambda node: on_host(node, config=None), "it has none"),
        (lambda node: on_host(node, config=WHY), "a test did not read it"),
    ],
)
def test_a_file_that_differs_in_anything_else_is_not_written(step: NodeStep, node: int, spoil: Any, why: str) -> None:
    with pytest.raises(Refused, match="nothing was changed on this node") as refused:
        step.guard(look(node, spoil(node)))
    assert why in str(refused.value)


@pytest.mark.parametrize("phase", [Phase.ZOOKEEPER, Phase.HYBRID, Phase.DUAL_WRITE])
def test_no_file_is_written_while_a_migration_is_under_way(phase: Phase) -> None:
    with pytest.raises(Refused, match="no node's file is written by a restart then"):
        BROKER.play(look(1, phase=phase))
    assert CHECKS["KRB-ROLL-005"].run(observation(phase), SPEC).verdict is Verdict.PASS, "of a run that writes none"


@pytest.mark.parametrize(
    ("spoil", "verdict"),
    [
        (lambda seen: seen, Verdict.PASS),
        (config(2, controller__quorum__voters="101@elsewhere:9093"), Verdict.PASS),
        (broker(2, mode=BrokerMode.HYBRID), Verdict.FAIL),
        (config(2, advertised__listeners=None), Verdict.FAIL),
        (config(2, config__providers=None), Verdict.FAIL),
        (config(2, delegation__token__secret__key=HIDDEN), Verdict.FAIL),
        (config(2, delegation__token__secret__key="${secrets:/elsewhere:key}"), Verdict.FAIL),
        (config(2, num__io__threads="99"), Verdict.FAIL),
        (config(102, num__io__threads="99"), Verdict.FAIL),
        (on_host(102, config=None), Verdict.FAIL),
        (on_host(102, config=WHY), Verdict.UNKNOWN),
    ],
)
def test_the_check_asks_for_every_other_key_of_every_node(spoil: Spoil, verdict: Verdict) -> None:
    seen = both(as_written, spoil)(observation(Phase.FINALIZED))
    assert CHECKS["KRB-ROLL-005"].run(seen, SPEC).verdict is verdict
    assert CHECKS["KRB-ROLL-005"].run(became_dynamic(seen), DYNAMIC).verdict is verdict
    assert CHECKS["KRB-ROLL-005"].run(became_dynamic(seen), SPEC).verdict is Verdict.FAIL, "static voters in every file"
    assert CHECKS["KRB-ROLL-005"].run(replace(seen, hosts=WHY), SPEC).verdict is Verdict.UNKNOWN


def test_the_address_of_a_quorum_that_is_not_dynamic_yet_is_not_written() -> None:
    with pytest.raises(Refused, match="where the quorum is is not written"):
        CONTROLLER.guard(replace(at := look(102), seen=as_written(observation(Phase.FINALIZED)), params=at.params))


def test_no_file_is_written_where_nobody_signs() -> None:
    ungated = DYNAMIC.model_copy(update={"rolling_restart": RollingRestart(gate=False)})
    with pytest.raises(Refused, match="behind a signature alone"):
        prepare(run_on(RecordingCluster(observation(Phase.FINALIZED), spec=ungated), **WRITES))


def test_the_secrets_that_a_file_refers_to_are_written_with_it() -> None:
    assert BROKER.play(look(1)).writes_secrets and not BROKER.play(look(1, nodes="both")).writes_secrets


def test_the_other_restart_names_this_one_where_nothing_else_differs() -> None:
    seen = became_dynamic(as_written(observation(Phase.FINALIZED)))
    assert "with the quorum's addresses" in CHECKS["KRB-PRE-046"].run(seen, DYNAMIC).fix
    differs = config(2, num__io__threads="99")(seen)
    assert "with the quorum's addresses" not in CHECKS["KRB-PRE-046"].run(differs, DYNAMIC).fix


def test_the_gate_shows_what_is_written() -> None:
    run = run_on(RecordingCluster(observation(Phase.FINALIZED), spec=DYNAMIC), **WRITES)
    (exhibit,) = shows_files(run).exhibits
    assert exhibit.digest == digest(DYNAMIC) and exhibit.rendered == page(DYNAMIC)
    assert f"{ADDRESSES}=" in page(DYNAMIC) and f"{VOTERS}=" in page(SPEC)
    assert shows_files(run_on(RecordingCluster(observation(Phase.FINALIZED)), nodes="both")).exhibits == ()
