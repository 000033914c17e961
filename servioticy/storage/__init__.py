"""Postgres: the only importer of psycopg2."""
