"""The health of a real quorum: whole, and with a voter that hangs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import by_hand
from labs import Lab

from kraft_runbook.cluster.unread import was_read
from kraft_runbook.procedures.see_quorum import see_quorum, see_series
from kraft_runbook.quorum.checks import judge
from kraft_runbook.quorum.look import Mode, QuorumLook
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.warm import Warmth
from lab.layout import layout
from lab.supervision import processes


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
        series = see_series(spec, secrets=secrets)
    finally:
        os.kill(pid, signal.SIGCONT)
    results = {each.code: each for each in judge(series, spec).results}
    assert results["KRB-QRM-001"].verdict is Verdict.PASS
    assert results["KRB-QRM-002"].verdict is Verdict.FAIL
    assert results["KRB-QRM-002"].evidence.startswith(f"voter {standby} ")
    assert results["KRB-QRM-003"].verdict is Verdict.UNKNOWN  # its metrics hang too: whether it is warm is not known
    by_hand.wait_until(
        f"controller {standby} to be warm again", lambda: _is_warm(see_quorum(spec, secrets=secrets), standby)
    )


def _is_warm(look: QuorumLook, controller: int) -> bool:
    voters = look.quorum.voters if was_read(look.quorum) else ()
    lag = next((each.lag for each in voters if each.id == controller), None)  # it may begin an election first
    return look.controllers[controller].warm is Warmth.WARM and lag is not None and lag <= 10
