"""What a cluster file says of the broker that each roll begins with."""

from __future__ import annotations

from kraft_runbook.cluster.spans import Span
from kraft_runbook.cluster.spec_types import Model, NodeId


class CanaryBroker(Model):
    """This ``broker`` is restarted first in each roll. The others follow once it has been as healthy as they are for
    ``soak`` seconds (or a text such as 30m).
    """

    broker: NodeId
    soak: Span = 1800.0
