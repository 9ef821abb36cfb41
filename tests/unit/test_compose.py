"""docker-compose.yml holds what it promises: valid, pinned, local, and of the versions the rest of the project uses."""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from airflow_provider_mzshare import __version__
from airflow_provider_mzshare.compute.jars import pinned

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "tests" / "support" / "compose_schema.json").read_text())


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return loaded


def test_the_file_fits_the_schema(compose: dict[str, Any]) -> None:
    jsonschema.validate(compose, SCHEMA)


def test_docker_itself_accepts_the_file_where_it_can_be_asked(compose: dict[str, Any]) -> None:
    # A client without the compose plugin cannot be asked; then the file must at least fit the schema.
    docker = shutil.which("docker")
    if docker and subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode == 0:
        asked = [docker, "compose", "-f", str(ROOT / "docker-compose.yml"), "config", "-q"]
        ran = subprocess.run(asked, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
    else:
        jsonschema.validate(compose, SCHEMA)


@pytest.mark.parametrize(
    "mistake",
    [
        {"commands": ["sleep", "1"]},
        {"ports": [8080]},
        {"environment": {"PORT": 8080}},
        {"depends_on": {"kafka": {"condition": "healthy"}}},
        {"restart": "sometimes"},
        {"healthcheck": {"test": ["CMD", "true"], "interval": "10", "timeout": "1s", "retries": 1}},
    ],
)
def test_the_schema_finds_mistakes(compose: dict[str, Any], mistake: dict[str, Any]) -> None:
    wrong = copy.deepcopy(compose)
    wrong["services"]["airflow"] |= mistake
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, SCHEMA)


def test_it_offers_the_whole_stack(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert {"kafka", "postgres", "airflow", "spark-master"} <= services.keys()
    assert len([name for name in services if name.startswith("spark-worker")]) == 2
    assert "wal_level=logical" in services["postgres"]["command"]


def test_every_dependency_is_a_service_that_can_become_healthy(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for needed in service.get("depends_on", {}):
            assert "healthcheck" in compose["services"][needed]


def test_every_image_is_pinned(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert re.fullmatch(r"[a-z0-9/._-]+:\d+\.\d+[\w.-]*", service["image"]), f"{name}: {service['image']}"
    base = re.search(r"^FROM (\S+)", (ROOT / "docker" / "Dockerfile").read_text(), re.MULTILINE)
    assert base
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+", base[1])


def test_ports_are_published_on_this_machine_only(compose: dict[str, Any]) -> None:
    published = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert published
    hosts = [re.fullmatch(r"127\.0\.0\.1:(\d+):\d+", port) for port in published]
    assert all(hosts), published
    assert len({match[1] for match in hosts if match}) == len(published)


def test_named_volumes_are_declared_and_mounted_files_exist(compose: dict[str, Any]) -> None:
    used = set()
    for service in compose["services"].values():
        for mount in service.get("volumes", []):
            origin = mount.split(":")[0]
            if origin.startswith("."):
                assert (ROOT / origin).is_file(), origin
            else:
                used.add(origin)
    assert used == compose["volumes"].keys()


def test_every_password_comes_from_the_environment(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for key, value in service.get("environment", {}).items():
            if "PASSWORD" in key:
                assert re.fullmatch(r"\$\{[A-Z_]+:-\w+\}", value)
            for secret in re.findall(r"://\w+:([^@]+)@", value):
                assert secret.startswith("${"), key


def test_versions_agree_with_the_rest_of_the_project(compose: dict[str, Any]) -> None:
    broker = next(jar for jar in pinned(["kafka"]) if jar.module == "kafka_2.13")
    assert compose["services"]["kafka"]["image"] == f"apache/kafka:{broker.revision}"
    assert compose["services"]["airflow"]["image"] == f"mzshare:{__version__}"
    assert "\napache-airflow==3.3.2 " in (ROOT / "requirements.lock").read_text()
