"""Triggers: the waits of deferred tasks and of asset watchers, in the triggerer's event loop."""
