"""What the closing report says of the copy: the real length beside the expected one, and never a made-up one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from evidence_runs import Run, forward
from observations import SPEC, WHY, observation, part, with_quorum

from kraft_runbook.cluster.observation import CopySpan
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.gates.proof import make_proof
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.migration.conditions import copied
from kraft_runbook.migration.copy_account import copy_account
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.migration.way_back import rollback_plan

BEGAN = datetime(2026, 3, 4, 10, 0, 0, tzinfo=UTC)
SPAN = CopySpan(BEGAN, BEGAN + timedelta(seconds=36.9), 260_000)


def run(*, span: CopySpan | None, start_gate: bool = True) -> Run:
    found = Run()
    if start_gate:
        seen = observation(Phase.ZOOKEEPER)
        checks = CHECKS.run(seen, SPEC, Phase.ZOOKEEPER, gate="start").results
        proof = make_proof(
            Gate.START, seen, SPEC, checks=checks, parity=None, rollback=rollback_plan(Phase.ZOOKEEPER), made_at=BEGAN
        )
        found.write("gate_start.prove", "proven", {"gate": "start", "digest": proof.digest, "proof": proof.to_dict()})
    wait = {"condition": "metadata_copied", "node_id": None, "seconds": 51.2, "error": ""}
    found.write("await_metadata_copy", "reached", {**wait, **copied(with_quorum(copy=span)(observation(Phase.HYBRID)))})
    return found


def account(found: Run) -> str | None:
    return copy_account([record.body for record in found.records])


def test_the_real_length_stands_beside_the_expected_one() -> None:
    assert (
        account(run(span=SPAN))
        == "The metadata copy took 36.9 s (260,000 records, 7,046 a second, 2026-03-04 10:00:00 to 10:00:36 UTC by"
        " the metadata log); the wait for it and for dual write took 51 s. Expected at the start gate: 44 partitions of"
        " 9 topics: less than 1 s, with Kafka's defaults; deadlines.metadata_copy is 3 min 0 s."
    )


def test_a_length_that_was_not_read_is_not_made_up() -> None:
    told = account(run(span=None))
    assert told is not None and told.startswith(
        "The length of the metadata copy is not known: a snapshot replaced its records"
    )
    assert "the wait for it and for dual write took 51 s" in told


def test_a_run_that_waited_twice_keeps_the_span_that_was_read() -> None:
    """A cleared wait may find the log's beginning gone."""
    first, again = run(span=SPAN), run(span=None, start_gate=False)
    told = copy_account([record.body for record in (*first.records, *again.records)])
    assert told is not None and told.startswith("The metadata copy took 36.9 s")


def test_a_run_without_a_start_gate_says_that_nothing_was_expected() -> None:
    told = account(run(span=SPAN, start_gate=False))
    assert told is not None and told.endswith("This run has no start gate with an expected length.")


def test_a_run_that_copied_nothing_has_no_account_of_it() -> None:
    assert copy_account([record.body for record in run(span=SPAN).records[:1]]) is None
    assert copied(part(quorum=WHY)(observation(Phase.HYBRID))) == {}


def test_evidence_of_an_earlier_version_or_of_any_shape_is_read_without_an_error() -> None:
    old = [record.body for record in forward().records]
    assert (copy_account(old) or "").startswith("The length of the metadata copy is not known")
    strange = {
        "outcome": "reached",
        "condition": "metadata_copied",
        "seconds": "x",
        "copy": {"seconds": 0, "records": None, "began_at": 7},
    }
    assert (copy_account([strange]) or "").startswith("The metadata copy took 0.0 s (0 records);"[:-1])
