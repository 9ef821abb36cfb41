"""How the formats of a plan read records. Reads no record itself."""

from __future__ import annotations

from airflow_provider_mzshare.formats.base import Format, ReadBatch
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan


class Readers:
    """How each format of a plan reads records; made when the first member of the format asks for it.

    So if a format cannot be loaded, only its own members fail.
    """

    def __init__(self, plan: FanoutPlan) -> None:
        self._plan = plan
        self._made: dict[str, ReadBatch] = {}
        self._of_keys: dict[str, ReadBatch] = {}

    def of(self, member: MemberPlan) -> ReadBatch:
        if member.format not in self._made:
            asked = [each.asked for each in self._plan.members if each.format == member.format]
            self._made[member.format] = member.decoder.reader(asked)
        return self._made[member.format]

    def of_key(self, member: MemberPlan, decoder: Format) -> ReadBatch:
        """How the key of a member is read, by its format."""
        if member.key_format not in self._of_keys:
            asked = [each.asked_of_key for each in self._plan.members if each.key_format == member.key_format]
            self._of_keys[member.key_format] = decoder.reader(asked)
        return self._of_keys[member.key_format]
