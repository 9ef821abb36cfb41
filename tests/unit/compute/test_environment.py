"""The environment of an app is built anew from an allow-list."""

from __future__ import annotations

import sys

from airflow_provider_mzshare.compute.launchers.environment import app_environment, checkout_root


def test_only_what_is_on_the_list_gets_through() -> None:
    caller = {
        "PATH": "/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "TZ": "UTC", "JAVA_HOME": "/java", "AWS_REGION": "eu",
        "MZSHARE_HOME": "/mz", "MZSHARE_CATALOG": "postgresql://u:p@h/d", "MZSHARE_API_TOKEN": "t",
        "AIRFLOW_HOME": "/a", "AIRFLOW__CORE__FERNET_KEY": "k", "AIRFLOW_CONN_KAFKA": "{}", "_AIRFLOW_X": "1",
        "SPARK_HOME": "/spark", "PYTHONSTARTUP": "x.py", "PYTHONPATH": "/elsewhere", "LD_PRELOAD": "x.so",
        "JAVA_TOOL_OPTIONS": "-javaagent:x", "SECRET": "s",
    }  # fmt: skip
    env = app_environment(caller, "ingest-1")
    expected = {"PATH", "HOME", "LC_ALL", "TZ", "JAVA_HOME", "AWS_REGION", "MZSHARE_HOME"}
    assert env.keys() - {"PYTHONPATH"} == expected | {"PYSPARK_PYTHON", "PYTHONUNBUFFERED", "MZSHARE_JOB_ID"}
    assert env["MZSHARE_JOB_ID"] == "ingest-1"
    assert env.get("PYTHONPATH", "") in ("", str(checkout_root()))


def test_spark_workers_run_this_python_unless_told_otherwise() -> None:
    assert app_environment({}, "j")["PYSPARK_PYTHON"] == sys.executable
    assert app_environment({"PYSPARK_PYTHON": "/py"}, "j")["PYSPARK_PYTHON"] == "/py"
