"""Whether a restart stops producers: until the migration is final, ZooKeeper's tree tells."""

from __future__ import annotations

from kraft_runbook.migration.checks.catalogue import CHECKS, UNTIL_FINALIZED
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS
from kraft_runbook.runbook.producers import CODES

CHECKS.take(*CLUSTER_CHECKS.of(*CODES), stages=UNTIL_FINALIZED, needs=Needs.TREE)
