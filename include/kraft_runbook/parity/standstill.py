"""When dual write counts as stopped, and how to start it again; what it leaves out while it goes on."""

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

LAST_QUOTA = (
    "Kafka leaves the last quota of a client id, of an IP or of a user's client id in ZooKeeper when it is deleted in"
    " dual write. It leaves out further changes of that moment too (NullPointerException in the active controller's"
    " log). Restart the active controller with its migration flag: the next leader writes everything that differs"
)
"""``KRaftMigrationZkWriter.handleClientQuotasDelta`` asks the image for an entity that has just left it
(KRaftMigrationZkWriter.java:533 of Kafka 3.9.2). The driver has taken the new image by then, and its fault handler only
logs: nothing is written again, the next delta moves /migration on, and this one's changes are sent to no broker in
migration mode. A quota of a user alone is written. ``handleClientQuotasSnapshot``, by which a new leader begins, takes
such an entity for an empty one.
"""
