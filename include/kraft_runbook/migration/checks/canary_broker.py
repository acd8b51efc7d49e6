"""Whether the broker that each roll begins with could be judged."""

from __future__ import annotations

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.runbook.canary_check import CODE
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS

CHECKS.take(CLUSTER_CHECKS[CODE], stages=(Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.HYBRID))
