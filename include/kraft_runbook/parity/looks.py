"""The looks of one comparison: the argument of ``parity.comparison``, carried out on a cluster.

Every comparison is made of the same ones, whether of everything, of what changed since a proof, or of what was touched
before the fence. Each has an M and an E of its own, in this order: M from /migration, ZooKeeper's rows, E from the
quorum, the log up to E, the comparison.

- A first look, at everything (``spark.full_comparison``) or ``at_touched`` keys.
- ``at_topics``: a closer one at topics that the first look can't clear by their fingerprints.
- ``again``: at suspects where they were seen. One that agrees once is cleared; what never does is a mismatch.
- ``require_movement``: /migration must have moved since the first M, unless nothing was committed behind it.

In the fence nobody writes, so M is E, and one look is enough (``final_proof``).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kraft_runbook.cluster.observation import ZkMigrationState
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.read_rows import read_again, read_keys, read_topics
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.canonical_rows import Kind, Row
from kraft_runbook.metadata.image.image import Key
from kraft_runbook.metadata.image.log_replay import LogReplay, Version
from kraft_runbook.metadata.znodes.znode_rows import Decoding
from kraft_runbook.parity.comparison import Difference, compare
from kraft_runbook.parity.dual_write import NoProof, read_migration, require_movement
from kraft_runbook.parity.findings import Findings
from kraft_runbook.parity.log_follower import LogFollower
from kraft_runbook.parity.quorum_facts import declared_rows, quorum_versions
from kraft_runbook.parity.second_look import keys_in_question, look_again

PAUSE = 1.0
"""Seconds before suspects are read again."""
PATIENCE_FOR_THE_LOG = 3
"""How often suspects that follow the log's order are read again: by the argument once would do."""
PATIENCE_FOR_SESSIONS = 15
"""How often suspects are that follow sessions and elections: a broker between its two registrations, a controller just
elected.
"""
OF_THE_QUORUM = frozenset({(Kind.CONTROLLER, '["/controller"]'), (Kind.CONTROLLER, '["/migration"]')})
"""Who leads, as ZooKeeper has it: the log does not say it, so no record touches these keys."""


def touched_keys(replay: LogReplay) -> set[Key]:
    """The keys that the log has touched since its start and that ZooKeeper is written in the log's order."""
    return {key for key in replay.touched if key[0].follows_the_log}


class NotDualWriting(NoProof):
    """The log says that the cluster is not in dual write: there are no two stores."""


def require_dual_write(state: ZkMigrationState | None) -> None:
    """Raise NotDualWriting unless the log's migration state says that both stores are written."""
    if state is ZkMigrationState.POST_MIGRATION:
        raise NotDualWriting(
            "the migration is finalized: ZooKeeper is not written any more, so there is nothing to compare with",
            way_out="name the file that the last MATCH in dual write left (--baseline)",
        )
    if state is not ZkMigrationState.MIGRATION:
        raise NotDualWriting(
            f"the metadata was not copied yet: the log's migration state is {state.name if state else 'not recorded'}",
            way_out="wait until the last broker has registered in migration mode and the copy is done, then run again",
        )


