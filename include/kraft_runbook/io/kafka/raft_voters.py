"""What changes the voters of a dynamic quorum: AddRaftVoter and RemoveRaftVoter (KIP-853)."""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage


class AddRaftVoterRequest(ApiMessage, load_json="kraft_runbook.io.kafka.schemas"):  # type: ignore[misc, call-arg]
    """AddRaftVoter (api 80, KIP-853), version 0: answered once the new voters are committed."""


class AddRaftVoterResponse(ApiMessage, load_json="kraft_runbook.io.kafka.schemas"):  # type: ignore[misc, call-arg]
    """The answer: an error's code and message."""


class RemoveRaftVoterRequest(ApiMessage, load_json="kraft_runbook.io.kafka.schemas"):  # type: ignore[misc, call-arg]
    """RemoveRaftVoter (api 81, KIP-853), version 0: answered once the remaining voters are committed."""


class RemoveRaftVoterResponse(ApiMessage, load_json="kraft_runbook.io.kafka.schemas"):  # type: ignore[misc, call-arg]
    """The answer: an error's code and message."""
