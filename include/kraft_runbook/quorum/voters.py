"""The voters of a dynamic quorum (KIP-853): who may become one, and who may cease to be one. Pure.

The cluster file says what is wanted: a controller that it declares and that does not vote is added, a voter that it no
longer declares is removed, one a run. A voter is known by its id and the id of its directory.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.naming import name_ids, nodes
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.quorum_seen import QuorumState, Voter
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import QuorumKind
from kraft_runbook.runbook.check_results import Finding, Verdict, failed, passed, unknown
from kraft_runbook.runbook.conditions import Missing, Progress, first_missing
from kraft_runbook.runbook.health import exited_controllers, quorum_whole, unfinished_quorum
from kraft_runbook.runbook.lag import following
from kraft_runbook.runbook.read_parts import needed
from kraft_runbook.runbook.warm import controllers_are_warm, not_warm

STATIC = (
    "the cluster file has a static quorum: its voters are in the file of every node, and are not changed while it runs"
)


def joining(seen: ClusterObservation, spec: ClusterSpec) -> tuple[int, ...]:
    """The controllers that the cluster file declares and that do not vote with the directory that they have now."""
    quorum = needed(seen.quorum)
    keys = {each.id: each.directory for each in quorum.voters}
    return tuple(
        i
        for i in spec.controller_ids
        if i not in keys or any(each.directory != keys[i] for each in following(seen, spec, i))
    )


def leaving(seen: ClusterObservation, spec: ClusterSpec) -> tuple[int, ...]:
    """The voters that the cluster file does not declare."""
    return tuple(each.id for each in needed(seen.quorum).voters if each.id not in spec.controller_ids)


def voter(quorum: QuorumState, node: int) -> Voter | None:
    """The voter with this id. The metadata log holds one at most (``VoterSet`` of Kafka's raft)."""
    return next((each for each in quorum.voters if each.id == node), None)


def may_add(
    seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None = None, only: int | None = None
) -> Finding:
    """Whether a controller may become a voter: the quorum is dynamic, every voter runs, has caught up and is known to
    be warm. ``only``: it is this one, whose own former directory may be a voter that is lost.

    A voter that the cluster file does not declare is judged by what the leader says of it: it fetches.
    """
    if refusal := _not_dynamic(seen, spec):
        return refusal
    wanted = joining(seen, spec)
    if only is not None and only not in wanted:
        return failed(f"controller {only} votes already")
    if not wanted:
        return failed("every controller of the cluster file votes: none is to be added")
    quorum = needed(seen.quorum)
    votes = {each.id for each in quorum.voters}
    judged = [i for i in spec.controller_ids if i in votes and i not in (wanted if only is None else (only,))]
    if (found := _whole(seen, spec, earlier, judged)).verdict is not Verdict.PASS:
        return found
    silent = [i for i in leaving(seen, spec) if not following(seen, spec, i)]
    if silent:
        return failed(
            f"{nodes('voter', silent, 'does')} not fetch from the leader, and the cluster file does not name it: with"
            " one more voter the majority would depend on every other one. Remove it first"
        )
    return passed(f"{nodes('controller', wanted)} may be added: every voter is whole and warm")


def may_remove(
    seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None = None, only: int | None = None
) -> Finding:
    """Whether a voter may be taken out: the cluster file no longer declares it, it has stopped, and the voters that
    stay run, have caught up and are known to be warm, and are a majority. ``only``: it is this one.

    The leader itself asks for none of that: it takes out any voter, and commits by the majority of the others
    (``RemoveVoterHandler`` of Kafka's raft).
    """
    if refusal := _not_dynamic(seen, spec):
        return refusal
    wanted = leaving(seen, spec)
    if not wanted or (only is not None and only not in wanted):
        told = "every voter is" if only is None else f"voter {only} is"
        return failed(f"{told} in the cluster file: take the one that is to go out of the file first")
    going = wanted if only is None else (only,)
    stopped = [i for i in going if not following(seen, spec, i)]
    if not stopped:
        return failed(
            f"{nodes('voter', going, 'fetches')} from the leader still: stop its service on its host, and see that it"
            " never starts again. One that is removed while it runs may add itself again"
            " (controller.quorum.auto.join.enable)"
        )
    quorum = needed(seen.quorum)
    staying = [i for i in spec.controller_ids if voter(quorum, i) is not None]
    if (found := _whole(seen, spec, earlier, staying)).verdict is not Verdict.PASS:
        return found
    left = len(quorum.voters) - 1
    alive = len(staying) + sum(1 for i in wanted if following(seen, spec, i))
    if alive < left // 2 + 1:
        return failed(f"of the {left} voters that would be left, {alive} run: they are no majority")
    return passed(f"{nodes('voter', stopped, 'has')} stopped, and {name_ids(staying)} run")


def _not_dynamic(seen: ClusterObservation, spec: ClusterSpec) -> Finding | None:
    if not was_read(seen.quorum):
        return unknown(seen.quorum)
    if spec.quorum is QuorumKind.STATIC:
        return failed(STATIC)
    return None if seen.quorum.is_dynamic else failed("the quorum is a static one: kraft.version is not 1 yet")


def _whole(seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None, ids: list[int]) -> Finding:
    if not ids:
        return failed("no voter is in the cluster file")
    whole = first_missing(*(unfinished_quorum(seen, spec, earlier, only=each) for each in ids))
    return controllers_are_warm(seen, ids, earlier) if whole.done else failed(whole.waiting_for)


# -- what is waited for ------------------------------------------------------------------------------------------------


def voters_whole(seen: ClusterObservation, spec: ClusterSpec, *, earlier: ClusterObservation | None) -> Progress:
    """Every controller runs, has caught up and is warm; of a dynamic quorum, those that vote: the cluster file may
    declare one that is added later.
    """
    if not was_read(seen.quorum) or not seen.quorum.is_dynamic:
        return quorum_whole(seen, spec, earlier=earlier)
    ids = [i for i in spec.controller_ids if voter(seen.quorum, i) is not None]
    exited = (exited_controllers(seen, earlier, only=i) for i in ids)
    return next(filter(None, exited), None) or first_missing(
        *(unfinished_quorum(seen, spec, earlier, only=i) for i in ids)
    )


def follows(seen: ClusterObservation, spec: ClusterSpec, node: int, *, earlier: ClusterObservation | None) -> Progress:
    """The controller fetches the metadata log, has caught up and is warm, so that it can be made a voter."""
    return exited_controllers(seen, earlier, only=node) or first_missing(_unready(seen, spec, node, earlier))


def _unready(
    seen: ClusterObservation, spec: ClusterSpec, node: int, earlier: ClusterObservation | None
) -> Iterator[str | Missing]:
    if not was_read(seen.quorum):
        yield f"waiting for a quorum leader: {seen.quorum.reason}"
        return
    found = following(seen, spec, node)
    if len(found) != 1:
        told = f"{len(found)} directories with its id do" if found else "none with its id does"
        yield f"waiting for controller {node} to fetch from the leader with one directory: {told}"
        return
    before = earlier.quorum.high_watermark if earlier is not None and was_read(earlier.quorum) else None
    wanted = seen.quorum.high_watermark if before is None else min(before, seen.quorum.high_watermark)
    if found[0].log_end_offset < wanted:
        yield f"waiting for controller {node} to catch up with offset {wanted}: it is at {found[0].log_end_offset}"
    yield from not_warm(seen, [node], earlier)


def present(seen: ClusterObservation, spec: ClusterSpec, node: int) -> Voter | None:
    """The controller as it follows now, with its one directory; None where none follows under its id, or two do."""
    found = following(seen, spec, node)
    return found[0] if len(found) == 1 else None
