"""Airflow inside the test process. Import this before anything that imports airflow.

Airflow makes itself a home when it is imported; here it is one that goes with the session. The environment of the tests
is as before, so nobody else takes Airflow for configured.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from unittest import mock

HOME = tempfile.mkdtemp(prefix="mzshare-airflow-")
atexit.register(shutil.rmtree, HOME, ignore_errors=True)

with mock.patch.dict(os.environ, {"AIRFLOW_HOME": HOME, "_AIRFLOW__AS_LIBRARY": "1"}):
    import airflow.configuration
    import airflow.sdk  # noqa: F401
