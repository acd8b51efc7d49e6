"""Whether a controller's own metadata log is of a migration whose metadata copy ended, while ZooKeeper leads."""

from __future__ import annotations

import os

from ansible.module_utils.kafka_host import HostError, is_there
from ansible.module_utils.metadata_log_scan import scan

COPIED = {1: "MIGRATION", 3: "POST_MIGRATION"}
"""Those values of ZkMigrationState that a log holds once the metadata was copied."""


def require_no_former_copy(controller: str, log_dir: str) -> None:
    """Raise HostError where the log holds the end of a copy. The controller may run. Raises OSError where the log can't
    be read.
    """
    states = _states(os.path.join(log_dir, "__cluster_metadata-0"))
    ended = [f"{state} ({COPIED[state]})" for state in sorted(states & set(COPIED))]
    if ended:
        raise HostError(
            f"the metadata log of {controller} in {log_dir} holds ZkMigrationState {', '.join(ended)}: a migration"
            " copied its metadata there and was left since, as a ZooKeeper controller leads and no quorum does. A"
            " controller that starts with this log takes the migration for done, and lacks what changed in ZooKeeper"
            " since. Nothing was changed",
            "trigger the rollback of this cluster (zk_to_kraft_rollback__…) and let it end: it sets the controllers'"
            " data aside. Then begin a new migration; this task's approval was for another one",
        )


def _states(directory: str) -> set:
    while True:
        try:
            return scan(directory).states
        except FileNotFoundError:  # it was never formatted, or a running controller has just deleted an old segment
            if not is_there(directory):
                return set()
