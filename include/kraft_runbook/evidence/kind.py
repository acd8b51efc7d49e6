"""The base class of what a record holds. It writes a record's body and reads the body of any version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from kraft_runbook.evidence.body import Body, moment, number, part, parts, text, texts, whole
from kraft_runbook.evidence.outcomes import Outcome
from kraft_runbook.parity.parity_report import Verdict

Values = Mapping[str, Any]
"""Another value's ``to_dict``. Its keys are in the body beside the kind's own fields, which take precedence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Base of all kinds. ``phase`` is the observed phase, by name.

    A field is a key of the body. A field that defaults to None is left out of the body if it is None. A key that is
    missing from a body, or has a value of another type, reads as empty, False or None, according to the field's type.
    """

    outcome: ClassVar[Outcome]

    def body(self) -> dict[str, Any]:
        """The body, without cluster, DAG, run and task."""
        told: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if each.type == "Values":
                told |= value
            elif value is not None or each.default is not None:
                told[each.name] = value
        return told | {"outcome": self.outcome.value}

    @classmethod
    def read(cls, body: Body) -> Self:
        """The value in ``body``."""
        return cls(**{each.name: _READERS[str(each.type)](body, each.name) for each in fields(cls)})


def _verdict(body: Body, key: str) -> Verdict | None:
    try:
        return Verdict(text(body, key))
    except ValueError:
        return None


def _wholes(body: Body, key: str) -> tuple[int, ...]:
    value = body.get(key)
    return (
        tuple(each for each in value if isinstance(each, int) and not isinstance(each, bool))
        if isinstance(value, list)
        else ()
    )


_READERS: Mapping[str, Callable[[Body, str], Any]] = {
    "str": text,
    "str | None": lambda body, key: None if body.get(key) is None else text(body, key),
    "bool": lambda body, key: body.get(key) is True,
    "bool | None": lambda body, key: value if isinstance(value := body.get(key), bool) else None,
    "int | None": whole,
    "float | None": number,
    "datetime | None": moment,
    "tuple[str, ...]": texts,
    "tuple[str, ...] | None": lambda body, key: texts(body, key) or None,
    "tuple[int, ...]": _wholes,
    "Body": part,
    "tuple[Body, ...]": parts,
    "tuple[Body, ...] | None": lambda body, key: parts(body, key) or None,
    "Verdict | None": _verdict,
    "Values": lambda body, _: body,
}
"""By a field's type, as it is written above."""
