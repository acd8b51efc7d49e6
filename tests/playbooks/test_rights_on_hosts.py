"""Each right on a host taken away by itself, from a user who has all others: what is not allowed is told by name. It is
never taken for what is not there, nor for done.

Every module runs as a host runs it, in a process of its own, under a systemctl that may refuse.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import pwd
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import ansible.module_utils
import pytest
from ansible.module_utils.testing import patch_module_args

from kraft_runbook.io.hosts.playbooks import playbook_directory
from kraft_runbook.runbook.rights import HOSTS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can take a right away")

NOBODY = pwd.getpwnam("nobody")
GONE = 4_194_305
"""The number of no process: more than Linux has."""
SYSTEMCTL = """#!/bin/sh
here={at}
case "$1 $2" in
  cat*) ;;
  *TimeoutStopUSec*) echo TimeoutStopUSec=5min;;
  *ExecStop*) ;;
  *User*) printf 'User=nobody\\nGroup=\\n';;
  *Environment*) echo "Environment=JAVA_HOME=$here/jdk"; echo "EnvironmentFiles=$here/unit.d/*.env (ignore_errors=no)";;
  show*) printf 'LoadState=loaded\\nActiveState=%s\\nMainPID=%s\\nResult=success\\n' $(cat $here/state);;
  *) if [ -e $here/denied ]; then echo "Failed to $1 kafka.service: Access denied" >&2; exit 4; fi;;
esac
case "$1" in
  stop) echo inactive 0 > $here/state;;
  start) echo active $PPID > $here/state;;
esac
"""


# -- what is called ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A module and its arguments, with {at} for the place of all files. ``runs``: the service's process, 0: none."""

    module: str
    given: Mapping[str, Any] = field(default_factory=dict)
    runs: int = 0

    def arguments(self, at: Path) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(dict(self.given)).replace("{at}", str(at)))
        return found


CONFIG, SECRETS, DATA = "{at}/etc/server.properties", "{at}/secrets/secrets.properties", "{at}/volume/data"
UNIT = {"name": "kafka", "manager": "systemd"}
NODE = {"node_id": 1, "name": "kafka", "host": "127.0.0.1", "ports": [], "config_file": CONFIG, "files": [CONFIG]}
HOST = Call(
    "kafka_host_facts",
    {
        "manager": "systemd",
        "secrets_file": SECRETS,
        "kafka_home": "{at}/homes/kafka",
        "kafka_version": "3.9.2",
        "nodes": [{**NODE, "log_dirs": [DATA]}],
    },
)
FEATURES = Call(
    "kafka_feature_state",
    {
        **UNIT,
        "homes": ["{at}/homes/kafka"],
        "home_link": "{at}/links/kafka",
        "log_dir": DATA,
        "config_file": CONFIG,
        "class_keys": {"keys": {}, "built_in": {}},
    },
)
CONTROLLER = {"controller": "controller 101", "name": "kafka", "config_file": CONFIG, "log_dir": DATA}
PROOF = Call(
    "kafka_migration_mode",
    {"manager": "systemd", "provisioning": True, "refuses_former_copy": False, "controllers": [CONTROLLER]},
)
PROOF_OF_NO_COPY = Call("kafka_migration_mode", {**PROOF.given, "refuses_former_copy": True})
FORMER_COPY = Call("kafka_former_copy", {"controller": "controller 101", "log_dir": DATA})
LOG = Call("kafka_metadata_log", {**UNIT, "config_file": CONFIG, "log_dir": DATA})
FILE = Call("kafka_file", {**UNIT, "path": CONFIG, "content": "a=1\n", "header": "# x", "log_dir": DATA})
FORMAT = Call(
    "kafka_format",
    {
        **UNIT,
        "kafka_home": "{at}/homes/kafka",
        "config_file": CONFIG,
        "log_dir": DATA,
        "cluster_id": "abc",
        "node_id": 101,
    },
)
FORMAT_ANEW = Call("kafka_format", {**FORMAT.given, "log_dir": "{at}/volume/new"})
UNTOUCHED = Call("kafka_untouched", {"paths": [CONFIG]})
FORGET = Call("kafka_forget_secrets", {"path": SECRETS, "unread": ["zookeeper."]})
ASIDE = Call("kafka_set_aside", {**UNIT, "config_file": CONFIG, "log_dir": DATA})
LINK = Call(
    "kafka_home_link",
    {"path": "{at}/links/kafka", "home": "{at}/homes/new", "version": "3.9.2", "config_file": CONFIG},
)
CPU = Call("kafka_cpu", {"manager": "systemd", "services": {}, "listeners": ["{listener}"]})


