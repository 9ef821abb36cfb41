"""Registries: what there is of each kind of part (connectors, formats, envelopes, launchers), by name.

A part of this package is one line in its registry; one of another package is one line in that package's entry points.
Nothing is imported before somebody asks for it. Standard library only: this travels to Spark's executors.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

log = logging.getLogger(__name__)

Part = TypeVar("Part")


def load(target: str) -> Any:
    """What ``module:attribute`` names."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


class Registry(Generic[Part]):
    """:param what: a part of this kind, in messages: ``format``.
    :param group: where other packages register theirs: ``mzshare.formats``.
    :param own: ``module:attribute`` of each part that comes with this package. Nobody else may take these names.
    """

    def __init__(self, what: str, group: str, own: Mapping[str, str]) -> None:
        self.what, self.group, self._own = what, group, dict(own)
        self._loaded: dict[str, Part] = {}

    @cached_property
    def targets(self) -> Mapping[str, str]:
        """``module:attribute`` by name; this package's first, in their order."""
        others = {found.name: found.value for found in sorted(entry_points(group=self.group), key=lambda e: e.name)}
        return {**self._own, **{name: target for name, target in others.items() if name not in self._own}}

    @property
    def own(self) -> tuple[str, ...]:
        """The names of this package's own parts."""
        return tuple(self._own)

    def get(self, name: str) -> Part:
        """KeyError, with what there is, when nobody has registered it."""
        if name not in self._loaded:
            if name not in self.targets:
                raise KeyError(f"there is no {self.what} {name!r}; there are: {', '.join(self.targets)}")
            self._loaded[name] = load(self.targets[name])
        return self._loaded[name]

    def __contains__(self, name: str) -> bool:
        return name in self.targets

    def __iter__(self) -> Iterator[str]:
        return iter(self.targets)

    def all(self) -> Iterator[Part]:
        """All parts that can be loaded. A part of another package that cannot be loaded is logged, and left out."""
        for name in self:
            try:
                part = self.get(name)
            except Exception as error:
                if name in self._own:
                    raise
                log.warning("%s %r cannot be loaded: %s: %s", self.what, name, type(error).__name__, error)
                continue
            yield part
