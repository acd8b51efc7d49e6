"""What decoding ZooKeeper's values needs of the secrets: the one that broker configs are encoded with."""

from __future__ import annotations

import secrets as random_bytes

from kraft_runbook.cluster.java_values import trim
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import SecretMissing
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.metadata.canonical_rows import Fingerprints
from kraft_runbook.metadata.znodes.znode_findings import PasswordSecrets
from kraft_runbook.metadata.znodes.znode_rows import Decoding

PASSWORD_ENCODER_SECRET = "password.encoder.secret"  # noqa: S105 - the name of a property
PASSWORD_ENCODER_OLD_SECRET = "password.encoder.old.secret"  # noqa: S105 - the name of a property


def encoder_secret(spec: ClusterSpec, secrets: Secrets) -> tuple[str | None, str]:
    """The value of password.encoder.secret, or None and why there is none: only encoded configs need it.

    Without the blanks around it, as Kafka takes it (``ConfigDef.parseType``): a secret from a file often ends with a
    line's end.
    """
    ref = spec.secrets.get(PASSWORD_ENCODER_SECRET)
    if ref is None:
        return None, "password.encoder.secret is not named under 'secrets' in the cluster file"
    try:
        return trim(secrets(ref)), ""
    except SecretMissing as error:
        return None, f"password.encoder.secret could not be resolved: {error.problem}"


def decoding_of(spec: ClusterSpec, *, secrets: Secrets, salt: bytes | None = None) -> Decoding:
    """For one comparison: fingerprints of values that must not be shown are salted anew, or as those of a proof were
    whose fingerprints they are compared with (``salt``).
    """
    return Decoding(Fingerprints(salt or random_bytes.token_bytes(16)), *encoder_secret(spec, secrets))


def password_secrets(spec: ClusterSpec, secrets: Secrets) -> PasswordSecrets:
    """Both secrets of the encoder, for judging stored passwords. A missing old one only makes a problem's text less
    helpful.
    """
    current, why_not = encoder_secret(spec, secrets)
    ref = spec.secrets.get(PASSWORD_ENCODER_OLD_SECRET)
    try:
        old = trim(secrets(ref)) if ref else None
    except SecretMissing:
        old = None
    return PasswordSecrets(current, old, why_not)
