"""Views: a query with what it reads resolved to ids, checked when it is made, read through Spark at one tick."""
