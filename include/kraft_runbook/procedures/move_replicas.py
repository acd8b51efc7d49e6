"""Save what is, and start, cancel and finish moves. Each can be done again: it looks first, and leaves alone what is
already so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

from kraft_runbook.cluster.assignment import Answer, Assignment, Move, Ongoing, PartitionResult, TopicPartition
from kraft_runbook.cluster.log_dirs import Directories
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.io.kafka.assignment_seen import AssignmentSeen, assignment_seen
from kraft_runbook.io.kafka.leader_elections import elect_preferred_leaders
from kraft_runbook.io.kafka.log_dirs import GONE, alter_replica_log_dirs
from kraft_runbook.io.kafka.reassignments import Reassignments
from kraft_runbook.io.kafka.topic_ids import topic_ids
from kraft_runbook.io.private_file import write_private
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.slices import slices
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.reassignment.batches import Limits, next_batch
from kraft_runbook.reassignment.cancelling import of_unsafe, out_of_order, unsafe_cancels, ways_out, with_other_replicas
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.plan_file import from_json as plan_from_json
from kraft_runbook.reassignment.saved_state import SavedState, from_json
from kraft_runbook.reassignment.throttles import Former

Client = Callable[..., Reassignments]
Looks = Callable[..., ReplicasLook]
SAMPLE = 5
LOOKS, APART_SECONDS = 10, 1.0
PATIENCE_SECONDS = 30.0
"""In which another controller is looked for after an election."""
A_REQUEST = 50
"""Partitions in a request that cancels, reorders or elects: a controller in ZooKeeper mode takes no more without being
busy for long (``batches.ZOOKEEPER_LIMITS``).
"""


class StartedInPart(StepFailed):
    """Some moves are started (``done``), others are not. ``untold``: by broker and log directory, why the broker did
    not take it as the one to make replicas in, in words. ``told``: which brokers took one, of moves that are not
    started: each remembers it until it restarts, since nothing takes it back.
    """

    def __init__(
        self,
        problem: str,
        *,
        way_out: str,
        done: tuple[Move, ...],
        untold: Mapping[tuple[int, str], str] | None = None,
        told: Directories | None = None,
    ) -> None:
        self.done, self.untold, self.told = done, untold or {}, told or {}
        if self.told:
            problem += f". Told to their brokers, and not started: {some(replicas_in(self.told), SAMPLE)}"
        super().__init__(problem, way_out=way_out)


class CancelledInPart(StepFailed):
    """Some reassignments are cancelled (``done``), others are not."""

    def __init__(self, problem: str, *, way_out: str, done: Mapping[TopicPartition, Ongoing]) -> None:
        super().__init__(problem, way_out=way_out)
        self.done = done


def save_state(path: Path, look: ReplicasLook, throttles: Former) -> SavedState:
    """Keep the whole assignment and the throttles, on disk, before anything is changed. What an earlier try of the same
    run saved stays: it is what was there before. Raises Refused where that is of another cluster.
    """
    if path.exists():
        saved = read_state(path)
        if saved.cluster_id != look.cluster_id:
            raise Refused(
                f"{path} was saved of cluster {saved.cluster_id}, and this is {look.cluster_id}",
                way_out="correct the addresses in the cluster file, or begin a new run",
            )
        return saved
    saved = SavedState(look.cluster_id, look.placement.present, throttles, look.placement.topic_ids)
    write_private(path, saved.to_json())
    return saved


def save_throttles_anew(path: Path, throttles: Former) -> None:
    """Where none of a run's throttles is in force, what is set now is what it will give back: somebody may have changed
    it since the run put its own back. The assignment stays as it was saved. Raises Refused where none was.
    """
    saved = read_state(path)
    if saved.throttles != throttles:
        write_private(path, replace(saved, throttles=throttles).to_json())


def read_state(path: Path) -> SavedState:
    """What was saved. Raises Refused where it can't be read."""
    try:
        text = path.read_text()
    except OSError as error:
        raise Refused(f"{path} can't be read: {error}", way_out="name the file that a run saved") from None
    return from_json(text, source=str(path))


