"""The last proof before a cluster leaves KRaft: every key that was touched since the full parity, compared where nobody can write any more."""

from __future__ import annotations

from types import TracebackType

from kraft_runbook.clients.decoding import decoding_of
from kraft_runbook.clients.log_follower import LogFollower
from kraft_runbook.clients.secrets import Secrets
from kraft_runbook.clients.zookeeper import ZookeeperReader
from kraft_runbook.clients.zookeeper_tree import read_keys
from kraft_runbook.cluster import ClusterSpec
from kraft_runbook.errors import StepFailed
from kraft_runbook.metadata.comparison import compare
from kraft_runbook.metadata.metadata_log import LogReplay

SHOWN = 10
NEWEST = 100
"""How many topics the brokers are asked about before the fence. They are told of changes in order, so the newest speak for all."""


class FinalProof:
    """A context manager around one connection to the active controller. ``since``: the offset that the full parity proved ZooKeeper to hold.

    Entering reads the log up to now, however long that takes, so that only its last records are left to read while the quorum is
    fenced. Raises LogTruncated where the log does not reach back to ``since`` any more, Unreachable.
    """

    def __init__(self, spec: ClusterSpec, *, since: int, secrets: Secrets, timeout: float = 30.0) -> None:
        self._decoding = decoding_of(spec, secrets=secrets)
        self._replay = LogReplay(since, self._decoding.fingerprints, spec.kafka.ibp)
        self._log = LogFollower(spec, self._replay, secrets=secrets, timeout=timeout)

    def __enter__(self) -> FinalProof:
        self._log.__enter__()
        self._log.read_on()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._log.__exit__(kind, error, trace)

    def read_on(self, high_watermark: int) -> None:
        """Read what was committed since the last call. Returns at once where that is nothing."""
        self._log.read_to(high_watermark - 1)

    def newest_topics(self) -> dict[str, dict[int, int]]:
        """Read on, and return the leader epochs of the topics that were touched last."""
        self._log.read_on()
        return self._replay.newest_topics(NEWEST)

    def compare(self, zookeeper: ZookeeperReader) -> int:
        """How many keys were touched and agree. Raises StepFailed, naming the first that do not."""
        keys = {key for key in self._replay.touched if key[0].follows_the_log}
        found = compare(list(read_keys(zookeeper, keys, self._decoding)), self._replay.latest_of(keys))
        wrong = [str(each) for each in (*found.differences, *found.undecoded)]
        if wrong:
            listed = "\n".join(f"- {text}" for text in wrong[:SHOWN])
            raise StepFailed(
                f"ZooKeeper does not hold what the metadata log says of {len(wrong)} of the {len(keys)} keys touched since the full parity:\n{listed}",
                way_out="the fence is lifted and nothing was deleted: run parity (kraft-runbook parity), mend what it names, then clear the parity task",
            )
        return len(keys)
