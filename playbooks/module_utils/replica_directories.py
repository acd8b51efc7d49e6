"""What the log directories of a node hold of replicas, and which topic id each replica has.

Kafka keeps a replica's topic id in ``partition.metadata`` in its directory (KIP-516).
"""

from __future__ import annotations

import base64
import json
import os
import re
import stat
import threading
import time
import zlib

from ansible.module_utils.kafka_host import why

GRACE_SECONDS = 2.0
"""After the end, for what is just being read."""
KEPT = 2000
"""So many directories without an id, or that can't be read, are named; all are counted."""
STRAYS_KEPT = 20_000
REPLICA = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)")
SUFFIXED = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)\.[^.-]+-(?P<state>delete|future|stray)")
"""``UnifiedLog.parseTopicPartitionName``. A ``-stray`` name may have its topic cut (``UnifiedLog.logStrayDirName``)."""
TOPIC_ID = re.compile(r"^topic_id: *([A-Za-z0-9_-]{22})\r?$", re.MULTILINE)
NO_ID = "A" * 22
"""The zero id, which Kafka refuses."""
METADATA_LOG = "__cluster_metadata"


def survey(log_dirs: list, seconds: float) -> dict:
    """One pass over the log directories, side by side, of at most ``seconds``: a cold disk takes some milliseconds for
    each replica, and a broken one may never answer. What was not reached is in ``unread``, by log directory.

    ``ids``: topic and id of each topic whose replicas here have one id (lines of ``topic id``, compressed, in base64).
    ``several``: of each other topic, the id by directory name (JSON, packed alike). ``without_id``: replicas without
    ``partition.metadata``, by path; ``torn``: those whose file names no id; ``strays``: the topic id of each ``-stray``
    directory, by path. ``unread``: a reason for each path that could not be read. A log directory that
    does not exist holds nothing.
    """
    ends = time.monotonic() + seconds
    done: dict = {}
    readers = [
        # a daemon: one that hangs in the kernel must not hold up the answer
        threading.Thread(target=lambda path=path: done.update({path: _survey_one(path, ends, seconds)}), daemon=True)
        for path in log_dirs
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(max(0.0, ends + GRACE_SECONDS - time.monotonic()))
    found = [done.get(path) or _hangs(path, seconds) for path in log_dirs]
    ids: dict = {}
    whole = _nothing()
    for each in found:
        whole["directories"] += each["directories"]
        whole["without_id"] += each["without_id"]
        whole["torn"] += each["torn"]
        whole["strays"].update(each["strays"])
        whole["unread"].update(each["unread"])
        for topic, by_name in each["ids"].items():
            ids.setdefault(topic, {}).update(by_name)
    agreed = {topic: next(iter(named.values())) for topic, named in ids.items() if len(set(named.values())) == 1}
    lines = "".join(f"{topic} {topic_id}\n" for topic, topic_id in sorted(agreed.items()))
    return {
        "directories": whole["directories"],
        "ids": _packed(lines),
        "several": _packed(json.dumps({topic: named for topic, named in ids.items() if topic not in agreed})),
        "without_id": sorted(whole["without_id"])[:KEPT],
        "without_id_count": len(whole["without_id"]),
        "torn": sorted(whole["torn"])[:KEPT],
        "torn_count": len(whole["torn"]),
        "strays": dict(sorted(whole["strays"].items())[:STRAYS_KEPT]),
        "stray_count": len(whole["strays"]),
        "unread": dict(sorted(whole["unread"].items())[:KEPT]),
        "unread_count": len(whole["unread"]),
    }


def _packed(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode())).decode()


def _nothing() -> dict:
    return {"directories": 0, "ids": {}, "without_id": [], "torn": [], "strays": {}, "unread": {}}


def _hangs(log_dir: str, seconds: float) -> dict:
    return {**_nothing(), "unread": {log_dir: f"the file system did not answer in {seconds:.0f} s"}}


def _survey_one(log_dir: str, ends: float, seconds: float) -> dict:
    found = _nothing()
    try:
        names = sorted(os.listdir(log_dir))
    except FileNotFoundError:
        return found
    except OSError as error:
        found["unread"][log_dir] = why(error)
        return found
    for at, name in enumerate(names):
        if time.monotonic() > ends:
            found["unread"][log_dir] = f"{at} of {len(names)} directories were read in {seconds:.0f} s"
            break
        suffixed = SUFFIXED.fullmatch(name)
        state = suffixed["state"] if suffixed else "stray" if name.endswith("-stray") else ""
        parsed = suffixed or REPLICA.fullmatch(name)
        if state == "delete" or not (parsed or state) or (parsed and parsed["topic"] == METADATA_LOG):
            continue
        path = os.path.join(log_dir, name)
        try:
            topic_id = _topic_id(path)
        except NotADirectoryError:
            continue
        except FileNotFoundError:  # it was renamed or deleted since it was listed
            continue
        except OSError as error:
            found["unread"][path] = why(error)
            continue
        found["directories"] += 1
        if topic_id == "":
            found["torn"].append(path)
        if state == "stray":
            found["strays"][path] = topic_id or ""
        elif topic_id is None:
            found["without_id"].append(path)
        elif topic_id:
            found["ids"].setdefault(parsed["topic"], {})[name] = topic_id
    return found


def _topic_id(path: str) -> str | None:
    """The id in a replica's ``partition.metadata``; None where it has no such file, empty where the file names none.
    Kafka replaces that file whole, so a torn one stays torn.
    """
    try:
        handle = os.open(
            os.path.join(path, "partition.metadata"), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        )
    except FileNotFoundError:
        if os.path.isdir(path):
            return None
        raise
    try:
        text = os.read(handle, 1024).decode("ascii", "replace")
    finally:
        os.close(handle)
    found = TOPIC_ID.search(text)
    return found.group(1) if found and found.group(1) != NO_ID else ""


def unformatted(log_dirs: list) -> tuple:
    """What each log directory lacks that has no ``meta.properties``, by path; and why each other one can't be read."""
    lacks: dict = {}
    unread: dict = {}
    for path in log_dirs:
        try:
            what = _lacks(path)
        except OSError as error:
            unread[path] = why(error)
            continue
        if what:
            lacks[path] = what
    return lacks, unread


def _lacks(path: str) -> str | None:
    """Raises OSError where that can't be told: of a directory that may not be entered, or on a disk that is broken."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return "it does not exist"
    if not stat.S_ISDIR(found.st_mode):
        return "it is no directory"
    names = os.listdir(path)
    if "meta.properties" in names:
        return None
    return "it has no meta.properties" if [each for each in names if each != "lost+found"] else "it is empty"
