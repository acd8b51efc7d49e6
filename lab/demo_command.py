"""How each demo ends as a command: what went wrong in one line, and what stays of it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

from kraft_runbook.errors import RunbookError

Say = Callable[[str], None]


def command(does: Callable[[Say], int], *, ends: str = "make demo-down", then: str = "") -> int:
    """The exit code of ``does``, which gets what prints a line; 1 for a RunbookError, 130 where it was interrupted.

    SIGTERM and SIGHUP are as Ctrl-C: a demo's workload must not go on alone. ``ends``: what a person runs to end the
    lab and Airflow. ``then``: printed behind an error.
    """

    def say(text: str) -> None:
        print(text, flush=True)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        return does(say)
    except RunbookError as error:
        print(f"error: {error}", file=sys.stderr)
        if then:
            print(then, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"interrupted; the lab and Airflow stay as they are, `{ends}` ends them", file=sys.stderr)
        return 130
