"""The classes that a node's configuration names, looked for in the jars of both versions of Kafka that the lab has."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asked_java import ask_java
from feature_looks import MODULES, host_module, software_in

from kraft_runbook.cluster import login_modules
from kraft_runbook.cluster.class_keys import BUILT_IN, CAME_WITH, CLASS_KEYS, TYPED_CLASS, TYPED_OTHERWISE, class_key
from kraft_runbook.cluster.feature_levels import NamedClass, NamedClasses
from kraft_runbook.cluster.kafka_version import release_of
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.io.hosts.feature_state import classes_of
from kraft_runbook.migration.checks.untried_logins import BY_OPTION
from lab.installation import JARS, JARS4, OTHERS, fetch_jars, jars_of, kafka4_version
from lab.layout import load

NEEDED = "kafka_host installation properties_text kafka_user login_modules references environment_files jvm_options"
for needed in NEEDED.split():
    host_module(needed)
reader = host_module("named_classes")
further = host_module("further_jars")
at_zookeeper = host_module("zookeeper_login")
jvm = sys.modules["ansible.module_utils.jvm_options"]

CLIENTS, CLIENTS4 = f"kafka-clients-{load().kafka.version}.jar", f"kafka-clients-{kafka4_version()}.jar"
SECRET = "Hunter2.Password.of.Kafka"
OAUTH = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OF_ZOOKEEPER = "org.apache.zookeeper.server.auth.DigestLoginModule"
FILES = "config.providers=secrets\nconfig.providers.secrets.class={}\n".format(
    "org.apache.kafka.common.config.provider.FileConfigProvider"
)
TABLE = {"keys": {key: names.value for key, names in CLASS_KEYS.items()}, "built_in": BUILT_IN}


@cache
def home(jars: Path) -> str:
    software_in(jars)  # makes it
    return str(jars.with_name(f"{jars.name}-as-a-home"))


def unit(environment: dict[str, str] | None = None) -> SimpleNamespace:
    """A service of which its manager tells these variables; None: supervisor, which tells none."""
    return SimpleNamespace(environment=lambda: environment)


def classes(text: str, *, pid: int = 0, homes: tuple[str, ...] = (), link: str = "", **more: Any) -> NamedClasses:
    asked = list(homes or (home(JARS), home(JARS4)))
    told = reader.named_classes(text, unit(), pid, asked, link, TABLE, more.get("dynamic", []))
    assert SECRET not in str(told)
    found = classes_of({"value": told})
    assert isinstance(found, NamedClasses)
    return found


def there(text: str, **more: Any) -> dict[str, tuple[str, str | None, str | None]]:
    """By key: the class, and the jar that has it in the home of 3.9 and of 4.x."""
    found = classes(text, **more)
    assert found.unread == ()
    return {each.key: (each.name, each.found[home(JARS)], each.found[home(JARS4)]) for each in found.named}  # type: ignore[misc]


# -- which keys --------------------------------------------------------------------------------------------------------

OTHER_WORDS = {
    "group.consumer.migration.policy",
    "group.coordinator.rebalance.protocols",
    "remote.log.metadata.manager.class.path",
    "remote.log.storage.manager.class.path",
    "sasl.kerberos.principal.to.local.rules",
    "sasl.oauthbearer.token.endpoint.url",
    "ssl.keystore.type",
    "ssl.principal.mapping.rules",
    "ssl.truststore.type",
}
"""Their documentation speaks of classes, or has a link with that word in it; their values are none."""
LATER = {"group.share.dlq.manager.class.name", "group.streams.topology.description.plugin.class"}


def test_the_keys_that_name_a_class_are_those_that_kafka_types_or_documents_so() -> None:
    typed, told = set(), set()
    for jars in (JARS, JARS4):
        for line in ask_java(Path(__file__).with_name("AskConfigTypes.java"), jars=jars).splitlines():
            key, kind, of_a_class = line.split()
            if kind == "CLASS":
                typed.add(key)
            elif kind in ("STRING", "LIST", "PASSWORD") and of_a_class == "true":
                told.add(key)
    assert typed == TYPED_CLASS - LATER
    assert told - OTHER_WORDS == TYPED_OTHERWISE.keys() - LATER


@pytest.mark.parametrize(
    "version",
    [
        load().kafka.version,
        kafka4_version(),
        *(pytest.param(each, marks=pytest.mark.long) for each in OTHERS),
    ],
)
def test_a_release_has_not_got_the_keys_that_came_later(version: str) -> None:
    jars = JARS if version == load().kafka.version else fetch_jars(version, jars=jars_of(version))
    told = ask_java(Path(__file__).with_name("AskConfigTypes.java"), jars=jars).splitlines()
    known = {line.split()[0] for line in told}
    assert CLASS_KEYS.keys() - known == {key for key, came in CAME_WITH.items() if came > release_of(version)}


@pytest.mark.parametrize(
    ("key", "is_one_of"),
    [
        ("principal.builder.class", "principal.builder.class"),
        ("listener.name.internal.principal.builder.class", "principal.builder.class"),
        ("listener.name.sasl.scram-sha-512.sasl.server.callback.handler.class", "sasl.server.callback.handler.class"),
        ("listener.name.sasl.plain.sasl.jaas.config", "sasl.jaas.config"),
        ("broker.rack", None),
        ("ssl.keystore.password", None),
        ("my.principal.builder.class", None),
    ],
)
def test_a_property_names_a_class_for_all_listeners_or_for_one(key: str, is_one_of: str | None) -> None:
    assert class_key(key) == is_one_of
    assert reader.Search({}, TABLE)._base(key) == is_one_of


# -- where they are ----------------------------------------------------------------------------------------------------


def test_a_class_of_3_9_that_4_has_not_is_found_in_the_one_home_alone() -> None:
    key = "listener.name.sasl.oauthbearer.sasl.server.callback.handler.class"
    old, new = CLIENTS, CLIENTS4
    assert there(f"{key}={OAUTH}\nbroker.rack=kafka.Kafka\n") == {key: (OAUTH, old, None)}
    assert there("metric.reporters = org.apache.kafka.common.metrics.JmxReporter , com.example.Reporter \n") == {
        "metric.reporters": ("com.example.Reporter", None, None)
    }
    built = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
    assert there(f"principal.builder.class={built}") == {"principal.builder.class": (built, old, new)}
    inner = "org.apache.kafka.common.config.ConfigDef$Type"
    assert there(f"sasl.login.class={inner}")["sasl.login.class"][1:] == (old, new)
    assert there("group.consumer.assignors=uniform,range\n") == {}


def test_of_login_modules_the_classes_are_told_and_no_option_is() -> None:
    key = "listener.name.sasl.plain.sasl.jaas.config"
    line = f'{PLAIN} required username="a" password="{SECRET}; x" user_b=\'{SECRET}\'; {SCRAM} optional;'
    found = classes(f"{key}={line}")
    assert [(each.key, each.name) for each in found.named] == [(key, PLAIN), (key, SCRAM)]
    kerberos = "com.sun.security.auth.module.Krb5LoginModule"
    assert there(f"sasl.jaas.config={kerberos} required useKeyTab=true;") == {
        "sasl.jaas.config": (kerberos, "Java itself", "Java itself")
    }


@pytest.mark.parametrize(
    "value", [SECRET, f"{SECRET} x", f"{PLAIN} required password={SECRET}; {SECRET}", "${vault:a:b}"]
)
def test_what_is_no_login_line_is_a_secret_and_which_class_it_names_is_unknown(value: str) -> None:
    found = classes(f"sasl.jaas.config={value}")
    (said,) = found.unread
    assert "which class sasl.jaas.config names can't be told" in said and "name the class in the file itself" in said


def test_what_a_config_provider_gives_is_followed_on_the_host(tmp_path: Path) -> None:
    kept = tmp_path / "secrets"
    kept.write_text(f"jaas={PLAIN} required password={SECRET};\nhandler={OAUTH}\nwrong={SECRET}\n")
    text = (
        f"{FILES}sasl.jaas.config=${{secrets:{kept}:jaas}}\n"
        f"sasl.login.callback.handler.class=${{secrets:{kept}:wrong}}\n"
        f"sasl.server.callback.handler.class=${{secrets:{kept}:handler}}\n"
        f"listener.name.b.sasl.jaas.config={SCRAM} required password=${{vault:a:b}};\n"
    )
    named = there(text)
    assert named["sasl.jaas.config"][0] == PLAIN and named["listener.name.b.sasl.jaas.config"][0] == SCRAM
    assert named["sasl.server.callback.handler.class"] == (OAUTH, CLIENTS, None)
    assert named["sasl.login.callback.handler.class"] == ("", None, None)  # no class anywhere: it may be a secret
    assert named["config.providers.secrets.class"][2] == CLIENTS4
    elsewhere = classes(f"{text}config.providers.secrets.param.allowed.paths=/srv,{tmp_path}/secret\n").unread
    assert len(elsewhere) == 3 and all("allowed.paths (/srv," in each for each in elsewhere)
    within = f"{text}config.providers.secrets.param.allowed.paths=/srv,{tmp_path}/\n"
    assert there(within)["sasl.jaas.config"][0] == PLAIN
    kept.unlink()
    lost = classes(text).unread
    assert len(lost) == 3 and all("No such file" in each for each in lost)


def test_a_storage_plugin_is_looked_for_where_its_class_path_leads_and_only_where_it_is_switched_on(
    tmp_path: Path,
) -> None:
    with zipfile.ZipFile(tmp_path / "plugin.jar", "w") as jar:
        jar.writestr("com/example/Storage.class", b"")
        jar.writestr("not/com/example/Other.class", b"")
    of = "remote.log.storage.manager.class"
    text = f"{of}.name=com.example.Storage\n{of}.path={tmp_path}/*\n"
    assert there(text) == {}
    on = f"remote.log.storage.system.enable=true\n{text}"
    key = f"{of}.name"
    assert there(on) == {key: ("com.example.Storage", "plugin.jar", "plugin.jar")}
    assert there(on.replace("example.Storage", "example.Other"))[key][2] is None
    assert there(on.replace("/*", "/gone.jar"))[key][2] is None


def test_a_home_that_is_not_there_and_a_jar_that_is_none_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "broken.jar").write_text("no zip file")
    gone = str(tmp_path / "gone")
    (named,) = classes("sasl.login.class=com.example.A\n", homes=(gone, str(tmp_path))).named
    for where, why in ((gone, "No such file"), (str(tmp_path), "broken.jar could not be read")):
        there_is = named.found[where]
        assert isinstance(there_is, Unread) and why in there_is.reason


# -- what the running process says -------------------------------------------------------------------------------------


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Any]:
    """Starts a process that looks like Kafka's: with a class path and JVM options. It waits for its own end."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str, environment: Mapping[str, str] | None = None) -> int:
        waits = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", *options, "kafka.Kafka"]
        started.append(
            subprocess.Popen(
                waits, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **(environment or {})}
            )
        )
        output = started[-1].stdout
        assert output is not None and output.readline() == b"\n"
        return started[-1].pid

    yield start
    for each in started:
        each.kill()
        each.communicate()


