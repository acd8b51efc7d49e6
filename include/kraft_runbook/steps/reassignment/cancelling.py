"""Reassignments are cancelled: list, and, behind the gate, cancel where no data is lost."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kraft_runbook.cluster.assignment import Ongoing, Replicas, TopicPartition, partitions_named
from kraft_runbook.cluster.naming import some
from kraft_runbook.errors import Refused, Unreachable
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.io.kafka.topic_ids import topic_ids
from kraft_runbook.io.private_file import write_private
from kraft_runbook.procedures.move_replicas import CancelledInPart, cancel_moves, give_back_order
from kraft_runbook.reassignment.cancelling import UnsafeCancel, left_short, of_unsafe, unsafe_cancels, ways_out
from kraft_runbook.reassignment.goals import Topics
from kraft_runbook.reassignment.look import ReplicasLook, of_hidden
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.reassignment.plan import made_anew, plain
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.reassignment.stages import CANCEL
from kraft_runbook.runbook.cluster_checks import SHOW_ALL
from kraft_runbook.runbook.digests import sha256_of
from kraft_runbook.steps.examine import Shown
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.reassignment.earlier_runs import EarlierRun, earlier_runs, order_before, still_throttling
from kraft_runbook.steps.reassignment.ending import leave_with_nothing_to_do
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.reassignment.looks import settled_look
from kraft_runbook.steps.reassignment.throttling import put_back
from kraft_runbook.steps.run import Run

log = logging.getLogger(__name__)
LISTED = "cancelled.json"


@dataclass(frozen=True, slots=True)
class Listed:
    """What a person signs: ``partitions``, each with its replicas as they will be, in the saved order where ``ordered``
    names it; ``targets``: where each was moving to; ``throttling``: the names of runs whose throttles are put back;
    ``topic_ids``: of their topics, where they have one.
    """

    partitions: Mapping[TopicPartition, Replicas]
    targets: Mapping[TopicPartition, Replicas]
    ordered: frozenset[TopicPartition]
    throttling: tuple[str, ...]
    text: str = ""
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "partitions": plain(self.partitions),
            "targets": plain(self.targets),
            "ordered": [[p.topic, p.partition] for p in sorted(self.ordered)],
            "throttling": list(self.throttling),
            "text": self.text,
            "topic_ids": dict(self.topic_ids),
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Listed:
        return Listed(
            {TopicPartition(topic, number): tuple(replicas) for topic, number, replicas in data["partitions"]},
            {TopicPartition(topic, number): tuple(replicas) for topic, number, replicas in data["targets"]},
            frozenset(TopicPartition(topic, number) for topic, number in data["ordered"]),
            tuple(data["throttling"]),
            data["text"],
            data["topic_ids"],
        )

    @property
    def digest(self) -> str:
        return sha256_of(self.to_dict())

    def without(self, topics: Collection[str]) -> Listed:
        """What is to be done of it, but for these topics."""
        return replace(self, partitions={p: each for p, each in self.partitions.items() if p.topic not in topics})

    def begun_since(self, ongoing: Mapping[TopicPartition, Ongoing]) -> tuple[TopicPartition, ...]:
        """The listed partitions that now move elsewhere, or from elsewhere: nobody has signed for that cancel."""
        return tuple(
            p
            for p, after in sorted(self.partitions.items())
            if p in ongoing
            and (set(ongoing[p].original) != set(after) or set(ongoing[p].target) != set(self.targets[p]))
        )


def list_reassignments(run: Run) -> dict[str, Any]:
    """List what is being reassigned of the chosen topics, with the order that an earlier run saved and the throttles
    that it left. What a cancel would lose data of is named and left out, so it hinders no other. Raises Refused where
    that is all of it, NothingToDo where there is none.
    """
    params = run.params
    chosen = Topics(tuple(str(params["topics"]).split()), tuple(str(params["exclude"] or "").split()))
    look, told = _look_with_settings(run)
    named = partitions_named(str(params.get("partitions") or ""))
    if hidden := [p for p in look.hidden if chosen.matches(p.topic) and (not named or p in named)]:
        raise Refused(
            f"whether a cancel would lose data is not known: {of_hidden(hidden)}",
            way_out=f"{SHOW_ALL}, then clear this task; or leave these topics out (exclude)",
        )
    if unknown := [p for p in named if p not in look.seen]:
        raise Refused(f"no such partition: {some(unknown)}", way_out="trigger the run anew with other names")
    ongoing = {
        p: each
        for p, each in sorted(look.placement.ongoing.items())
        if chosen.matches(p.topic) and (not named or p in named)
    }
    left = still_throttling(run, look.cluster_id)
    throttling = [each for each in left if _of_chosen(chosen, each.throttles)]
    if not ongoing and not throttling:
        if not any(chosen.matches(p.topic) for p in look.seen):
            raise Refused("no topic of the cluster is chosen", way_out="trigger the run anew with other patterns")
        leave_with_nothing_to_do(run, "nothing of these topics is being reassigned")
    unsafe = unsafe_cancels(ongoing, look.seen, look.placement.live)
    if unsafe and len(unsafe) == len(ongoing):
        raise Refused(of_unsafe(unsafe), way_out=ways_out(unsafe))
    for each in unsafe:
        del ongoing[each.partition]
    ids = run.cluster.ask(topic_ids, {p.topic for p in ongoing}) if ongoing else {}
    asked: set[TopicPartition] = set()

    def runs() -> Iterator[EarlierRun]:
        """Those that are read for the order: which of what moves they want in certain directories."""
        for each in earlier_runs(run, look.cluster_id):
            asked.update(p for broker, p in each.plan.directories if p in ongoing and broker in ongoing[p].adding)
            yield each

    ordered = order_before(ongoing, runs(), ids)
    names = tuple(sorted(each.files.name for each in throttling))
    after = {p: ordered.get(p, each.original) for p, each in ongoing.items()}
    targets = {p: each.target for p, each in ongoing.items()}
    short = left_short(ongoing, look.seen, look.placement.live, look.placement.min_isr)
    told = _table(ongoing, ordered, names, unsafe, short, sorted(asked)) + told
    listed = Listed(after, targets, frozenset(ordered), names, told, ids)
    write_private(files_of(run).directory / LISTED, json.dumps(listed.to_dict()))
    run.cluster.tell(listed.text)
    run.journal.record(Moves(what="to be cancelled", partitions=len(ongoing), told=listed.text))
    return {"partitions": len(ongoing)}


def _look_with_settings(run: Run) -> tuple[ReplicasLook, str]:
    """With min.insync.replicas, for which every broker must answer; a cancel waits for none, so without it else."""
    try:
        return settled_look(run.cluster), ""
    except Unreachable as error:
        told = f"\n\nNot read: which of them have too few replicas in sync afterwards ({error.problem})."
        return settled_look(run.cluster, settings=False), told


def shows_reassignments(run: Run) -> Shown:
    """What is to be cancelled, for the gate. Raises Refused where nothing was listed."""
    listed = _listed(run)
    return Shown(exhibits=(Exhibit("list", listed.digest, listed.text),), by="preflight.list")


def cancel_reassignments(run: Run) -> dict[str, Any] | None:
    """Cancel what was listed and signed for, each where an original replica is alive and in sync. Then give back what
    was saved: the order of replicas, and the throttles of runs of which nothing moves any more. Raises Refused;
    CancelledInPart once that is done for all that was cancelled, where something was not.
    """
    if run.cluster.rehearses:
        _rehearse(run)
        return None
    run.claim.take()
    seen = run.cluster.settled()
    listed = _listed(run)
    run.signatures.require(REASSIGNMENT, CANCEL, seen, exhibit=listed.digest)
    listed = _still_meant(run, listed)
    wanted, look = list(listed.partitions), settled_look(run.cluster, settings=False)
    if others := listed.begun_since(look.placement.ongoing):
        raise Refused(
            f"{len(others)} partitions do not move as they did when they were listed: {some(others, 20)}",
            way_out="clear the task 'preflight.list' with its downstream tasks: it is listed and signed for anew",
        )
    run.signatures.begins(CANCEL)
    cancels, orders = _acts(listed, look.placement.ongoing)
    in_part: CancelledInPart | None = None
    try:
        cancelled = run.cluster.do(cancel_moves, look, wanted, would=cancels) or {}
    except CancelledInPart as error:
        in_part, cancelled = error, error.done
    run.journal.record(Moves(what="cancelled", partitions=len(cancelled)))
    run.cluster.tell(f"Cancelled {len(cancelled)} of {len(wanted)}" + ("" if in_part else "; the others had ended"))
    still = look.placement.ongoing.keys() - cancelled.keys() if in_part else frozenset()
    saved = {p: order for p, order in listed.partitions.items() if p in listed.ordered and p not in still}
    if other := run.cluster.do(give_back_order, saved, would=orders):
        named = some(other, 20)
        log.warning("%d partitions have other replicas than before, since their move had ended: %s", len(other), named)
    left = _put_throttles_back(run, listed.throttling)
    if in_part:
        raise in_part
    return {"cancelled": len(cancelled), "ordered": len(saved) - len(other or ()), "throttled_on": list(left)}


def _put_throttles_back(run: Run, names: Collection[str]) -> tuple[str, ...]:
    """Returns the runs whose throttles stay: something of theirs still moves, or those of a later run stay, which
    found and will give back what the earlier one had set.
    """
    look = settled_look(run.cluster, sizes_of=(), settings=False)
    staying: list[str] = []
    later: list[str] = []
    for earlier in still_throttling(run, look.cluster_id):
        if earlier.files.name not in names:
            later.append(earlier.files.name)
            continue
        moving = sorted(earlier.throttles.partitions & look.moving.keys())
        if moving:
            log.warning(
                "The throttles of run %s stay, since %d of its partitions still move: %s",
                earlier.files.name,
                len(moving),
                some(moving, 20),
            )
            staying.append(earlier.files.name)
            later.append(earlier.files.name)
        elif later:
            log.warning(
                "The throttles of run %s stay until those of the later run %s are back: cancel that too",
                earlier.files.name,
                later[-1],
            )
            staying.append(earlier.files.name)
        else:
            put_back(run, earlier.files, look.moving, _what_it_found(earlier.files.name))
            run.cluster.tell(f"The throttles that run {earlier.files.name} found are set again")
    return tuple(staying)


def _rehearse(run: Run) -> None:
    listed = _still_meant(run, _listed(run))
    cancels, orders = _acts(listed, settled_look(run.cluster, settings=False).placement.ongoing)
    run.cluster.do(cancel_moves, would=cancels)
    run.cluster.do(give_back_order, would=orders)
    run.cluster.do(put_back, would=[_what_it_found(name) for name in listed.throttling])


def _still_meant(run: Run, listed: Listed) -> Listed:
    """Kafka cancels by names, so without topics that were made anew since under theirs: nobody has signed for those."""
    anew = made_anew(listed.topic_ids, run.cluster.ask(topic_ids, listed.topic_ids.keys())) if listed.topic_ids else ()
    if anew:
        named = some(sorted(anew), 20)
        log.warning("%d topics were made anew since they were listed, and are left: %s", len(anew), named)
    return listed.without(anew)


def _what_it_found(run: str) -> Act:
    """The act of putting back the throttles that this run found."""
    return Act(f"put the throttles back that run {run} found")


def _acts(listed: Listed, ongoing: Collection[TopicPartition]) -> tuple[list[Act], list[Act]]:
    """The cancels, and the orders that are given back."""
    cancels = [Act(f"cancel the move of {p}") for p in listed.partitions if p in ongoing]
    return cancels, [
        Act(f"give {p} the order {list(order)}") for p, order in listed.partitions.items() if p in listed.ordered
    ]


def _of_chosen(chosen: Topics, throttles: RunThrottles) -> bool:
    """A run that only reorders notes a rate and no list: that is nobody's topic, and is put back with any."""
    return not throttles.lists or any(map(chosen.matches, throttles.lists))


