"""What the driver hands to the workers: the cluster, resolved secrets, the run's salt, the rate.

Workers resolve nothing themselves: they may run where Airflow's connections and the driver's environment are not. It
goes with the pickled function that they run, which neither Spark's UI nor its event log shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.errors import SecretMissing
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.metadata.canonical_rows import Fingerprints
from kraft_runbook.metadata.znodes.znode_rows import Decoding
from kraft_runbook.parity.decoding import PASSWORD_ENCODER_SECRET, encoder_secret


@dataclass(frozen=True, slots=True)
class Sealed:
    """Everything a worker needs to read one cluster. ``values``: secrets by the text of their reference. ``rate``:
    znodes a second for each reader.
    """

    spec: ClusterSpec
    salt: bytes = field(repr=False)
    values: Mapping[str, str] = field(repr=False)
    why_no_encoder_secret: str = ""
    rate: float | None = None

    @classmethod
    def of(cls, spec: ClusterSpec, *, secrets: Secrets, salt: bytes) -> Sealed:
        """Resolve what reading needs. Raises SecretMissing, except for password.encoder.secret, which only encoded
        configs need.
        """
        values = {str(ref): secrets(ref) for ref in _connection_secrets(spec)}
        encoder, why = encoder_secret(spec, secrets)
        if encoder is not None:
            values[str(spec.secrets[PASSWORD_ENCODER_SECRET])] = encoder
        return cls(spec, salt, values, why)

    @property
    def secrets(self) -> Secrets:
        def resolve(ref: SecretRef) -> str:
            if str(ref) not in self.values:
                raise SecretMissing(
                    f"{ref} was not resolved before the Spark job began",
                    way_out="run the comparison again; report this if it persists",
                )
            return self.values[str(ref)]

        return resolve

    @property
    def decoding(self) -> Decoding:
        encoder = self.spec.secrets.get(PASSWORD_ENCODER_SECRET)
        value = None if encoder is None else self.values.get(str(encoder))
        return Decoding(Fingerprints(self.salt), value, self.why_no_encoder_secret)

    def shared_by(self, readers: int) -> Sealed:
        """The same for so many readers at a time: the cluster file's read_rate is for all of them."""
        rate = self.spec.ensemble.read_rate
        return self if rate is None else replace(self, rate=rate / readers)


def _connection_secrets(spec: ClusterSpec) -> Iterator[SecretRef]:
    for security in [spec.controller_security] + ([spec.zookeeper.security] if spec.zookeeper else []):
        yield from (ref for ref in (security.password, security.key_password) if ref is not None)
