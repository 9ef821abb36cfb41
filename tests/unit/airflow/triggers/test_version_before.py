"""Deferred triggers of the version before, as Airflow's database has them, still load."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.triggers.base import BaseTrigger

from airflow_provider_mzshare.core.registry import load
from tests.support.before import known


@pytest.mark.parametrize(("path", "arguments"), known()["triggers"], ids=lambda value: str(value).rpartition(".")[2])
def test_a_deferred_trigger_of_the_version_before_goes_on(path: str, arguments: dict[str, Any]) -> None:
    module, _, name = path.rpartition(".")
    trigger = load(f"{module}:{name}")(**arguments)
    assert isinstance(trigger, BaseTrigger)
    again, kept = trigger.serialize()
    assert again == path
    assert {name: kept[name] for name in arguments} == arguments
