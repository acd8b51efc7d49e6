"""The throttles of a plan's moves: set, changed while they move, put back."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kraft_runbook.cluster.assignment import Move, TopicPartition
from kraft_runbook.cluster.naming import nodes, some
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.procedures.move_replicas import read_state, save_throttles_anew
from kraft_runbook.procedures.throttle_replication import (
    list_moves,
    read_throttles,
    remove_throttles,
    require_swept,
    set_rate,
    unlist,
)
from kraft_runbook.reassignment.list_room import Listed
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.run_throttles import RunThrottles, before_all_runs
from kraft_runbook.reassignment.stages import MOVE
from kraft_runbook.reassignment.throttles import (
    RATES,
    Former,
    entries_of,
    throttled_lists,
)
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.reassignment.asked_rate import (
    PUT_BACK_DONE,
    SET,
    THROTTLE_REFUSED,
    is_left_alone,
    rate_text,
    take_up_rate,
)
from kraft_runbook.steps.reassignment.earlier_runs import EarlierRun, still_throttling
from kraft_runbook.steps.reassignment.files import RunFiles, files_of
from kraft_runbook.steps.reassignment.judged_rate import require_an_end
from kraft_runbook.steps.reassignment.looks import patiently, settled_look
from kraft_runbook.steps.reassignment.signed import require_signed
from kraft_runbook.steps.reassignment.wanted import Asks, Wanted
from kraft_runbook.steps.run import Run

log = logging.getLogger(__name__)

PUT_BACK = Act("put throttles back")
THROTTLED = "throttle the moves to"


def throttled(rate: int) -> Act:
    """The act of setting this rate, in bytes a second a broker."""
    return Act(f"{THROTTLED} {rate_text(rate)}")


def set_throttle(run: Run, *, asks: Asks) -> None:
    """Set the rate for the plan's moves, where the run asks for one. Raises Refused."""
    look = None if run.cluster.rehearses else require_signed(run)[0]
    files, given = files_of(run), asks(run).throttle
    rate, plan = files.wanted_throttle(given), files.plan()
    if rate is None or not any(move.adding for move in plan.moves):
        run.cluster.tell("No throttle is asked for" if rate is None else "Nothing is copied: no throttle is set")
    elif look is None:
        run.cluster.do(set_rate, rate, would=[throttled(rate)])
    else:
        if rate != given:  # a person wrote it since the plan was judged
            require_an_end(run, plan, look, rate, asks(run))
        run.signatures.begins(MOVE)
        throttle(run, rate)


def throttle(run: Run, rate: int) -> None:
    """Set this rate; that it will be set is written down first, and where none of the run's is in force, what is set
    now is saved, but for what other runs of this tool have set.
    """
    files = files_of(run)
    if files.throttles.rate is None:
        saved = read_state(files.saved)
        topics = {p.topic for each in (saved.assignment, files.plan().target) for p in each}
        others = [(each.throttles, each.saved.throttles) for each in _other_runs(run, files, saved.cluster_id)]
        save_throttles_anew(files.saved, before_all_runs(run.cluster.ask(read_throttles, topics), others))
    if own := read_state(files.saved).throttles.of_brokers:
        log.warning("%s a rate of their own: it counts there, and not this run's", nodes("broker", own, "has"))
    files.will_throttle(RunThrottles((rate,)))
    run.cluster.do(set_rate, rate, would=[throttled(rate)])
    run.journal.record(Moves(what=SET, partitions=None, told=rate_text(rate)))


def listed_by_others(run: Run, topics: Collection[str]) -> Listed:
    """What others have in the lists of these topics; nothing while no throttle is in force: then no list is changed."""
    ours = files_of(run).throttles
    if ours.rate is None:
        return {}
    found: dict[str, dict[str, frozenset[str]]] = {}
    for topic, lists in run.cluster.ask(read_throttles, topics, live=()).lists.items():
        mine = ours.lists.get(topic, {})
        found[topic] = {key: entries_of(value) - mine.get(key, frozenset()) for key, value in lists.items()}
    return {topic: keys for topic, keys in found.items() if any(keys.values())}


def list_what_moves(run: Run, moves: Sequence[Move]) -> None:
    """Let the throttle count for these, which are copied now or start next, and for nothing else of the plan: what
    ended, or has every copy in sync and waits, goes on being read by its followers in sync. Kafka counts that too, and
    lets the copies alone wait for it. What is added is written down first.
    """
    files = files_of(run)
    ours = files.throttles
    if ours.rate is None:
        return
    needed = RunThrottles(lists=throttled_lists(moves))
    files.will_throttle(needed)
    if ended := ours.beyond(needed):
        run.cluster.do(unlist, ended, read_state(files.saved).throttles, would=())
        files.throttles_list(needed)
    run.cluster.do(list_moves, moves, would=())


