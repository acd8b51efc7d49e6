"""The harness's stand-ins for data brokers, in one mode from the start (``kraft_runbook.io.kafka.stand_ins``).

    python -m benchmarks.scale.ghosts DIRECTORY MODE

Runs until SIGTERM, and tells in ``ghosts.json``.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from benchmarks.scale.cluster import CLUSTER_ID, load_spec, saved_plan
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.io.kafka.stand_ins import StandIns, run


def main(directory: Path, mode: BrokerMode) -> int:
    """Exit code 0 once it was told to end; 1 where a stand-in failed."""
    plan = saved_plan(directory)
    spec = load_spec(plan)
    cast = StandIns(spec, spec.brokers, CLUSTER_ID, lambda now: now.save(plan.ghosts))
    return 0 if asyncio.run(run(cast, lambda: mode)) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), BrokerMode(sys.argv[2])))