def read_assignment(path: Path, *, ignored: Callable[[str], object] = lambda _: None) -> Assignment:
    """An assignment in the JSON of kafka-reassign-partitions, or the one that a run saved. ``ignored`` is told of log
    directories, which no comparison looks at. Raises Refused.
    """
    try:
        text = path.read_text()
    except OSError as error:
        raise Refused(f"{path} can't be read: {error}", way_out="name a file that exists") from None
    is_saved_state = text.startswith('{"format":')
    if is_saved_state:
        return from_json(text, source=str(path)).assignment
    return plan_from_json(text, source=str(path), ignored=ignored)


def start_next_batch(
    spec: ClusterSpec,
    plan: ReassignmentPlan,
    look: ReplicasLook,
    limits: Limits,
    *,
    secrets: Secrets,
    among: Collection[Move] | None = None,
    client: Client = Reassignments,
    looks: Looks | None = None,
    ids_of: Callable[..., Mapping[str, str]] | None = None,
    alter: Callable[..., Mapping[TopicPartition, str]] = alter_replica_log_dirs,
) -> tuple[Move, ...]:
    """Send what may be started now, and is ``among`` these (None: any); returns what Kafka took. ``look``: for sizes
    and deletions; the replicas are looked at again, since a target takes the place of one that somebody gave meanwhile.
    A broker that is to make a replica in a certain directory is told so first; where it does not take that, the move is
    not sent.
    A topic that was deleted meanwhile is no error, and one that was made anew under its name is left out: its id is
    asked right before the request, since Kafka takes names alone. Raises StartedInPart, with Kafka's texts, where
    anything else was refused; what was accepted moves.
    """
    if not next_batch(plan, look.placement, limits):
        return ()
    now = (looks or look_at_replicas)(spec, secrets=secrets, sizes_of=(), settings=False).placement
    placement = replace(
        look.placement,
        racks=now.racks,
        present=now.present,
        ongoing=now.ongoing,
        leaderless=now.leaderless,
        leaders=now.leaders,
        in_sync=now.in_sync,
    )
    batch = tuple(each for each in next_batch(plan, placement, limits) if among is None or each in among)
    if plan.topic_ids:
        anew = plan.made_anew((ids_of or topic_ids)(spec, {each.partition.topic for each in batch}, secrets=secrets))
        batch = tuple(each for each in batch if each.partition.topic not in anew)
    batch, untold, told = _told_where(spec, plan, batch, secrets, alter)
    if batch:
        answers = client(spec, secrets=secrets).alter(
            batch, allow_replication_factor_change=plan.changes_replication_factor
        )
        done = tuple(each for each in batch if each.partition not in answers or answers[each.partition].accepted)
        try:
            _require_accepted(answers, "start", but=Answer.UNKNOWN_TOPIC_OR_PARTITION)
        except StepFailed as error:
            not_begun = _of_others(told, done)
            raise StartedInPart(error.problem, way_out=error.way_out, done=done, told=not_begun) from None
    else:
        done = ()
    if untold:
        raise StartedInPart(
            of_untold(untold.values()),
            way_out="mend the directory or start the broker that is named, or allow it Alter on the cluster; then do"
            " this step again: it sends what is left",
            done=done,
            untold=untold,
            told=_of_others(told, done),
        )
    return done


def _of_others(told: Directories, done: Collection[Move]) -> Directories:
    begun = {each.partition for each in done}
    return {each: path for each, path in told.items() if each[1] not in begun}


def replicas_in(directories: Directories) -> list[str]:
    """In words, each by itself."""
    return [f"{p} in {path} of broker {broker}" for (broker, p), path in sorted(directories.items())]


def of_untold(untold: Collection[str]) -> str:
    """In words."""
    return f"replicas are not made where the plan asks for them: {some(untold, SAMPLE, between='; ')}"


