"""Log entries that are put where there is none, or not at all; and the small files that they name.

Nothing here plans, retries at another version, or decides what an unclear answer means: whatever is neither "put" nor
"refused" is raised, and then only the log knows. Errors of storage are raised as OSError, with their number if they
have one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Literal
from uuid import uuid4

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError, PermissionDeniedError
from obstore.store import ObjectStore, from_url

from airflow_provider_mzshare.storage.collections.durability import flush_path, local_path
from airflow_provider_mzshare.storage.collections.log import LOG, entry_path, versions_named

Answer = Literal["put", "refused"]

STORES_KEPT = 256
FLUSHED_AT_ONCE = 8
_LISTED_AT_ONCE = 1000

_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""What a file system without hard links answers: FAT and exFAT by the first, FUSE and network disks by the others."""
_AT_FDCWD, _RENAME_NOREPLACE = -100, 1

_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)|\bOs \{\s*code: (\d+)")
"""The system's number, in either of the two ways in which obstore's messages show it."""
_NUMBERS: dict[type[Exception], int] = {
    NotFoundError: errno.ENOENT,
    PermissionDeniedError: errno.EACCES,
    NotImplementedError: errno.ENOTSUP,
}


def put_entry(uri: str, version: int, content: bytes) -> Answer:
    """Put a log entry unless there is one. Whatever is raised, the entry may be there, or may still arrive.

    Its bytes are on a local disk before it has its name; that the name stays, too, is up to ``flush``.

    :param content: unlike any other writer's, so that the writer can tell its own entry.
    """
    return put_if_absent(uri, entry_path(version), content)


def put_if_absent(uri: str, path: str, content: bytes) -> Answer:
    """The same of any file, by its path relative to ``uri``."""
    root = local_path(uri)
    created = _create_object(uri, path, content) if root is None else _create_file(Path(root, path), content)
    # Clients of S3 and NFS send again if an answer is lost, and then find what they have put themselves.
    return "put" if created or _read(uri, path) == content else "refused"


def list_entries(uri: str, from_version: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The versions from ``from_version`` on that have an entry, and those that have a checkpoint in any form."""
    root = local_path(uri)
    names = _names_of_objects(uri, from_version) if root is None else _names_of_files(root, from_version)
    entries, checkpoints = versions_named(names)
    return tuple(v for v in entries if v >= from_version), tuple(v for v in checkpoints if v >= from_version)


def write_file(uri: str, path: str, content: bytes) -> None:
    """Write a file that nothing names yet, under a name that no other file has. It is durable only after ``flush``.

    :param path: relative to the collection, whose own folder must be there: a disk may not be mounted.
    """
    root = local_path(uri)
    if root is None:
        with _as_os_errors(f"{uri}/{path}"):
            obstore.put(_store(uri), path, content, use_multipart=False)
        return
    for folder in reversed(_folders_of(path)[:-1]):
        with suppress(FileExistsError):
            os.mkdir(Path(root, folder))
    file = Path(root, path)
    with file.open("xb") as output:
        try:
            output.write(content)
            output.flush()
        except BaseException:
            file.unlink()
            raise


def flush(uri: str, paths: Iterable[str]) -> None:
    """Return once these files of a collection, and their names, are on the disk. Object stores answer only then."""
    root = local_path(uri)
    if root is None:
        return
    paths = list(paths)
    # Names come last: a name on the disk whose file is not would be a file with other bytes.
    folders = list({folder: None for path in paths for folder in _folders_of(path)})
    for names in (paths, folders):
        _flush_together([Path(root, name) for name in names])


def _flush_together(paths: Sequence[Path]) -> None:
    """What is asked for at once takes the disk little more than one of it: it writes its journal once."""
    waiting = [_flushers().submit(flush_path, path) for path in paths]
    wait(waiting)
    for one in waiting:
        one.result()


@lru_cache(1)
def _flushers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(FLUSHED_AT_ONCE, thread_name_prefix="mzshare-flush")


def _folders_of(path: str) -> list[str]:
    """The folders of a file up to the collection's own, which is the last."""
    return [str(folder) for folder in PurePosixPath(path).parents]


def _create_file(path: Path, content: bytes) -> bool:
    """Give ``path`` this content unless it exists; it never has a part of it. False if it exists."""
    # Hidden for everybody: Delta's own writers make names like this beside their entries.
    temporary = path.with_name(f".{path.name}.{uuid4()}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _name(temporary, path)
    except FileExistsError:
        return False
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
    return True


def _name(temporary: Path, path: Path) -> None:
    """Raises FileExistsError if the name is taken."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        rename_if_absent(temporary, path)


def rename_if_absent(source: Path, target: Path) -> None:
    """Rename in one step, or raise OSError: there is no second-best way, since a check beforehand proves nothing."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(source), None, str(target))
    names = os.fsencode(source), os.fsencode(target)
    if libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(_RENAME_NOREPLACE)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(source), None, str(target))


def _names_of_files(root: str, from_version: int) -> list[str]:
    """Those that sort behind all earlier versions: of a long log, few are looked at closely."""
    first = f"{from_version:020d}"
    return [name for name in os.listdir(Path(root, LOG)) if name >= first]


def _create_object(uri: str, path: str, content: bytes) -> bool:
    """False if the store says that there is one. It also says so in a conflict of two that both may come to nothing."""
    with _as_os_errors(f"{uri}/{path}"):
        try:
            obstore.put(_store(uri), path, content, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
    return True


def _read(uri: str, path: str) -> bytes:
    root = local_path(uri)
    if root is not None:
        return Path(root, path).read_bytes()
    with _as_os_errors(f"{uri}/{path}"):
        return bytes(obstore.get(_store(uri), path).bytes())


def _names_of_objects(uri: str, from_version: int) -> list[str]:
    """Also names that sort behind all versions, such as ``_last_checkpoint``."""
    # Sorts before every file of this version, and behind those of the version before.
    return names_of_objects(uri, LOG, after=f"{from_version:020d}")


def names_of_objects(uri: str, folder: str, *, after: str) -> list[str]:
    """The names in a folder that sort behind ``after``, of an object store."""
    with _as_os_errors(f"{uri}/{folder}"):
        pages = obstore.list(_store(uri), folder, offset=f"{folder}/{after}", chunk_size=_LISTED_AT_ONCE)
        return [found["path"].removeprefix(f"{folder}/") for page in pages for found in page]


def remove_object(uri: str, path: str) -> None:
    """From an object store; one that is gone already is no error."""
    with suppress(FileNotFoundError), _as_os_errors(f"{uri}/{path}"):
        obstore.delete(_store(uri), path)


@lru_cache(STORES_KEPT)
def _store(uri: str) -> ObjectStore:
    """The collection's folder. Set up from the environment, which means the same here as to delta-rs."""
    return from_url(uri)


@contextmanager
def _as_os_errors(place: str) -> Iterator[None]:
    try:
        yield
    except (BaseError, NotImplementedError) as error:
        # The rest of the message is a dump of the library's own values.
        said = str(error).partition("\n\nDebug source")[0]
        found = _SYSTEM_ERROR.search(str(error))
        number = int(found[1] or found[2]) if found else _NUMBERS.get(type(error))
        raise (OSError(number, said, place) if number else OSError(f"{place}: {said}")) from error
