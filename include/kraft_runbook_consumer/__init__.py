"""A consumer that coordinates through ZooKeeper and moves to Kafka's coordination, and back, while it runs (KIP-125).

It imports nothing of ``kraft_runbook``: an application needs kazoo and confluent-kafka beside it.
"""

from kraft_runbook_consumer.consumer import MigratingConsumer
from kraft_runbook_consumer.errors import Closed, ConsumerError, SettingError, Unreachable
from kraft_runbook_consumer.listener import RebalanceListener
from kraft_runbook_consumer.mode import Mode
from kraft_runbook_consumer.streams import Stream

__all__ = [
    "Closed",
    "ConsumerError",
    "MigratingConsumer",
    "Mode",
    "RebalanceListener",
    "SettingError",
    "Stream",
    "Unreachable",
]