def _listed(run: Run) -> Listed:
    path = files_of(run).directory / LISTED
    try:
        return Listed.from_dict(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refused(
            f"{path} can't be read: {error}", way_out="clear the task 'preflight.list' with its downstream tasks"
        ) from None


def _table(
    ongoing: Mapping[TopicPartition, Ongoing],
    ordered: Mapping[TopicPartition, Replicas],
    throttling: Sequence[str],
    unsafe: Sequence[UnsafeCancel],
    short: Sequence[TopicPartition],
    asked: Sequence[TopicPartition],
) -> str:
    lines = [
        f"{len(ongoing)} reassignments:",
        "",
        "| partition | gets back | its order | moves to |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {p} | {list(ordered.get(p, each.original))} | {'as saved' if p in ordered else 'unknown'} |"
        f" {list(each.target)} |"
        for p, each in list(ongoing.items())[:100]
    ]
    lines += ["", "…"] if len(ongoing) > 100 else []
    if unknown := len(ongoing) - len(ordered):
        lines += ["", f"Of {unknown} no run of this tool saved the order of replicas: Kafka gives back one of its own."]
    if unsafe:
        lines += ["", f"{len(unsafe)} go on: {of_unsafe(unsafe)}", f"What to do about them: {ways_out(unsafe)}"]
    if short:
        lines += [
            "",
            f"**{len(short)} have fewer replicas in sync than min.insync.replicas afterwards**, and take nothing from"
            f" producers with acks=all until the others have caught up: {some(short)}. To let them end is safer.",
        ]
    if asked:
        lines += [
            "",
            f"{len(asked)} were to have new replicas in certain log directories: {some(asked)}. What was copied goes,"
            " and nothing was copied between disks yet. A broker that has not begun one remembers the directory until"
            " it restarts: a next replica of that partition there is made in it.",
        ]
    if throttling:
        lines += ["", f"Throttles are put back to what they were before: {', '.join(throttling)}"]
    return "\n".join(lines)
