"""Faults that releases of Kafka 3.9 and of Kafka 4 share: the issue, and what happens. Which release has it, the table
of each says (``migration.faults_of_3_9``, ``software.known_faults``).
"""

from __future__ import annotations

MISSED_HEARTBEATS = ("KAFKA-19294", "a healthy broker under load misses heartbeats and is fenced")
NO_PRODUCER_IDS = (
    "KAFKA-19990",
    "after one refusal by a controller a broker never asks for producer ids again, until it is restarted",
)
CUT_OFF = ("KAFKA-18991", "a follower may cut off committed records")
NOT_VALID = ("KAFKA-18723", "a follower, or a controller, may take records from an answer that are not valid")
TIME_INDEX = (
    "KAFKA-19407",
    "a race at a time index stops the replication of a partition to a broker, until that broker is restarted",
)
LATE_EPOCH = (
    "KAFKA-19690",
    "a transactional producer that stalled beyond its transaction's timeout is refused for good (INVALID_TXN_STATE),"
    " and a Streams application ends by it",
)
HIDDEN_CLOSE = (
    "KAFKA-19221",
    "a stop that looks clean hides that an index could not be closed, and later segments of that partition may not be"
    " rolled or compacted",
)
LEAKED_MAPS = (
    "KAFKA-19390",
    "memory maps of indexes leak until vm.max_map_count ends the broker (Linux, many segments)",
)
OFFLINE_DIRECTORY = (
    "KAFKA-19571",
    "a log directory may go offline after a replica was moved between directories of one broker",
)
NEVER_LOADED = (
    "KAFKA-17941",
    "where a release from 3.9.2 on compacted a __transaction_state partition it may be loaded for ever: its"
    " transactional ids, and those of partitions that were to be loaded after it, have no coordinator",
)
NEVER_LOADED_IN = ("3.9.0", "3.9.1")
"""Their ``TransactionStateManager`` goes on by the records that it read, and stays before a batch without any. Such a
batch in that topic is what 3.9.2 and Kafka 4 leave (KAFKA-17076): the cleaner of 3.9.0 and 3.9.1 keeps an empty batch
of a producer's alone, and these records have none (``LogCleaner``, ``BatchRetention``). All are loaded by one thread.
"""
FALSE_BREACH = (
    "KAFKA-20732",
    "after a leader change retention by size deletes data that should stay, where retention.bytes is not -1",
)
"""With tiered storage. ``RemoteLogManager`` counts a new leader's whole local log as not copied until the tasks that
run beside it have learnt what was.
"""
