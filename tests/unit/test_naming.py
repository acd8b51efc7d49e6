"""Things as texts name them."""

from __future__ import annotations

from kraft_runbook.cluster.naming import some


def test_the_first_few_are_named_and_the_rest_is_counted() -> None:
    assert some("abc") == "a, b, c"
    assert some("abc", 2) == "a, b and 1 more"
    assert some("ab", 2, of=9) == "a, b and 7 more", "where only the first are known"
