"""Which controllers a playbook looks at before it touches anything, and what it is told of them."""

from __future__ import annotations

from typing import Any

import pytest
from observations import SPEC

from kraft_runbook.cluster.observation import ControllerMode
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.hosts.migration_guard import guarded_controllers
from kraft_runbook.runbook.plays import Guard


def shown(_: Any, controller: Any, **__: Any) -> ControllerMode:
    """The controllers' modes, as their processes show them."""
    if controller.id == 103:
        raise Unreachable("controller 103 does not answer", way_out="start it")
    return ControllerMode.MIGRATION if controller.id == 101 else ControllerMode.KRAFT


def guarded(guard: Guard, *, but: int | None = None, check: bool = False, gone: tuple[int, ...] = ()) -> Any:
    secrets: Any = object()
    return guarded_controllers(SPEC, guard, but=but, secrets=secrets, check=check, gone=gone, mode_of=shown)


def asked(groups: Any) -> dict[str, Any]:
    return {each["controller"].split()[1]: each for group in groups.values() for each in group["controllers"]}


def test_each_is_looked_at_on_its_host_with_the_mode_that_its_process_shows() -> None:
    found = asked(guarded(Guard.PROVISIONED))
    assert {node: (each["shown"], each["not_shown"]) for node, each in found.items()} == {
        "101": ("migration", ""),
        "102": ("kraft", ""),
        "103": ("", "controller 103 does not answer"),
    }
    assert {each["config_file"] for each in found.values()} == {c.config_file for c in SPEC.controllers}


@pytest.mark.parametrize(
    ("guard", "check", "provisioning"),
    [
        (Guard.PROVISIONED, False, False),
        (Guard.PROVISIONED, True, True),
        (Guard.PROVISIONING, False, True),
    ],
)
def test_one_that_is_not_there_yet_is_excused_while_controllers_are_provisioned_and_in_a_rehearsal(
    guard: Guard, check: bool, provisioning: bool
) -> None:
    assert {group["provisioning"] for group in guarded(guard, check=check).values()} == {provisioning}


def test_the_one_that_the_step_itself_writes_and_those_that_are_gone_are_left_out() -> None:
    assert asked(guarded(Guard.PROVISIONING, but=101)).keys() == {"102", "103"}
    assert asked(guarded(Guard.PROVISIONED, gone=(103,))).keys() == {"101", "102"}


def test_where_the_way_back_is_over_nobody_is_asked() -> None:
    assert guarded(Guard.NONE) == {}
