"""How the parts of a member end: each for itself."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kraft_runbook_consumer.errors import ConsumerError

logger = logging.getLogger("kraft_runbook_consumer")


def attempt(part: Callable[[], object], otherwise: str) -> None:
    """Do it; where it fails, say what follows from that, and go on."""
    try:
        part()
    except (ConsumerError, AssertionError) as error:
        logger.warning("%s: %s", otherwise, error)
    except (Exception, SystemExit) as error:
        logger.exception("%s: %s", otherwise, error)
