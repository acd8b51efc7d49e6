"""The rolling software upgrade and its way back under Airflow."""
