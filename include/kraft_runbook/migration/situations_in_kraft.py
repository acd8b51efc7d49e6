"""The situations of a cluster in KRaft mode: once the migration is final, and where its file names no ZooKeeper."""

from __future__ import annotations

from kraft_runbook.cluster.birth import held_by_zookeeper
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration import without_zookeeper
from kraft_runbook.migration.silent_nodes import name_silent_brokers, silent_controllers
from kraft_runbook.migration.situation import Answer, Situation
from kraft_runbook.migration.situation_facts import Facts
from kraft_runbook.migration.transitions import TABLE
from kraft_runbook.migration.without_zookeeper import MEANS, WITHOUT_A_LEADER
from kraft_runbook.runbook.conditions import Progress
from kraft_runbook.runbook.health import STILL_NONE

SILENT = Answer("{silent} to answer: the port accepts connections, but no response comes")
OPERATOR = Answer("an operator: see under Seen")
ITS_LOG = "the log there says why it ended"
HANGS = "the process hangs or gets no CPU time. If it does not recover, end it and start it again"
EMPTY_DISKS = (
    "Never start a majority on empty disks: it elects one of itself, and the metadata begins anew (docs/rollback.md)"
)
TOO_EARLY = Answer(
    "A controller without the migration flag finalized the migration too early: {behind}. Running"
    " nodes go on serving, but ZooKeeper lacks everything created since then. Putting the flag back does not help."
)
IN_KRAFT_MODE = Answer(
    "restart {left_behind} in KRaft mode, one by one (docs/finalization.md): it is the only way left. Do not"
    " restart a broker in migration mode"
)


def _the_only_way(facts: Facts) -> tuple[str, ...]:
    """A leader first: without one no broker can register, so one that is restarted serves nobody."""
    first: tuple[str, ...] = ()
    if not without_zookeeper.is_led(facts.seen):
        if facts.down:
            first = (f"start {facts.down} first, with the present configuration; {ITS_LOG}. {EMPTY_DISKS}",)
        elif facts.silent_now:
            first = (f"look at {facts.silent_now} first: {HANGS}",)
        else:
            first = (
                "wait for a leader of the quorum: every controller runs, and an election takes seconds. If there is"
                f" none after that, look at the network between {facts.addresses}",
            )
    return (*first, *IN_KRAFT_MODE.of(facts))


THE_ONLY_WAY = Answer(
    f"{IN_KRAFT_MODE.text}. Where no controller leads, that comes second: no broker can register then", _the_only_way
)


def missing(*progress: Progress) -> tuple[str, ...]:
    """What these still wait for."""
    return tuple(p.waiting_for.removeprefix("waiting for ") for p in progress if not p.done)


def _missing_for_health(facts: Facts) -> tuple[str, ...]:
    silent = SILENT.of(facts) if facts.silent else ()
    return tuple(dict.fromkeys([*silent, *missing(*without_zookeeper.missing(facts.seen, facts.spec))]))


def _repairs(facts: Facts) -> tuple[str, ...]:
    """Controllers first: without a majority of them no broker is registered, and no partition gets a leader."""
    led = without_zookeeper.is_led(facts.seen)
    hang = silent_controllers(facts.seen, facts.earlier)
    told = []
    if facts.down:
        told.append(
            f"start {facts.down} with the present configuration; {ITS_LOG}" + ("" if led else f". {EMPTY_DISKS}")
        )
    if hang and not led:
        told.append(f"look at {nodes('controller', hang)} first: {HANGS}")
    if not (led or hang or facts.down):
        told.append(
            "no controller is down: an election takes seconds. If there is no leader after that, look at the network"
            f" between {facts.addresses}. {STILL_NONE}"
        )
    if facts.ended:
        told.append(f"start {facts.ended} in KRaft mode; {ITS_LOG}")
    rest = facts.silent if led else name_silent_brokers(facts.seen, facts.earlier)
    if rest:
        told.append(f"look at {rest} first: {HANGS}. No other node is restarted before that")
    return (*told[:1], *(f"then {each.replace(' first:', ':', 1)}" for each in told[1:]))


def _for_good(facts: Facts) -> bool:
    """Whether the cluster is in KRaft mode for good, as far as it shows."""
    return facts.phase is Phase.FINALIZED or not (
        facts.seen.has_zookeeper or without_zookeeper.shows_zookeeper(facts.seen)
    )


def _means(facts: Facts) -> tuple[str, ...]:
    if not without_zookeeper.is_led(facts.seen) and not held_by_zookeeper(facts.seen):
        return (WITHOUT_A_LEADER,)
    return (TABLE.stage(facts.phase).means if facts.seen.has_zookeeper else MEANS[facts.phase],)


def _too_early(facts: Facts) -> tuple[str, ...]:
    led = without_zookeeper.is_led(facts.seen)
    return TOO_EARLY.of(facts) if led else (*TOO_EARLY.of(facts), WITHOUT_A_LEADER)


BY_ITS_HEALTH = Answer("a leader, and every broker registered and in sync", _missing_for_health)

AFTER_THE_END = (
    Situation(
        "finalized too early",
        "FINALIZED; a broker is not in KRaft mode",
        lambda it: bool(it.left_behind),
        means=Answer(TOO_EARLY.text, _too_early),
        waits_for=BY_ITS_HEALTH,
        forward=THE_ONLY_WAY,
    ),
    Situation(
        "something to repair after the end",
        "FINALIZED, or the file names no ZooKeeper; a node is down or hangs, or no controller leads",
        lambda it: _for_good(it) and bool(_repairs(it)) and not it.left_behind,
        means=Answer(f"what the phase means; without a leader: {WITHOUT_A_LEADER}", _means),
        waits_for=BY_ITS_HEALTH,
        forward=Answer("start the controllers that are down, then the brokers; end what hangs", _repairs),
    ),
)
"""What is to be done in KRaft mode does not depend on whether the file still names ZooKeeper."""

WITHOUT_ZOOKEEPER = (
    Situation(
        "the file leaves out a ZooKeeper in use",
        "a broker in ZooKeeper or migration mode, or a migration under way",
        lambda it: not _for_good(it),
        means=Answer(MEANS[Phase.UNKNOWN], _means),
        waits_for=OPERATOR,
        forward=Answer("name the ensemble under 'zookeeper' in the cluster file: every step is refused until then"),
    ),
    *AFTER_THE_END,
    Situation(
        "nothing to migrate",
        "none of the above",
        lambda _: True,
        means=Answer(MEANS[Phase.KRAFT], _means),
        waits_for=BY_ITS_HEALTH,
        forward=Answer("there is nothing to migrate"),
        trouble=False,
    ),
)
