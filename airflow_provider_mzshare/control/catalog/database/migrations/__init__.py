"""Alembic's migrations of the catalog, run by ``Catalog.upgrade``; no alembic.ini is needed."""
