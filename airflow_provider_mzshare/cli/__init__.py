"""The ``mzshare`` command."""
