"""What the copy holds of each znode: the same, nothing, or other bytes of the same shape.

No secret of the source comes into the copy, and what Kafka can't read there it can't read in the copy either: that is
what a rehearsal is for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Dropped(StrEnum):
    """Why a znode is not in the copy."""

    EPHEMERAL = "ephemeral"
    CONTROLLER = "/controller"
    MIGRATION = "/migration"
    CLAIM = "/kraft_runbook_claim"
    CONSUMERS = "/consumers"
    NOT_KAFKAS = "not Kafka's"
    """What else lies at the root of an ensemble that Kafka shares without a chroot, and ZooKeeper's own."""


class Replaced(StrEnum):
    """What of a znode's data is another in the copy."""

    CLUSTER_ID = "cluster id"
    SCRAM_CREDENTIAL = "SCRAM credential"
    ENCODED_PASSWORD = "encoded password"  # noqa: S105 - a kind, not a password
    SENSITIVE_CONFIG = "sensitive config"
    DELEGATION_TOKEN = "delegation token"  # noqa: S105
    UNKNOWN_DATA = "data of a znode that Kafka does not know"


@dataclass(frozen=True, slots=True)
class Replacements:
    """What replaces the source's own. ``cluster_id``: of the copy; ``encoder_secret``: the throwaway's
    password.encoder.secret; ``source_encoder_secret``: the source's, or None where it is not at hand (then every
    well-formed password is taken for one that it opens).
    """

    cluster_id: str
    encoder_secret: str
    source_encoder_secret: str | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A znode's data in the copy, and what in it was replaced, an entry each."""

    data: bytes
    replaced: tuple[Replaced, ...] = ()


def why_dropped(path: str, *, ephemeral: bool) -> Dropped | None:
    """Why the znode at ``path`` (Kafka's path, without a chroot) and all below it is not in the copy; None: it is."""
    raise NotImplementedError


def held(path: str, data: bytes, given: Replacements) -> Held:
    """What the copy holds in the place of this znode's data. Random values are new at each call."""
    raise NotImplementedError
