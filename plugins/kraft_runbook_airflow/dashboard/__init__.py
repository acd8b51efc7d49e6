"""Where each cluster stands, on Airflow's own pages."""
