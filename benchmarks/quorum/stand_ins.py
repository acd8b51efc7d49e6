"""The stand-ins of the ZooKeeper side: a znode each, and servers that answer the controller's calls. Until SIGTERM.

python -m benchmarks.quorum.stand_ins DIRECTORY
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from benchmarks.scale.cluster import CLUSTER_ID, load_spec, saved_plan
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.io.kafka.stand_ins import StandIns, run


def main(directory: Path) -> int:
    """Exit code 0 once it was told to end; 1 where a stand-in failed."""
    plan = saved_plan(directory)
    spec = load_spec(plan)
    cast = StandIns(spec, spec.brokers, CLUSTER_ID, lambda now: now.save(plan.ghosts))
    return 0 if asyncio.run(run(cast, lambda: BrokerMode.ZOOKEEPER)) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
