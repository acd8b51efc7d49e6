"""What a cluster with nodes that are broker and controller in one process (``process.roles=broker,controller``) can't
have. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.spec_nodes import Broker


def why_not_both(
    brokers: Sequence[Broker],
    *,
    migrates: bool,
    canary: bool,
    rolls: bool,
    properties: tuple[Mapping[str, str], Mapping[str, str]],
) -> Iterator[str]:
    """What of a cluster file does not go with its nodes that have both roles. ``migrates``: it names a ZooKeeper;
    ``canary``: it names a canary broker; ``rolls``: it has brokers restarted together; ``properties``: of all brokers,
    and of all controllers. Each problem starts with the key it is about.
    """
    both = [each.id for each in brokers if each.controller is not None]
    for at, broker in enumerate(brokers):
        if broker.controller is None:
            continue
        if migrates:
            yield (
                f"brokers.{at}.controller: node {broker.id} would have both roles, and no migration from ZooKeeper runs"
                " with such nodes (KIP-866): declare controllers with processes of their own. Where the migration is"
                " final, take 'zookeeper' out of the file"
            )
        if broker.controller.log_dir in broker.log_dirs[1:]:
            yield (
                f"brokers.{at}.controller.log_dir: {broker.controller.log_dir} is one of its log_dirs, but not the"
                " first; leave it out, or name a directory of its own"
            )
    if not both:
        return
    of_brokers, of_controllers = properties
    for key in sorted(of_brokers.keys() & of_controllers.keys()):
        if of_brokers[key] != of_controllers[key]:
            yield (
                f"controller_properties.{key}: broker_properties has another value, and {nodes('node', both)}"
                " with both roles can have one alone: make them the same, or name it at single nodes"
            )
    if canary:
        yield (
            f"canary: {nodes('node', both)} with both roles are restarted with the controllers, before any canary, so"
            f" that {len(both)} of {len(brokers)} brokers would have had their turn by then: leave 'canary' out"
        )
    if rolls and len(both) == len(brokers):
        yield (
            "roll: every broker is a controller too, and those are restarted one by one, as the quorum asks for: leave"
            " 'roll' out"
        )