def test_the_login_file_s_sections_of_kafka_are_read_and_zookeeper_s_is_not(tmp_path: Path, process: Any) -> None:
    login = tmp_path / "jaas.conf"
    login.write_text(
        f'// servers\nKafkaServer {{\n  {PLAIN} required\n  password="{SECRET}";\n}};\n'
        f"sasl.KafkaServer {{ com.example.Gone optional; }};\nClient {{ {OF_ZOOKEEPER} required; }};\n"
    )
    pid = process(f"-Djava.security.auth.login.config={login}")
    found = there("", pid=pid)
    assert found[f"KafkaServer in {login}"][0] == PLAIN
    assert found[f"sasl.KafkaServer in {login}"] == ("com.example.Gone", None, None)
    assert len(found) == 2
    login.write_text(f"KafkaServer {{ {SECRET} {SECRET}; }};")
    assert "is not understood" in classes("", pid=pid).unread[0]
    login.unlink()
    assert there("", pid=pid) == {}, "one that is gone names none"
    login.mkdir()
    assert "could not be read" in classes("", pid=pid).unread[0]


def test_by_what_a_process_logs_in_to_zookeeper_is_told_and_no_more(tmp_path: Path, process: Any) -> None:
    login, kerberos = tmp_path / "jaas.conf", "com.sun.security.auth.module.Krb5LoginModule"
    login.write_text(f'Client {{ {OF_ZOOKEEPER} required password="{SECRET}"; }};\nOther {{ {kerberos} required; }};\n')
    file = f"-Djava.security.auth.login.config={login}"

    def of(pid: int = 0, **environment: str) -> Any:
        return at_zookeeper.zookeeper_login(unit(environment), pid)

    assert of(process()) == []
    assert of(process(file)) == [OF_ZOOKEEPER]
    assert of(process(file, "-Dzookeeper.sasl.clientconfig=Other")) == [kerberos]
    assert of(process(file, "-Dzookeeper.sasl.clientconfig=None")) == []
    assert of(process(file, "-Dzookeeper.sasl.client=false")) == []
    assert of(process("-Da=b", environment={"JAVA_TOOL_OPTIONS": file})) == [OF_ZOOKEEPER]
    assert of(process(f"{file}.gone", environment={"_JAVA_OPTIONS": file})) == [OF_ZOOKEEPER]
    assert of(process(file, environment={"JDK_JAVA_OPTIONS": f"{file}.gone", "KAFKA_OPTS": "-x"})) == [OF_ZOOKEEPER]
    for each in (*jvm.BEFORE, *jvm.BY_THE_SCRIPT, *jvm.AFTER):
        assert of(**{each: f"-Xmx1g {file}"}) == [OF_ZOOKEEPER], each
    assert of(KAFKA_OPTS=file, KAFKA_HEAP_OPTS=f"{file}.gone") == [OF_ZOOKEEPER]
    assert of(KAFKA_OPTS=f"{file} -Dzookeeper.sasl.client=false") == []
    assert of() == of(KAFKA_OPTS="-Xmx1g") == []
    assert of(KAFKA_OPTS=f"-javaagent:x=1 '{file}'") == of(KAFKA_OPTS=file.replace("=", "==file:")) == [OF_ZOOKEEPER]
    assert at_zookeeper.zookeeper_login(unit(), 0) is None
    login.unlink()
    for asks in (lambda: of(process(file)), lambda: of(KAFKA_OPTS=file)):
        with pytest.raises(Exception, match="its login file"):
            asks()


