"""Giving the controller role back to a broker: what is done in ZooKeeper once no KRaft controller has it or leads, and
the wait until every broker follows the one that is elected.

It can be interrupted anywhere and begun again (``settle_in_zookeeper``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from kraft_runbook.cluster.naming import by_number, nodes
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.handover import (
    ControllerZnodes,
    NothingDeleted,
    await_election,
    delete_controller_znodes,
    read_controller_znodes,
    require_deletable,
    require_epoch_settable,
)
from kraft_runbook.io.zookeeper.read_epochs import number_in, read_controller_epochs
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.migration.controller_epochs import why_not_countable
from kraft_runbook.migration.leaving import Departure
from kraft_runbook.procedures.known_controller import await_known
from kraft_runbook.procedures.resume_departure import take_up
from kraft_runbook.procedures.see_election import see_election

ELECTED_WITHIN = 30.0
"""Seconds that ZooKeeper's election may take."""
LOOKS = 3
"""How often settling looks again where a broker was elected meanwhile."""

Tell = Callable[[str], None]
Departed = Callable[[Departure], None]
"""Called as soon as znodes are deleted, and again once every broker knows the elected controller, with what is measured
by then. What comes after may fail, and nobody can measure these moments again. ``departing``, of the same type, is
called before /controller is deleted, with what is about to be deleted: whoever kills this between ZooKeeper's answer
and ``departed`` takes no moment away that came before.
"""


def settle_in_zookeeper(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    tell: Tell,
    known_within: float,
    departing: Departed | None = None,
    departed: Departed | None = None,
    begun: Departure | None = None,
) -> Departure:
    """If a ZooKeeper controller already has the controller role and no KRaft controller runs: delete any /migration,
    and wait until every broker follows.

    Where a partition's state has a greater controller epoch than /controller_epoch, as a cluster that left by Kafka's
    documented order may have it: set that, and let a broker be elected with the number after it. A controller that can
    write nothing, since someone set that number alone, is replaced by an election too. ``departing``, ``departed``: as
    ``Departed`` says. ``begun``: a departure that an earlier try began and did not put on record in full; what can be
    known of it now is (``resume_departure``). Raises Refused where this tool may not write or delete there.
    """
    moments, found, departed = Departure(began_at=now()), None, departed or unheard
    with ZookeeperReader(spec.ensemble, secrets=secrets) as zookeeper:
        greatest = greatest_state_epoch(spec, secrets=secrets)
        for last in (*[False] * (LOOKS - 1), True):
            znodes = _read_with_a_controller(zookeeper, spec, greatest, always=begun is not None)
            if znodes.held_by_kraft:
                break
            found = found or (begun and take_up(begun, znodes))
            if found is not None and begun is not None:
                departed(found)
                begun = None
            intended = intend(znodes, greatest, moments)
            if "/controller" in intended.deleted:
                require_deletable(zookeeper)
            require_epoch_settable(zookeeper, znodes, greatest)
            if "/controller" in intended.deleted and departing is not None:
                departing(intended)
            try:
                moments = give_back(zookeeper, znodes, intended, tell)
                break
            except NothingDeleted:  # a broker was elected meanwhile
                if last:
                    raise
        if moments.deleted:
            departed(moments)
        elif found is not None:
            moments = found
        return see_brokers_follow(
            spec, zookeeper, moments, secrets=secrets, tell=tell, known_within=known_within, departed=departed
        )


def what_settling_changes(spec: ClusterSpec, *, secrets: Secrets) -> Departure:
    """What ``settle_in_zookeeper`` would delete now, and set /controller_epoch to. Changes nothing. Raises Refused if
    Kafka can't count on from an epoch; StepFailed where an epoch must be set and no broker is elected; Unreachable.
    """
    moments = Departure(began_at=now())
    with ZookeeperReader(spec.ensemble, secrets=secrets) as zookeeper:
        greatest = greatest_state_epoch(spec, secrets=secrets)
        znodes = _read_with_a_controller(zookeeper, spec, greatest)
        return moments if znodes.held_by_kraft else intend(znodes, greatest, moments)


