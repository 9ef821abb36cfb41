"""What a registry knows, and when it imports it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from airflow_provider_mzshare.core.registry import Registry


def test_a_part_of_ours_is_imported_when_it_is_asked_for() -> None:
    registry: Registry[object] = Registry("shape", "mzshare.test_shapes", {"here": "json:dumps", "broken": "no_such:x"})
    assert list(registry) == ["here", "broken"]
    assert registry.get("here") is registry.get("here")
    with pytest.raises(ModuleNotFoundError):
        registry.get("broken")


def test_what_nobody_registered_is_named_with_what_there_is() -> None:
    registry: Registry[object] = Registry("shape", "mzshare.test_shapes", {"round": "json:dumps"})
    with pytest.raises(KeyError, match="there is no shape 'square'; there are: round"):
        registry.get("square")


def test_one_of_another_package_that_cannot_be_loaded_stops_nobody_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    registry: Registry[object] = Registry("shape", "mzshare.test_shapes", {"round": "json:dumps"})
    monkeypatch.setattr(registry, "targets", {**registry.targets, "square": "no_such:x"})
    assert list(registry.all()) == [registry.get("round")]
    assert "shape 'square' cannot be loaded: ModuleNotFoundError" in caplog.text
    with pytest.raises(ModuleNotFoundError):
        list(Registry("shape", "mzshare.test_shapes", {"broken": "no_such:x"}).all())


def test_another_package_registers_by_one_line_and_takes_no_name_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "their_shapes.py").write_text("class Square: ...\n")
    info = tmp_path / "their_shapes-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-shapes\nVersion: 1\n")
    lines = ["[mzshare.test_shapes]", "square = their_shapes:Square", "round = their_shapes:Square", ""]
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    registry: Registry[object] = Registry("shape", "mzshare.test_shapes", {"round": "json:dumps"})
    assert list(registry) == ["round", "square"]
    assert "their_shapes" not in sys.modules
    assert registry.get("square").__name__ == "Square"  # type: ignore[attr-defined]
    assert registry.get("round").__name__ == "dumps"  # type: ignore[attr-defined]