def test_of_a_login_file_s_sections_for_listeners_the_names_are_told_and_no_more(tmp_path: Path, process: Any) -> None:
    login = tmp_path / "jaas.conf"
    file = f"-Djava.security.auth.login.config={login}"

    def of(text: str) -> Any:
        login.write_text(text)
        return at_zookeeper.server_sections(unit({"KAFKA_OPTS": file}), 0)

    client = f'Client {{ {OF_ZOOKEEPER} required password="{SECRET}"; }};\n'
    assert of(client) == []
    both = f'{client}"KafkaServer" {{ {PLAIN} required; }};\nsasl.KafkaServer {{ {PLAIN} required; }};\n'
    assert of(both) == ["KafkaServer", "sasl.KafkaServer"]
    assert at_zookeeper.server_sections(unit(), process(file)) == ["KafkaServer", "sasl.KafkaServer"]
    assert of(f"{client}KafkaServer {{ }};\n") == [], "Java finds no section that names no module"
    assert at_zookeeper.server_sections(unit({}), 0) is at_zookeeper.server_sections(unit(), 0) is None
    login.unlink()
    with pytest.raises(reader.HostError, match="its login file"):
        at_zookeeper.server_sections(unit({"KAFKA_OPTS": file}), 0)


class Closed(reader.Process):  # type: ignore[misc, name-defined]
    """Another user's."""

    def whole_environment(self) -> dict[str, str]:
        raise PermissionError(errno.EACCES, "Permission denied", f"/proc/{self.pid}/environ")


