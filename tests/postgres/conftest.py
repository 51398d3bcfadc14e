# SPDX-License-Identifier: Apache-2.0
"""A server for a test, a database on it, and a cluster whose manager keeps its rows there."""

import pytest

from cluster import Cluster
from postgres import Server


@pytest.fixture(scope="module")
def shared():
    """One for the tests that leave it alone."""
    with Server() as server:
        yield server


@pytest.fixture
def server():
    """One to be killed."""
    with Server() as own:
        own.run("CREATE DATABASE cluster")
        yield own


@pytest.fixture
def cluster(server):
    with Cluster(ALIQUOT_MANAGER_DATABASE=server.uri("cluster")) as running:
        yield running


@pytest.fixture
def standby(server):
    """Streams from the server; not started."""
    other = Server()
    other.clone(server)
    yield other
    other.stop()
    other.__exit__()
