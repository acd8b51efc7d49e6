"""The notifier that a deployment names: found, with arguments that hold no secret."""

from __future__ import annotations

import re

import pytest

from kraft_runbook.errors import RunbookError
from kraft_runbook.runbook.notifier import notifier_of

EXISTS = "json.dumps"


def test_a_notifier_is_found_with_its_arguments_and_none_where_none_is_named() -> None:
    given = {"KRAFT_RUNBOOK_NOTIFIER": EXISTS, "KRAFT_RUNBOOK_NOTIFIER_ARGUMENTS": '{"to": "kafka@example.org"}'}
    found = notifier_of(given)
    assert found is not None and (found.path, found.found.__name__) == (EXISTS, "dumps")
    assert found.arguments == {"to": "kafka@example.org"}
    assert notifier_of({}) is None


@pytest.mark.parametrize(
    ("notifier", "arguments", "why"),
    [
        ("no.such.Notifier", "{}", "can't be imported"),
        ("json.NoSuchNotifier", "{}", "can't be imported"),
        (f"{__name__}.EXISTS", "{}", "can't be called"),
        (EXISTS, "[1]", "no JSON object"),
        (EXISTS, "{", "no JSON object"),
        (EXISTS, '{"context": 1}', "without a 'context'"),
        (EXISTS, '{"smtp_password": "x"}', "holds smtp_password"),
        (EXISTS, '{"extra": [{"password": "x"}]}', "holds extra.password"),
        (EXISTS, '{"url": "https://me:x@example.org/hook"}', "holds url"),
    ],
)
def test_what_can_not_tell_anybody_is_an_error_that_names_it(notifier: str, arguments: str, why: str) -> None:
    given = {"KRAFT_RUNBOOK_NOTIFIER": notifier, "KRAFT_RUNBOOK_NOTIFIER_ARGUMENTS": arguments}
    with pytest.raises(RunbookError, match=re.escape(why)):
        notifier_of(given)
