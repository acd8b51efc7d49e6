"""The situations that a cluster may be in, each once: what shows it, what it means, what it waits for, the way forward.

``explain`` takes each answer from the first situation that holds and gives one, in the order of
``WITH_ZOOKEEPER``, or of ``WITHOUT_ZOOKEEPER`` where the cluster file names none. The tables in docs/interruptions.md
are made of them (``render_situations``).
"""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import DUAL_WRITING
from kraft_runbook.migration.conditions import BROKER_IN_SYNC, BROKER_REGISTERED_IN_KRAFT, FINALIZED, METADATA_COPIED
from kraft_runbook.migration.situation import Answer, Situation
from kraft_runbook.migration.situation_facts import Facts
from kraft_runbook.migration.situations_in_kraft import (
    AFTER_THE_END,
    EMPTY_DISKS,
    HANGS,
    ITS_LOG,
    SILENT,
    WITHOUT_ZOOKEEPER,
    missing,
)
from kraft_runbook.migration.transitions import TABLE
from kraft_runbook.migration.unfinished_copy import TELL
from kraft_runbook.migration.without_zookeeper import WITHOUT_A_LEADER
from kraft_runbook.runbook.health import STILL_NONE


def holding(facts: Facts) -> tuple[Situation, ...]:
    """The situations that hold, the first one first; never empty."""
    situations = WITH_ZOOKEEPER if facts.seen.has_zookeeper else WITHOUT_ZOOKEEPER
    return tuple(each for each in situations if each.holds(facts))


def means(facts: Facts) -> str:
    """What the situation means."""
    return " ".join(next(each.means for each in holding(facts) if each.means).of(facts))


def waits_for(facts: Facts) -> tuple[str, ...]:
    """What the cluster waits for; empty: nothing."""
    return next(each.waits_for for each in holding(facts) if each.waits_for).of(facts)


def forward(facts: Facts) -> tuple[str, ...]:
    """What an operator can do now; empty: nothing."""
    return holding(facts)[0].forward.of(facts)


def way_out(
    seen: ClusterObservation, spec: ClusterSpec, *, earlier: ClusterObservation | None = None
) -> tuple[str, ...]:
    """What to do where a wait is in vain, as explain has it; empty where the table's steps go on."""
    facts = Facts(seen, earlier or seen, spec)
    first = holding(facts)[0]
    return first.forward.of(facts) if first.trouble else ()


# -- what the table says of a phase ------------------------------------------------------------------------------------


def _means_of_the_phase(facts: Facts) -> tuple[str, ...]:
    return (TABLE.stage(facts.phase).means,)


def _waits_of_the_phase(facts: Facts) -> tuple[str, ...]:
    """What the cluster waits for in a phase, if every running node answers: the table's conditions and gates. Two
    cases that only a change by hand brings about come first.
    """
    seen, spec, phase = facts.seen, facts.spec, facts.phase
    if phase in (Phase.UNKNOWN, Phase.KRAFT):
        return ("an operator: see under Seen",)
    if phase is Phase.FINALIZED or (phase is Phase.DUAL_WRITE and facts.unflagged):
        left = [BROKER_REGISTERED_IN_KRAFT.progress(seen, spec, node_id=i) for i in spec.broker_ids]
        final = FINALIZED.progress(seen, spec)
        return missing(*left, final) if phase is Phase.FINALIZED else missing(*left) or missing(final)
    for awaited in TABLE.awaited(phase):
        if isinstance(awaited, str):
            return (f"an operator: {awaited}",)
        if awaited is BROKER_IN_SYNC or (awaited.of_a_node and phase is Phase.HYBRID):
            continue  # checks report the first; the copy's own condition asks every broker, dead nodes first
        nodes = spec.broker_ids if awaited.of_a_node else (None,)
        earlier = facts.earlier if awaited is METADATA_COPIED else None
        unmet = missing(*(awaited.progress(seen, spec, node_id=node, earlier=earlier) for node in nodes))
        if unmet:
            return unmet
    return ()


def _steps_of_the_phase(facts: Facts) -> tuple[str, ...]:
    return tuple(
        f"{edge.step}: {edge.does}" + ("" if edge.reversible else " (can not be undone)")
        for edge in TABLE.forward_from(facts.phase)
    )


# -- the situations, in the order in which they are told ---------------------------------------------------------------

