"""Whose assignment a member follows: ZooKeeper's or Kafka's (KIP-125, "Coordination Mode Toggle")."""

from __future__ import annotations

import logging
from collections.abc import Collection
from enum import StrEnum

logger = logging.getLogger("kraft_runbook_consumer")


class Mode(StrEnum):
    ZOOKEEPER = "zookeeper"
    KAFKA = "kafka"


def called_for(znode: str | None, members: Collection[str], migrating: Collection[str]) -> Mode:
    """What the group asks for. ``znode``: the text of migration/mode, None where there is none. Kafka's assignment
    counts only if it says ``kafka`` and every registered member is a migrating one.
    """
    return Mode.KAFKA if znode == Mode.KAFKA and set(members) <= set(migrating) else Mode.ZOOKEEPER


def decide(
    now: Mode | None, asked: Mode, new: Collection[str] | None, *, migrates: bool = True
) -> tuple[Mode | None, str]:
    """The mode from here on, and why it is not the one that is asked for (empty: it is).

    ``now``: None while the member starts. ``new``: client ids of Kafka's group that no migrating member embeds; None
    while they are not known. Nobody begins to follow ZooKeeper while there are some, nor does a member that starts:
    those go on with the partitions that Kafka gave them, so they would be consumed twice (measured: 4 of 12 partitions,
    489 records in 12 s).
    """
    if not migrates:
        return Mode.ZOOKEEPER, ""
    if asked is now or asked is Mode.KAFKA:
        return asked, ""
    if new is None:
        return now, "who is in Kafka's group is not known yet"
    if new:
        named = ", ".join(sorted(new)[:3]) + (f" and {len(new) - 3} more" if len(new) > 3 else "")
        return Mode.KAFKA, f"{named} in Kafka's group would go on with its partitions: stop it, or set mode kafka"
    return asked, ""


class Toggles:
    """``refused``: how many toggles out of kafka mode a member did not follow because of new members, each once."""

    def __init__(self) -> None:
        self.refused = 0
        self._notice = ""
        self._counted = False

    def note(self, mode: Mode | None, notice: str, new: Collection[str] | None) -> None:
        """What ``decide`` has said, and of whom. Each reason is logged once. That nobody knows yet who is in Kafka's
        group is no refusal, nor is another list of new members another one.
        """
        if notice and notice != self._notice:
            logger.warning("mode %s stays: %s", mode, notice)
        self._notice = notice
        if not notice:
            self._counted = False
        elif mode is Mode.KAFKA and new and not self._counted:
            self.refused += 1
            self._counted = True
