"""A playbook to be played on one node, as a value: planned, rehearsed and played by ``io.hosts.playbooks``. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Guard(Enum):
    """What the controllers' hosts must prove before a step, so that no election can finalize the migration too early
    (KAFKA-20960).
    """

    NONE = "nothing: there is no way back to protect, or the step is finalization itself"
    PROVISIONED = "every controller is in migration mode, on disk and running"
    PROVISIONING = (
        "the same, but for one that does not run and is not provisioned, yet or any more: it has no file, or no"
        " formatted data"
    )
    ANEW = "as PROVISIONING, and no controller's log is of a migration that copied its metadata and was left"


@dataclass(frozen=True, slots=True)
class Play:
    """``playbook``: its name below ``playbooks/``. ``variables`` come on top of the node's own
    (``io.hosts.playbooks.node_variables``).

    ``guard``: what the controllers' hosts must prove, except those of ``gone``. The node that the play itself writes
    need not prove it, unless ``guards_itself``. ``writes_secrets``: whether the host's secrets file is written.
    """

    playbook: str
    node_id: int
    variables: Mapping[str, Any]
    guard: Guard = Guard.NONE
    gone: Collection[int] = ()
    guards_itself: bool = False
    writes_secrets: bool = True
