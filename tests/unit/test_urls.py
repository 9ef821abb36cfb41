"""What people see of a URL."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.urls import shown_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://db/catalog", "postgresql://db/catalog"),
        ("postgresql://u:pw@db:5432/catalog?password=pw", "postgresql://…@db:5432/catalog"),
        ("postgresql+psycopg://u@[::1]:5432/c", "postgresql+psycopg://…@[::1]:5432/c"),
        ("postgresql://u:pw@a:1,b:2/c", "postgresql://…@a:1,b:2/c"),
        ("postgresql://u:p@w@db/catalog", "postgresql://…@db/catalog"),
        ("postgresql://u:p/w@db/catalog", "postgresql://…@db/catalog"),
        ("postgresql://u:p?w@db/catalog", "postgresql://…"),
        ("postgresql://db/c?password=p@w", "postgresql://…"),
        ("postgresql://u:pw", "postgresql://…"),
        ("s3://key:pw@bucket/a/b", "s3://…@bucket/a/b"),
        ("sqlite:////a b/%20?x@y", "sqlite:////a b/%20?x@y"),
        ("u:pw@db/catalog", "a text without ://"),
        ("u:pw@db://x", "a text without ://"),
        ("", "a text without ://"),
    ],
)
def test_nothing_of_who_logs_in_is_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown
