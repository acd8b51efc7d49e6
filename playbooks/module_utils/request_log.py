"""Who asked in versions that the next Kafka no longer answers, by the end of a broker's request log.

At INFO the logger kafka.request.logger of 3.9 writes a line of JSON for each such request (``RequestConvertToJson``),
in kafka-request.log of the directory that kafka.logs.dir names, as Kafka's own log4j.properties has it.
"""

from __future__ import annotations

import json
import os
from collections import Counter

from ansible.module_utils.named_classes import Process

READ_BYTES = 8 * 1024 * 1024
MOST = 200
_DEPRECATED = b'"requestApiVersionDeprecated":true'


def logged_requests(pid: int) -> list | None:
    """The clients in the log's last 8 MiB, those that asked most first, at most 200; None where there is no such log.
    ``at``: the time of the last line of each, as the log writes it. Raises OSError, HostError.
    """
    directory = Process(pid).property("kafka.logs.dir")
    path = os.path.join(directory, "kafka-request.log") if directory else ""
    if not os.path.exists(path):
        return None
    counts, last = Counter(), {}
    with open(path, "rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - READ_BYTES))
        for line in stream:
            if _DEPRECATED in line and (who := _who(line)):
                counts[who] += 1
                last[who] = line.partition(b"]")[0].lstrip(b"[").decode(errors="replace")[:40]
    return [[*who, count, last[who]] for who, count in counts.most_common(MOST)]


def _who(line: bytes) -> tuple | None:
    """API, version, client id, principal and address. None for a line that is cut, as the first one may be."""
    text = line.decode(errors="replace")
    try:
        told, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
        header = told["requestHeader"]
        api, version = header["requestApiKeyName"], int(header["requestApiVersion"])
        address = str(told["connection"]).split("-")[1].rpartition(":")[0]  # its own end, the client's, a number
        client, principal = header.get("clientId") or "", told.get("principal") or ""
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    return str(api)[:60], version, str(client)[:120], str(principal)[:200], address[:80]
