"""Read, and change nothing: whether key stores and trust stores are there and open with their passwords."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_host import read_text, why
from ansible.module_utils.properties_text import properties_of

DOCUMENTATION = """
module: kafka_stores
short_description: Look into the stores of a Kafka node without changing them
description:
  - C(keytool) of the host's Java opens each store. A password goes to it by its environment, never by its arguments.
  - The result has the certificates of each, which are no secret.
options:
  node: {description: The node's id., type: int, required: true}
  asked: {description: "JSON, the stores by node, with passwords: the task has C(no_log).", type: str, required: true}
"""

SECONDS = 20.0
CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
PRIVATE = re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----")
ENTRY = re.compile(r"^Alias name: ", re.MULTILINE)
ENGLISH = ("-J-Duser.language=en", "-J-Duser.country=US")


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "node": {"type": "int", "required": True},
            "asked": {"type": "str", "required": True, "no_log": False},
        },
        supports_check_mode=True,
    )
    asked = json.loads(module.params["asked"])[str(module.params["node"])]
    module.exit_json(changed=False, host_state={"stores": [look(each) for each in asked]})


def look(store: dict) -> dict:
    """What is wrong with one store (``wrong``), why that can't be told (``unread``), or its ``certificates`` in PEM: of
    a key store the chain of its first private key, that key's own first; of a trust store those that it trusts.
    """
    try:
        password = _password(store)
        return {"certificates": _opened(store, password)}
    except Wrong as error:
        return {"wrong": str(error)}
    except OSError as error:
        return {"unread": why(error)}
    except (Unknown, subprocess.SubprocessError, ValueError) as error:
        return {"unread": str(error) if isinstance(error, Unknown) else type(error).__name__}


class Wrong(Exception):
    """Kafka could not use the store."""


class Unknown(Exception):
    """Whether it could is not known."""


def _password(store: dict) -> str | None:
    """Given, or in the file of this host that the reference names."""
    if store["password"] is not None or store["reference"] is None:
        return store["password"]
    path, key = store["reference"]
    text = read_text(path)
    if text is None:
        raise Wrong(f"the file with its password, {path}, is not there")
    found = properties_of(text).get(key)
    if found is None:
        raise Wrong(f"{path} has no {key}, its password")
    return found


def _opened(store: dict, password: str | None) -> list[str]:
    """Its certificates. Raises Wrong, Unknown, OSError."""
    path = store["path"]
    if not os.path.exists(path):
        raise Wrong("it is not there")
    if store["type"] == "PEM":
        return _pem(path, store)
    if store["unknown"]:
        raise Unknown(store["unknown"])
    keytool = shutil.which("keytool") or _beside_java()
    given = ["-storepass:env", "KRB_STORE"] if password is not None else []
    command = [keytool, *ENGLISH, "-list", "-rfc", "-keystore", path, "-storetype", store["type"], *given]
    done = subprocess.run(
        command,
        input="\n",
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, "KRB_STORE": password or ""},
    )
    said = done.stdout + done.stderr
    if done.returncode:
        if re.search(r"password was incorrect|password verification failed|keystore password", said, re.IGNORECASE):
            raise Wrong("its password does not open it" if password is not None else "it has a password; none is set")
        raise Wrong(f"it is no store of type {store['type']}, or is damaged")
    if store["kind"] == "keystore":
        keys = re.search(r"Entry type: PrivateKeyEntry(.*?)(?:^Alias name: |\Z)", said, re.DOTALL | re.MULTILINE)
        if not keys:
            raise Wrong("it holds no private key")
        return CERTIFICATE.findall(keys.group(1))
    # Of an entry with a private key Java trusts the first certificate alone.
    found = [each.group() for entry in ENTRY.split(said) if (each := CERTIFICATE.search(entry))]
    if not found:
        raise Wrong("it holds no certificate")
    return found


def _pem(path: str, store: dict) -> list[str]:
    with open(path, encoding="latin-1") as stream:
        text = stream.read()
    found = CERTIFICATE.findall(text)
    if not found:
        raise Wrong("it holds no certificate")
    if store["kind"] == "keystore" and not PRIVATE.search(text):
        raise Wrong("it holds no private key")
    return found


def _beside_java() -> str:
    """Of JAVA_HOME, or beside the Java that a link on the path leads to."""
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else shutil.which("java")
    found = os.path.join(os.path.dirname(os.path.realpath(java)), "keytool") if java else ""
    if not os.path.exists(found):
        raise Unknown("no keytool: neither on the path nor beside its Java")
    return found


if __name__ == "__main__":
    main()
