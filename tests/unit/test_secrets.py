"""Where a named secret is found, and what is said where it is not."""

from __future__ import annotations

import pytest

from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.errors import SecretMissing
from kraft_runbook.io.secrets import connection_variable, environment_secrets

CONNECTION = SecretRef(airflow_connection="kafka_keystore")


def test_a_secret_is_read_from_its_variable_or_from_airflows_variable_of_its_connection():
    secrets = environment_secrets(
        {"PLAIN": "one", "AIRFLOW_CONN_KAFKA_KEYSTORE": '{"conn_type": "generic", "password": "two"}'}
    )
    assert secrets(SecretRef(env="PLAIN")) == "one"
    assert secrets(CONNECTION) == "two"


@pytest.mark.parametrize(
    ("ref", "named"), [(SecretRef(env="PLAIN"), "export PLAIN"), (CONNECTION, connection_variable(CONNECTION))]
)
def test_a_secret_that_is_not_there_is_named_with_the_way_out(ref, named):
    with pytest.raises(SecretMissing) as missing:
        environment_secrets({})(ref)
    assert named in missing.value.way_out


def test_a_connection_that_cant_be_read_is_not_shown():
    with pytest.raises(SecretMissing) as missing:
        environment_secrets({connection_variable(CONNECTION): "generic://user:hunter2@host"})(CONNECTION)
    assert "hunter2" not in str(missing.value)
