"""A feature level's change under Airflow."""