BY_THE_PHASE = Answer("what the phase means", _means_of_the_phase)
WAITED_FOR_BY_THE_PHASE = Answer("what the next step needs: a condition, or a gate", _waits_of_the_phase)
NO_MAJORITY = Answer("a majority of the controllers: {missing}; {lost}")
NO_STEP = "No step goes on before the quorum has a leader"
DIED = Answer(
    "No controller quorum has a leader, and nothing shows that the metadata copy was completed: no topic, config, ACL"
    " or leader can change."
)
COPIED = Answer(
    "The metadata was copied, but the controller quorum has no leader: no topic, config, ACL or leader can change until"
    " it has one."
)
NO_LEADER = Answer(
    COPIED.text,
    lambda it: DIED.of(it) if it.died_in_the_copy else COPIED.of(it) if it.copied else (WITHOUT_A_LEADER,),
)


GO_ON_PROVISIONING = Answer(
    "provision_controllers: go on with {down}; one whose disk is empty is formatted again and catches up from the"
    " others"
)
READ_ZOOKEEPER = "start ZooKeeper, or make it readable"


def _after_zookeeper(text: str) -> Answer:
    """ZooKeeper first, where it can't be read and no broker is in KRaft mode: brokers need it, and it shows whether the
    migration was left, so that no controller may be started.
    """
    return Answer(
        f"make ZooKeeper readable first, if it can't be read and no broker is in KRaft mode; then {text}",
        lambda it: (*([f"{READ_ZOOKEEPER}, first"] if it.zookeeper_first else []), *Answer(text).of(it)),
    )


def _until_a_phase_shows(facts: Facts) -> tuple[str, ...]:
    """ZooKeeper first: it tells whether controllers that are down may be started at all."""
    told = [READ_ZOOKEEPER] if not was_read(facts.seen.zookeeper) else []
    mute = len(facts.seen.brokers_of_unknown_mode()) == len(facts.seen.brokers)
    if told and mute and facts.down and not facts.under_way:
        told = [f"{READ_ZOOKEEPER}; or, if you know the migration to be final, leave it out and start {facts.down}"]
    hide = [f"look at {facts.silent}: {HANGS}"] if facts.silent else []
    hide += (
        [f"make the metrics of {facts.mute} readable: they show the phase"] if facts.under_way and facts.mute else []
    )
    if facts.waits_for_the_copy:  # they come first: no controller is provisioned in an unknown phase
        told += hide
        if facts.down and was_read(facts.seen.zookeeper):
            told += GO_ON_PROVISIONING.of(facts)
    elif facts.under_way and facts.down:
        told.append(f"start {facts.down} with the present configuration; {ITS_LOG}. {EMPTY_DISKS}")
    told += [f"start {facts.ended} with the present configuration; {ITS_LOG}"] if facts.ended else []
    told += [] if facts.waits_for_the_copy else hide
    return (*told[:1], *(f"then {each}" for each in told[1:]))


def _lost(facts: Facts) -> bool:
    """Whether no controller leads, and it is not known that they died in the copy and what to look for."""
    return facts.lost is not None and not (facts.died_in_the_copy and facts.down)


