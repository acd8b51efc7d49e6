"""The application of a group, as its owner's playbooks stop and start it: python played_application.py stop|start
DIRECTORY kafka|zookeeper GROUP. Prints what it has done; what is done already is left alone.

DIRECTORY holds ``commands.json``, the consumers of each side, and gets a log and a file of the process id of each; and
``played``, a line for each time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil

SECONDS_TO_END = 60


def process_of(pid_file: Path) -> psutil.Process | None:
    """None: it does not run."""
    if not pid_file.exists():
        return None
    try:
        found = psutil.Process(int(pid_file.read_text()))
        return None if found.status() == psutil.STATUS_ZOMBIE else found
    except psutil.NoSuchProcess:
        return None


def start(where: Path, side: str) -> None:
    for number, command in enumerate(json.loads((where / "commands.json").read_text())[side]):
        name = f"{side}-{number}"
        if process_of(where / f"{name}.pid") is not None:
            continue
        with (where / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        (where / f"{name}.pid").write_text(str(process.pid))
        print(f"started {name}")


def stop(where: Path, side: str) -> None:
    for pid_file in sorted(where.glob(f"{side}-*.pid")):
        process = process_of(pid_file)
        if process is None:
            continue
        process.terminate()
        until = time.monotonic() + SECONDS_TO_END
        while process_of(pid_file) is not None:  # one that its parent has not asked for yet has ended
            if time.monotonic() > until:
                sys.exit(f"{pid_file.stem} has not ended")
            time.sleep(0.1)
        print(f"stopped {pid_file.stem}")


if __name__ == "__main__":
    with (Path(sys.argv[2]) / "played").open("a") as played:
        played.write(f"{sys.argv[1]} {sys.argv[3]} {sys.argv[4]}\n")
    {"start": start, "stop": stop}[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])
