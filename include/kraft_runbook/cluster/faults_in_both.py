"""Faults that releases of Kafka 3.9 and of Kafka 4 share: the issue, and what happens. Which release has it, the table
of each says (``migration.faults_of_3_9``, ``software.known_faults``).
"""

from __future__ import annotations

MISSED_HEARTBEATS = ("KAFKA-19294", "a healthy broker under load misses heartbeats and is fenced")
NO_PRODUCER_IDS = (
    "KAFKA-19990",
    "after one refusal by a controller a broker never asks for producer ids again, until it is restarted",
)