@dataclass(frozen=True, slots=True)
class OfReplicas:
    """The throttle of the moves of one plan between brokers (``asked_rate.Throttle``)."""

    run: Run
    plan: ReassignmentPlan
    look: ReplicasLook
    wanted: Wanted

    @property
    def noted(self) -> int | None:
        return files_of(self.run).throttles.rate

    def stands(self, rate: int) -> bool:
        saved = read_state(files_of(self.run).saved)
        now = self.run.cluster.ask(read_throttles, (), live=()).rates
        of_runs = {str(each.throttles.rate) for each in _other_runs(self.run, files_of(self.run), saved.cluster_id)}
        return all(is_left_alone(now.get(key), rate, saved.throttles.rates.get(key), of_runs) for key in RATES)

    def require_an_end(self, rate: int) -> None:
        require_an_end(self.run, self.plan, self.look, rate, self.wanted)

    def set(self, rate: int) -> None:
        throttle(self.run, rate)


def change_throttle(run: Run, plan: ReassignmentPlan, look: ReplicasLook, wanted: Wanted) -> None:
    """While replicas move: set the rate that was asked for since, or the run's own where none is in force. A plan that
    copies nothing gets none.
    """
    files, given = files_of(run), wanted.throttle
    if files.throttles.rate is None and not any(move.adding for move in plan.moves):
        if files.asks_for_another(given):  # else the wait would end for it again and again
            files.keep_throttle(None)
            run.journal.record(Moves(what=THROTTLE_REFUSED, partitions=None, told="nothing is copied, so none is set"))
        return
    take_up_rate(run, OfReplicas(run, plan, look, wanted), given)


def put_throttles_back(run: Run) -> dict[str, Any]:
    """Throttles become what they were, and it is proven that none of the run's is left. While something of the run
    still moves, its throttle stays, whatever became of the run: without it the copies would take all that the brokers
    have. Who goes on or cancels puts it back.
    """
    tell = run.cluster.tell
    if run.cluster.rehearses:
        if any(act.startswith(THROTTLED) for act in run.listed()):
            run.cluster.do(remove_throttles, would=[PUT_BACK])
        else:
            tell("This run would set no throttle")
        return {"left": []}
    files = files_of(run)
    if files.throttles.rate is None:
        tell("This run set no throttle")
        return {"left": []}
    run.claim.take()
    ongoing = patiently(run, lambda: settled_look(run.cluster, sizes_of=(), settings=False)).moving
    if moving := sorted(map(str, files.throttles.partitions & ongoing.keys())):
        log.warning(
            "%d partitions still move, and their throttle stays: %s. What to do: clear the failed task, and the run"
            " goes on; or trigger cancel_reassignments__%s. Either puts the throttle back at its end",
            len(moving),
            some(moving, 10),
            run.spec.name,
        )
        run.journal.record(Moves(what="throttle kept", partitions=len(moving), told=some(moving, 10)))
        return {"left": moving[:100]}
    patiently(run, lambda: put_back(run, files, ongoing))
    return {"left": []}


def _other_runs(run: Run, files: RunFiles, cluster_id: str) -> list[EarlierRun]:
    """Those that have not put their throttles back, the latest first."""
    return [each for each in still_throttling(run, cluster_id) if each.files.name != files.name]


def put_back(run: Run, files: RunFiles, ongoing: Collection[TopicPartition], act: Act = PUT_BACK) -> None:
    """Make throttles what they were before the run of these files set its own. What somebody else set since is named
    and stays. Where another run of this tool still moves something, its rate is set, which that run puts back.
    ``ongoing``: what moves now; ``act``: in words. Raises StepFailed, with the names, where something of the run's is
    left.
    """
    saved, ours = read_state(files.saved), files.throttles
    former = _or_of_what_moves(saved.throttles, _other_runs(run, files, saved.cluster_id), ongoing)
    left = run.cluster.do(remove_throttles, ours, former, would=[act]) or ()
    run.journal.record(Moves(what=PUT_BACK_DONE, partitions=None, told="; ".join(map(str, left))))
    mine = ours.among(left, former)
    require_swept(mine)
    if others := [str(each) for each in left if each not in mine]:
        log.warning("%d throttles are set that this run did not set: %s", len(others), some(others, 20, between="; "))
    files.throttles_are_back()


def _or_of_what_moves(former: Former, others: Iterable[EarlierRun], ongoing: Collection[TopicPartition]) -> Former:
    for each in others:
        if each.throttles.partitions.intersection(ongoing):
            return replace(former, rates=dict.fromkeys(RATES, str(each.throttles.rate)))
    return former