def service(action: str, runs: int) -> Call:
    given = {"config_file": CONFIG, "files": [CONFIG, SECRETS], "stop_timeout": 5, "start_timeout": 5}
    return Call("kafka_service", {**UNIT, "action": action, **given}, runs)


OUTDATED, START = service("stop_outdated", os.getpid()), service("start", 0)
STOP, KILL = service("stop", GONE), service("kill", GONE)


# -- what is taken away ------------------------------------------------------------------------------------------------


def closed(path: Path) -> None:
    """Another user's, that nobody else may read or enter."""
    os.chown(path, 0, 0)
    path.chmod(0o700 if path.is_dir() else 0o600)


def another_s(path: Path) -> None:
    """Another user's: it may be read, and nothing in it replaced."""
    os.chown(path, 0, 0)
    path.chmod(0o755)


def refused(path: Path) -> None:
    """The service manager refuses."""
    path.touch()


def nothing(_: Path) -> None:
    """It never had that right: root alone has."""


@dataclass(frozen=True)
class Case:
    """``asks``: the playbook. ``taken``: the path, below the place of all files, of which a right is taken away.
    ``part``: of the answer, where each has its own; ``names``: what the answer names, where that is not the path.
    """

    asks: str
    call: Call
    taken: str
    take: Callable[[Path], None] = closed
    part: str = ""
    names: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.asks, self.call.module, self.part, self.take.__name__, self.taken)))


DENIED = "Access denied"
CASES = (
    *(
        Case("gather_host_facts", HOST, taken, part=part)
        for taken, parts in {
            "volume": ("free_bytes", "formatted_cluster_id", "has_metadata_log", "unread_dirs"),
            "secrets": ("secrets_readable", "secrets_keys"),
            "secrets/secrets.properties": ("secrets_keys",),
            "etc": ("config",),
            "etc/server.properties": ("config",),
            "etc/.server.properties.kraft-runbook": ("other_hands",),
            "login": ("zookeeper_login", "server_sections"),
            "login/login.conf": ("zookeeper_login", "server_sections"),
            "unit.d": ("zookeeper_login", "java_version"),
            "unit.d/kafka.env": ("zookeeper_login", "java_version"),
            "homes/kafka": ("classpath_ok",),
            "homes/kafka/libs": ("classpath_ok",),
            "homes/kafka/bin": ("classpath_ok",),
        }.items()
        for part in parts
    ),
    Case("read_feature_state", FEATURES, "links", part="home"),
    Case("read_feature_state", FEATURES, "volume", part="disk"),
    Case("read_feature_state", FEATURES, "volume/data/__cluster_metadata-0", part="disk"),
    Case("read_feature_state", FEATURES, "etc/server.properties", part="config"),
    Case("read_feature_state", FEATURES, "etc", part="classes"),
    Case("read_feature_state", FEATURES, "homes/kafka/libs", part="further_jars"),
    Case("prove_migration_mode", PROOF, "volume"),
    Case("prove_migration_mode", PROOF, "etc"),
    Case("prove_migration_mode", PROOF, "etc/server.properties"),
    Case("prove_migration_mode", PROOF_OF_NO_COPY, "volume"),
    Case("prove_migration_mode", PROOF_OF_NO_COPY, "volume/data/__cluster_metadata-0"),
    Case("read_metadata_logs", LOG, "volume"),
    Case("read_metadata_logs", LOG, "volume/data/__cluster_metadata-0"),
    Case("read_metadata_logs", LOG, "etc", another_s),
    Case("read_metadata_logs", KILL, "denied", refused, names=DENIED),
    Case("provision_controller", FORMER_COPY, "volume/data/__cluster_metadata-0"),
    Case("provision_controller", FILE, "etc", another_s),
    Case("provision_controller", FORMAT, "volume"),
    Case("provision_controller", FORMAT, "volume/data/meta.properties"),
    Case("provision_controller", FORMAT_ANEW, "volume"),
    Case("provision_controller", FORMAT_ANEW, "volume", another_s),
    Case("restart_broker", FILE, "etc/server.properties"),
    Case("restart_broker", OUTDATED, "secrets"),
    Case("restart_broker", OUTDATED, "etc", another_s),
    Case("restart_node", UNTOUCHED, "etc"),
    Case("restart_node", UNTOUCHED, "etc/.server.properties.kraft-runbook"),
    Case("restart_node", STOP, "denied", refused, names=DENIED),
    Case("read_cpu", CPU, "listener", nothing, names="no process of this user's holds its socket"),
    Case("stop_node", STOP, "etc"),
    Case("stop_node", KILL, "denied", refused, names=DENIED),
    Case("start_node", START, "secrets"),
    Case("start_node", START, "denied", refused, names=DENIED),
    Case("finalize_controller", FILE, "etc", another_s),
    Case("forget_zookeeper_secrets", FORGET, "secrets"),
    Case("forget_zookeeper_secrets", FORGET, "secrets/secrets.properties"),
    Case("forget_zookeeper_secrets", FORGET, "secrets", another_s),
    Case("leave_kraft", KILL, "etc", another_s),
    Case("leave_kraft", KILL, "denied", refused, names=DENIED),
    Case("start_controllers", START, "denied", refused, names=DENIED),
    Case("set_controller_aside", ASIDE, "volume"),
    Case("set_controller_aside", ASIDE, "volume", another_s),
    Case("set_controller_aside", ASIDE, "etc", another_s),
    Case("switch_software", LINK, "links"),
    Case("switch_software", LINK, "links", another_s),
    Case("switch_software", LINK, "homes/new/libs"),
)


