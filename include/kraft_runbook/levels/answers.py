"""What the server's refusals mean, and what to do. Its texts are Kafka's own, as 3.9.2, 4.1.1 and 4.4.0 gave them
(measured), all with code 95 but the last two.
"""

from __future__ import annotations

from kraft_runbook.errors import Refused

_WAYS: tuple[tuple[str, str], ...] = (
    (
        "because it might delete metadata information",
        "a level between changed what the metadata holds; kraft-runbook features names it, and what would be lost. Stay"
        " at the level, or at one above it",
    ),
    ("Unsafe metadata downgrade is not supported", "no server supports it: ask for a safe downgrade"),
    (
        "has not registered",
        "start that controller and look at its log: it registers within seconds. One that is gone for good has to be"
        " taken out of controller.quorum.voters",
    ),
    (
        "only supports versions",
        "bring that node to the new software (upgrade_software). A controller that runs it already has lost its"
        " registration (KAFKA-20247): restart it. A broker that is gone for good: unregister it; a controller: start it"
        " once on the new software, with its old data and itself in its voters list",
    ),
    ("ZK migration is in progress", "finalize the migration first, or go back to ZooKeeper"),
    ("does not support this feature", "bring every node to a Kafka that has this feature first (upgrade_software)"),
    ("less than", "name a level that this Kafka can still set; kraft-runbook features shows the range"),
)
NOT_THE_LEADER = 41
TIMED_OUT = 7
NOT_ALLOWED = 31


def refused(feature: str, level: int, code: int, text: str) -> Refused:
    """The server's refusal as an error with a way out."""
    if code == NOT_THE_LEADER:
        return Refused(
            f"the controller that was asked for {feature} {level} does not lead the quorum any more",
            way_out="look again, since the level may have been changed before that; then ask the new leader",
        )
    if code == NOT_ALLOWED:
        return Refused(
            f"UpdateFeatures ({feature} {level}) is not allowed to this tool's identity at the controllers",
            way_out="allow it: Alter on the cluster (kafka-acls --cluster)",
        )
    known = next((way for words, way in _WAYS if words in text), "read the controllers' logs for more")
    return Refused(f"the server refuses {feature} {level}: {text or f'error {code}'}", way_out=known)
