"""Stand-ins for brokers: registrations with heartbeats in the quorum, ephemeral znodes, and servers that answer the
controller's calls.

They follow the modes of a migration (KIP-866). ZOOKEEPER: the znode alone. HYBRID: the znode, and a registration in
migration mode. KRAFT: a registration in KRaft mode, and no znode. They hold no replica and serve no client.

    python -m kraft_runbook.io.kafka.stand_ins CLUSTERS_DIRECTORY CLUSTER DIRECTORY

runs those that the cluster file of a rehearsal names, until SIGTERM: in the mode that ``DIRECTORY/mode`` names, and
telling in ``DIRECTORY/told.json``.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from uuid import UUID, uuid4

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import Refused, RunbookError
from kraft_runbook.io.kafka.heartbeats import Heartbeats, shares
from kraft_runbook.io.kafka.leader import Leader
from kraft_runbook.io.kafka.registrations import beat, register
from kraft_runbook.io.kafka.stand_in_server import listen
from kraft_runbook.io.private_file import write_private
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.broker_znodes import BrokerZnodes

LOOK = 0.1
ZNODES_EVERY = 2.0

Wanted = Callable[[], BrokerMode]


@dataclass(frozen=True, slots=True)
class Told:
    """What the stand-ins say of themselves, in a file. Times are epoch seconds. ``mode``: the one that all of them are
    in; ``registered_at``: when the last one had registered for it; ``unfenced_at``: since when the quorum had shown
    each as unfenced. ``anew``: how many znodes had to be made again, since a session was lost.
    """

    registered_at: float | None = None
    unfenced_at: float | None = None
    epochs: Mapping[int, int] | None = None
    problem: str = ""
    mode: str = ""
    anew: int = 0

    def save(self, path: Path) -> None:
        write_private(path, json.dumps({**asdict(self), "epochs": dict(self.epochs or {})}) + "\n", durable=False)


def told(path: Path) -> Told:
    """What they last said; nothing yet where there is no file."""
    if not path.exists():
        return Told()
    given = json.loads(path.read_text())
    return Told(**(given | {"epochs": {int(key): value for key, value in given["epochs"].items()}}))


@dataclass
class StandIns:
    """``brokers``: who is stood in for, each by its first listener. ``cluster_id``: of the cluster that they register
    with. ``tell``: gets each change. ``register``, ``beat``, ``announces``: how one registers, beats, has its znode.
    """

    spec: ClusterSpec
    brokers: Sequence[Broker]
    cluster_id: str
    tell: Callable[[Told], None]
    register: Callable[..., int] = register
    beat: Callable[..., bool | None] = beat
    announces: Callable[..., BrokerZnodes] = BrokerZnodes
    look_every: float = LOOK
    znodes_every: float = ZNODES_EVERY
    stop: threading.Event = field(default_factory=threading.Event)
    _incarnations: dict[int, UUID] = field(default_factory=dict)
    _epochs: dict[int, int] = field(default_factory=dict)
    _told: Told = field(default_factory=Told)

    def follow(self, wanted: Wanted) -> None:
        """Be in the mode that is ``wanted``, and change with it, until ``stop``. Raises StepFailed where a registration
        or a heartbeat is refused, or no controller led for ``leader.PATIENCE`` seconds; Unreachable for ZooKeeper;
        Refused where another cluster's ZooKeeper answers.
        """
        secrets = environment_secrets({})
        self._incarnations = {broker.id: uuid4() for broker in self.brokers}
        ids = [broker.id for broker in self.brokers]
        beats = Heartbeats(self.spec, ids, beat=self.beat, look_every=self.look_every)
        with (
            beats,
            self.announces(self.spec.ensemble, self.brokers, cluster_id=self.cluster_id, secrets=secrets) as znodes,
        ):
            self._follow(wanted, znodes, beats)
        if beats.failures:
            raise beats.failures[0]

    def _follow(self, wanted: Wanted, znodes: BrokerZnodes, beats: Heartbeats) -> None:
        mode: BrokerMode | None = None
        looked = time.monotonic()
        while not self.stop.is_set() and not beats.failures:
            now = wanted()
            if now is not mode:
                self._change(now, znodes, beats)
                mode = now
            elif time.monotonic() - looked > self.znodes_every:
                looked = time.monotonic()
                if made := znodes.keep():
                    self._say(self._told, made=made)
            all_beat = now is not BrokerMode.ZOOKEEPER and len(beats.unfenced) == len(self.brokers)
            if all_beat and self._told.unfenced_at is None:
                self._say(Told(self._told.registered_at, time.time(), dict(self._epochs), mode=now.value))
            self.stop.wait(self.look_every)

    def _change(self, mode: BrokerMode, znodes: BrokerZnodes, beats: Heartbeats) -> None:
        """In KRaft mode the registration comes before the znode goes; in the others the znode comes first."""
        if mode is not BrokerMode.KRAFT:
            znodes.announce()
        registered_at = None
        if mode is BrokerMode.ZOOKEEPER:
            beats.epochs = {}
        else:
            beats.epochs = self._epochs
            self._register(migrating=mode is BrokerMode.HYBRID)
            beats.unfenced.clear()
            registered_at = time.time()
        if mode is BrokerMode.KRAFT:
            znodes.withdraw()
        self._say(Told(registered_at, None, dict(self._epochs), mode=mode.value))

    def _say(self, now: Told, *, made: int = 0) -> None:
        self._told = replace(now, anew=self._told.anew + made)
        self.tell(self._told)

    # -- in the quorum -------------------------------------------------------------------------------------------------

    def _register(self, *, migrating: bool) -> None:
        at_once = shares(self.brokers)
        if not at_once:
            return
        with ThreadPoolExecutor(len(at_once)) as pool:
            for registered in pool.map(lambda share: self._register_some(share, migrating), at_once):
                self._epochs |= registered

    def _register_some(self, share: Sequence[Broker], migrating: bool) -> dict[int, int]:
        leader = Leader(self.spec, environment_secrets({}))
        try:
            return {
                each.id: self.register(
                    leader,
                    each,
                    cluster_id=self.cluster_id,
                    incarnation=self._incarnations[each.id],
                    migrating=migrating,
                )
                for each in share
            }
        finally:
            leader.close()


async def run(cast: StandIns, wanted: Wanted) -> bool:
    """Serve and follow until SIGTERM; whether it ended because it was told to. What went wrong is told."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, ended.set)
    servers = await listen(cast.brokers)
    failed: list[Exception] = []

    def follow() -> None:
        try:
            cast.follow(wanted)
        except Exception as error:
            traceback.print_exc()
            failed.append(error)
            cast.tell(
                Told(problem=error.problem if isinstance(error, RunbookError) else f"{type(error).__name__}: {error}")
            )
        finally:
            loop.call_soon_threadsafe(ended.set)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        await ended.wait()
    finally:
        cast.stop.set()
        await asyncio.to_thread(thread.join)
        for server in servers:
            server.close()
    return not failed


def mode_file(directory: Path) -> Path:
    """Where the mode is named that is wanted."""
    return directory / "mode"


def told_file(directory: Path) -> Path:
    """Where they tell."""
    return directory / "told.json"


def stand_ins_of(spec: ClusterSpec) -> tuple[Broker, ...]:
    """Those that the file of a rehearsal names. Raises Refused for any other cluster file."""
    if spec.rehearses is None:
        raise Refused(
            f"the cluster file of {spec.name} is not a rehearsal's: real brokers have no stand-ins",
            way_out="begin a rehearsal: kraft-runbook rehearse",
        )
    return spec.rehearses.stand_in_brokers(spec.kafka.inter_broker_listener)


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 once it was told to end; 1 where a stand-in failed."""
    clusters, name, place = arguments
    spec, directory = load_cluster(name, directory=Path(clusters), environment={}), Path(place)
    assert spec.cluster_id is not None, "a rehearsal's file has an id (cluster.spec)"
    cast = StandIns(spec, stand_ins_of(spec), spec.cluster_id, lambda now: now.save(told_file(directory)))
    return 0 if asyncio.run(run(cast, lambda: BrokerMode(mode_file(directory).read_text().strip()))) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
