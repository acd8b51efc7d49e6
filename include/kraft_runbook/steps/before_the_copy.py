"""What is looked at again before the restart that lets the metadata copy begin: the start gate may be an hour ago."""

from __future__ import annotations

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.steps.node_step import Look

ASKED = ("KRB-PRE-084", "KRB-PRE-085")


def require_replicas_as_in_zookeeper(look: Look) -> None:
    """Every replica on disk has its topic's id still. The copy begins once the last broker is in migration mode, and a
    topic may have been made anew since the start gate. Raises Refused, with nothing changed.
    """
    others = [each.mode for each in look.seen.brokers.values() if each.id != look.node]
    if look.phase is not Phase.PRE_MIGRATION or any(mode != BrokerMode.HYBRID for mode in others):
        return
    seen = look.cluster.settled(scope=Scope.FULL, with_hosts=True)
    found = [CHECKS[code].run(seen, look.spec) for code in ASKED]
    for each in found:
        look.tell(f"{each.code} {each.verdict}: {each.evidence}")
    if blocking := [each for each in found if each.blocks]:
        raise Refused(
            "the metadata copy begins with this restart: "
            + "; ".join(f"{each.code} {each.title}: {each.verdict}. {each.evidence}" for each in blocking),
            way_out="; ".join(f"{each.code}: {each.fix}" for each in blocking)
            + f". Broker {look.node} was not restarted: then clear this task",
        )
