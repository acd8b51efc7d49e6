"""The ``approvals`` of a cluster file: who may sign the gates, and how many must."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from kraft_runbook.cluster.spec_types import Model, Seconds

GateName = Literal[
    "start",
    "dual_write",
    "finalize",
    "rollback",
    "restart",
    "software_up",
    "software_back",
    "level",
    "move",
    "cancel",
    "move_groups",
    "toggle_group",
    "drill",
    "care",
    "unregister",
]
"""The gates of every operation. A misspelt one must not leave a gate with fewer signatures, so each is named."""
Signatures = Annotated[int, Field(ge=1, le=2)]


class Signer(Model):
    """A person who may sign, by the name that Airflow shows. ``id``: Airflow's id of that person, if it differs from
    the name.

    Under FAB the id is a number (``ab_user.id``) and the name is the user name. Under the simple auth manager both are
    the user name. A plain text in the file is a name without an id.
    """

    name: str = Field(min_length=1)
    id: str | None = Field(default=None, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _a_text_is_a_name(cls, given: Any) -> Any:
        if isinstance(given, int):
            raise ValueError(
                f"{given} is a number; the file names people: write the user name, or {{name: …, id: '{given}'}}"
            )
        return {"name": given} if isinstance(given, str) else given

    def __str__(self) -> str:
        return self.name if self.id is None else f"{self.name} (id {self.id})"


class Approvals(Model):
    """Who may sign the gates, how many of them must, and how old a proof may be.

    ``users`` empty: anyone whom Airflow lets answer. ``needed``: how many different people; ``needed_at``: another
    number for that gate. ``exclude_trigger``: the person who triggered the run may not sign. ``valid_for``: seconds.
    """

    users: tuple[Signer, ...] = ()
    needed: Signatures = 1
    needed_at: Mapping[GateName, Signatures] = Field(default_factory=dict)
    exclude_trigger: bool = False
    valid_for: Seconds = 3600

    def needed_for(self, gate: str, asked: int = 1) -> int:
        """How many people must sign this gate. ``asked``: the trigger form's number, which can raise the file's, never
        lower it.
        """
        return max(next((number for name, number in self.needed_at.items() if name == gate), self.needed), asked)

    def may_sign(self, name: str, user_id: str) -> bool:
        """Whether this person is in the list. If the list has an id, the id decides, since another account can get the
        same name.
        """
        return not self.users or any(
            user_id == each.id if each.id is not None else name == each.name for each in self.users
        )

    def why_not(self, name: str, user_id: str, triggered_by: str | None) -> str | None:
        """Why an approval by this person does not count; None when it does. ``triggered_by``: the name of whoever
        triggered the run.
        """
        if not self.may_sign(name, user_id):
            return f"{name} (id {user_id}) does not stand in approvals.users of the cluster file"
        if self.exclude_trigger and name == triggered_by:
            return f"{name} triggered this run, and approvals.exclude_trigger keeps the two apart"
        return None

    def describe(self, needed: int, triggered_by: str | None) -> str:
        """Who may sign, and how many must, in words."""
        people = ", ".join(str(each) for each in self.users) or "anyone whom Airflow lets answer"
        apart = (
            f"; not {triggered_by or 'whoever triggered it'}, who triggered this run" if self.exclude_trigger else ""
        )
        return f"{needed} of: {people}{apart}"

    @model_validator(mode="after")
    def _enough_people(self) -> Approvals:
        names = [each.name for each in self.users]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"users: {', '.join(twice)} stands there more than once; each person once")
        most = max([self.needed, *self.needed_at.values()])
        if names and most > len(names):
            raise ValueError(
                f"{most} different people must sign, and users names {len(names)}; name more, or ask for fewer"
            )
        return self