def test_the_login_file_of_the_next_start_is_its_units_before_the_running_jvms(process: Any) -> None:
    def of(pid: int, defined: Any) -> Any:
        return at_zookeeper.login_file_of_next_start(defined, pid)

    def option(path: str) -> str:
        return f"-Djava.security.auth.login.config={path}"

    running = process(option("/old.conf"))
    assert of(running, unit({"KAFKA_OPTS": option("/new.conf")})) == ("/new.conf", False)
    assert of(running, unit({"KAFKA_OPTS": "-Xmx1g"})) == ("/old.conf", True)
    assert of(running, unit()) == ("/old.conf", False)
    assert of(0, unit()) == (None, False)
    relative = unit({"KAFKA_OPTS": option("jaas.conf")})
    assert of(running, relative) == ("/old.conf", False)
    with pytest.raises(reader.HostError, match=r"names the login file jaas\.conf"):
        of(0, relative)


@pytest.mark.parametrize("sets", [None, {"_JAVA_OPTIONS": "-Dc=d"}, {"JAVA_TOOL_OPTIONS": "-Dx=y"}, "unread"])
def test_what_another_users_environment_may_say_is_not_known(process: Any, sets: Any) -> None:
    def unread() -> None:
        raise reader.HostError("/etc/kafka/env could not be read", "")

    closed = Closed(process("-Da=b"), SimpleNamespace(environment=unread) if sets == "unread" else unit(sets))
    assert closed.property("a") == "b"
    with pytest.raises(Exception, match=r"has the Java property c can't be told: .*\(Permission denied: /proc/"):
        closed.property("c")
    search = reader.Search({}, TABLE)
    assert list(search.of_login_file(closed)) == [] and "java.security.auth.login.config can't be" in search.unread[0]


