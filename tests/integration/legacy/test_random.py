"""Any sequence of statements on old-style sources: definitions stay in step, and what is shown makes the same again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import items, legacy_sources
from airflow_provider_mzshare.control.sql.names import quote
from airflow_provider_mzshare.control.statements.handlers.show import create_sql
from airflow_provider_mzshare.control.statements.legacy.settling import current
from airflow_provider_mzshare.errors import MzShareError
from tests.support.old_style import OUTPUTS, OldStyle

NAMES = ["a", "b", "B", 'o"dd.$(x)', "🦊 {{ y }}", "c_source", "a_progress", "bids"]
SCHEMAS = ["public", "shop", "Sh.op"]


class Chance:
    """Statements at random, most of which make sense."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def statement(self) -> str:
        make = self._random.choice(
            [
                self._single, self._multi, self._multi, self._add, self._add, self._drop, self._drop, self._take,
                self._rename, self._rename, self._table, self._swap,
            ]
        )  # fmt: skip
        return make()

    def _name(self) -> str:
        return f"{quote(self._random.choice(SCHEMAS))}.{quote(self._random.choice(NAMES))}"

    def _progress(self) -> str:
        return f" EXPOSE PROGRESS AS {self._name()}" if self._random.random() < 0.3 else ""

    def _single(self) -> str:
        kind = self._random.choice(["COUNTER", "KEY VALUE"])
        return f"CREATE SOURCE {self._name()} FROM LOAD GENERATOR {kind} ENVELOPE NONE{self._progress()}"

    def _multi(self) -> str:
        chosen = self._random.sample(OUTPUTS, self._random.randint(1, 3))
        listed = ", ".join(f"{name} AS {self._name()}" if self._random.random() < 0.6 else name for name in chosen)
        outputs = self._random.choice(["ALL TABLES", "SCHEMAS (auction)", f"TABLES ({listed})"])
        column = f"{chosen[0]}.id"
        options = self._random.choice(["", f" WITH (TEXT COLUMNS ({column}))", f" WITH (EXCLUDE COLUMNS ({column}))"])
        return f"CREATE SOURCE {self._name()} FROM LOAD GENERATOR AUCTION FOR {outputs}{self._progress()}{options}"

    def _add(self) -> str:
        return f"ALTER SOURCE {self._name()} ADD SUBSOURCE {self._random.choice(OUTPUTS)} AS {self._name()}"

    def _take(self) -> str:
        return f"ALTER SOURCE {self._name()} DROP SUBSOURCE IF EXISTS {self._name()}, {self._name()} CASCADE"

    def _drop(self) -> str:
        return f"DROP SOURCE {self._name()}{self._random.choice(['', ' CASCADE'])}"

    def _rename(self) -> str:
        return f"ALTER SOURCE {self._name()} RENAME TO {quote(self._random.choice(NAMES))}"

    def _table(self) -> str:
        return f"CREATE TABLE {self._name()} FROM SOURCE {self._name()} (REFERENCE {self._random.choice(OUTPUTS)})"

    def _swap(self) -> str:
        one, other = self._random.sample(SCHEMAS, 2)
        return f"ALTER SCHEMA {quote(one)} SWAP WITH {quote(other)} FORCE"


def definitions(catalog: Catalog) -> list[object]:
    """All that is defined, and that each old-style definition says what there is."""
    found: list[object] = []
    with catalog.read() as session:
        for source in items.list_sources(session):
            progress = legacy_sources.progress_of(session, source.id)
            found.append((source.id, source.name, source.spec, progress and progress.name))
            if source.spec.legacy is not None:
                assert source.spec.legacy == current(session, source, source.spec.legacy)
        found += [(t.id, t.name, t.kind, t.source_id, t.spec) for t in items.list_tables(session)]
    return found


def old_style(catalog: Catalog) -> dict[items.Name, object]:
    """Of old-style sources alone, without ids."""
    with catalog.read() as session:
        return {
            source.name: (source.spec, sorted((t.name, t.spec) for t in items.list_tables(session, source.id)
                                              if t.kind != "table"))
            for source in legacy_sources.legacy_sources(session)
        }  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "count"),
    [(1, 80), pytest.param(2, 400, marks=pytest.mark.full), pytest.param(3, 400, marks=pytest.mark.full)],
)
def test_definitions_stay_in_step_and_make_the_same_again(old: OldStyle, tmp_path: Path, seed: int, count: int) -> None:
    chance, done = Chance(seed), 0
    old.sql('CREATE SCHEMA shop; CREATE SCHEMA "Sh.op"')
    before = definitions(old.catalog)
    for _ in range(count):
        text = chance.statement()
        try:
            old.sql(text)
        except MzShareError:
            assert definitions(old.catalog) == before, text
        else:
            done += 1
            before = definitions(old.catalog)
    assert done > count // 8

    with Catalog(f"sqlite:///{tmp_path / 'again.db'}") as catalog:
        catalog.upgrade()
        again = OldStyle(catalog)
        with old.catalog.read() as session:
            texts = [create_sql(session, source) for source in legacy_sources.legacy_sources(session)]
        assert texts
        for text in texts:
            again.sql(text)
        assert old_style(catalog) == old_style(old.catalog)
