"""What all tables of an app share: Spark, its scratch and the warehouse. Looked at to tell whose fault an error is."""

from __future__ import annotations

import re
import tempfile
from typing import TYPE_CHECKING

from airflow_provider_mzshare.errors import JobFailed, MzShareError
from airflow_provider_mzshare.storage.collections.faults import SparkLost, StorageFault, check_takes_files
from airflow_provider_mzshare.storage.fanout.fault_numbers import fault_of
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan
from airflow_provider_mzshare.storage.writing.passes import run_pass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_provider_mzshare.storage.writing.passes import Source

_EXCEPTION = re.compile(r"(?!pyspark\.|org\.apache\.spark\.)[\w.]+(Error|Exception|Exit)\b")
SCRATCH = "Spark's scratch"


class Machine:
    """:param root: the warehouse. ``scratch`` is where Spark keeps temporary files."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark, self._root = spark, root
        self.scratch = str(spark.sparkContext.getConf().get("spark.local.dir") or tempfile.gettempdir())

    def storage_fault(self, error: BaseException) -> StorageFault | None:
        """The StorageFault behind an error of a library, if the storage caused it."""
        if fault := fault_of(error):
            what, place = ("the warehouse", self._root) if isinstance(error, OSError) else (SCRATCH, self.scratch)
            return StorageFault(what, place, fault, short_reason(error))
        try:
            self.check_storage()
        except StorageFault as found:
            return found
        return None

    def check_storage(self) -> None:
        self.check_warehouse()
        check_takes_files(SCRATCH, self.scratch)

    def check_warehouse(self) -> None:
        """Raise when the warehouse as a whole takes no files: a full disk or a lost mount is no table's fault."""
        check_takes_files("the warehouse", self._root)

    def check_alive(self) -> None:
        """Raise when Spark itself is gone: only a new process helps then."""
        try:
            if not self._spark.sparkContext._jsc.sc().isStopped():
                return
            why = "Spark has stopped"
        except Exception as error:  # noqa: BLE001  told below
            why = f"Spark is gone: {short_reason(error)}"
        try:
            self.check_storage()
        except StorageFault as fault:
            raise SparkLost(f"{why}, and {fault.message}", hint=fault.hint) from fault
        raise JobFailed(why)

    def check_pass(self, source: Source | None) -> None:
        """Run the same read without any table. Raise if that fails too: then the cause is shared by all tables."""
        if source is None:
            return
        try:
            run_pass(self._spark, source, FanoutPlan(tick=0, members=()))
        except Exception as error:
            why = f"the pass over the records fails for every table: {short_reason(error)}"
            raise self.storage_fault(error) or JobFailed(why) from error


def short_reason(error: BaseException) -> str:
    """One line. Of a Python worker's traceback the last line says what happened."""
    if isinstance(error, MzShareError):
        return error.line
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = next((line for line in reversed(lines) if _EXCEPTION.match(line)), lines[0] if lines else "")
    return f"{type(error).__name__}: {told}"[:500]
