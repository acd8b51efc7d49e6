"""Whether the broker that each roll begins with could be judged, and whether the others may go together."""

from __future__ import annotations

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.runbook.broker_batches import CODE as BATCHES
from kraft_runbook.runbook.canary_check import CODE as CANARY
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS

UNTIL_ROLLED = (Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.HYBRID)

CHECKS.take(*CLUSTER_CHECKS.of(CANARY, BATCHES), stages=UNTIL_ROLLED)
