"""What an observation shows of the two counters of controller epochs (``metadata.znodes.state_epochs``), in words.
Pure.
"""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation, ControllerEpochs, was_read
from kraft_runbook.metadata.znodes.state_epochs import GREATEST, NONE
from kraft_runbook.runbook.check_results import sample

REWRITE_STATES = (
    "no Kafka wrote that. In zookeeper-shell, below the chroot, get each of these state znodes and set the same JSON"
    " with the number of /controller_epoch as its controller_epoch"
)
LOWER_CLAIMED = (
    "no Kafka counted that far. In zookeeper-shell, below the chroot: set /controller_epoch to the greatest"
    " controller_epoch of the partitions' states, and at once, if a broker is the controller, delete /controller; if a"
    " KRaft controller is, restart it"
)


def why_not_countable(epochs: ControllerEpochs) -> tuple[str, str] | None:
    """What Kafka can't count on from, and the way out: a number so great that /controller_epoch must never be set to
    it, or none at all, from which Kafka would begin again below the states'. None: there is nothing of the kind.
    """
    if epochs.uncountable.count:
        named = sample(epochs.uncountable.samples, epochs.uncountable.count)
        return f"states with a controller epoch that Kafka can't count on from ({epochs.greatest}): {named}", (
            REWRITE_STATES
        )
    if epochs.claimed is not None and epochs.claimed > GREATEST:
        return f"/controller_epoch is {epochs.claimed}, which Kafka can't count on from", LOWER_CLAIMED
    if epochs.claimed is None and epochs.states:
        return (
            f"/controller_epoch does not exist, and there are {epochs.states} partition states, with controller epochs"
            f" up to {epochs.greatest}: the next controller would count from 0",
            f"in zookeeper-shell, below the chroot: create /controller_epoch {epochs.greatest}; then at once, if a"
            " broker is the controller, delete /controller; if a KRaft controller is, restart it",
        )
    return None


def uncountable_epochs(seen: ClusterObservation) -> str | None:
    """The same of an observation, in one sentence; None also where the states were not read."""
    states = _of_states(seen)
    found = None if states is None else why_not_countable(states)
    return f"{found[0]} ({found[1]})" if found else None


def wanted_by_leaving(seen: ClusterObservation) -> int | None:
    """What leaving KRaft must set /controller_epoch to, as far as was read; None: nothing."""
    if not was_read(seen.zookeeper) or seen.zookeeper.controller_epoch is None:
        return None
    greatest = max(_of_kraft(seen), NONE if (states := _of_states(seen)) is None else states.greatest)
    return greatest if greatest > seen.zookeeper.controller_epoch else None


def set_by_leaving(seen: ClusterObservation) -> str | None:
    """What leaving KRaft will do with /controller_epoch, with both numbers; None where ZooKeeper was not read, or holds
    no such znode.
    """
    if not was_read(seen.zookeeper) or seen.zookeeper.controller_epoch is None:
        return None
    claimed, of_kraft, states = seen.zookeeper.controller_epoch, _of_kraft(seen), _of_states(seen)
    told = f"/controller_epoch is {claimed}"
    if of_kraft >= 0:
        told += f", KRaft's epoch is {of_kraft}"
    if states is None:
        told += ", the epochs in partition states were not read (leave_kraft reads them)"
    else:
        told += f", the greatest epoch in {states.states} partition states is {states.greatest}"
    wanted = wanted_by_leaving(seen)
    if wanted is None:
        return told if states is None else f"{told}: nothing is set"
    return f"{told}: it is set to {wanted}, or the ZooKeeper controller could elect no leader where a state says more"


def too_low_in_zookeeper(seen: ClusterObservation) -> ControllerEpochs | None:
    """Both numbers, where a ZooKeeper controller leads and partitions have a state with a greater one than its own."""
    states = _of_states(seen)
    if states is None or not states.above.count or not was_read(seen.zookeeper):
        return None
    holder = seen.zookeeper.controller
    return None if holder is not None and holder.kraft_controller_epoch >= 0 else states


def cut_off_by_epoch(seen: ClusterObservation) -> str | None:
    """That the broker in /controller can write nothing to ZooKeeper, since someone set /controller_epoch after its
    election; None where nothing shows it.
    """
    holder = seen.zookeeper.controller if was_read(seen.zookeeper) else None
    if holder is None or holder.kraft_controller_epoch >= 0 or not holder.epoch_set_after:
        return None
    return (
        f"/controller_epoch was set after broker {holder.broker_id} was elected controller: it can write nothing to"
        " ZooKeeper any more, so it elects no leader and changes no topic"
    )


def why_states_unread(seen: ClusterObservation) -> str | None:
    """Why the epochs in partition states were not read; None where they were."""
    if not was_read(seen.zookeeper):
        return seen.zookeeper.reason
    tree = seen.zookeeper.tree
    if not was_read(tree):
        return tree.reason
    return None if was_read(tree.controller_epochs) else tree.controller_epochs.reason


def _of_kraft(seen: ClusterObservation) -> int:
    """The greatest raft epoch that the KRaft controller in /controller may have written; ``NONE`` without one."""
    if not was_read(seen.zookeeper) or seen.zookeeper.controller is None:
        return NONE
    of_kraft = seen.zookeeper.controller.kraft_controller_epoch
    return max(of_kraft, seen.quorum.leader_epoch) if of_kraft >= 0 and was_read(seen.quorum) else of_kraft


def _of_states(seen: ClusterObservation) -> ControllerEpochs | None:
    tree = seen.tree
    if not was_read(tree) or not was_read(tree.controller_epochs):
        return None
    return tree.controller_epochs
