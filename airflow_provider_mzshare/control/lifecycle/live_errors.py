"""Errors about tables that are not live: will it get there by itself, or has somebody to act?"""

from __future__ import annotations

from airflow_provider_mzshare.errors import TerminalError, TransientError


class NotLive(TerminalError):
    """A table that was to be read or to take a name has stalled, or its source has: a retry is useless."""


class NotLiveYet(TransientError):
    """A table that was to be read or to take a name is not live yet: it will be later."""
