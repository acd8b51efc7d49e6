"""What a cluster file says of the clusters that are to be migrated before its own."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from kraft_runbook.cluster.spans import Span
from kraft_runbook.cluster.spec_types import Model


class After(Model):
    """The migration may begin once another cluster has been in ``phase``, or further, for so many seconds
    (``for_seconds``; ``for`` in the file). Nothing begins by itself.
    """

    model_config = ConfigDict(populate_by_name=True)
    cluster: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_\-]{0,62}$")
    phase: Literal["HYBRID", "DUAL_WRITE", "FINALIZED"] = "FINALIZED"
    for_seconds: Span = Field(default=7 * 86400.0, alias="for")
