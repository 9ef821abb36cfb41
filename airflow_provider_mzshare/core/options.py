"""Options as statements write them: words, type and the field they stand for. Plain data: SQL reads and prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

OptionType = Literal["name", "text", "whole", "signed", "wholes", "duration"]
"""``name``: a text that names something, so it is neither empty nor too long. ``signed``: a whole number that may be
negative. ``wholes``: whole numbers in brackets. ``duration``: a text such as ``'500ms'``."""

OptionValue = str | int | float | tuple[int, ...]


@dataclass(frozen=True)
class Option:
    """:param words: as it is written: ``START OFFSET``.
    :param expected: what stands behind the words, in messages: ``a whole number``.
    :param field: of the spec, which says what values are allowed; empty where several options make one field.
    :param noun: what a ``name`` names, in messages: ``a topic``.
    :param milliseconds: of a ``duration``: how many milliseconds one unit of the field has.
    :param unit: of the field, in messages: `` seconds``.
    :param excludes: the words of an option that cannot be given beside it.
    :param argument: what operators call it, unless it is the words: ``start_offsets``.
    """

    words: str
    type: OptionType
    expected: str = "a whole number"
    field: str = ""
    noun: str = ""
    milliseconds: int = 1
    unit: str = ""
    required: bool = False
    excludes: str = ""
    argument: str = ""

    @property
    def name(self) -> str:
        """Its name as an argument in Python."""
        return self.argument or self.words.lower().replace(" ", "_")


def by_words(*options: Option) -> Mapping[str, Option]:
    return {option.words: option for option in options}
