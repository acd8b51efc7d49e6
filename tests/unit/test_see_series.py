"""A series of looks at the quorum: registrations are read once, and again where one is not right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from feature_looks import all_registered
from observations import SECRETS, SPEC
from test_quorum_health import kraft
from test_registrations import Looks, missing

from kraft_runbook.cluster.unread import Unread
from kraft_runbook.procedures.see_quorum import see_series
from kraft_runbook.quorum.checks import judge
from kraft_runbook.quorum.look import Series
from kraft_runbook.runbook.check_results import Verdict


def seen(looks: Looks, **given: Any) -> tuple[Series, list[float]]:
    slept: list[float] = []
    how: dict[str, Any] = {"look": lambda _, **__: kraft(), "registered": lambda _, **asked: looks(**asked)}
    return see_series(SPEC, secrets=SECRETS, sleep=slept.append, **how, **given), slept


def verdict(series: Series) -> Verdict:
    return next(each.verdict for each in judge(series, SPEC).results if each.code == "KRB-QRM-017")


def test_where_all_are_registered_the_log_is_read_once() -> None:
    looks = Looks(all_registered(), missing(102))
    series, slept = seen(looks)
    assert verdict(series) is Verdict.PASS
    assert len(looks.found) == 1 and slept == [2.0, 2.0]


def test_what_an_earlier_series_has_read_is_not_read_again_unless_something_is_wrong() -> None:
    looks = Looks(all_registered())
    for known, pauses in ((all_registered(), 2), (missing(102), 3)):
        series, slept = seen(looks, known=known)
        assert (verdict(series), len(slept)) == (Verdict.PASS, pauses)
        assert (series.registrations is known) is (pauses == 2)


def test_one_that_registers_meanwhile_is_no_failure() -> None:
    series, slept = seen(Looks(missing(102), missing(102), all_registered()))
    assert verdict(series) is Verdict.PASS
    assert slept == [2.0] * 4


def test_one_whose_registration_was_lost_fails_within_bounds() -> None:
    series, slept = seen(Looks(missing(102)))
    assert verdict(series) is Verdict.FAIL
    assert slept == [2.0] * 5


def test_a_log_that_is_unread_the_second_time_is_unknown() -> None:
    unread = replace(all_registered(), log=Unread("an election"))
    series, _ = seen(Looks(missing(102), unread))
    assert verdict(series) is Verdict.UNKNOWN
