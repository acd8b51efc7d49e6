"""The packages of a wheel, and where each lies here: the core, the tasks, the DAG files and the playbooks."""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages("include"),
        *find_packages("plugins"),
        "kraft_runbook.playbooks",
        "kraft_runbook_airflow.dags",
    ],
    package_dir={
        "": "include",
        "kraft_runbook.playbooks": "playbooks",
        "kraft_runbook_airflow": "plugins/kraft_runbook_airflow",
        "kraft_runbook_airflow.dags": "dags",
    },
)