def _told_where(
    spec: ClusterSpec,
    plan: ReassignmentPlan,
    batch: tuple[Move, ...],
    secrets: Secrets,
    alter: Callable[..., Mapping[TopicPartition, str]],
) -> tuple[tuple[Move, ...], dict[tuple[int, str], str], Directories]:
    """Let brokers make the batch's new replicas in the directories that the plan asks for: AlterReplicaLogDirs of a
    replica that is not there answers REPLICA_NOT_AVAILABLE, and the broker remembers the directory until it makes the
    replica or restarts (3.9.2: ReplicaManager.alterReplicaLogDirs, LogManager.maybeUpdatePreferredLogDir). Returns the
    moves without those whose broker did not take it; by broker and directory, why not; and what brokers took.
    """
    wanted: dict[int, dict[TopicPartition, str]] = {}
    for move in batch if plan.directories else ():
        for broker in move.adding:
            if path := plan.directories.get((broker, move.partition)):
                wanted.setdefault(broker, {})[move.partition] = path
    untold, said = set[TopicPartition](), dict[tuple[int, str], str]()
    told = dict[tuple[int, TopicPartition], str]()
    for broker, mine in sorted(wanted.items()):
        try:
            answers = alter(spec, spec.broker(broker), mine, secrets=secrets)
        except (Unreachable, Refused) as error:
            answers = dict.fromkeys(mine, error.problem)
        refused = {p: why for p, why in answers.items() if why not in GONE}
        untold |= refused.keys()
        told |= {(broker, p): path for p, path in mine.items() if p not in refused}
        for path in sorted({mine[p] for p in refused}):
            these = sorted(p for p in refused if mine[p] == path)
            said[broker, path] = f"{some(these, SAMPLE)} in {path} of broker {broker}: {refused[these[0]]}"
    return tuple(each for each in batch if each.partition not in untold), said, told


def cancel_moves(
    spec: ClusterSpec,
    look: ReplicasLook,
    partitions: Collection[TopicPartition],
    *,
    secrets: Secrets,
    client: Client = Reassignments,
    sees: Callable[..., AssignmentSeen] = assignment_seen,
    patience: float = PATIENCE_SECONDS,
    apart: float = APART_SECONDS,
    at_once: int = A_REQUEST,
) -> Mapping[TopicPartition, Ongoing]:
    """Cancel the reassignment of those of these partitions where no data is lost by it; returns what was cancelled. One
    that ended by itself is no error. ``look``: which move of each is meant; another one that has begun since goes on.

    ``at_once`` of them are cancelled in a request, and brokers die meanwhile: so the live brokers and the ISRs are
    looked at right before each request, and before it is sent again to another controller (for ``patience`` seconds).
    They are looked at last: a list of what moves may wait for a controller.

    Raises Refused where the cancel of each that moves would lose data, before anything is sent; CancelledInPart, once
    all others are cancelled, where that of some would, or Kafka refused some; Unreachable where it took none.
    """
    ongoing = {p: each for p, each in sorted(look.placement.ongoing.items()) if p in set(partitions)}
    unsafe = list(unsafe_cancels(ongoing, look.seen, look.placement.live))
    if unsafe and len(unsafe) == len(ongoing):
        raise Refused(of_unsafe(unsafe), way_out=ways_out(unsafe))
    kept = {each.partition for each in unsafe}
    left = [p for p in ongoing if p not in kept]
    done: dict[TopicPartition, Ongoing] = {}
    others: list[TopicPartition] = []
    kafka, said, ways = client(spec, secrets=secrets), [], []
    since: float | None = None
    while left:
        try:
            part = kafka.ongoing(left[:at_once])
            other = [p for p in part if not _same_move(part[p], ongoing[p])]
            seen = sees(spec, secrets=secrets)
            lossy = unsafe_cancels({p: part[p] for p in part.keys() - set(other)}, seen.partitions, seen.racks.keys())
            meant = [p for p in part if p not in {*other, *(each.partition for each in lossy)}]
            answers = kafka.cancel(meant) if meant else {}
        except Unreachable as error:
            since = since or time.monotonic()
            if time.monotonic() - since < patience:
                time.sleep(apart)
                continue
            if not done:
                raise
            said.append(error.problem)
            ways.append(error.way_out)
            break
        left, since = left[at_once:], None
        others += other
        unsafe += lossy
        done |= {p: ongoing[p] for p, each in answers.items() if each.accepted}
        try:
            _require_accepted(answers, "cancel", but=Answer.NO_REASSIGNMENT_IN_PROGRESS)
        except StepFailed as error:
            said.append(error.problem)
            ways.append(error.way_out)
    if others:
        said.insert(0, f"{len(others)} move elsewhere since they were listed: {some(others, SAMPLE)}")
        ways.insert(0, "list what moves anew")
    if unsafe:
        said.insert(0, of_unsafe(unsafe))
        ways.insert(0, ways_out(unsafe))
    if said:
        raise CancelledInPart(
            f"{len(done)} reassignments are cancelled, and not all: {some(said, SAMPLE, between='; ')}",
            way_out=some(dict.fromkeys(ways), SAMPLE, between="; "),
            done=done,
        )
    return done


