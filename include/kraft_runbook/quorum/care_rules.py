"""Care of the quorum: whom it is about, and when it may be. Pure.

The voters of a static quorum are those of ``controller.quorum.voters``. A voter of a dynamic one has an id of its
directory, which a new disk has not (``quorum.voters``): docs/dynamic-quorum.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kraft_runbook.cluster.naming import name_ids, nodes
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import QuorumKind
from kraft_runbook.errors import Refused
from kraft_runbook.quorum.voters import STATIC, joining, leaving
from kraft_runbook.runbook.check_results import Finding, Verdict, failed, passed, unknown
from kraft_runbook.runbook.conditions import first_missing
from kraft_runbook.runbook.digests import sha256_of
from kraft_runbook.runbook.health import quorum_whole, unfinished_quorum
from kraft_runbook.runbook.lag import following, since_fetch
from kraft_runbook.runbook.lost_disk import why_not_anew
from kraft_runbook.runbook.one_role import require_one_role
from kraft_runbook.runbook.warm import controllers_are_warm


class Step(StrEnum):
    MOVE_LEADERSHIP = "move_leadership"
    BRING_BACK = "bring_back"
    CHANGE_VOTERS = "change_voters"


class Care(StrEnum):
    """LEADERSHIP: the leader restarts, and another controller leads. LOST_DISK: an empty directory is formatted and its
    controller started; in a dynamic quorum it becomes a voter with its new directory. ADD: a controller that the
    cluster file declares is formatted, started, and becomes a voter. REMOVE: one that it no longer declares ceases to
    be one.
    """

    LEADERSHIP = "move the leadership"
    LOST_DISK = "bring back a controller that lost its disk"
    ADD = "add a controller to a dynamic quorum"
    REMOVE = "remove a controller from a dynamic quorum"


@dataclass(frozen=True, slots=True)
class CareForm:
    """What a run's form says. ``controller``: whom it is about; None where the leadership moves."""

    care: Care
    controller: int | None

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> CareForm:
        named = params.get("controller")
        return cls(Care(params["care"]), None if named is None else int(named))

    def digest(self, node: int) -> str:
        """Of what the gate's signature is for. ``node``: whom it is about."""
        return sha256_of([self.care.value, node])


def whom(form: CareForm, seen: ClusterObservation, spec: ClusterSpec) -> int:
    """The controller that the run is about. Raises Refused where nobody is known, or the form names a wrong one, or one
    that is a broker too.
    """
    found = _whom(form, seen, spec)
    require_one_role(spec, found, f"care of the quorum ({form.care.value})")
    if form.care is Care.REMOVE and found in spec.broker_ids:
        raise Refused(
            f"voter {found} is a broker of the cluster file, and would go on to fetch with the id that votes",
            way_out="take it out by hand (docs/both-roles.md), or take the broker out of the cluster file too",
        )
    return found


def _whom(form: CareForm, seen: ClusterObservation, spec: ClusterSpec) -> int:
    if form.care is Care.LEADERSHIP:
        return _who_leads(form, seen, spec)
    named = "no controller" if form.controller is None else f"controller {form.controller}"
    if form.care is Care.REMOVE:
        found = leaving(seen, spec)
        if form.controller not in found:
            raise Refused(
                f"the form names {named}, and the voters that the cluster file does not declare are"
                f" {name_ids(found) or 'none'}",
                way_out="take the controller that is to go out of the cluster file, and name it in a new run",
            )
        return form.controller
    if form.controller not in spec.controller_ids:
        raise Refused(
            f"the form names {named}, and the cluster file has {name_ids(spec.controller_ids)}",
            way_out="name a controller of the cluster file in a new run; to add one, declare it there first",
        )
    if form.care is Care.ADD and form.controller not in joining(seen, spec):
        raise Refused(
            f"controller {form.controller} votes already",
            way_out="kraft-runbook quorum shows who votes: name a controller that does not in a new run",
        )
    if form.care is Care.LOST_DISK and seen.controllers[form.controller].running is True:
        raise Refused(
            f"controller {form.controller} runs: it is not the one that lost its disk",
            way_out="name the controller that is down in a new run",
        )
    return form.controller


def _who_leads(form: CareForm, seen: ClusterObservation, spec: ClusterSpec) -> int:
    if form.controller is not None:
        raise Refused(
            "the form names a controller, and nobody can say which one leads next: Kafka elects it",
            way_out="leave the field empty in a new run",
        )
    if not was_read(seen.quorum) or seen.quorum.leader_id not in spec.controller_ids:
        reason = "it is not in the cluster file" if was_read(seen.quorum) else seen.quorum.reason
        raise Refused(
            f"which controller leads is not known: {reason}", way_out="see kraft-runbook quorum, then clear this task"
        )
    return seen.quorum.leader_id


