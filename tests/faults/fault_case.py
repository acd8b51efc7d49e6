"""A fault case as its file has it: where the cluster stands, what is broken and when, and what must come of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from kraft_runbook.cluster.phases import Phase

CASES = Path(__file__).parent / "cases"

TaskState = Literal["running", "deferred", "awaiting_input", "success", "failed"]


class Strict(BaseModel):
    """A part of a case file. A key that it does not know is an error, not a wish."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Start(Strict):
    """Where the cluster stands before the run: a phase, and how far the next roll has come by then.

    ``rolled``: brokers that a roll has already restarted (as hybrid in PRE_MIGRATION, in KRaft mode in HYBRID).
    ``topics``: further topics of 10 partitions, so that the copy lasts. ``proxied``: ZooKeeper is reached through a
    proxy that a fault can cut for some processes; ``quorum_proxied``: so do the controllers reach each other (from
    HYBRID on). ``ensemble``: ZooKeeper is three servers, not one.
    """

    phase: Literal["ZOOKEEPER", "PRE_MIGRATION", "HYBRID", "DUAL_WRITE"]
    rolled: tuple[int, ...] = ()
    topics: int = 0
    proxied: bool = False
    quorum_proxied: bool = False
    ensemble: bool = False


class When(Strict):
    """The moment of a fault: as soon as all that is given holds. Nothing given: before the run is triggered.

    ``playbook``: before the task's playbook runs; while it runs; during it, once it has written the node's
    configuration; or right after its end, before the task has recorded it. ``spark``: while the task's Spark job
    compares. ``stopped``: the service that the task stops is down (``a-controller``, ``every-controller``: whichever).
    ``deleted``: the znode that the task deletes is gone, or is one made later.
    """

    task: str | None = None
    state: TaskState = "running"
    playbook: Literal["before", "running", "during", "after"] | None = None
    spark: bool = False
    stopped: str | None = None
    deleted: str | None = None


class Fault(Strict):
    """What is broken. ``target`` is for the injector of that kind to read; ``seconds``: how long it lasts once it is
    broken, where it ends by itself.
    """

    kind: str
    target: Any = None
    seconds: float | None = None
    when: When = When()


class Until(Strict):
    """The task and its state with which the case is proven; the run is ended there."""

    task: str
    state: TaskState


class Expected(Strict):
    """What must come of it.

    ``fails``: the one task that fails (none: no task may fail). ``says``: words of its log or the closing report. In
    these and in ``explain``, ``this | that`` means either: where chance decides, and each is right. ``explain``: words
    of ``kraft-runbook explain`` while the fault lasts. ``<active>`` in a word is the controller that was active when
    the fault was meant for it, ``<broken>`` what was broken, such as ``controller 103``, ``<holder>`` the run that has
    the cluster, where two Airflows wanted it. ``resumes``: after the repair
    the failed task is cleared and the run goes on to ``until``; otherwise the refusal is the end. ``serves``: producers
    and readers go on while the fault lasts. ``may_fail``: how many records may fail to their producers: where nothing
    is committed for a minute, a transaction of ten is given up. ``transactions``: the marks of the copy's transactions
    in the metadata log, in their order, where the case is about the copy.
    """

    fails: str | None = None
    says: tuple[str, ...] = ()
    explain: tuple[str, ...] = ()
    resumes: bool = True
    serves: bool = True
    may_fail: int = 0
    transactions: tuple[Literal["begin", "end", "abort"], ...] = ()
    until: Until | None = None
    phase: Phase
    starts: dict[str, int] = Field(default_factory=dict)


class Case(Strict):
    """One fault case. ``behind``: task groups that lie behind the start and are marked done by hand, to save their
    time.
    """

    title: str
    goal: str
    tags: tuple[Literal["forward", "rollback"], ...]
    start: Start
    dag: str = "zk_to_kraft_migration__lab"
    params: dict[str, Any] = Field(default_factory=dict)
    behind: tuple[str, ...] = ()
    faults: tuple[Fault, ...]
    expected: Expected


def load_case(path: Path) -> Case:
    """Raises pydantic's ValidationError for a file that is no case."""
    return Case.model_validate(yaml.safe_load(path.read_text()))


def load_cases() -> dict[str, Case]:
    """Every case by its file's name, ordered so that one leaves the cluster as the next needs it, as often
    as can be.
    """
    left = dict(
        sorted(
            ((path.stem, load_case(path)) for path in CASES.glob("*.yaml")), key=lambda item: _rank(item[0], item[1])
        )
    )
    ordered: dict[str, Case] = {}
    stands: Start | None = None
    while left:
        near = [name for name, case in left.items() if case.start == stands]
        name = min(near, key=lambda name: leaves(left[name]) != stands) if near else next(iter(left))
        ordered[name] = left.pop(name)
        stands = leaves(ordered[name])
    return ordered


_ORDER = ("ZOOKEEPER", "PRE_MIGRATION", "HYBRID", "DUAL_WRITE")
_ROLLED = re.compile(r"roll_brokers_to_(hybrid|kraft)\.broker_(\d)\.in_sync")


def _rank(name: str, case: Case) -> tuple[object, ...]:
    start = case.start
    lab = (start.ensemble, start.proxied, start.quorum_proxied, start.topics)
    return *lab, _ORDER.index(start.phase), start.rolled, name


def leaves(case: Case) -> Start:
    """Where a case should leave the cluster, where that is a start of another. Only the order of cases
    depends on it.
    """
    until = case.expected.until.task if case.expected.until else ""
    rolled = _ROLLED.fullmatch(until)
    if rolled:
        brokers = tuple(range(1, int(rolled[2]) + 1))
        return (
            Start(phase="DUAL_WRITE", ensemble=case.start.ensemble)
            if brokers[-1] == 3
            else case.start.model_copy(
                update={"rolled": brokers, "phase": "HYBRID" if rolled[1] == "kraft" else "PRE_MIGRATION"}
            )
        )
    ends: dict[str, Literal["HYBRID", "ZOOKEEPER"]] = {"await_metadata_copy": "HYBRID", "leave_kraft": "ZOOKEEPER"}
    return Start(phase=ends[until], ensemble=case.start.ensemble) if until in ends else case.start
