# make demo           a real cluster leaves ZooKeeper under a real Airflow (APPROVE=auto answers the gates); make demo-down ends it
# make lab-up         the cluster alone; KRB_LAB_DIR and KRB_LAB_NET move it. CLUSTER=lab-secure, here and above: with TLS, logins and ACLs
# make check test     what CI runs
# make faults         every case of the fault matrix (docs/reliability.md); make test-long: rollback from each state, parity under churn
# Needed on the machine: Python 3.11+, Java 17+, Maven. Everything else is brought here, into .venv and build.

PYTHON ?= python3
UV_VERSION := 0.13.9
UV := build/uv/bin/uv
BIN := .venv/bin
VENV := .venv/.installed-from-lock
JARS := build/jars/.complete
JARS4 := build/jars4/.complete
JARS_OLD := build/jars-old/.complete
LANES ?= 2
# Whom the lab's and the demos' commands are about: lab, or lab-secure (docs/lab.md).
CLUSTER ?= lab
ARCHIVE := .venv/share/kraft-runbook/spark.jsa
LAB_ARCHIVE := build/kafka.jsa
export PYTHONPATH := include:plugins
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Where this is set, as in many images of Python, every process compiles what it imports anew: Airflow's take more than twice the time to start.
unexport PYTHONDONTWRITEBYTECODE

ifeq ($(CLUSTER),lab-secure)
export KRB_LAB_CLUSTERS := $(CURDIR)/lab/secured
export KRAFT_RUNBOOK_CLUSTERS := $(CURDIR)/lab/secured
else ifneq ($(CLUSTER),lab)
$(error CLUSTER=$(CLUSTER): give lab or lab-secure; a lab of another file: docs/lab.md)
endif

.PHONY: venv jars jars4 jars-old ready lab-up lab-down lab-status lab-seed lock check check-style check-types check-imports check-playbooks format test test-long faults demo demo-upgrade demo-quorum demo-groups demo-down demo-reassign demo-reassign-down

venv: $(VENV)

$(VENV): requirements-dev.lock pyproject.toml setup.py | $(UV)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements-dev.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps -e .
	touch $@

# Beside .venv, not in it: `uv pip sync` removes whatever the lock does not name.
$(UV):
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; make PYTHON=/path/to/python3")'
	$(PYTHON) -m venv build/uv
	build/uv/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

# Spark starts some seconds sooner with its classes kept; whatever goes wrong here, it starts as ever without.
$(ARCHIVE): $(VENV)
	-$(BIN)/python -m kraft_runbook.parity.spark.class_archive

jars: $(JARS)

$(JARS): lab/pom.xml
	mvn -q -B -f lab/pom.xml dependency:copy-dependencies
	touch $@

# The Kafka 4 that the lab's nodes can go on to.
jars4: $(JARS4)

# Behind the other jars: two Mavens at once may spoil the repository that they share.
$(JARS4): lab/kafka4/pom.xml | $(JARS)
	mvn -q -B -f lab/kafka4/pom.xml dependency:copy-dependencies
	touch $@

# The last Kafka with consumers that coordinate through ZooKeeper: clients of the tests.
jars-old: $(JARS_OLD)

$(JARS_OLD): lab/kafka1/pom.xml | $(JARS4)
	mvn -q -B -f lab/kafka1/pom.xml dependency:copy-dependencies
	touch $@

# The same for Kafka's classes: a process of the lab takes two thirds of the time to start.
$(LAB_ARCHIVE): $(JARS) | $(VENV)
	-$(BIN)/python -m lab.class_archive

lab-up: $(VENV) $(JARS) $(LAB_ARCHIVE)
	$(BIN)/python -m lab up

lab-down: $(VENV)
	$(BIN)/python -m lab down

lab-status: $(VENV)
	$(BIN)/python -m lab status

lab-seed: $(VENV)
	$(BIN)/python -m lab seed

lock: | $(UV)
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements.txt -o requirements.lock
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements-dev.in -o requirements-dev.lock

format: $(VENV)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Two at a time: each uses one core, and mypy takes as long as the others together.
check: $(VENV)
	$(MAKE) --jobs 2 check-types check-playbooks check-style check-imports

check-style: $(VENV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

check-types: $(VENV)
	$(BIN)/mypy include/kraft_runbook include/kraft_runbook_consumer plugins dags lab

check-imports: $(VENV)
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/unit/test_needs_airflow.py

check-playbooks: $(VENV)
	$(BIN)/ansible-lint --profile production playbooks

# The class archives, with which JVMs start sooner; making one uses one core, so both are made at once.
ready: $(VENV) $(JARS) $(JARS4) $(JARS_OLD)
	$(MAKE) --jobs 2 $(ARCHIVE) $(LAB_ARCHIVE)

# Two files of tests at once, each with clusters of its own: a third one cost each test under Airflow 28 % more processor time on two cores.
# LANES=0: one after the other, in this process.
test: ready
	$(BIN)/pytest --numprocesses $(LANES) --dist loadfile --no-loadscope-reorder

# The whole fault matrix, with a table at the end, which goes into docs/reliability.md. One case or several: make faults CASES="zookeeper and hybrid"
faults: $(VENV) $(JARS) $(ARCHIVE) $(LAB_ARCHIVE)
	KRB_FAULTS_TABLE=docs/reliability.md $(BIN)/pytest tests/faults -m faults -k "$(CASES)"

# What takes too long for every day: the rollback from each further state, comparisons under churn, kills at any moment, thousands of random cases.
test-long: $(VENV) $(JARS) $(JARS4) $(JARS_OLD) $(ARCHIVE) $(LAB_ARCHIVE)
	$(BIN)/pytest tests/airflow tests/integration tests/playbooks tests/spark tests/unit -m long

# Generated examples that no run has tried yet; a failure prints the example.
test-examples: $(VENV)
	KRB_NEW_EXAMPLES=yes $(BIN)/pytest --numprocesses $(LANES) --dist loadfile tests/unit

demo: ready
	$(BIN)/python -m lab.demo run --approve "$(APPROVE)"

# The finalized cluster that `make demo` left goes to Kafka 4 and its level to the newest, under a workload. ROUND_TRIP=yes: up, back, up again first.
# TO=4.3.1: to that one, which Maven brings.
demo-upgrade: ready
	$(BIN)/python -m lab.demo_upgrade --approve "$(APPROVE)" $(if $(ROUND_TRIP),--round-trip) $(if $(TO),--to $(TO))

# A controller and a broker fail on purpose, the migration, they fail again, and both sides in one picture. PARTITIONS=1000: on more than the seed's.
PARTITIONS ?= 0
demo-quorum: ready
	$(BIN)/python -m lab.demo_quorum --approve "$(APPROVE)" --partitions "$(PARTITIONS)"

# KIP-125's example: old consumers, migrating ones, KafkaConsumers, under a flow of records: docs/migrating-consumer.md. Nothing stays up.
demo-groups: ready
	$(BIN)/python -m lab.demo_groups

demo-down: $(VENV)
	$(BIN)/python -m lab.demo down

# Broker 4 joins, broker 1 is drained, all is put back: docs/reassignment.md.
demo-reassign: ready
	$(BIN)/python -m lab.demo_reassign run --approve "$(APPROVE)"

demo-reassign-down: $(VENV)
	$(BIN)/python -m lab.demo_reassign down
