"""The wheel alone is enough for a user: all of it is there, and it works without the checkout."""

from __future__ import annotations

import configparser
import json
import re
import zipfile
from pathlib import Path
from textwrap import indent

from airflow_provider_mzshare import __version__
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.kafka import Record, create_topic, produce
from tests.support.readme import Ran, Shell, blocks, commands
from tests.support.wheel import WheelEnv

ROOT = Path(__file__).parents[2]
MOVED = {"spark_apps": "airflow_provider_mzshare/spark_apps", "dags": "airflow_provider_mzshare/example_dags"}

SILENCE = 10.0
"""Seconds after which a user wants to know what is waited for."""

NOT_RUN = {
    "make demo": "tests/system interrupts it, and it takes six minutes",
    "make demo KEEP=1": "stays up until it is interrupted",
    "make test": "this is it",
    "make wheel": "the fixture has built it from the checkout",
    "pip install dist/*.whl": "the fixture has installed it, with the locked packages",
}
"""Commands of the README that cannot be run here, and why."""


def test_the_wheel_carries_the_package_the_spark_apps_and_the_dags(wheel: Path) -> None:
    carried = set(zipfile.ZipFile(wheel).namelist())
    wanted = {str(path.relative_to(ROOT)) for path in _files(ROOT / "airflow_provider_mzshare")}
    for folder, inside in MOVED.items():
        wanted |= {f"{inside}/{path.relative_to(ROOT / folder)}" for path in _files(ROOT / folder)}
    assert not wanted - carried
    assert "airflow_provider_mzshare/spark_apps/ingest.py" in carried
    assert {"airflow_provider_mzshare/py.typed", "airflow_provider_mzshare/compute/jars.json"} <= carried
    assert any(re.search(r"/migrations/versions/v\w+\.py$", name) for name in carried)


def test_the_wheel_carries_nothing_else(wheel: Path) -> None:
    info = f"airflow_provider_mzshare-{__version__}.dist-info"
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"airflow_provider_mzshare", info}
    assert f"{info}/licenses/LICENSE" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_the_wheel_registers_the_command_the_provider_and_the_dialect(wheel: Path) -> None:
    points = configparser.ConfigParser()
    points.read_string(_member(wheel, "entry_points.txt"))
    assert points["console_scripts"]["mzshare"] == "airflow_provider_mzshare.cli.main:main"
    assert "mzshare" in points["sqlglot.dialects"]
    assert points["apache_airflow_provider"]["provider_info"].endswith(":get_provider_info")
    assert "mzshare" in points["airflow.plugins"]
    assert "\nRequires-Python: >=3.10\n" in _member(wheel, "METADATA")


def test_the_installed_command_works_outside_the_checkout(wheel_env: WheelEnv) -> None:
    assert "Usage: mzshare" in wheel_env.run(["mzshare", "--help"])
    place = wheel_env.run(["python", "-c", "import airflow_provider_mzshare as p; print(p.__file__, p.__version__)"])
    file, version = place.split()
    assert Path(file).is_relative_to(wheel_env.folder)
    assert version == __version__


def test_the_installed_package_checks_its_jars(wheel_env: WheelEnv, jars: Path) -> None:
    assert "are the pinned ones" in wheel_env.run(["mzshare", "jars", "--check"], MZSHARE_JARS=str(jars))


def test_a_new_user_follows_the_readme(wheel_env: WheelEnv, kafka: EmbeddedKafka, jars: Path, tmp_path: Path) -> None:
    """Every command, in order, as it is written, in a fresh home and with nothing of the checkout."""
    create_topic(kafka, 2, name="orders")
    produce(kafka, "orders", [Record(order(number), partition=number % 2) for number in range(500)])
    (tmp_path / "shop.sql").write_text(blocks("sql")[0])
    given = {"MZSHARE_HOME": str(tmp_path / "home"), "MZSHARE_JARS": str(jars), "MZSHARE_MASTER": "local[2]"}
    shell = Shell(tmp_path, wheel_env.environment(**given), stated={"localhost:9092": kafka.bootstrap})
    ran: dict[str, Ran] = {}
    try:
        for command in commands():
            if command not in NOT_RUN:
                ran[command] = shell.run(command)
                assert ran[command].code == 0, ran[command]
                assert ran[command].out or ran[command].seconds < SILENCE, f"silent for long: {ran[command]}"
    finally:
        shell.run("mzshare stop shop")
    for left_out in NOT_RUN:
        assert left_out in set(commands()), f"the README no longer says {left_out!r}"
    (swapped,) = (step for command, step in ran.items() if "SWAP WITH" in command)
    assert "swapped with public.orders_v2" in swapped.out
    assert shell.run("mzshare read orders -o csv | head -1").out == "id,customer,amount,note\n"
    assert len(json.loads(shell.run("mzshare read orders -o json").out)) == 500
    assert sorted(row["amount"] for row in json.loads(shell.run("mzshare read amounts -o json").out)) == [
        number + 0.5 for number in range(500)
    ]
    assert json.loads(shell.run("mzshare status -o json").out)[0]["health"] == "stopped"
    dag, reading = blocks("python")
    (tmp_path / "reading.py").write_text(f"{reading}\nprint(orders.num_rows, orders.column_names, health)")
    assert shell.run("python reading.py").out == "500 ['id', 'customer', 'amount', 'note'] stopped\n"
    (tmp_path / "dag.py").write_text(
        f"from airflow.sdk import DAG\nwith DAG('d') as d:\n{indent(dag, '  ')}\nprint(d.task_ids)"
    )
    assert "add_amounts.verify" in shell.run(f"AIRFLOW_HOME={tmp_path}/airflow python dag.py").out


def order(number: int) -> bytes:
    made = {"id": number, "customer": f"c{number}", "amount": number + 0.5, "note": "hello"}
    return json.dumps(made).encode()


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def _member(wheel: Path, name: str) -> str:
    archive = zipfile.ZipFile(wheel)
    (full,) = (one for one in archive.namelist() if one.endswith(f".dist-info/{name}"))
    return archive.read(full).decode()
