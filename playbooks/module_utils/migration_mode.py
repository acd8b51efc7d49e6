"""What makes a controller's configuration one of migration mode (KIP-866).

Says the same as ``kraft_runbook.migration.controller_files.lacking_migration_mode``; a test compares the two.
"""

from __future__ import annotations

FLAG = "zookeeper.metadata.migration.enable"


def lacking(properties: dict) -> list:
    """What stands in the way, one phrase a key; empty where a controller started with these properties is in migration
    mode.
    """
    found = []
    flag, roles = properties.get(FLAG), properties.get("process.roles")
    if flag is None or flag.strip().lower() != "true":
        found.append(f"{FLAG} is {'missing' if flag is None else flag or 'empty'}, not true")
    if not (properties.get("zookeeper.connect") or "").strip():
        found.append("zookeeper.connect is missing")
    if roles is None or roles.strip() != "controller":
        found.append(f"process.roles is {'missing' if roles is None else roles or 'empty'}, not controller")
    return found
