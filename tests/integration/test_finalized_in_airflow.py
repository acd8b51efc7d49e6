"""What the migration's and the rollback's DAGs say of a finalized cluster whose ZooKeeper still runs. Every day
test_without_zookeeper has one refused by the same checks, and test_leaving_kraft the same plan of the way back.
"""

from __future__ import annotations

from collections.abc import Iterator

import kept_states
import pytest
from labs import Lab
from stage import ENDED, MIGRATION, ROLLBACK, Stage

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.io.local import supervision
from lab.layout import ZOOKEEPER, layout, starts

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def own_lab() -> Iterator[Lab]:
    """A lab that was migrated and finalized, with its ZooKeeper."""
    with kept_states.lab_in(Phase.FINALIZED) as lab:
        supervision.start(layout(lab.spec), ZOOKEEPER)
        yield lab


def test_a_finalized_cluster_is_not_migrated_again(stage: Stage) -> None:
    before = starts(stage.lab.spec)
    run_id = stage.start(MIGRATION)
    assert stage.run_to_its_end(MIGRATION, run_id) == "failed"
    assert "KRB-" in stage.log(MIGRATION, run_id, "preflight.checks")
    assert starts(stage.lab.spec) == before


def test_a_finalized_cluster_has_no_way_back(stage: Stage) -> None:
    run_id = stage.start(ROLLBACK)
    assert stage.wait(ROLLBACK, run_id, "plan.way_back", ENDED) == "failed"
    assert "what remains: go forward" in stage.log(ROLLBACK, run_id, "plan.way_back")
