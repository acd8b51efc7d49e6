"""What a data source's options carry from the driver to the workers: the cluster, resolved secrets, the run's salt, the offsets.

Workers resolve nothing themselves: they may run where Airflow's connections and the driver's environment are not. The option that holds secrets is
named so that ``spark.redaction.regex`` (its default matches "secret") hides it from the UI and the event log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from kraft_runbook.clients.decoding import PASSWORD_ENCODER_SECRET, encoder_secret
from kraft_runbook.clients.secrets import Secrets
from kraft_runbook.cluster import ClusterSpec, SecretRef
from kraft_runbook.errors import SecretMissing
from kraft_runbook.metadata.entities import Fingerprints
from kraft_runbook.metadata.zookeeper_tree import Decoding


@dataclass(frozen=True, slots=True)
class Sealed:
    """Everything a source needs to read one cluster. ``values``: secrets by the text of their reference. ``rate``: znodes a second for each reader."""

    spec: ClusterSpec
    salt: bytes = field(repr=False)
    values: Mapping[str, str] = field(repr=False)
    why_no_encoder_secret: str = ""
    rate: float | None = None

    @classmethod
    def of(cls, spec: ClusterSpec, *, secrets: Secrets, salt: bytes) -> Sealed:
        """Resolve what reading needs. Raises SecretMissing, except for password.encoder.secret, which only encoded configs need."""
        values = {str(ref): secrets(ref) for ref in _connection_secrets(spec)}
        encoder, why = encoder_secret(spec, secrets)
        if encoder is not None:
            values[str(spec.secrets[PASSWORD_ENCODER_SECRET])] = encoder
        return cls(spec, salt, values, why)

    @property
    def secrets(self) -> Secrets:
        def resolve(ref: SecretRef) -> str:
            if str(ref) not in self.values:
                raise SecretMissing(f"{ref} was not resolved before the Spark job began", way_out="run the comparison again; report this if it persists")
            return self.values[str(ref)]

        return resolve

    @property
    def decoding(self) -> Decoding:
        encoder = self.spec.secrets.get(PASSWORD_ENCODER_SECRET)
        value = None if encoder is None else self.values.get(str(encoder))
        return Decoding(Fingerprints(self.salt), value, self.why_no_encoder_secret)

    def options(self) -> dict[str, str]:
        """As the options of a data source."""
        hidden = {"salt": self.salt.hex(), "values": dict(self.values)}
        return {"cluster": self.spec.model_dump_json(), "secrets": json.dumps(hidden), "why": self.why_no_encoder_secret, "rate": json.dumps(self.rate)}

    def shared_by(self, readers: int) -> Sealed:
        """The same for so many readers at a time: the cluster file's read_rate is for all of them."""
        rate = self.spec.zookeeper.read_rate
        return self if rate is None else replace(self, rate=rate / readers)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Sealed:
        hidden = json.loads(options["secrets"])
        return cls(
            ClusterSpec.model_validate_json(options["cluster"]), bytes.fromhex(hidden["salt"]), hidden["values"], options["why"], json.loads(options["rate"])
        )


def _connection_secrets(spec: ClusterSpec) -> Iterator[SecretRef]:
    for security in (spec.zookeeper.security, spec.controller_security):
        yield from (ref for ref in (security.password, security.key_password) if ref is not None)
