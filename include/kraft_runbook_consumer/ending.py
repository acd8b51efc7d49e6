"""How the parts of a member end: each for itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from kraft_runbook_consumer.embedded import EmbeddedConsumer
from kraft_runbook_consumer.errors import ConsumerError
from kraft_runbook_consumer.handover import Handover
from kraft_runbook_consumer.streams import Stream
from kraft_runbook_consumer.zookeeper import ZookeeperSession

logger = logging.getLogger("kraft_runbook_consumer")


def attempt(part: Callable[[], object], otherwise: str) -> None:
    """Do it; where it fails, say what follows from that, and go on."""
    try:
        part()
    except (ConsumerError, AssertionError) as error:
        logger.warning("%s: %s", otherwise, error)
    except (Exception, SystemExit) as error:
        logger.exception("%s: %s", otherwise, error)


def close_each(
    streams: Iterable[Stream],
    failure: ConsumerError | None,
    embedded: EmbeddedConsumer | None,
    handover: Handover | None,
    zookeeper: ZookeeperSession,
) -> None:
    """``failure``: what the streams tell the application from now on."""
    for each in streams:
        if failure is not None:
            each.fail(failure)
        attempt(each.close, f"thread {each.number} was not closed")
    if embedded is not None:
        attempt(embedded.close, "the place in Kafka's group stays until its session ends")
    if handover is not None:
        attempt(handover.close, "the consumer that looks at logs was not closed")
    attempt(zookeeper.stop, "the registration stays until ZooKeeper's session ends")
