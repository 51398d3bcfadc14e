# SPDX-License-Identifier: Apache-2.0
"""How many descriptors a test may have."""

import contextlib
import resource

import pytest


@contextlib.contextmanager
def many_files(count):
    """As many descriptors as may be had meanwhile; a machine with less than 'count' skips."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count:
        pytest.skip("needs many open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