def test_no_right_of_hosts_stays_untried() -> None:
    assert {each.asks for each in CASES} == {each.asks for each in HOSTS}


# -- how it is tried ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def modules() -> Iterator[Callable[[str], ModuleType]]:
    """Loads a module, and what it imports, as a host has them."""
    places = list(ansible.module_utils.__path__)
    own = {f"ansible.module_utils.{file.stem}" for file in (playbook_directory() / "module_utils").glob("*.py")}
    before = {name: sys.modules.pop(name) for name in own & sys.modules.keys()}  # other tests load some by themselves
    ansible.module_utils.__path__.append(str(playbook_directory() / "module_utils"))

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, playbook_directory() / "library" / f"{name}.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield load
    ansible.module_utils.__path__[:] = places
    for name in own & sys.modules.keys():
        del sys.modules[name]
    sys.modules.update(before)


@contextlib.contextmanager
def laid_out(runs: int) -> Iterator[Path]:
    """Everything that a node has on its host, all of it nobody's. ``runs``: its process."""
    with tempfile.TemporaryDirectory(prefix="krb-rights-") as directory:
        at = Path(directory)
        at.chmod(0o755)
        config = "process.roles=controller\nzookeeper.metadata.migration.enable=true\nzookeeper.connect=h:1\n"
        for path, text in {
            "etc/server.properties": config,
            "etc/.server.properties.kraft-runbook": "none that can be understood",
            "secrets/secrets.properties": "a=b\nzookeeper.ssl.keystore.password=c\n",
            "volume/data/meta.properties": "cluster.id=abc\nnode.id=101\n",
            "volume/data/__cluster_metadata-0/leader-epoch-checkpoint": "",
            "login/login.conf": "Client { org.apache.zookeeper.server.auth.DigestLoginModule required; };\n",
            "unit.d/kafka.env": f"KAFKA_OPTS=-Djava.security.auth.login.config={at}/login/login.conf\n",
            "homes/kafka/libs/kafka_2.13-3.9.2.jar": "",
            "homes/new/libs/kafka_2.13-3.9.2.jar": "",
            "links/nothing": "",
            "state": f"{'active' if runs else 'inactive'} {runs}",
            "homes/kafka/bin/kafka-storage.sh": f"#!/bin/sh\ncp {at}/volume/data/meta.properties {at}/volume/new\n",
            "jdk/bin/java": "#!/bin/sh\necho 'openjdk version \"17.0.9\"' >&2\n",
            "tools/systemctl": SYSTEMCTL.format(at=at),
            "tools/journalctl": "#!/bin/sh\n",
        }.items():
            (at / path).parent.mkdir(parents=True, exist_ok=True)
            (at / path).write_text(text)
            (at / path).chmod(0o755 if text.startswith("#!") else 0o600)
        (at / "links/kafka").symlink_to(at / "homes/kafka")
        for each in at.rglob("*"):
            os.chown(each, NOBODY.pw_uid, NOBODY.pw_gid, follow_symlinks=False)
            os.utime(each, (1e9, 1e9), follow_symlinks=False)
        yield at


