"""Every case of the fault matrix on a real cluster under a real Airflow, with the invariants checked after each."""

from __future__ import annotations

import time
from pathlib import Path

import fault_airflow  # noqa: F401 - its kinds of fault are known by it
import fault_copy  # noqa: F401 - as above
import fault_disks  # noqa: F401 - as above
import fault_elsewhere  # noqa: F401 - as above
import fault_ensemble  # noqa: F401 - as above
import fault_epochs  # noqa: F401 - as above
import fault_network  # noqa: F401 - as above
import fault_pending  # noqa: F401 - as above
import fault_replicas  # noqa: F401 - as above
import fault_threads  # noqa: F401 - as above
import pytest
from fault_aftermath import gather
from fault_case import Case, load_cases
from fault_copy_log import read_copy_log
from fault_injectors import INJECTORS, inject
from fault_invariants import violations
from fault_processes import MutatorWatch
from fault_scene import Scene, Unexpected
from fault_table import Result, keep
from fault_workload import workload
from fault_world import World

from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.procedures.observe import observe
from lab.layout import starts


def parameters() -> list[object]:
    return [
        pytest.param(name, case, id=name, marks=[pytest.mark.faults, pytest.mark.long])
        for name, case in load_cases().items()
    ]


@pytest.mark.parametrize(("name", "case"), parameters())
def test_fault(name: str, case: Case, world: World, tmp_path: Path) -> None:
    began = time.monotonic()
    how = world.ground.bring_to(case.start)
    setup = time.monotonic() - began
    scene = Scene(case, world.ground, world.stage, world.components, world.temporary)
    before = starts(world.ground.lab.spec)
    began = time.monotonic()
    with MutatorWatch(world.temporary) as watch, workload(scene, tmp_path) as work:
        outcome, wrong = "", ""
        try:
            outcome = scene.play(inject)
            phase = detect_phase(observe(world.ground.spec, secrets=world.ground.lab.secrets)).phase
            if phase is not case.expected.phase:
                wrong = f"the cluster is in {phase}, not {case.expected.phase}"
            marks = read_copy_log(world.ground.spec).marks if case.expected.transactions else ()
            if marks != case.expected.transactions:
                wrong = f"the copy's transactions are {', '.join(marks)}, not {', '.join(case.expected.transactions)}"
        except Unexpected as error:
            wrong = str(error)
        except (
            Exception
        ) as error:  # an injector's client, say: the cluster must be repaired and the invariants judged all the same
            wrong = f"{type(error).__name__}: {error}"
        finally:
            try:
                scene.repair()
            except Unexpected as error:
                wrong = wrong or str(error)
            scene.finish()
        work.settle(max((fault.ended for fault in scene.faults), default=time.time()))
    after = gather(scene, started_before=before, watch=watch, work=work, outcome=wrong)
    broken = violations(after)
    account = after.account or {}
    result = Result(
        name,
        outcome or "not as expected",
        round(time.monotonic() - began, 1),
        round(setup, 1),
        how,
        broken,
        account.get("acknowledged", 0),
        account.get("longest_producer_stall_seconds", 0.0),
    )
    world.results.append(result)
    keep(result, load_cases())
    print(
        f"\n{name}: {result.outcome} in {result.seconds:.0f} s (set up in {result.setup_seconds:.0f} s, {how}):"
        f" {result.verdict}"
    )
    told = "\n".join(f"{invariant}: {found}" for invariant, each in broken.items() for found in each)
    print(told)
    assert not told, told


def test_every_kind_of_fault_is_used_and_every_one_used_exists() -> None:
    used = {fault.kind for case in load_cases().values() for fault in case.faults}
    assert used == set(INJECTORS)
