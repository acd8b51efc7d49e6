"""The situations that ``explain`` tells apart: each occurs, none contradicts another, and the docs say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kept_observations import kept

from kraft_runbook.migration.situation_facts import Facts
from kraft_runbook.migration.situations import (
    WITH_ZOOKEEPER,
    WITHOUT_ZOOKEEPER,
    Answer,
    Situation,
    holding,
    render_situations,
)

KEPT = {name: Facts(seen, seen, spec) for name, seen, spec in kept()}
EACH = (*WITH_ZOOKEEPER, *WITHOUT_ZOOKEEPER)
DOCS = Path(__file__).resolve().parents[2] / "docs" / "interruptions.md"


@pytest.mark.parametrize("name", KEPT)
def test_no_two_situations_give_different_advice(name: str) -> None:
    """But the last one, which holds where no other does."""
    advice = {each.name: each.forward.of(KEPT[name]) for each in holding(KEPT[name])[:-1]}
    assert len(set(advice.values())) <= 1, advice


def test_each_situation_is_reached() -> None:
    reached = {holding(facts)[0].name for facts in KEPT.values()}
    assert reached == {each.name for each in EACH}


def test_the_last_one_of_each_list_always_holds_and_answers_everything() -> None:
    for last in (WITH_ZOOKEEPER[-1], WITHOUT_ZOOKEEPER[-1]):
        assert last.means and last.waits_for
        assert all(last.holds(facts) for facts in KEPT.values())


def answers(each: Situation) -> list[Answer]:
    return [answer for answer in (each.means, each.waits_for, each.forward) if answer]


@pytest.mark.parametrize("each", EACH, ids=lambda each: each.name)
def test_what_a_text_names_is_a_fact(each: Situation) -> None:
    named = {name for answer in answers(each) for name in re.findall(r"{(\w*)}", answer.text)}
    assert named <= {name for name in dir(Facts) if not name.startswith("_")}


def test_the_docs_are_made_of_them() -> None:
    assert render_situations() in DOCS.read_text(), (
        "put into docs/interruptions.md what this prints: python -c 'from kraft_runbook.migration.situations import"
        " render_situations as made; print(made(), end=str())'"
    )
