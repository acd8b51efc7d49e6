"""How Airflow does a step: operators, sensors, triggers and gates over the core."""
