"""The last proof before a cluster leaves KRaft: every key changed since the full parity, compared inside the fence,
where nobody can write. By the argument of ``parity.comparison`` with M at the log's end, each key must have its last
value.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError, StepFailed
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.read_rows import read_keys
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.canonical_rows import Kind
from kraft_runbook.metadata.image.log_replay import LogReplay
from kraft_runbook.parity.comparison import Comparison, compare
from kraft_runbook.parity.decoding import decoding_of
from kraft_runbook.parity.dual_write import read_migration
from kraft_runbook.parity.log_follower import LogFollower
from kraft_runbook.parity.looks import touched_keys
from kraft_runbook.parity.state_versions import Behind, Epochs, look

SHOWN = 10
NEWEST = 100
"""How many topics the brokers are asked about before the fence. They get changes in order, so the newest topics prove
all earlier ones.
"""


class FinalProof:
    """A context manager around one connection to the active controller. ``since``: the offset that the full parity
    proved ZooKeeper to hold.

    Entering reads the log up to now, however long that takes, so that only its last records are left to read while the
    quorum is fenced. Raises LogTruncated where the log does not reach back to ``since`` any more, Unreachable.
    """

    def __init__(self, spec: ClusterSpec, *, since: int, secrets: Secrets) -> None:
        self._spec, self._secrets = spec, secrets
        self._decoding = decoding_of(spec, secrets=secrets)
        self._replay = LogReplay(since, self._decoding.fingerprints, spec.kafka.ibp)
        self._log = LogFollower(spec, self._replay, secrets=secrets, looks=1)  # a fence has no time

    def __enter__(self) -> FinalProof:
        self._log.__enter__()
        self._log.read_on()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._log.__exit__(kind, error, trace)

    def read_on(self, high_watermark: int | None = None) -> None:
        """Read what was committed since the last call, as far as this or, where it is None, as far as the quorum says.
        Returns at once if that is nothing.
        """
        if high_watermark is None:
            self._log.read_on()
        else:
            self._log.read_to(high_watermark - 1)

    def newest_topics(self) -> dict[str, dict[int, int]]:
        """Read on, and return the leader epochs of the topics that were changed last."""
        self._log.read_on()
        return self._replay.newest_topics(NEWEST)

    def look_at_epochs(self, zookeeper: ZookeeperReader) -> Epochs:
        """Compare the version of every state znode with its partition's epoch. Raises Unreachable, NoProof."""
        return look(zookeeper, self._replay, self._decoding)

    def paced_reader(self) -> ZookeeperReader:
        """A reader that keeps the cluster file's read rate."""
        return ZookeeperReader(self._spec.ensemble, secrets=self._secrets, rate=self._spec.ensemble.read_rate)

    def compare(self, zookeeper: ZookeeperReader) -> LastLook:
        """Compare every changed key. Called where nobody else writes: one look, as ``looks`` has them, where M is E."""
        keys = touched_keys(self._replay)
        rows = list(read_keys(zookeeper, keys, self._decoding))
        return LastLook(len(keys), compare(rows, self._replay.versions_of(keys, self._replay.end)))


@dataclass(frozen=True, slots=True)
class LastLook:
    """The comparison of the ``keys`` changed since the full parity."""

    keys: int
    found: Comparison

    @property
    def behind(self) -> tuple[Behind, ...]:
        """The partitions whose state znode's version is lower than their epoch."""
        return tuple(Behind.of(each) for each in self.found.differences if each.kind is Kind.PARTITION_EPOCH)

    @property
    def only_behind(self) -> bool:
        """Whether versions are lower than their epochs, and nothing else differs."""
        return 0 < len(self.behind) == len(self.found.differences)

    def require_equal(self) -> None:
        """Raise StepFailed, naming the first keys that differ or can't be judged."""
        wrong = [str(each) for each in (*self.found.differences, *self.found.undecoded)]
        if wrong:
            listed = "\n".join(f"- {text}" for text in wrong[:SHOWN])
            raise StepFailed(
                f"ZooKeeper and the metadata log differ in {len(wrong)} of the {self.keys} keys changed since the full"
                f" parity:\n{listed}",
                way_out=(
                    "the fence is lifted and nothing was deleted: run parity (kraft-runbook parity), correct what it"
                    " names, then clear the parity task"
                ),
            )


def what_lies_behind(spec: ClusterSpec, *, secrets: Secrets) -> str | None:
    """The state znodes whose version is lower than their partition's epoch now, in words, with names; None if there are
    none. A failed look is reported as such.
    """
    try:
        with ZookeeperReader(spec.ensemble, secrets=secrets) as zookeeper:
            since = read_migration(zookeeper).kraft_metadata_offset
        with FinalProof(spec, since=since, secrets=secrets) as proof, proof.paced_reader() as paced:
            found = proof.look_at_epochs(paced)
    except RunbookError as error:
        return f"the versions of state znodes could not be compared with the partitions' epochs: {error.problem}"
    return found.summary if found.behind else None
