"""A broker leads nothing while it is restarted: leaders go off before its process is stopped, and come back once it is
in every ISR. Where the cluster file asks for it.

What a run took from a broker and has not given back lies in the state directory, ``demotions/<run>/broker-<id>.json``.
A run that is cleared goes on with it, a later run for the same broker takes it over, and ``restore_assignment`` gives
it back, and then forgets it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.naming import nodes, some
from kraft_runbook.cluster.phases import known_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kinds import Moves, Played, of_kind
from kraft_runbook.procedures.demote_broker import demote_broker, forget_orders, give_orders_back, read_orders
from kraft_runbook.reassignment.checks import MAY_MOVE_IN
from kraft_runbook.reassignment.demotion import KeptOrders
from kraft_runbook.steps.guards import require_other_brokers
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.node_step import Look
from kraft_runbook.steps.run import Run

log = logging.getLogger(__name__)
DEMOTED, GIVEN_BACK = "demoted", "given back"


def of_all(state: Path) -> Path:
    """Where the runs that share this state directory keep what they took from brokers."""
    return state / "demotions"


def kept_for(run: Run, broker: int) -> Path:
    return of_all(run.state) / run.name / f"broker-{broker}.json"


def demotes(
    asked: Callable[[ClusterSpec], bool], *, awaits: Callable[[Look], None] | None = None
) -> Callable[[Run, Look], None]:
    """What a step on a broker does right before it stops the process, where the cluster file asks for it. That takes a
    while, so whether the broker may be stopped is looked at again then: by a look after what the step ``awaits``.
    Raises Refused where it may not be any more.
    """

    def before(run: Run, look: Look) -> None:
        if asked(look.spec) and demote(run, look) and not run.cluster.rehearses:
            if awaits is not None:
                awaits(replace(look, seen=run.cluster.settled()))
            require_other_brokers(replace(look, seen=run.cluster.settled()))

    return before


def demote(run: Run, look: Look) -> bool:
    """Take the broker's leaders off. One that does not run leads nothing, and is left; so is one that this run has
    restarted, since its process is not stopped again but by a step ``anew``. While a migration is under way none is
    changed, as no move is (``reassignment.checks``, KRB-MOV-002). Raises Refused, StepFailed or Unreachable; its
    process was not touched then. Returns whether leaders were asked to go.
    """
    broker = look.node
    played = {told.node_id for _, told in of_kind(run.journal.records(), Played)}
    if look.seen.brokers[broker].running is False or (broker in played and not look.anew):
        return False
    if look.phase not in MAY_MOVE_IN:
        run.cluster.tell(f"The leaders of broker {broker} stay: in {look.phase} no order of replicas is changed")
        return False
    would = [_off(broker)]
    path = kept_for(run, broker)
    done = run.cluster.do(demote_broker, broker, path, others=_of_earlier_runs(run, path), would=would)
    if done is None:
        return True
    told = f"broker {broker} leads nothing that another one can lead; {done.orders} partitions have another order"
    if done.left:
        told += f"; {len(done.left)} are left, with one replica, or as they move or are deleted: {some(done.left, 5)}"
    run.cluster.tell(told)
    run.journal.record(Moves(what=DEMOTED, partitions=done.orders, told=told))
    return True


def _off(broker: int) -> Act:
    return Act(f"put broker {broker} last in the order of its partitions, and let others lead them")


def give_leaders_back(run: Run, *, broker: int, left_out: Callable[[Run], str | None]) -> dict[str, Any]:
    """Give the broker its leaders back: the order from before, where nobody changed it since. Also what an earlier run
    took and left: where the broker was down, this run had nothing to take. While a migration is under way no order is
    changed, as of ``demote``. ``left_out``: why this run has no turn for it. Raises Refused, StepFailed or Unreachable.
    """
    if why := left_out(run):
        run.cluster.tell(why)
        return {"not_asked_for": why}
    would = [Act(f"give broker {broker} the order of its partitions back, and its leaders")]
    if run.cluster.rehearses:
        if str(_off(broker)) in run.listed():
            run.cluster.do(give_orders_back, would=would)
        return {"dry_run": True}
    run.claim.take()
    done, path = None, kept_for(run, broker)
    if are_off(run, broker):
        if (phase := known_phase(run.cluster.settled())) not in MAY_MOVE_IN:
            run.cluster.tell(f"The leaders of broker {broker} stay off: in {phase} no order of replicas is changed")
            return {"given_back": 0}
        done = run.cluster.do(give_orders_back, path, others=_of_earlier_runs(run, path), would=would)
    if done is None:
        run.cluster.tell(f"already done: nothing was taken from broker {broker} that is not given back")
        return {"given_back": 0}
    told = f"broker {broker} has its order back in {done.orders} partitions"
    if done.left:
        told += f"; {len(done.left)} have another order or other replicas by now: {some(done.left, 5)}"
        log.warning("%s", told)
    run.cluster.tell(told)
    run.journal.record(Moves(what=GIVEN_BACK, partitions=done.orders, told=told))
    return {"given_back": done.orders, "left": len(done.left)}


def are_off(run: Run, broker: int) -> bool:
    """Whether a run of any cluster keeps what it took from a broker of this id, and has not given back."""
    path = kept_for(run, broker)
    return path.exists() or bool(_of_earlier_runs(run, path))


def still_demoted(run: Run) -> str | None:
    """Of which brokers this run has taken leaders that it has not given back, and the way on and back."""
    brokers = [int(each.stem.removeprefix("broker-")) for each in (of_all(run.state) / run.name).glob("broker-*.json")]
    if not brokers:
        return None
    return (
        f"The leaders of {nodes('broker', sorted(brokers))} are off. They come back once the run goes on; or trigger"
        f" restore_assignment__{run.spec.name} with this run's name, {run.name}"
    )


def kept_by(name: str, state: Path) -> KeptOrders | None:
    """All that the run of this name took and has not given back; None where that is nothing. Raises Refused where it
    can't be read, or holds two clusters.
    """
    found: KeptOrders | None = None
    for path in _of_run(name, state):
        kept = read_orders(path)
        if kept is not None:
            found = found.and_then(kept.before, kept.after, kept.topic_ids) if found else kept
    return found


def has_demoted(name: str, state: Path) -> bool:
    """Whether the run of this name took anything from brokers, given back or not."""
    return bool(name) and "/" not in name and (of_all(state) / name).is_dir()


def forget(name: str, state: Path, topics: Callable[[str], bool]) -> None:
    """What the run of this name took of these topics is given back: a later run takes none of it over. Raises Refused
    where it can't be read.
    """
    for path in _of_run(name, state):
        forget_orders(path, topics)


def _of_run(name: str, state: Path) -> list[Path]:
    """In the order in which its brokers were demoted: what was before the first counts."""
    return _oldest_first((of_all(state) / name).glob("broker-*.json")) if name and "/" not in name else []


def _of_earlier_runs(run: Run, path: Path) -> list[Path]:
    """What other runs took from the broker of this file and have not given back, the oldest first. Whoever holds the
    claim knows that none of them goes on.
    """
    return [each for each in _oldest_first(of_all(run.state).glob(f"*/{path.name}")) if each != path]


def _oldest_first(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda each: each.stat().st_mtime_ns)
