"""When dual write counts as stopped, and how to start it again."""

STANDSTILL_SECONDS = 2.0
"""Seconds. NoOpRecords move the offset twice a second (metadata.max.idle.interval.ms), so an offset that stands still
for longer means that dual write has stopped (measured on 3.9.2).
"""
LIVENESS_SECONDS = 3.0
"""Seconds between two looks, enough to tell a stop from a pause."""

CURE = (
    "look for a partition without its znode /brokers/topics/<topic>/partitions/<partition>/state: one failed write"
    " stops all later writes, also after a new controller election. Create the missing znodes (kraft-runbook preflight"
    " names them, KRB-PRE-014), then restart the active controller with its migration flag, so that the next one writes"
    " everything to ZooKeeper again; creating the znodes alone was not enough (measured). The new znodes' versions are"
    " lower than their partitions' epochs: parity counts them, and leave_kraft raises them before it fences. Kafka's"
    " documented rollback does not: do not use it then. Do not finalize or roll back before the offset moves"
)
