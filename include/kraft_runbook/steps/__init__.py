"""The rules of acting on a cluster, whoever acts: Airflow's tasks hand in a cluster and a run."""
