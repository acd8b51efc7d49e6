"""The trial of first runs: a run that fails is named with its cause, its files stay, and nothing of it runs on."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from lab import ROOT
from lab.trial import Run, Trial, free_network, one_run


def command(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "lab.trial", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_run_that_fails_is_named_with_its_first_cause_and_the_trial_fails(tmp_path: Path) -> None:
    network = free_network()
    with socket.create_server((f"{network}.12", 9092)):
        process = command("--runs", "2", "--directory", str(tmp_path), "--network", network)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert f"run 1 failed at up; its files: {tmp_path}/run-01" in said
    assert f"error: broker-2 needs {network}.12:9092, which is not free" in said
    assert "0 of 2 passed" in said
    assert "which is not free" in (tmp_path / "run-01.out").read_text()
    assert [run["failed"] for run in json.loads((tmp_path / "trial.json").read_text())["runs"]] == ["up", "up"]


def test_the_table_shows_each_step_s_times_and_counts_what_passed() -> None:
    runs = [
        Run(1, {"up": 4.0, "seed": 9.0}),
        Run(2, {"up": 6.0}, "seed", "error: broker 2 runs, but not all of it", "/tmp/run-02"),
        Run(3, {"up": 8.0, "seed": 7.0}),
    ]
    shown = Trial(3, 2, runs).table()
    assert re.search(r"^up +3 +4\.0 +6\.0 +8\.0$", shown, re.M)
    assert re.search(r"^seed +2 +7\.0 +8\.0 +9\.0$", shown, re.M)
    assert "run 2 failed at seed; its files: /tmp/run-02\n    error: broker 2 runs, but not all of it" in shown
    assert shown.endswith("2 of 3 passed beside 2 busy processes")


def test_a_trial_is_good_only_when_every_run_was_done_and_passed() -> None:
    assert Trial(2, 0, [Run(1, {}), Run(2, {})]).good
    assert not Trial(2, 0, [Run(1, {})]).good
    assert not Trial(2, 0, [Run(1, {}), Run(2, {}, "seed")]).good


def test_the_load_ends_with_what_started_it() -> None:
    program = (
        "import time; from lab.trial import busy\nwith busy(2) as pids:\n    print(*pids, flush=True)\n   "
        " time.sleep(60)"
    )
    starter = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    loads = starter.stdout.readline().split()
    assert len(loads) == 2
    starter.kill()
    starter.wait()
    ends = time.monotonic() + 60
    while any(b"os.getppid() == parent" in read(Path(f"/proc/{pid}/cmdline")) for pid in loads):
        assert time.monotonic() < ends, "the load goes on alone"
        time.sleep(0.05)


def test_an_interrupted_trial_leaves_no_lab(tmp_path: Path) -> None:
    network = free_network()
    process = command("--runs", "3", "--directory", str(tmp_path), "--network", network)
    ends = time.monotonic() + 120
    while not (tmp_path / "run-01").exists():
        assert process.poll() is None
        assert time.monotonic() < ends
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=300)
    assert (process.returncode, "interrupted" in said) == (130, True)
    assert not (tmp_path / "run-01").exists()
    assert not [each for each in Path("/proc").glob("[0-9]*/cmdline") if f"{tmp_path}/run-01".encode() in read(each)]


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_what_gives_no_error_line_is_quoted_from_its_end(tmp_path: Path) -> None:
    run = one_run(1, tmp_path / "run-01", "127.251.9", [("no-such-command",)])
    assert (run.failed, "invalid choice: 'no-such-command'" in run.cause) == ("no-such-command", True)