@pytest.mark.parametrize("sets", [{}, {"KAFKA_OPTS": "-Dc=d", "JAVA_TOOL_OPTIONS": ""}])
def test_where_its_unit_gives_java_no_options_another_users_command_line_is_the_whole_of_them(
    process: Any, sets: dict[str, str]
) -> None:
    closed = Closed(process("-Da=b"), unit(sets))
    assert (closed.property("a"), closed.property("c"), closed.login_file()) == ("b", None, None)
    search = reader.Search({}, TABLE)
    assert list(search.of_login_file(closed)) == search.unread == []


def test_the_options_of_a_certificate_for_zookeeper_are_those_of_kafkas_properties(process: Any) -> None:
    secure, socket, store = at_zookeeper.CERTIFICATE

    def of(pid: int = 0, **environment: str) -> Any:
        return at_zookeeper.certificate_options(unit(environment), pid)

    assert of(process(f"-D{secure}=true", environment={"JAVA_TOOL_OPTIONS": f"-D{store}=/k"})) == {
        secure: "true",
        store: "/k",
    }
    assert of(KAFKA_JVM_PERFORMANCE_OPTS=f"-D{socket}=a.B -Dzookeeper.ssl.keyStore.password=x") == {socket: "a.B"}
    assert of(process()) == of() == {}
    assert at_zookeeper.certificate_options(unit(), 0) is None
    asked = ask_java(Path(__file__).with_name("AskZkProperties.java"), jars=JARS).splitlines()
    named = dict(line.split(" ") for line in asked)
    assert {key: named[key] for key in BY_OPTION} == BY_OPTION and tuple(BY_OPTION.values()) == at_zookeeper.CERTIFICATE


def test_each_kafka_of_the_host_is_seen_as_its_stop_script_sees_it(process: Any) -> None:
    java, other = process("-Djava.awt.headless=true"), process()
    found = reader.kafka_processes()
    assert found[java] == os.getuid() and other not in found


