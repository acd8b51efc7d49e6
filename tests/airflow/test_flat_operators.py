"""What an operator does is read in one class: none stands more than two levels above Airflow's own."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from airflow.sdk import BaseOperator
from airflow.triggers.base import BaseTrigger

import kraft_runbook_airflow
from kraft_runbook_airflow.base.acting import ActsOrRehearses


def modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(kraft_runbook_airflow.__path__, "kraft_runbook_airflow.")
    return [importlib.import_module(each.name) for each in found]


def ours(kind: type) -> set[type]:
    return {
        each
        for module in modules()
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, kind) and each.__module__.startswith("kraft_runbook_airflow.")
    }


def test_no_operator_stands_more_than_two_levels_above_airflows_own() -> None:
    found = ours(BaseOperator)
    assert len(found) > 10
    for operator in found:
        levels = [
            each
            for each in operator.__mro__
            if each.__module__.startswith("kraft_runbook_airflow.") and each is not ActsOrRehearses
        ]
        assert len(levels) <= 2, [each.__name__ for each in levels]


SAME = {"AskOwner", "AwaitGroups", "MoveBetweenDisks", "TakeStep", "TakeSteps", "WaitLater"}
"""Whose dry run is the same task: it changes the cluster by its run alone, which then rehearses."""


def test_every_operator_on_a_cluster_says_what_it_does_and_what_it_would_do_where_that_is_not_the_same() -> None:
    found = {each for each in ours(ActsOrRehearses) if each.__name__ not in ("ActsOrRehearses", "ClusterOperator")}
    assert all(each.act is not ActsOrRehearses.act for each in found)
    same = {each.__name__ for each in found if each.rehearse is ActsOrRehearses.rehearse}
    assert same == SAME


def test_whether_a_run_is_a_dry_run_is_asked_in_one_place() -> None:
    asking = {module.__name__ for module in modules() if "is_dry_run" in vars(module)}
    assert asking == {"kraft_runbook_airflow.base.environment", "kraft_runbook_airflow.base.acting"}


def test_every_trigger_is_found_where_it_says_that_it_is() -> None:
    """The triggerer imports it by that path, in another process and after an update."""
    for trigger in ours(BaseTrigger):
        assert getattr(importlib.import_module(trigger.__module__), trigger.__qualname__) is trigger
