"""What a person at a terminal sees while a command is silent: what is being read, how far, and for how long; and how a
command looks again and again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from kraft_runbook.errors import RunbookError
from kraft_runbook.runbook.telling import Tell, nobody

AGAIN_SECONDS = 5.0
"""Between two looks of a command that looks again and again."""
SOON_SECONDS = 2.0
"""From then on what was done tells how long the rest takes."""


@contextmanager
def reading(what: str, to: TextIO | None = None, *, monotonic: Callable[[], float] = time.monotonic) -> Iterator[Tell]:
    """Shows it while the block runs, where ``to`` is a terminal (default standard error); a pipe or a file sees
    nothing. What the block is given takes words that say how far it is.
    """
    stream = sys.stderr if to is None else to
    if not stream.isatty():
        yield nobody
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=stream), transient=True) as progress:
        task = progress.add_task(what)
        far = Far(monotonic)
        yield lambda *told: progress.update(task, description=f"{what}: {far.words(*told)}")


class Far:
    """How far it is, and how long the rest takes at the pace of what is done of it."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic, self._what, self._began = monotonic, "", 0.0

    def words(self, what: str, done: int = 0, of: int = 0) -> str:
        """In words. Each ``what`` has a pace of its own."""
        if what != self._what:
            self._what, self._began = what, self._monotonic()
        if not of:
            return what
        took = self._monotonic() - self._began
        left = f", about {took * (of - done) / done:,.0f} s more" if done and took >= SOON_SECONDS else ""
        return f"{what}, {done:,} of {of:,}{left}"


def look_again(watch: bool, look: Callable[[], int], *, sleep: Callable[[float], None] = time.sleep) -> int:
    """``look``'s exit code; where ``watch``, it looks until it is interrupted. Then a later look that fails is said on
    standard error, and the next one may go well.
    """
    code = look()
    while watch:
        sleep(AGAIN_SECONDS)
        typer.echo("")
        try:
            code = look()
        except RunbookError as error:
            typer.echo(f"error: {error}", err=True)
    return code