def test_a_java_property_is_the_last_one_of_the_command_line(process: Any) -> None:
    pid = process("-Dallowed.urls=https://a", "-Dallowed.urls=https://b,https://c=d", "-Dallowed.urls.more=x")
    assert reader.Process(pid, unit()).property("allowed.urls") == "https://b,https://c=d"
    assert reader.Process(pid, unit()).property("allowed") is None


def test_what_lies_beside_the_homes_on_the_class_path_stays_with_another_kafka(tmp_path: Path, process: Any) -> None:
    for place in ("plugins", "link/libs"):
        (tmp_path / place).mkdir(parents=True)
    for path, name in (("plugins/a.jar", "A"), ("link/libs/b.jar", "B")):
        with zipfile.ZipFile(tmp_path / path, "w") as jar:
            jar.writestr(f"com/example/{name}.class", b"")
    link = str(tmp_path / "link")
    pid = process("-cp", f"{tmp_path}/plugins/a.jar:{link}/bin/../libs/b.jar:{home(JARS)}/libs/{CLIENTS}")
    found = there(
        f"metric.reporters=com.example.A\nsasl.login.class=com.example.B\nssl.engine.factory.class={OAUTH}",
        pid=pid,
        link=link,
    )
    assert found["metric.reporters"][2] == "a.jar"
    assert found["sasl.login.class"][2] is None
    assert found["ssl.engine.factory.class"][2] is None


def test_a_jar_of_a_home_that_is_a_link_is_of_that_home_wherever_it_leads(tmp_path: Path, process: Any) -> None:
    """A home may be made of links, and a process started with what they lead to."""
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / CLIENTS).symlink_to(JARS / CLIENTS)
    pid = process("-cp", str((JARS / CLIENTS).resolve()))
    (named,) = classes(f"sasl.login.class={OAUTH}", pid=pid, homes=(str(tmp_path), home(JARS4))).named
    assert named.found == {str(tmp_path): CLIENTS, home(JARS4): None}


def test_a_process_that_shows_no_kafka_leaves_its_login_file_unknown() -> None:
    assert "show no Kafka that runs" in classes("", pid=os.getpid()).unread[0]


def test_what_the_environment_gives_is_taken_from_the_process(process: Any) -> None:
    text = (
        "config.providers=env\nconfig.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
        "sasl.login.class=${env:THE_CLASS}\n"
    )
    alone = classes(text)
    assert alone.unread == () and alone.unasked is not None and "is not asked from here" in alone.unasked[0]
    assert classes(text, pid=os.getpid()).unasked == alone.unasked, "a process that is no Kafka was asked nothing"
    other = classes(text.replace("EnvVarConfig", "Other"))
    assert other.unasked == () and "is not asked from here" in other.unread[0]
    assert classes(text, pid=process(environment={"THE_CLASS": OAUTH})).unasked is None
    found = there(text, pid=process(environment={"THE_CLASS": OAUTH}))
    assert found["sasl.login.class"] == (OAUTH, CLIENTS, None)


def test_a_dynamic_class_is_looked_for_too() -> None:
    found = classes("", dynamic=[{"key": "metric.reporters (dynamic)", "name": OAUTH}])
    assert found.named == (NamedClass("metric.reporters (dynamic)", OAUTH, {home(JARS): CLIENTS, home(JARS4): None}),)


# -- both copies, and further jars -------------------------------------------------------------------------------------


def test_hosts_and_this_package_read_login_lines_by_the_same_text() -> None:
    ours = Path(login_modules.__file__)
    assert ours.read_text() == (MODULES / "login_modules.py").read_text()


def test_kafka_s_own_jars_are_known_and_what_was_put_beside_them_is_named(tmp_path: Path) -> None:
    for jars in (JARS, JARS4):
        assert further.further_jars(home(jars)) == ["jmx_prometheus_javaagent-1.0.1.jar"]  # the lab's own
    (tmp_path / "libs").mkdir()
    for name in (CLIENTS, "kafka-authorizer-acme-2.jar", "acme.jar", "scala-library-2.13.1.jar"):
        (tmp_path / "libs" / name).touch()
    assert further.further_jars(str(tmp_path)) == ["acme.jar", "kafka-authorizer-acme-2.jar"]
