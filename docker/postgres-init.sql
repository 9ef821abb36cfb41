-- Airflow's metadata is in the database of POSTGRES_DB; mzshare keeps its catalog apart.
CREATE DATABASE mzshare;
