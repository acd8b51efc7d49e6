"""After the way back brokers of 3.9 read what brokers of Kafka 4 wrote into ``__consumer_offsets`` and
``__transaction_state``: the versions of those records, in Kafka's own message files of both.
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest

from lab.installation import JARS, JARS4, OTHERS, fetch_jars, jars_of

OF = {
    "kafka-group-coordinator": (
        "OffsetCommitValue",
        "GroupMetadataValue",
        "ConsumerGroupMetadataValue",
        "ConsumerGroupMemberMetadataValue",
        "ConsumerGroupCurrentMemberAssignmentValue",
    ),
    "kafka-transaction-coordinator": ("TransactionLogKey", "TransactionLogValue"),
}
COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


def newest(jars: Path) -> dict[str, int]:
    """By record, the highest version that this Kafka writes or reads."""
    found = {}
    for jar, names in OF.items():
        (path,) = jars.glob(f"{jar}-[0-9]*.jar")
        with zipfile.ZipFile(path) as opened:
            for name in names:
                told = json.loads(COMMENT.sub("", opened.read(f"common/message/{name}.json").decode()))
                found[name] = int(told["validVersions"].rpartition("-")[2])
    return found


def test_kafka_4_writes_groups_and_transactions_in_versions_that_3_9_reads() -> None:
    assert newest(JARS4) == newest(JARS)


@pytest.mark.long
@pytest.mark.parametrize("version", OTHERS)
def test_each_other_kafka_4_does_too(version: str) -> None:
    assert newest(fetch_jars(version, jars=jars_of(version))) == newest(JARS)
