"""Whether a cluster is being migrated or changed now, so that a rehearsal with its metadata would tell nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.cluster_claim import holder_of
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.claim_znode import PATH, ClaimZnode
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.znodes.cluster_rows import parse_controller, parse_migration
from kraft_runbook.metadata.znodes.znode_values import BadZnode


def source_at_work(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    now: datetime,
    session: Callable[..., AbstractContextManager[ZookeeperReader]] = ZookeeperReader,
) -> tuple[str, ...]:
    """Why it is, each a sentence: a run holds the claim on it, a KRaft controller has the controller role, or
    ``/migration`` says that a copy has begun. A znode that can't be read as what it is says nothing.

    Raises Unreachable; Refused for a claim that another version of this tool wrote.
    """
    with session(spec.ensemble, secrets=secrets) as reader:
        return tuple(_why(reader, now))


def _why(reader: ZookeeperReader, now: datetime) -> Iterator[str]:
    claim = holder_of(ClaimZnode(reader))
    if claim is not None and now < claim.until:
        yield f"{PATH} says that run {claim.run_id} of {claim.dag_id} holds it until {claim.until:%Y-%m-%d %H:%M} UTC"
    controller, migration = reader.get_many(["/controller", "/migration"])
    try:
        held = parse_controller(controller.data) if controller else None
        begun = parse_migration(migration.data) if migration else None
    except BadZnode:
        return
    if held is not None and held.kraft_controller_epoch >= 0:
        yield f"/controller names KRaft controller {held.broker_id}"
    if begun is not None and not begun.is_blank:
        yield (
            f"/migration says that controller {begun.kraft_controller_id} wrote up to offset"
            f" {begun.kraft_metadata_offset}"
        )