@dataclass(slots=True)
class Looks:
    """``log``: followed from the first M on, or from the M of a proof. What the looks find is added to ``found``.

    ``settled``: keys that agreed only at a later look; ``later``: ZooKeeper's rows of them. ``opened``: how a session
    with ZooKeeper is; ``versions``: what the quorum itself says.
    """

    spec: ClusterSpec
    secrets: Secrets
    decoding: Decoding
    log: LogFollower
    found: Findings
    settled: set[Key] = field(default_factory=set)
    later: list[Row] = field(default_factory=list)
    pause: float = PAUSE
    opened: Callable[..., ZookeeperReader] = ZookeeperReader
    versions: Callable[..., Iterator[Version]] = quorum_versions

    def zookeeper(self, *, rate: float | None = None) -> ZookeeperReader:
        """A session of one look. ``rate``: znodes a second at the most."""
        return self.opened(self.spec.ensemble, secrets=self.secrets, rate=rate)

    def end(self, start: int) -> int:
        """E, asked for now, with the log read up to it. Raises NoProof if ``start`` is after it, or if the log says
        that dual write is over.
        """
        found = self.found
        found.last, found.quorum = self.log.read_on(), self.log.quorum
        if found.last < start:
            raise NoProof(
                f"/migration names offset {start}, and the quorum's log ends at {found.last}: it belongs to another"
                " quorum",
                way_out=(
                    "do not start brokers; docs/rollback.md says how a stale /migration is removed, and what it can do"
                ),
            )
        require_dual_write(self.log.replay.migration_state)
        return found.last

    def told_by_the_quorum(self, start: int) -> list[Version]:
        """What the quorum itself says, as of a look that began at ``start``."""
        return list(self.versions(self.spec, self.log.quorum, offset=start, secrets=self.secrets))

    def at_topics(self, names: Sequence[str]) -> list[Row]:
        """These topics row by row: ZooKeeper's rows, all of which were compared."""
        with self.zookeeper(rate=self.spec.ensemble.read_rate) as reader:
            start = read_migration(reader).kraft_metadata_offset
            rows = list(read_topics(reader, names, self.decoding))
        self.end(start)
        self.found.add(compare(rows, self.log.replay.versions_of_topics(names, since=start)))
        return rows

    def at_touched(self) -> None:
        """A first look, at every key that the log has touched up to M, at the least."""
        with self.zookeeper() as reader:
            self.found.began(read_migration(reader))
            self.end(self.found.start)
            keys = touched_keys(self.log.replay)
            rows = list(read_keys(reader, keys | OF_THE_QUORUM, self.decoding))
        self.found.end = self.end(self.found.start)
        told = [v for v in self.told_by_the_quorum(self.found.start) if (v.kind, v.key) in OF_THE_QUORUM]
        self.found.add(compare(rows, [*self.log.replay.versions_of(keys, self.found.start), *told]))

    def again(self) -> None:
        """Read the suspects again where they were seen, until they agree or patience ends."""
        found, suspects = self.found, self.found.differences
        while suspects and found.rounds <= _patience(suspects):
            time.sleep(self.pause)
            found.rounds += 1
            suspects = self._again(suspects)
        found.both += Counter(row.kind for row in self.later)
        found.differences = tuple(suspects)

    def _again(self, suspects: Sequence[Difference]) -> tuple[Difference, ...]:
        replay, asked = self.log.replay, {each.identity for each in suspects}
        with self.zookeeper() as reader:
            start = read_migration(reader).kraft_metadata_offset
            rows = [
                *read_again(reader, suspects, self.decoding),
                *(row for row in declared_rows(self.spec) if (row.kind, row.key) in asked),
            ]
        self.end(start)
        keys = keys_in_question(suspects, rows)
        unknown = {key for key in keys if key[0].follows_the_log and not replay.knows(key)}
        told = [v for v in self.told_by_the_quorum(start) if (v.kind, v.key) in keys]
        told += replay.versions_of(keys - unknown - {(v.kind, v.key) for v in told}, start)
        look = look_again(suspects, rows, told, replay.touched, unknown=unknown)
        self.found.obstacles += look.obstacles
        self.found.undecoded += tuple(each for each in look.undecoded if each not in self.found.undecoded)
        self.settled |= look.agreed
        self.later += look.rows
        return look.suspects

    def require_movement(self) -> None:
        """Raises NoProof where /migration has not moved since the first look began, though the log went on."""
        with self.zookeeper() as reader:
            require_movement(reader, self.spec, since=self.found.start, secrets=self.secrets)


def _patience(suspects: Iterable[Difference]) -> int:
    return PATIENCE_FOR_THE_LOG if all(each.kind.follows_the_log for each in suspects) else PATIENCE_FOR_SESSIONS
