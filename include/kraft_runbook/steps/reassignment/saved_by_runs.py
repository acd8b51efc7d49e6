"""What an earlier run saved, for whoever gives it back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kraft_runbook.cluster.assignment import Replicas, TopicPartition
from kraft_runbook.errors import Refused
from kraft_runbook.procedures.demote_broker import read_orders
from kraft_runbook.procedures.move_replicas import read_state
from kraft_runbook.reassignment.demotion import KeptOrders
from kraft_runbook.reassignment.saved_state import SavedState
from kraft_runbook.steps.reassignment.files import PLAN, SAVED, RunFiles, before_in, files_of_all, plan_in


def kept_orders(name: str, state: Path) -> KeptOrders | None:
    """The orders from before, of a run of this name that demoted brokers; None where it did not. Raises Refused where
    they can't be read.
    """
    return read_orders(RunFiles(files_of_all(state) / name).orders) if name and "/" not in name else None


def saved_by(name: str, state: Path) -> Path:
    """Where a run of this name saved what was there before it. Raises Refused where none did."""
    return file_of_run(name, state, SAVED, did="saved an assignment")


def restorable(path: Path) -> SavedState:
    """What a run saved there (``saved.json``), of the partitions alone that it planned to move: each as the first plan
    found it that names it, with the id that its topic had then. Of a topic that was made anew between two plans, what
    the later ones found. The plans that the run may have begun lie beside it. Where it kept one alone, it may have
    moved by another before, which the present one was written over: what it saved of that one's topics and the present
    plan found elsewhere was its own as well. Raises Refused where one of the files can't be read.
    """
    saved, files = read_state(path), RunFiles(path.parent)
    way_out = "let it lie beside what the run saved, untouched, as in the run's directory"
    assignment: dict[TopicPartition, Replicas] = {}
    ids: dict[str, str] = {}
    earlier = files.earlier_plans()
    if not earlier:
        ids |= saved.topic_ids
        mine = {p: replicas for p, replicas in saved.assignment.items() if p.topic in ids}
        found = before_in(files.before, way_out=way_out)
        assignment |= {p: replicas for p, replicas in mine.items() if found.get(p, replicas) != replicas}
    for each in (*earlier, files.directory / PLAN):
        plan = plan_in(each, way_out=way_out)
        anew = plan.made_anew(ids)
        assignment = {**plan.present, **{p: r for p, r in assignment.items() if p.topic not in anew}}
        ids |= plan.topic_ids
    return replace(saved, assignment=assignment, topic_ids=ids)


def file_of_run(name: str, state: Path, *any_of: str, did: str) -> Path:
    """The first of these files that the run of this name has. ``did``: what leaves such a file, in words. Raises
    Refused where there is none, with the names of the runs that have one.
    """
    places = [files_of_all(state) / name / file for file in any_of] if name and "/" not in name else []
    found = next((each for each in places if each.is_file()), None)
    if found is None:
        known = sorted({each.parent.name for file in any_of for each in files_of_all(state).glob(f"*/{file}")})
        raise Refused(
            f"no run named {name!r} {did}",
            way_out=f"name one of: {', '.join(known) or '(there is none)'}",
        )
    return found