WITH_ZOOKEEPER = (
    Situation(
        "nothing runs",
        "ZooKeeper, every controller and every broker are down, as after a power cut",
        lambda it: it.nothing_runs,
        forward=Answer(
            "nothing of the cluster runs: start ZooKeeper first, then {controllers} if provisioned, then"
            " {brokers}, each with the present configuration; after finalization leave ZooKeeper out. A broker"
            " that ends again with 'node already exists' was started before its old session had ended"
            " (zookeeper.session.timeout.ms, 18 s by default): start it once more. The phase can be observed once they"
            " run"
        ),
    ),
    Situation(
        "a controller without the flag",
        "PRE_MIGRATION to DUAL_WRITE, led or not, and a broker is not in KRaft mode, or none is known to be; a"
        " controller runs without the migration flag",
        lambda it: bool(it.unflagged) and it.final_too_early,
        waits_for=Answer(
            "an operator: restart {unflagged} with the migration flag before it is elected, or the migration is final"
        ),
        forward=Answer(
            "restart {unflagged} with the migration flag before it is elected, and no other controller"
            " before that: each restart may cause an election (docs/finalization.md)"
        ),
    ),
    Situation(
        "a controller of a migration that was left",
        "HYBRID, as a controller's metrics have it; none leads, and a broker holds /controller",
        lambda it: bool(it.came_back),
        means=Answer(
            "A broker holds /controller, so ZooKeeper leads: the migration was left, or somebody deleted /controller. A"
            " controller with the migration's log runs."
        ),
        waits_for=Answer("an operator: stop {came_back}"),
        forward=Answer(
            "stop {came_back} by hand, and start no other controller. Set no data aside before you have seen that"
            " nobody made a change there (docs/rollback.md, 'What if a controller starts again in the middle?')"
        ),
    ),
    Situation(
        "the controllers died in the copy",
        "/controller names a KRaft controller, none leads, one or more are down, and nothing shows the copy's end",
        lambda it: it.died_in_the_copy and bool(it.down),
        means=DIED,
        waits_for=NO_MAJORITY,
        forward=Answer(
            "nothing shows that the metadata copy was completed: the controllers may have died in it. Look for"
            " 'Aborting the metadata migration' in their logs, correct what it names, then start {down}: it"
            " copies again, and ends again if anything is left to correct. 'too long to be serialized' there names"
            " nothing: KRB-PRE-060 does"
        ),
    ),
    Situation(
        "no leader, controllers are down",
        "a KRaft controller should lead, none does, and one or more are down",
        lambda it: _lost(it) and bool(it.down),
        means=NO_LEADER,
        waits_for=NO_MAJORITY,
        forward=_after_zookeeper(f"start {{down}} with the present configuration; {ITS_LOG}. {EMPTY_DISKS}. {NO_STEP}"),
    ),
    Situation(
        "no leader, controllers hang",
        "a KRaft controller should lead, none does, and one or more do not answer",
        lambda it: _lost(it) and not it.down and bool(it.silent_now),
        means=NO_LEADER,
        waits_for=NO_MAJORITY,
        forward=_after_zookeeper(f"look at {{silent_now}}: {HANGS}. {NO_STEP}"),
    ),
    Situation(
        "no leader, every controller runs",
        "a KRaft controller should lead, none does, and all answer",
        lambda it: _lost(it) and not it.down and not it.silent_now,
        means=NO_LEADER,
        waits_for=Answer("a leader of the controller quorum: {lost}"),
        forward=_after_zookeeper(
            "wait for a leader: every controller runs, and an election takes seconds. If there is none after that, they"
            f" can't reach each other: look at the network between {{addresses}}. {STILL_NONE}. {NO_STEP}"
        ),
    ),
    Situation(
        "controllers that never elected a leader",
        "the phase is unknown; controllers run, none leads, a broker holds /controller, /migration was never written",
        lambda it: it.never_elected,
        means=Answer(
            "Controllers run and show no leader, and nothing was copied: ZooKeeper alone holds the metadata,"
            " and a broker is its controller."
        ),
        waits_for=Answer("a leader of the controller quorum: none is seen"),
        forward=Answer(
            "look in the controllers' logs for why they elect no leader: most often they can't log in to each other at"
            " their own listener (KRB-PRE-090, KRB-PRE-101; SCRAM never works there). Leave them with the rollback,"
            " which stops them and sets their data aside; correct the cluster file; begin again"
        ),
    ),
    *AFTER_THE_END,
    Situation(
        "a controller is down before the copy",
        "PRE_MIGRATION; a controller does not run",
        lambda it: it.phase is Phase.PRE_MIGRATION and bool(it.down) and not it.lost,
        forward=GO_ON_PROVISIONING,
    ),
    Situation(
        "a controller is down after the copy",
        "HYBRID or DUAL_WRITE; a controller does not run, a majority does",
        lambda it: it.phase in DUAL_WRITING and bool(it.down) and not it.lost,
        forward=Answer(
            "start {down} first. If it lost its disk, clear its provision task (provision_controllers) in"
            " the migration's run: it is formatted again and catches up from the others, once a majority of the voters"
            " without it holds everything committed"
        ),
    ),
    Situation(
        "a broker is down",
        "ZOOKEEPER to DUAL_WRITE; a broker does not run",
        lambda it: bool(it.ended) and bool(TABLE.forward_from(it.phase)),
        forward=Answer(f"start {{ended}} first; {ITS_LOG}. No other broker is restarted while one is down"),
    ),
    Situation(
        "a node hangs",
        "ZOOKEEPER to DUAL_WRITE; a port accepts connections and no response comes, twice",
        lambda it: it.phase not in (Phase.UNKNOWN, Phase.FINALIZED) and bool(it.silent),
        waits_for=Answer(
            SILENT.text + "; then what the phase waits for", lambda it: (*SILENT.of(it), *_waits_of_the_phase(it))
        ),
        forward=Answer(f"look at {{silent}} first: {HANGS}. No other node is restarted before that"),
    ),
    Situation(
        "nodes are down and hide the phase",
        "UNKNOWN; a migration goes on, and a node is down, hangs or shows no metrics; or ZooKeeper can't be read, and a"
        " broker is in migration mode, or none is known to be in KRaft mode",
        lambda it: (
            ((bool(it.under_way) and bool(it.down or it.ended or it.silent or it.mute)) or it.unread_zookeeper)
            and not (it.nothing_runs or it.lost)
        ),
        forward=Answer(
            "start ZooKeeper, or make it readable; then start controller N, then broker N, each with the present"
            f" configuration, and end what hangs. {EMPTY_DISKS}. Before the copy: end what hangs, make readable what"
            " shows no metrics, then go on with provision_controllers",
            _until_a_phase_shows,
        ),
    ),
    Situation(
        "the quorum can't be read",
        "PRE_MIGRATION to DUAL_WRITE, or UNKNOWN and a migration goes on; a controller's own metrics say that it leads",
        lambda it: bool(it.led_unread) and not it.lost,
        waits_for=Answer("the controller quorum to be read: {led_unread}"),
        forward=Answer(
            "make the quorum readable: {led_unread}. An election takes seconds. If it stays so, look at this tool's own"
            " login, and at the network to {addresses}. No step goes on before that"
        ),
    ),
    Situation(
        "a copy of which /migration has no offset",
        "HYBRID or DUAL_WRITE; every node runs, the log's ZkMigrationState is 1, /migration has no offset and names an"
        " earlier leader",
        lambda it: it.end_untold and it.every_node_serves,
        means=Answer(
            "The metadata was copied, but the controller that copied it died, or lost the lead, before it wrote the"
            " copy's end to /migration; or somebody deleted /migration. No controller writes to ZooKeeper, and brokers"
            " in migration mode get no new leader for any partition."
        ),
        waits_for=Answer("an operator: /migration needs an offset"),
        forward=Answer(TELL),
    ),
    Situation(
        "the roll into KRaft mode goes on",
        "DUAL_WRITE; every node runs and answers, and a broker is not in KRaft mode",
        lambda it: (
            it.phase is Phase.DUAL_WRITE
            and bool(it.not_in_kraft)
            and not (it.lost or it.ended or it.down or it.silent or it.end_untold)
        ),
        forward=Answer("roll_brokers_to_kraft: go on with {not_in_kraft}; finalize_controllers comes after that"),
        trouble=False,
    ),
    Situation(
        "a broker may refuse what the controller sends",
        "HYBRID; every node runs and answers, and a broker is out of sync in most of the partitions",
        lambda it: bool(it.mostly_out_of_sync) and it.every_node_serves and not it.end_untold,
        forward=Answer(
            "wait until {mostly_out_of_sync} is back in sync. If it stays out of sync, a replica there may lack"
            " partition.metadata, and the broker refuses what the controller sends for it (KAFKA-21022): kraft-runbook"
            " preflight examines the hosts and names it (KRB-PRE-085)"
        ),
        trouble=False,
    ),
    Situation(
        "a broker may be cut off from its controller",
        "ZOOKEEPER; every broker runs, replicas are out of sync, and a broker is still in migration mode",
        lambda it: bool(it.may_be_cut_off) and not (it.ended or it.silent),
        forward=Answer(
            "wait until the replicas are back in sync. If they stay out of sync, a broker in migration mode"
            " ({may_be_cut_off}) may have lost a thread to its controller: kraft-runbook preflight examines the hosts"
            " and names it (KRB-PRE-057); clear restart_cut_off_brokers (docs/rollback.md)"
        ),
        trouble=False,
    ),
    Situation(
        "as the table has it",
        "none of the above",
        lambda _: True,
        means=BY_THE_PHASE,
        waits_for=WAITED_FOR_BY_THE_PHASE,
        forward=Answer("the next step", _steps_of_the_phase),
        trouble=False,
    ),
)
