"""Which znodes end Kafka's own copy: it is tried again in the throwaway, with parts of the copied tree.

A try takes seconds: ZooKeeper with a part of the tree, one controller with an empty log, and the stand-ins. The seats
are not needed: they hold nothing, and are in no assignment.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.owned_properties import QUORUM_VOTERS
from kraft_runbook.cluster.properties_text import parse_properties, render_properties
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.kafka.stand_ins import mode_file, told, told_file
from kraft_runbook.io.local import supervision
from kraft_runbook.io.local.layout import ZOOKEEPER
from kraft_runbook.io.private_file import write_private
from kraft_runbook.io.zookeeper.read_state import read_zookeeper
from kraft_runbook.io.zookeeper.snapshot_read import write_part, znodes_in
from kraft_runbook.procedures.throwaway_cluster import LEASE, STAND_INS, ThrowawayCluster
from kraft_runbook.rehearsal.halving import MOST, NotJudged, search
from kraft_runbook.rehearsal.kafka_said import KafkaSaid, fatal_of, heap_is_full, place_at_fault
from kraft_runbook.rehearsal.permission import require_throwaway
from kraft_runbook.rehearsal.suspects import Halved, suspect_of
from kraft_runbook.rehearsal.whose_fault import is_the_places

A_TRY = 300.0
"""Seconds in which one must say something (9 s each with 200 znodes, measured)."""
ENDING = 30.0
DUAL_WRITE = "to DUAL_WRITE state"
"""What ``KRaftMigrationDriver`` logs once the copy, the sync to ZooKeeper and the requests to the brokers are done."""
LOG = "__cluster_metadata-0"


def keep_tree(snapshot: Path, directory: Path) -> Path:
    """A copy of the copied tree, for later: ZooKeeper may write its own over it when it starts. Raises OSError."""
    directory.mkdir(mode=0o700)
    return Path(shutil.copy(snapshot, directory / snapshot.name))


Attempt = Callable[[ThrowawayCluster, Path, frozenset[str]], KafkaSaid | None]
"""What Kafka says of the end of a copy of the tree in that file without these suspects; None where it is done."""


def halve_suspects(
    throwaway: ThrowawayCluster, snapshot: Path, said: KafkaSaid, *, attempt: Attempt | None = None
) -> Halved:
    """Search what of ``snapshot`` ends the copy, which ended with what Kafka ``said``. Ends every process of the
    throwaway but its supervisor and its lease. ``attempt``: None: the real one. Raises Refused for any other cluster,
    RunbookError or OSError where the snapshot can't be read.
    """
    require_throwaway(throwaway.spec)
    found = dict.fromkeys(suspect_of(path) for path, _ in znodes_in(snapshot))
    everything = tuple(each for each in found if each is not None)
    tries = 0
    kinds = tuple(f"{kind}/" for kind in said.kinds or (said.znode,) if kind)
    if some := tuple(each for each in everything if each.startswith(kinds)):
        copies = _Copies(throwaway, snapshot, attempt or try_copy, some)
        halved = Halved(len(some), search(some, copies.ends), copies.exceptions)
        if halved.search.found or not halved.search.others:
            return halved
        tries = halved.search.tries  # Kafka was somewhere else than its trace seems to say
    copies = _Copies(throwaway, snapshot, attempt or try_copy, everything)
    return Halved(len(everything), search(everything, copies.ends, most=MOST - tries), copies.exceptions)


@dataclass
class _Copies:
    throwaway: ThrowawayCluster
    snapshot: Path
    attempt: Attempt
    suspects: tuple[str, ...]
    exceptions: dict[tuple[str, ...], str] = field(default_factory=dict)

    def ends(self, some: Sequence[str]) -> bool:
        """Whether the copy of the tree with these suspects alone ends the controller. Raises NotJudged."""
        left_out = frozenset(self.suspects).difference(some)
        began = time.monotonic()
        try:
            said = self.attempt(self.throwaway, self.snapshot, left_out)
        except RunbookError as error:
            raise NotJudged(error.problem) from error
        except Exception as error:
            if not is_the_places(error):
                raise
            raise NotJudged(f"this machine: {type(error).__name__}: {error}"[:300]) from error
        outcome = "is done" if said is None else f"ended: {said}"
        self.throwaway.tell(
            f"a copy with {len(some)} of {len(self.suspects)} suspects {outcome} ({time.monotonic() - began:.0f} s)"
        )
        if said is not None:
            self.exceptions[tuple(some)] = said.exceptions[-1] if said.exceptions else said.fault
        return said is not None


def try_copy(throwaway: ThrowawayCluster, snapshot: Path, left_out: frozenset[str]) -> KafkaSaid | None:
    """What Kafka says of the end of a copy without these suspects; None where it is done. Raises RunbookError, OSError,
    NotJudged.
    """
    _end_all(throwaway)
    data = throwaway.zookeeper_data
    shutil.rmtree(data)
    write_part(snapshot, data, holds=lambda path: suspect_of(path) not in left_out)
    controller = throwaway.spec.controllers[0]
    _alone(throwaway)
    throwaway.await_zookeeper()
    state, _ = read_zookeeper(throwaway.spec.ensemble, secrets=throwaway.secrets, deep=None, timeout=10.0)
    if state.cluster_id != throwaway.spec.cluster_id:
        raise NotJudged(f"the cluster {state.cluster_id} answers at the address of the throwaway's ZooKeeper")
    before = throwaway.starts(controller.service)
    supervision.begin_start(throwaway.here, controller.service)
    stand_ins = throwaway.here.directory / STAND_INS
    told_file(stand_ins).unlink(missing_ok=True)
    write_private(mode_file(stand_ins), BrokerMode.HYBRID.value, durable=False)
    supervision.begin_start(throwaway.here, STAND_INS)
    ends = time.monotonic() + A_TRY
    while True:
        running = supervision.running(throwaway.here)
        lines = throwaway.lines_of_start(controller.service, before + 1)
        if place := place_at_fault(lines) or heap_is_full(lines):
            raise NotJudged(f"{controller.service} says: {place}")
        if said := fatal_of(lines):
            return in_the_copy(said)
        if any(DUAL_WRITE in line for line in lines):
            return None
        if problem := told(told_file(stand_ins)).problem:
            raise NotJudged(f"the stand-ins failed: {problem}")
        if gone := {ZOOKEEPER, controller.service} - running:
            raise NotJudged(f"{' and '.join(sorted(gone))} ended, and no log says why")
        if time.monotonic() > ends:
            raise NotJudged(f"the copy was neither done nor ended within {A_TRY:.0f} s")
        time.sleep(0.2)


def in_the_copy(said: KafkaSaid) -> KafkaSaid:
    """What a controller of a try said that ended. Raises NotJudged where that was not of the metadata."""
    if said.passing or not said.of_metadata:
        raise NotJudged(f"the controller ended, and does not blame the metadata: {said}")
    return said


def _end_all(throwaway: ThrowawayCluster) -> None:
    """SIGKILL to all but the lease. Raises NotJudged where one stays."""
    deadline = time.monotonic() + ENDING
    while running := supervision.running(throwaway.here) - {LEASE}:
        for service in running:
            supervision.begin_stop(throwaway.here, service, signal="KILL")
        if time.monotonic() > deadline:
            raise NotJudged(f"{', '.join(sorted(running))} can't be ended")
        time.sleep(0.1)
    if not supervision.answers(throwaway.here):
        raise NotJudged("the throwaway's supervisor is gone")


def _alone(throwaway: ThrowawayCluster) -> None:
    """Make the first controller the only voter, with an empty log: its formatted directory stays, and so do all its
    other settings. Raises NotJudged where it was never provisioned; OSError.
    """
    controller = throwaway.spec.controllers[0]
    config, log_dir = Path(controller.config_file), Path(controller.log_dir)
    if not config.exists() or not (log_dir / "meta.properties").exists():
        raise NotJudged(f"{controller.service} was never provisioned")
    properties = parse_properties(config.read_text()) | {QUORUM_VOTERS: f"{controller.id}@{controller.address}"}
    write_private(config, render_properties(properties, header="The only controller of a copy of a part of the tree"))
    if (log_dir / LOG).exists():
        shutil.rmtree(log_dir / LOG)
