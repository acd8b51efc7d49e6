"""Numbers taken out of JSON texts: what comes out is what ``json`` reads there, or nothing at all."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_runbook.metadata.znodes.json_numbers import filled, take_out_numbers

plain = st.integers(-999_999_999, 999_999_999)
names = st.from_regex(r"[a-z_]{1,5}", fullmatch=True)


def numbers_in(value: Any) -> list[int]:
    """In the order of the text."""
    if isinstance(value, dict):
        return [each for inner in value.values() for each in numbers_in(inner)]
    return [each for inner in value for each in numbers_in(inner)] if isinstance(value, list) else [value]


@given(st.dictionaries(names, plain | st.lists(plain, min_size=1), min_size=1))
def test_every_number_comes_out_in_order_and_fits_back_in(value: dict[str, Any]) -> None:
    found = take_out_numbers(json.dumps(value, separators=(",", ":")).encode())
    assert found is not None
    numbers, frame = found
    assert numbers.tolist() == numbers_in(value)
    text, places = filled(frame)
    assert places == len(numbers)
    assert numbers_in(json.loads(text)) == [0] * places


def test_numbers_that_are_names_come_out_too() -> None:
    found = take_out_numbers(b'"1":[20,3],"0":[3,20]')
    assert found is not None
    assert found[0].tolist() == [1, 20, 3, 0, 3, 20]
    assert filled(found[1]) == (b'"0":[0,0],"0":[0,0]', 6)


@pytest.mark.parametrize("number", ["01", "-0", "-", "--1", "1-2", "1.0", "1e5", "1 ", " 1", "+1", "1234567890", '"1', '1"', "a1", "1a", "1[", "]1"])
def test_what_is_no_plain_number_in_its_place_is_not_taken_out(number: str) -> None:
    assert take_out_numbers(b'{"a":5,"b":%b}' % number.encode()) is None


@pytest.mark.parametrize("text", [b"", b"1", b"{}", b'{"a":1}2', b'1{"a":1}', b'{"a"1:1}', b'{"a":1,2"b":3}', b'{1"a":1}'])
def test_neither_is_one_that_stands_elsewhere_and_a_text_without_any_has_none(text: bytes) -> None:
    assert take_out_numbers(text) is None


@given(st.text(alphabet='{}[]":,a0123-. \n', max_size=30))
def test_whatever_the_text_a_place_that_is_filled_held_a_number_or_the_count_says_so(text: str) -> None:
    found = take_out_numbers(text.encode())
    if found is None:
        return
    numbers, frame = found
    text_again, places = filled(frame)
    assert len(numbers) <= places
    if len(numbers) == places:
        assert re.sub(r"-?[0-9]+", "0", text).encode() == text_again
