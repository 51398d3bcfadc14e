# SPDX-License-Identifier: Apache-2.0
"""Files with holes."""

import os


def make_sparse(path, size):
    """A file with a little data at its begin and in its middle, and holes behind both."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as made:
        for at in (0, size // 2 // 4096 * 4096):
            made.seek(at)
            made.write(os.urandom(5000))
        made.truncate(size)
    assert is_sparse(path), "this file system has no holes"
    return path


def is_sparse(path):
    """It takes far less than its size."""
    return path.stat().st_blocks * 512 <= 64 << 10
