"""The health of a real quorum: whole, and with a voter that hangs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import by_hand
import httpx
from labs import Lab

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.io.local.supervision import processes
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.see_quorum import see_quorum
from kraft_runbook.quorum.checks import judge
from kraft_runbook.quorum.look import Mode, QuorumLook, Series
from kraft_runbook.restart.conditions import CONTROLLER_BACK
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.warm import Warmth
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.waiting import Wait
from lab.layout import layout


def test_a_whole_quorum_is_healthy_and_nothing_of_it_is_unread(dual_write: Lab) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kraft_runbook.cli.app", "quorum", "--cluster", "lab", "--json"],
        env=dual_write.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert [c for c in found["checks"] if c["verdict"] == "UNKNOWN"] == []
    look = found["look"]
    assert found["mode"] == "KRAFT"
    assert look["quorum"]["leader_id"] in dual_write.spec.controller_ids
    assert {each["warm"] for each in look["controllers"].values()} == {"warm"}
    assert look["brokers"] == {}, "brokers in ZooKeeper mode apply no metadata log"
    assert [each["id"] for each in look["quorum"]["voters"]] == list(dual_write.spec.controller_ids)
    assert {s["mode"] for s in look["zookeeper"]["servers"].values()} == {"standalone"}


def test_a_voter_that_hangs_is_named_and_one_that_goes_on_is_well_again(dual_write: Lab) -> None:
    spec, secrets = dual_write.spec, dual_write.secrets
    whole = see_quorum(spec, secrets=secrets)
    assert was_read(whole.quorum) and whole.mode is Mode.KRAFT
    standby = next(i for i in spec.controller_ids if i != whole.quorum.leader_id)
    pid = processes(layout(spec))[spec.controller(standby).service].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        by_hand.wait_until(f"voter {standby} to be named", lambda: _silent(spec, secrets, standby))
    finally:
        os.kill(pid, signal.SIGCONT)
    by_hand.wait_until(
        f"controller {standby} to be warm again", lambda: _is_warm(see_quorum(spec, secrets=secrets), standby)
    )


def _silent(spec: ClusterSpec, secrets: Secrets, standby: int) -> bool:
    results = {each.code: each for each in judge(Series((see_quorum(spec, secrets=secrets),)), spec).results}
    assert results["KRB-QRM-003"].verdict is Verdict.UNKNOWN  # its metrics hang too: whether it is warm is not known
    silent = results["KRB-QRM-002"]
    return silent.verdict is Verdict.FAIL and silent.evidence.startswith(f"voter {standby} has not fetched for ")


def test_a_roll_waits_for_a_controller_that_has_fetched_everything_and_applied_little(dual_write: Lab) -> None:
    """What its exporter shows is held back at offset 1; all else is real."""
    spec, secrets = dual_write.spec, dual_write.secrets
    seen = see_quorum(spec, secrets=secrets)
    held = next(c for c in spec.controllers if was_read(seen.quorum) and c.id != seen.quorum.leader_id)
    told: list[str] = []
    with _held_back(held.host, f"http://{held.host}:{held.metrics_port}/metrics") as (port, release):
        controllers = tuple(
            c.model_copy(update={"metrics_port": port}) if c.id == held.id else c for c in spec.controllers
        )
        cluster = Cluster(spec.model_copy(update={"controllers": controllers}), secrets, told.append)
        wait = Wait(cluster, CONTROLLER_BACK, 60.0, held.id)
        assert [wait.look() for _ in range(4)] == [False] * 4
        assert (
            f"waiting for controller {held.id} to apply the metadata log: it has applied up to offset 1 of" in told[-1]
        )
        release()
        while not wait.look():
            pass
    assert told[-1].startswith(f"controller {held.id} to have caught up and to be warm: holds")


@contextmanager
def _held_back(host: str, url: str) -> Iterator[tuple[int, Callable[[], None]]]:
    """An exporter that shows another's page with little applied, until released: its port, and what releases it."""
    released = threading.Event()

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = httpx.get(url, timeout=10).text
            if not released.is_set():
                text = re.sub(r"(?m)^(\S+lastappliedrecordoffset) .*$", r"\1 1.0", text)
                text = re.sub(r"(?m)^(\S+lastappliedrecordlagms) .*$", r"\1 70661.0", text)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer((host, 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port, released.set
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _is_warm(look: QuorumLook, controller: int) -> bool:
    voters = look.quorum.voters if was_read(look.quorum) else ()
    lag = next((each.lag for each in voters if each.id == controller), None)  # it may begin an election first
    return look.controllers[controller].warm is Warmth.WARM and lag is not None and lag <= 10