def may_move(seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None = None) -> Finding:
    """Whether the leader may be stopped: every controller runs, has caught up and is known to be warm, and there is
    another one.
    """
    if len(spec.controller_ids) < 2:
        return failed(f"controller {name_ids(spec.controller_ids)} is the only one: nobody else can lead")
    if not was_read(seen.quorum):
        return unknown(seen.quorum)
    whole = quorum_whole(seen, spec, earlier=earlier)
    return controllers_are_warm(seen, spec.controller_ids, earlier) if whole.done else failed(whole.waiting_for)


def may_bring_back(
    seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None = None, only: int | None = None
) -> Finding:
    """Whether a controller may come back with an empty log: it alone is down, and all others run, have caught up, are
    known to be warm and hold everything that is committed. ``only``: it is this one.
    """
    down = [each.id for each in seen.controllers.values() if each.running is not True]
    if not was_read(seen.quorum):
        return unknown(seen.quorum)
    if not down:
        return failed("every controller runs: none has lost its disk")
    if len(down) > 1 or (only is not None and down != [only]):
        return failed(f"{nodes('controller', down, 'does')} not run: one is brought back while all others are whole")
    (lost,) = down
    state = seen.controllers[lost].running
    if not was_read(state):
        return unknown(f"whether controller {lost} runs: {state.reason}")
    if seen.quorum.is_dynamic and spec.quorum is QuorumKind.STATIC:
        return failed(f"the quorum is dynamic, and {STATIC}: write 'quorum: dynamic' there first")
    if strangers := leaving(seen, spec):
        ways = "remove or declare it first" if seen.quorum.is_dynamic else "declare it first"
        return failed(f"{nodes('voter', strangers, 'is')} not in the cluster file: {ways}")
    others = [each for each in spec.controller_ids if each != lost]
    whole = first_missing(*(unfinished_quorum(seen, spec, earlier, only=each) for each in others))
    if not whole.done:
        return failed(whole.waiting_for)
    warm = controllers_are_warm(seen, others, earlier)
    if warm.verdict is not Verdict.PASS:
        return warm
    if (seconds := _still_fetches(seen, lost, spec)) is not None:
        return failed(
            f"controller {lost} does not run at {spec.controller(lost).address}, and a process with its id fetched from"
            f" the leader {seconds:.1f} s ago: stop the one on its former host, and see that it never starts again"
        )
    unsafe = why_not_anew(seen, lost)
    return failed(unsafe) if unsafe else passed(f"controller {lost} is down, and {name_ids(others)} hold everything")


def _still_fetches(seen: ClusterObservation, lost: int, spec: ClusterSpec) -> float | None:
    """Seconds since a process with this id fetched from the leader, where a running one would have (by
    ``quorum_health.silent``); None: none did.
    """
    found = following(seen, spec, lost)
    return since_fetch(seen, found[0]) if found else None


def page(form: CareForm, node: int, spec: ClusterSpec) -> str:
    """What the gate shows."""
    return f"### Care of the quorum: {form.care.value}\n\n{_what(form.care, node, spec)}"


def _what(care: Care, node: int, spec: ClusterSpec) -> str:
    if care is Care.LEADERSHIP:
        return (
            f"Restarts controller {node}, which leads by this look. Another is elected within a second or two; which"
            " one, nobody can say. Metadata changes wait for as long. Partitions keep their leaders."
        )
    if care is Care.REMOVE:
        return (
            f"Takes voter {node} out of the quorum, for good. The cluster file no longer names it, and it fetches no"
            " more; whether its service is stopped for good, see on its host, which nothing touches. The voters that"
            " stay commit that by their own majority. Its registration stays in the metadata log: keep its directory"
            " until no level is to be raised any more, or the level is 33 (docs/dynamic-quorum.md)."
        )
    empty = "its directory, where it is empty," if care is Care.ADD else "its empty directory"
    starts = (
        f"Writes the files of controller {node}, formats {empty} with the cluster's id and at the metadata.version in"
        " force, and starts it. It fetches the whole metadata log from the leader."
    )
    if care is Care.ADD:
        return (
            f"{starts} Once it has caught up and is warm, it becomes a voter. A former directory of its own stops being"
            " one right before."
        )
    joins = (
        " Once it has caught up and is warm, its former directory ceases to be a voter and its new one becomes one."
        if spec.quorum is QuorumKind.DYNAMIC
        else ""
    )
    return (
        f"{starts}{joins} Until it votes again, one more controller that is lost takes the majority away from a quorum"
        " of three."
    )
