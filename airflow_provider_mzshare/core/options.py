"""Options as statements write them: words, type and the field they stand for. Plain data.

The options of tables and of sources stand at the fields of ``TableSpec`` and ``SourceSettings`` (``core/specs.py``),
those of one kind of source in its kind. Grammar, binding, printing, comparison, operators, forms, relations and the
reference pages are made from them: a new option is one entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel

OptionType = Literal["name", "text", "whole", "signed", "wholes", "duration", "size", "boolean", "choice", "names"]
"""``name``: a text that names something, so it is neither empty nor too long. ``signed``: a whole number that may be
negative. ``wholes``: whole numbers in brackets. ``duration``: a text such as ``'500ms'``. ``size``: one
such as ``'10GB'``, of which the field holds the bytes. ``choice``: one of a few
texts. ``names``: names of columns in brackets."""

OptionValue = str | int | float | bool | tuple[int, ...] | tuple[str, ...]


@dataclass(frozen=True)
class Option:
    """:param words: as it is written: ``START OFFSET``.
    :param expected: what stands behind the words, in messages: ``a whole number``.
    :param field: of the spec, which says what values are allowed; empty where several options make one field.
    :param noun: what a ``name`` names, in messages: ``a topic``.
    :param preposition: a word that is written before the value: ``FOR`` of ``RETAIN HISTORY FOR '1 day'``.
    :param choices: of a ``choice``, as the field holds them.
    :param milliseconds: of a ``duration``: how many of them one unit of the field is.
    :param unit: of the field, in messages: `` seconds``.
    :param is_whole: of a ``duration``: the field holds whole units alone.
    :param excludes: the words of an option that cannot be given beside it.
    :param argument: what operators call it, unless it is the words: ``start_offsets``.
    :param of_journals: of a source: only one that is read from a journal can have it.
    :param changes: it can be changed later, and no row depends upon it.
    :param title: of its field in a form, unless it is the words.
    :param about: what it does, for forms and the reference.
    :param stored: what the field holds, for the catalog's relations.
    :param unset: what holds where it is not given, if no value of the field says so: ``no limit``.
    """

    words: str
    type: OptionType
    expected: str = "a whole number"
    field: str = ""
    noun: str = ""
    preposition: str = ""
    choices: tuple[str, ...] = ()
    milliseconds: int = 1
    unit: str = ""
    is_whole: bool = False
    required: bool = False
    excludes: str = ""
    argument: str = ""
    of_journals: bool = False
    changes: bool = False
    title: str = ""
    about: str = ""
    stored: str = ""
    unset: str = ""

    @property
    def name(self) -> str:
        """Its name as an argument in Python."""
        return self.argument or self.words.lower().replace(" ", "_")

    @property
    def all_words(self) -> str:
        """Up to the value: ``RETAIN HISTORY FOR``."""
        return f"{self.words} {self.preposition}" if self.preposition else self.words


def options_of(model: type[BaseModel]) -> Mapping[str, Option]:
    """The options that stand at a model's fields, by their words, in the order in which they are printed."""
    found = [
        replace(option, field=field)
        for field, info in model.model_fields.items()
        for option in info.metadata
        if isinstance(option, Option)
    ]
    return {option.words: option for option in found}
