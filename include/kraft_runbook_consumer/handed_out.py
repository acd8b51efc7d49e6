"""A member's log of what it hands out, as ``kraft-runbook groups proof`` reads it (docs/proof.md)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from confluent_kafka import Message

from kraft_runbook_consumer.errors import ConsumerError


class HandedOutLog:
    """A context manager that adds a line for each record to a file: topic, partition, offset, member and the time in
    seconds since the epoch. The file may have lines of earlier runs, and other members may write to it, too: each line
    is one write.

    Raises ConsumerError where the file can't be opened, or its last line is not whole.
    """

    def __init__(self, path: Path, member: str = "", *, clock: Callable[[], float] = time.time) -> None:
        self.member = member
        self._path, self._clock = path, clock
        try:
            self._file = path.open("a+b", buffering=0)
            size = self._file.seek(0, os.SEEK_END)
            self._file.seek(max(0, size - 1))
            whole = self._file.read(1) in (b"", b"\n")
        except OSError as error:
            raise ConsumerError(f"{path} can't be written: {error.strerror}", way_out="name another file") from None
        if not whole:
            self._file.close()
            raise ConsumerError(
                f"the last line of {path} is not whole",
                way_out="name another file, or look at that line and end it: a record that it names was handed out",
            )

    def write(self, message: Message) -> None:
        """To be called as the record is handed out, before the next one is asked for: until then it is not committed.
        Raises ConsumerError where the line is not in the file whole.
        """
        record = {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "member": self.member,
            "at": self._clock(),
        }
        line = json.dumps(record).encode() + b"\n"
        try:
            written = self._file.write(line)
        except OSError as error:
            raise ConsumerError(
                f"{self._path} can't be written: {error.strerror}", way_out="make room for it"
            ) from None
        if written != len(line):
            raise ConsumerError(f"{self._path} took a part of a line", way_out="make room for it, end that line")

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> HandedOutLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
