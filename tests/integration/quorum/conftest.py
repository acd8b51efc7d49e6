"""One lab for the files of this directory, in their order: the first one leaves it as the next needs it."""

from __future__ import annotations

from collections.abc import Iterator

import kept_states
import pytest
from labs import Lab

from kraft_runbook.cluster.phases import Phase


@pytest.fixture(scope="package")
def dual_write() -> Iterator[Lab]:
    """As for a single file, a seeded lab in dual write, every broker in migration mode (phase HYBRID)."""
    with kept_states.lab_in(Phase.HYBRID) as lab:
        yield lab
