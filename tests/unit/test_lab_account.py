"""The workload's account: what counts as lost, duplicated, reordered, and what does not."""

from __future__ import annotations

from datetime import UTC, datetime

from lab.account import MOST, Acknowledgements, Record, Tally, acknowledgements_of, settle


def account_of(read: list[list[Record]] | None, *, acknowledged: set[int], failed: set[int] = frozenset()):  # type: ignore[no-untyped-def, assignment]
    return settle([Tally("w", acknowledged=acknowledged, failed=set(failed))], [Tally("m")], read, seconds=1)


def test_every_acknowledged_record_read_once_in_order_is_good() -> None:
    account = account_of([[("w", 0), ("w", 2)], [("w", 1)]], acknowledged={0, 1, 2})
    assert account.good
    assert (account.lost, account.duplicated, account.reordered, account.read_back) == (0, 0, 0, 3)


def test_an_acknowledged_record_that_is_not_read_is_lost_and_named() -> None:
    account = account_of([[("w", 0)]], acknowledged={0, 7})
    assert (account.lost, account.lost_samples, account.good) == (1, ("w 7",), False)


def test_a_record_read_twice_is_duplicated() -> None:
    account = account_of([[("w", 0), ("w", 0), ("w", 1)]], acknowledged={0, 1})
    assert (account.duplicated, account.duplicated_samples, account.good) == (1, ("w 0",), False)


def test_a_record_after_a_later_one_of_its_partition_is_reordered() -> None:
    account = account_of([[("w", 1), ("w", 0)]], acknowledged={0, 1})
    assert (account.reordered, account.good) == (1, False)


def test_a_failed_record_may_be_there_or_not_and_neither_is_a_loss() -> None:
    account = account_of([[("w", 0), ("w", 1)]], acknowledged={0}, failed={1, 2})
    assert (account.lost, account.failed, account.failed_yet_read, account.good) == (0, 2, 1, True)


def test_topics_that_could_not_be_read_say_nothing_about_losses() -> None:
    account = account_of(None, acknowledged={0})
    assert (account.lost, account.duplicated, account.good) == (None, None, False)


def test_nothing_acknowledged_is_never_good() -> None:
    assert not account_of([[]], acknowledged=set()).good


def test_the_longest_stall_is_the_longest_time_between_two_signs_of_progress() -> None:
    tally = Tally("w")
    for now in (10.0, 10.5, 14.0, 14.1):
        tally.progress(now)
    assert tally.longest_stall == 3.5


def test_the_slowest_acknowledgement_of_each_second_is_kept_and_a_second_without_one_is_none() -> None:
    one, other = Tally("w"), Tally("x")
    one.acknowledge((1,), sent=100.2, now=100.3)
    one.acknowledge((2,), sent=100.1, now=103.9)
    other.acknowledge((3, 4), sent=100.5, now=100.9)
    assert (one.acknowledged, other.acknowledged, one.slowest_acknowledgement) == ({1, 2}, {3, 4}, 103.9 - 100.1)
    kept = acknowledgements_of([one, other, Tally("y")], now=110.0, at=datetime(2026, 1, 2, 3, 4, 10, tzinfo=UTC))
    assert kept == Acknowledgements("2026-01-02T03:04:00+00:00", 1, (400, None, None, 3800))
    assert acknowledgements_of([Tally("y")], now=1.0, at=datetime.now(UTC)) is None


def test_of_a_long_run_as_much_is_kept_as_of_a_short_one_and_no_peak_goes() -> None:
    tally = Tally("w")
    for second in range(10 * MOST):
        tally.acknowledge((second,), sent=second - (9 if second == 4321 else 0.01), now=float(second))
    kept = acknowledgements_of([tally], now=0.0, at=datetime.now(UTC))
    assert kept is not None
    assert (kept.every, len(kept.slowest_ms), max(filter(None, kept.slowest_ms))) == (10, MOST, 9000)
    assert kept.slowest_ms[432] == 9000