def _read_with_a_controller(
    zookeeper: ZookeeperReader, spec: ClusterSpec, greatest: int, *, always: bool = False
) -> ControllerZnodes:
    """The znodes; where nobody is in /controller and its epoch must be set, or ``always``, once a broker is."""
    znodes = read_controller_znodes(zookeeper)
    if znodes.controller is None and (always or znodes.epoch_wanted(greatest) is not None):
        await_election(zookeeper, spec, within=ELECTED_WITHIN)  # see io.zookeeper.handover
        znodes = read_controller_znodes(zookeeper)
    return znodes


def greatest_state_epoch(spec: ClusterSpec, *, secrets: Secrets) -> int:
    """The greatest controller epoch in a partition's state; -1 without any. Raises Refused if Kafka can't count on from
    an epoch.
    """
    with ZookeeperReader(spec.ensemble, secrets=secrets, rate=spec.ensemble.read_rate) as zookeeper:
        epochs = read_controller_epochs(zookeeper)
    uncountable = why_not_countable(epochs)
    if uncountable:
        why, way_out = uncountable
        raise Refused(f"{why}; nothing was stopped", way_out=f"{way_out}; then clear this task")
    return epochs.greatest


def intend(znodes: ControllerZnodes, greatest: int, moments: Departure) -> Departure:
    """The departure with what is about to be deleted, and what /controller_epoch is about to be set to. ``greatest``:
    of what was read of the states, and the quorum's epoch.
    """
    epoch = znodes.epoch_wanted(max(greatest, znodes.kraft_epoch))
    return replace(
        moments,
        deleted=tuple(each.path for each in znodes.doomed(epoch=epoch)),
        controller_epoch=None if znodes.epoch is None else number_in(znodes.epoch),
        epoch_set=epoch,
    )


def give_back(zookeeper: ZookeeperReader, znodes: ControllerZnodes, moments: Departure, tell: Tell) -> Departure:
    """Delete the znodes, with /controller_epoch set to what is needed, as ``moments`` intends it. Raises what
    ``delete_controller_znodes`` raises.
    """
    epoch, before = moments.epoch_set, moments.controller_epoch
    if epoch is not None:
        tell(
            f"/controller_epoch is {before}, and partition states may hold up to {epoch}: the same transaction sets it"
            f" to {epoch}, or the ZooKeeper controller could elect no leader for these partitions"
        )
    elif znodes.cut_off:
        tell(
            "/controller_epoch was set after the last election, so the controller can write nothing: deleting"
            " /controller, so that a broker is elected"
        )
    deleted = delete_controller_znodes(zookeeper, znodes, epoch=epoch)
    return replace(moments, deleted=deleted, deleted_at=now())


def see_brokers_follow(
    spec: ClusterSpec,
    zookeeper: ZookeeperReader,
    moments: Departure,
    *,
    secrets: Secrets,
    tell: Tell,
    known_within: float,
    departed: Departed,
) -> Departure:
    """Wait for ZooKeeper's election and for every broker that runs to know who won. Then see that the elected
    controller can elect leaders, since the brokers are restarted after this. Of a departure that is taken up, a moment
    that came before is not measured now.
    """
    resumed = moments.resumed_at is not None
    elected = await_election(zookeeper, spec, within=ELECTED_WITHIN)
    moments = replace(moments, elected_at=moments.elected_at if resumed else now(), controller=elected)
    tell(f"broker {elected} was elected controller")
    ended = await_known(spec, elected, secrets=secrets, within=known_within)
    tell(f"every broker that runs knows controller {elected}" if ended else f"every broker knows controller {elected}")
    if ended:
        tell(
            f"{nodes('broker', ended, 'does')} not run, so nothing of {by_number(ended, 'it', 'them')} can hang;"
            f" {by_number(ended, 'it is', 'they are')} started in ZooKeeper mode before another broker is stopped"
        )
    moments = replace(moments, known_at=moments.known_at if resumed and moments.known_at else now())
    departed(moments)
    return replace(moments, election=see_election(spec, zookeeper, secrets=secrets, tell=tell, ended=ended))


def unheard(_: Departure) -> None:
    """Nobody is told."""


def now() -> datetime:
    return datetime.now(UTC)
