"""Hashes of keys that collide: nearly every look-up of an index finds rows of other keys, too."""

from __future__ import annotations

import numpy as np
import pytest

from airflow_provider_mzshare.storage.collections.vectors import key_hashes


def collide(patch: pytest.MonkeyPatch) -> None:
    """From now on all keys share three hashes."""
    real = key_hashes.key_hashes
    patch.setattr(key_hashes, "key_hashes", lambda keys: real(keys) % np.uint64(3))
