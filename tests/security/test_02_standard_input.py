# SPDX-License-Identifier: Apache-2.0
"""What a program gets as standard input is a pipe of its own, never a device of the node."""

import os

import pytest

from cluster import Cluster
from runtimes import RUNTIMES, run, settings_of

LOOK = "for fd in 0 1 2; do readlink /proc/self/fd/$fd; done; chmod 0666 /proc/self/fd/0"


@pytest.fixture(params=RUNTIMES, scope="module")
def cluster(request):
    with Cluster(**settings_of(request.param)) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


def seen(path):
    found = os.stat(path)
    return found.st_uid, found.st_gid, found.st_mode


def test_a_program_owns_no_device_of_the_node(cluster):
    before = seen("/dev/null")
    shown, log = run(cluster, LOOK)
    assert [name.partition(":")[0] for name in log.split()] == ["pipe"] * 3, (shown, log)
    assert seen("/dev/null") == before


def test_standard_input_is_empty(cluster):
    shown, log = run(cluster, "wc -c")
    assert log.split() == ["0"], shown