def _same_move(one: Ongoing, other: Ongoing) -> bool:
    return set(one.original) == set(other.original) and set(one.target) == set(other.target)


def give_back_order(
    spec: ClusterSpec,
    saved: Assignment,
    *,
    secrets: Secrets,
    client: Client = Reassignments,
    looks: Looks | None = None,
    most: int = LOOKS,
    apart: float = APART_SECONDS,
) -> tuple[TopicPartition, ...]:
    """Give these partitions their replicas in the saved order, where they have the same ones; no data moves. Returns
    those that have others, or still move. Right after a cancel a broker may still show what was: it is looked again,
    ``most`` times.
    Done again it sends nothing twice. Raises StepFailed with Kafka's texts.
    """

    def settled(holds: Callable[[Placement], bool]) -> Placement:
        """Looks until it holds, for some seconds; the last look in any case."""
        for _ in range(most):
            now = (looks or look_at_replicas)(spec, secrets=secrets, sizes_of=(), settings=False).placement
            if holds(now):
                break
            time.sleep(apart)
        return now

    now = settled(lambda placement: not with_other_replicas(saved, placement))
    moves = out_of_order(saved, now)
    for part in slices(moves, A_REQUEST):
        answers = client(spec, secrets=secrets).alter(part)
        _require_accepted(answers, "reorder", but=Answer.UNKNOWN_TOPIC_OR_PARTITION)
    after = settled(lambda placement: not out_of_order(saved, placement)) if moves else now
    if left := out_of_order(saved, after):
        raise StepFailed(
            f"{len(left)} partitions are not in the saved order: {some((m.partition for m in left), SAMPLE)}",
            way_out="do this step again",
        )
    return with_other_replicas(saved, after)


def prefer_first_replicas(
    spec: ClusterSpec,
    look: ReplicasLook,
    partitions: Collection[TopicPartition],
    *,
    secrets: Secrets,
    elect: Callable[..., Mapping[TopicPartition, str]] = elect_preferred_leaders,
) -> dict[TopicPartition, str]:
    """Elect the first replica of each of these partitions that another leads, some at a time. Returns why not, where
    Kafka refused.
    """
    wanted = [
        p
        for p in partitions
        if p in look.seen and look.seen[p].replicas and look.seen[p].leader != look.seen[p].replicas[0]
    ]
    refused: dict[TopicPartition, str] = {}
    for part in slices(wanted, A_REQUEST):
        refused |= elect(spec, part, secrets=secrets)
    return refused


def _require_accepted(answers: Mapping[TopicPartition, PartitionResult], what: str, *, but: Answer) -> None:
    refused = [each for each in answers.values() if not each.accepted and each.answer is not but]
    if refused:
        raise StepFailed(
            f"Kafka did not {what} {len(refused)} of {len(answers)} reassignments: "
            f"{some(refused, SAMPLE, between='; ')}",
            way_out="correct what the texts say, then do this step again: it sends nothing twice that Kafka accepted",
        )
