"""What a gate says of brokers whose leaders go to others before each is stopped."""

from __future__ import annotations


def leaders_off(asked: bool) -> str:
    """A sentence for what lies ahead; empty where the cluster file does not ask for it."""
    return (
        " Right before each stop the broker's leaders go to other brokers, by the order of replicas alone; they come"
        " back once it is in every ISR."
        if asked
        else ""
    )
