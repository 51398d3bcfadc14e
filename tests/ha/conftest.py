# SPDX-License-Identifier: Apache-2.0
"""A switch with a primary database and its standby, and managers on hosts beside them."""

import os

import pytest

from manager_lab import Load, Managers
from pgha import Pair
from switch import Switch

SPEC = {"cpu": "1", "mem": "64m", "cuda.shares": "0.1"}


@pytest.fixture
def switch():
    if os.geteuid() != 0:
        pytest.skip("only root can have hosts of namespaces")
    with Switch() as made:
        yield made


@pytest.fixture
def pair(switch):
    """The standby has all that was acknowledged."""
    with Pair(switch) as made:
        made.primary.run("CREATE DATABASE cluster")
        yield made


@pytest.fixture
def lagging(switch):
    """The standby may lack the last commits."""
    with Pair(switch, is_synchronous=False) as made:
        made.primary.run("CREATE DATABASE cluster")
        yield made


@pytest.fixture
def cluster(switch, pair):
    """Two managers and a hundred agents."""
    with Managers(switch, pair.uri("cluster")) as made:
        made.start()
        made.start_swarm(nodes=100, cores=64, gpus=4)
        yield made


@pytest.fixture
def load(cluster):
    """Clients that are at work; what they were told is compared with the cluster at the end."""
    made = Load(cluster, spec=SPEC)
    made.wait_created(50)
    yield made
    made.stop()
    cluster.wait_settled()
    cluster.swarm.wait_connected(120)
    made.check()
    cluster.check_sanitizers()
