"""``python -m lab.trial --runs 20 [--load]``: a lab made, seeded, looked at and removed, again and again, as a first
run does it.

Each run has a directory and a loopback network of its own: no other lab is touched. A failed run's files are kept.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kraft_runbook.errors import RunbookError
from kraft_runbook.io.local.ports import addresses, require_free
from lab.layout import ROOT, load

STEPS: tuple[tuple[str, ...], ...] = (("up", "--fresh"), ("seed",), ("status",), ("down", "--purge"))
"""The commands of ``python -m lab`` that are one run. ``seed`` and ``status`` look at each broker's own state."""
STEP_SECONDS = 600.0
"""What takes longer is a failure too: every wait of the lab itself ends sooner."""
BURN = (
    "import os, sys\nparent = int(sys.argv[1])\nwhile os.getppid() == parent:\n    for _ in range(1000000):\n       "
    " pass\n"
)
"""A process that keeps one core busy, and ends with the one that started it."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: the seconds of each step that was done, and, where one failed, what it said and where its files are."""

    number: int
    seconds: Mapping[str, float]
    failed: str = ""
    cause: str = ""
    files: str = ""


@dataclass(slots=True)
class Trial:
    """All runs so far."""

    wanted: int
    load: int
    runs: list[Run] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Every run that was asked for was done, and none failed."""
        return len(self.runs) == self.wanted and not any(run.failed for run in self.runs)

    def table(self) -> str:
        """The times of each step, and each failure with its first cause."""
        lines = [f"{'step':<8}{'runs':>6}{'min, s':>9}{'median':>9}{'max':>9}"]
        for step in (step for step, *_ in STEPS):
            taken = [run.seconds[step] for run in self.runs if step in run.seconds]
            if taken:
                lines.append(
                    f"{step:<8}{len(taken):>6}{min(taken):>9.1f}{statistics.median(taken):>9.1f}{max(taken):>9.1f}"
                )
        for run in self.runs:
            if run.failed:
                lines += [
                    "",
                    f"run {run.number} failed at {run.failed}; its files: {run.files}",
                    *(f"    {line}" for line in run.cause.splitlines()),
                ]
        passed = sum(not run.failed for run in self.runs)
        beside = f" beside {self.load} busy processes" if self.load else ""
        return "\n".join([*lines, "", f"{passed} of {self.wanted} passed{beside}"])


def one_run(number: int, place: Path, network: str, steps: Sequence[Sequence[str]] = STEPS) -> Run:
    """Up, seed, status, down. After a failure everything is stopped, and the files stay."""
    environment = {**os.environ, "KRB_LAB_DIR": str(place), "KRB_LAB_NET": network}
    seconds: dict[str, float] = {}
    try:
        for step in steps:
            began = time.monotonic()
            code, said = _command(step, environment)
            if code != 0:
                (place.parent / f"{place.name}.out").write_text(said)
                return Run(number, seconds, step[0], _cause(said, code), str(place))
            seconds[step[0]] = round(time.monotonic() - began, 1)
        return Run(number, seconds)
    except KeyboardInterrupt:
        _command(("down", "--purge"), environment)
        raise
    finally:
        if place.exists():
            _command(("down",), environment)


def _command(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """``python -m lab …`` as a user runs it: its exit code, and all that it said. One that is interrupted cleans up
    before this returns.
    """
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "lab", *arguments],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        late = ""
        try:
            process.wait(STEP_SECONDS)
        except subprocess.TimeoutExpired:
            late = f"\nerror: {arguments[0]} had not ended after {STEP_SECONDS:g} s"
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(120)
                process.kill()
                process.wait()
        output.seek(0)
        return (1 if late else process.returncode), output.read() + late


def _cause(said: str, code: int) -> str:
    """From the first error on; of what names none, such as a traceback, the end."""
    lines = said.splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith(("error:", "Traceback"))), None)
    if first is None:
        return "\n".join([f"exit code {code}", *lines[-8:]])
    found = lines[first:]
    return "\n".join(found if len(found) <= 20 else [*found[:4], "...", *found[-8:]])


def free_network() -> str:
    """A loopback network where every address that a lab needs is free. Raises RunbookError where none is found."""
    for _ in range(100):
        network = f"127.{30 + secrets.randbelow(221)}.{secrets.randbelow(251)}"
        with contextlib.suppress(RunbookError):
            require_free(addresses(load({**os.environ, "KRB_LAB_NET": network})))
            return network
    raise RunbookError("no loopback network is free for a lab", way_out="give one: --network 127.20.0")


@contextlib.contextmanager
def busy(processes: int) -> Iterator[list[int]]:
    """Keep that many cores busy meanwhile; the pids."""
    started = [subprocess.Popen([sys.executable, "-c", BURN, str(os.getpid())]) for _ in range(processes)]
    try:
        yield [each.pid for each in started]
    finally:
        for each in started:
            each.kill()
            each.wait()


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0 when every run passed, 1 when one failed, 130 after an interruption; the table is printed in any
    case.
    """
    parser = argparse.ArgumentParser(prog="python -m lab.trial", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, metavar="N")
    parser.add_argument("--load", action="store_true", help="one busy process for each core beside it")
    parser.add_argument(
        "--directory",
        type=Path,
        help="where the labs and a failed run's files lie; default: a new one below the temporary directory",
    )
    parser.add_argument(
        "--network", help="the labs' loopback network, such as 127.20.0; default: a free one for each run"
    )
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("--runs: at least one")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    base = (options.directory or Path(tempfile.mkdtemp(prefix="krb-trial-"))).absolute()
    base.mkdir(parents=True, exist_ok=True)
    trial = Trial(options.runs, (os.cpu_count() or 1) if options.load else 0)
    code = 0
    try:
        with busy(trial.load):
            for number in range(1, options.runs + 1):
                run = one_run(number, base / f"run-{number:02}", options.network or free_network())
                trial.runs.append(run)
                print(
                    f"run {number:>3}  "
                    + "  ".join(f"{step} {taken:.1f} s" for step, taken in run.seconds.items())
                    + ("  FAILED" * bool(run.failed)),
                    flush=True,
                )
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = 130
    print(f"\n{trial.table()}")
    (base / "trial.json").write_text(json.dumps(asdict(trial), indent=1) + "\n")
    print(f"written to {base / 'trial.json'}")
    return code or (0 if trial.good else 1)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RunbookError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