def answer(module: ModuleType, given: Mapping[str, Any], at: Path) -> dict[str, Any]:
    """What a module answers in this process."""
    os.environ["PATH"] = f"{at}/tools:{os.environ['PATH']}"
    printed = io.StringIO()
    with patch_module_args(dict(given)), contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        module.main()
    found: dict[str, Any] = json.loads(printed.getvalue())
    return found


def answer_of_nobody(module: ModuleType, given: Mapping[str, Any], at: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(of_nobody(lambda: answer(module, given, at)))
    return found


def of_nobody(asks: Callable[[], object]) -> str:
    """What is answered in a process of that user, which holds no file of this one's: JSON, or the error."""
    ours, its = os.pipe()
    child = os.fork()
    if not child:
        text = "the process broke"
        try:
            os.dup2(its, 0)
            os.closerange(3, 4096)
            os.setgroups([])
            os.setgid(NOBODY.pw_gid)
            os.setuid(NOBODY.pw_uid)
            text = json.dumps(asks())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        finally:
            os.write(0, text.encode())
            os._exit(0)
    os.close(its)
    with open(ours, encoding="utf-8") as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return text


def refusal(case: Case, at: Path, found: dict[str, Any]) -> str:
    """What is told of what was not allowed; empty where nothing is."""
    if not case.part and case.call is not CPU:
        return str(found["msg"]) if found.get("failed") else ""
    assert not found.get("failed"), found
    state = found["host_state"]
    part = state if case.call is CPU else state.get("1", state)[case.part]
    if case.part == "unread_dirs":
        return json.dumps(part["value"]) if part["value"] else ""
    told = part if {"value", "unread"} & part.keys() else next(iter(part.values()))  # of the one home, or listener
    return str(told.get("unread", ""))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_right_that_is_missing_is_named(
    case: Case, modules: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])
    module = modules(case.call.module)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def told(asks: Callable[..., dict[str, Any]], take: Callable[[Path], None] = nothing) -> tuple[str, Path]:
            with laid_out(case.call.runs) as at:
                take(at / case.taken)
                given = json.dumps(case.call.arguments(at)).replace(
                    "{listener}", f"127.0.0.1:{server.getsockname()[1]}"
                )
                return refusal(case, at, asks(module, json.loads(given), at)), at

        assert told(answer)[0] == "", "root is refused; it also loads here what a user may not read"
        if case.take is not nothing:
            assert told(answer_of_nobody)[0] == "", "a user who has all rights is refused"
        found, at = told(answer_of_nobody, case.take)
    assert (case.names or str(at / case.taken)) in found, found


FUNCTIONS: Mapping[str, tuple[str, Callable[[Any, str], object]]] = {
    "the owner of what is to come": ("kafka_host", lambda host, path: host.owner_of(path)),
    "a directory of request logs": ("request_log", lambda log, path: log.requests_logged_in(path)),
    "a class path": ("named_classes", lambda classes, path: classes.find(["a.B"], classes._jars([path]))),
    "all jars of a class path": ("named_classes", lambda classes, path: classes._jars([f"{path}/*"])),
}


@pytest.mark.parametrize("what", FUNCTIONS)
def test_what_may_not_be_looked_at_is_not_missing(modules: Callable[[str], ModuleType], what: str) -> None:
    modules("kafka_feature_state")
    name, asks = FUNCTIONS[what]
    with laid_out(0) as at:
        of = sys.modules[f"ansible.module_utils.{name}"]
        assert "Error" not in of_nobody(lambda: asks(of, f"{at}/volume/data"))
        closed(at / "volume")
        told = of_nobody(lambda: asks(of, f"{at}/volume/data"))
    assert told.startswith("PermissionError") and f"{at}/volume" in told, told
