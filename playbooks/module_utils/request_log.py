"""Who asked in versions that the next Kafka no longer answers, by the end of a broker's request log.

At INFO the logger kafka.request.logger of 3.9 writes a line of JSON for each such request (``RequestConvertToJson``),
in kafka-request.log of the directory that kafka.logs.dir names, as Kafka's own log4j.properties has it. That file
begins anew each hour; the former ones lie beside it, with their hour behind the name.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter

from ansible.module_utils.kafka_host import is_there
from ansible.module_utils.named_classes import Process

READ_BYTES = 8 * 1024 * 1024
MOST = 200
_FILE = re.compile(r"kafka-request\.log(\.[0-9-]+)?")
_DEPRECATED = b'"requestApiVersionDeprecated":true'


def logged_requests(process: Process) -> dict | None:
    """What the logs of this process tell (``requests_logged_in``). Raises OSError, HostError."""
    directory = process.property("kafka.logs.dir")
    return requests_logged_in(directory) if directory else None


def requests_logged_in(directory: str, most_bytes: int = READ_BYTES) -> dict | None:
    """Of the last 8 MiB of the logs there the clients, those that asked most first, at most 200, and how many more
    there are; ``since``: the time of the first line that was read. None where there is no such log. ``at``: the time of
    the last line of each client, as the log writes it. Raises OSError.
    """
    if not is_there(directory):
        return None
    files = [each for each in os.scandir(directory) if _FILE.fullmatch(each.name) and each.is_file()]
    newest = sorted(files, key=lambda each: each.stat().st_mtime, reverse=True)
    counts, last, since, left = Counter(), {}, "", most_bytes
    for each in newest:
        with open(each.path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(0, size - left))
            first = ""
            for line in stream:
                at = _time(line)
                first = first or at
                if _DEPRECATED in line and (who := _who(line)):
                    counts[who] += 1
                    last[who] = max(last.get(who, ""), at)
        since, left = first or since, left - size
        if left <= 0:
            break
    if not newest:
        return None
    most = counts.most_common(MOST)
    return {"clients": [[*who, n, last[who]] for who, n in most], "more": len(counts) - len(most), "since": since}


def _time(line: bytes) -> str:
    """[2026-11-29 10:00:07,123]; empty for a line that is cut."""
    if not line.startswith(b"["):
        return ""
    return line.partition(b"]")[0].lstrip(b"[").decode(errors="replace")[:40]


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
