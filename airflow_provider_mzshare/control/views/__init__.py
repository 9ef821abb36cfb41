"""Views: a query whose relations are resolved to ids. It is checked when the view is created, and read at one tick."""
