"""What is looked at again before brokers enter migration mode: the start gate may be an hour ago, and no controller ran
then.
"""

from __future__ import annotations

from collections.abc import Iterable

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.migration.checks.untried_logins import znodes_are_open
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.runbook.read_parts import host_parts
from kraft_runbook.steps.node_step import Look

ASKED = ("KRB-PRE-084", "KRB-PRE-085")
AT_ZOOKEEPER = "KRB-PRE-130"


def require_replicas_as_in_zookeeper(look: Look) -> None:
    """Every replica on disk has its topic's id still. The copy begins once the last broker is in migration mode, and a
    topic may have been made anew since the start gate. Raises Refused, with nothing changed.
    """
    others = [each.mode for each in look.seen.brokers.values() if each.id != look.node]
    if look.phase is not Phase.PRE_MIGRATION or any(mode != BrokerMode.HYBRID for mode in others):
        return
    seen = look.cluster.settled(scope=Scope.FULL, with_hosts=True)
    _require_passed(look, seen, ASKED, "the metadata copy begins with this restart", "then clear this task")


def require_controllers_may_write(look: Look) -> None:
    """Before the first broker's restart: every controller that runs is somebody at ZooKeeper where the brokers are and
    znodes have ACLs, or get them (zookeeper.set.acl). What a controller's process was given is seen only now, under
    supervisor and of start scripts. Nothing was copied yet. Raises Refused, with nothing changed.
    """
    if look.phase is not Phase.PRE_MIGRATION or look.seen.brokers_in(BrokerMode.HYBRID):
        return
    hosts = look.cluster.settled(with_hosts=True)
    if all(login == () for login in host_parts(hosts, look.spec.broker_ids, "zookeeper_login").values()):
        return
    seen = look.cluster.settled(scope=Scope.FULL, with_hosts=True)
    if znodes_are_open(seen, look.spec):
        return
    _require_passed(
        look,
        seen,
        (AT_ZOOKEEPER,),
        "it is not proven that the controllers may write what the brokers made in ZooKeeper",
        "then restart the controllers one after the other, and clear this task",
    )


def _require_passed(look: Look, seen: ClusterObservation, codes: Iterable[str], why: str, then: str) -> None:
    found = [CHECKS[code].run(seen, look.spec) for code in codes]
    for each in found:
        look.tell(f"{each.code} {each.verdict}: {each.evidence}")
    if against := [each for each in found if not each.passed]:
        raise Refused(
            f"{why}: " + "; ".join(f"{each.code} {each.title}: {each.verdict}. {each.evidence}" for each in against),
            way_out="; ".join(f"{each.code}: {each.fix}" for each in against)
            + f". Broker {look.node} was not restarted: {then}",
        )
