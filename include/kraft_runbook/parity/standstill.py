"""When dual write stands still, and what mends it."""

STANDSTILL_SECONDS = 2.0
"""NoOpRecords move the offset twice a second (metadata.max.idle.interval.ms), so standing still for longer means a stop
(measured on 3.9.2).
"""
LIVENESS_SECONDS = 3.0
"""How far apart two looks should be, to be surely more than a standstill."""

CURE = (
    "look for a partition without its znode /brokers/topics/<topic>/partitions/<partition>/state: one failed write"
    " stops all later ones for good, and a new leader alone does not heal it. Create the missing znodes (kraft-runbook"
    " preflight names them, KRB-PRE-014) and then restart the active controller with its migration flag, so that the"
    " next one writes ZooKeeper anew; creating them alone was not enough (measured). The versions of znodes made anew"
    " lie behind the partitions' epochs: parity counts them, and leave_kraft mends them before it fences; with no other"
    " way back may KRaft be left so. Do not finalize and do not go back before the offset moves"
)
