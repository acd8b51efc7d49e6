"""Which Java a version of Kafka needs, by the class files of its own jars: 3.9.2 runs on 8, the servers of 4.x on 17
(its clients on 11).
"""

from __future__ import annotations

import re

from kraft_runbook.errors import RunbookError


def needed_java(version: str) -> int:
    """The oldest Java that brokers and controllers of that Kafka start on."""
    return 17 if int(version.split(".")[0]) >= 4 else 8


def java_release(version: str) -> int:
    """The release in a Java's own version: 8 in ``1.8.0_392``, 17 in ``17.0.15``. Raises RunbookError for anything
    else.
    """
    found = re.match(r"(?:1\.)?(\d+)", version)
    if found is None:
        raise RunbookError(f"{version!r} is no Java's version", way_out="look at java -version on that host")
    return int(found[1])
