"""STORAGE: definite collections, the tick log's rules, connectors, and how bytes become rows."""
