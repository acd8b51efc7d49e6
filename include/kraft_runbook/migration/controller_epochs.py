"""What an observation shows of the two counters of controller epochs (``metadata.znodes.state_epochs``), in words.
Pure.
"""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation, ControllerEpochs, was_read


def set_by_leaving(seen: ClusterObservation) -> str | None:
    """What leaving KRaft will do with /controller_epoch, with both numbers; None where ZooKeeper was not read, or holds
    no such znode.
    """
    if not was_read(seen.zookeeper) or seen.zookeeper.controller_epoch is None:
        return None
    claimed, holder = seen.zookeeper.controller_epoch, seen.zookeeper.controller
    of_kraft = -1 if holder is None else holder.kraft_controller_epoch
    if of_kraft >= 0 and was_read(seen.quorum):
        of_kraft = max(of_kraft, seen.quorum.leader_epoch)
    states = _of_states(seen)
    told = f"/controller_epoch is {claimed}"
    if of_kraft >= 0:
        told += f", KRaft's epoch is {of_kraft}"
    if states is None:
        told += ", the epochs in partition states were not read (leave_kraft reads them)"
    else:
        told += f", the greatest epoch in {states.states} partition states is {states.greatest}"
    greatest = of_kraft if states is None else max(of_kraft, states.greatest)
    if greatest <= claimed:
        return told if states is None else f"{told}: nothing is set"
    return f"{told}: it is set to {greatest}, or the ZooKeeper controller could elect no leader where a state says more"


def too_low_in_zookeeper(seen: ClusterObservation) -> ControllerEpochs | None:
    """Both numbers, where a ZooKeeper controller leads and partitions have a state with a greater one than its own."""
    states = _of_states(seen)
    if states is None or not states.above.count or not was_read(seen.zookeeper):
        return None
    holder = seen.zookeeper.controller
    return None if holder is not None and holder.kraft_controller_epoch >= 0 else states


def _of_states(seen: ClusterObservation) -> ControllerEpochs | None:
    tree = seen.tree
    if not was_read(tree) or not was_read(tree.controller_epochs):
        return None
    return tree.controller_epochs
