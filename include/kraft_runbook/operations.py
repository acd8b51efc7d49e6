"""Every operation, by its name: for the command, and for waits that go on after a restart of the triggerer."""

from __future__ import annotations

from collections.abc import Mapping

from kraft_runbook.features.operation import FEATURES
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.upgrade.operation import UPGRADE

OPERATIONS: Mapping[str, Operation] = {each.name: each for each in (MIGRATION, FEATURES, UPGRADE)}
