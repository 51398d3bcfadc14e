# SPDX-License-Identifier: Apache-2.0
"""What a user meets in the first hour: how a machine joins."""

import contextlib
import json
import re

import pytest

from cluster import Cluster
from world import Space

SMALL = ("-r", "cpu=1", "-r", "mem=32m")


@pytest.fixture(scope="module")
def cluster():
    with Cluster(TERM="xterm", LC_ALL="C.UTF-8", NO_COLOR="1", TZ="UTC-9") as cluster:
        cluster.start_manager()
        yield cluster
        cluster.stop()


def fine(done):
    assert done.returncode == 0, done
    return done.stdout


# ---- before a machine has joined ----

def test_a_cluster_without_machines_says_how_one_joins(cluster):
    fine(cluster.cli("session", "create", "-t", "early", *SMALL, "--", "true"))
    for words in (("session", "why", "early"), ("run", "--dry-run", *SMALL, "true")):
        said = fine(cluster.cli(*words, COLUMNS="1000"))
        assert "no machine has joined the cluster" in said and "aliquot agent token" in said, said
        assert "filter" not in said and "architecture" not in said, said
    fine(cluster.cli("rm", "early"))


def joins_with(done):
    assert done.returncode == 0, done
    return re.search(r"join (\S+) (\S+)$", done.stderr, re.M).groups()


def test_the_line_for_a_new_machine_has_the_address_of_the_link():
    """The API is on 127.0.0.1, and the link on another address: it is the one that is printed."""
    with Cluster() as other:
        port = other.link.rpartition(":")[2]
        other.link = f"127.0.0.3:{port}"
        other.start_manager()
        done = other.cli("agent", "token")
        where, token = joins_with(done)
        assert where == other.link and "[link] listen" in done.stderr
        assert token == done.stdout.split()[1]
        fine(other.run("aliquot-agent", "--state", other.folder / "agent", "join", where, token))
        other.stop()


@pytest.mark.parametrize("anything", ["0.0.0.0", "[::]"])
def test_a_link_on_all_addresses_is_named_as_the_manager_was(anything):
    with contextlib.closing(Space()) as network, Cluster() as other, network.entered():
        port = other.link.rpartition(":")[2]
        other.link = f"{anything}:{port}"
        done = other.run("aliquot-manager", "--state", other.folder / "manager", "--json", "init")
        keys = json.loads(done.stdout)
        other.start_manager(dev=False)
        env = dict(other.cli_env((keys["access_key"], keys["secret_key"])),
                   ALIQUOT_ENDPOINT="http://localhost:%d" % other.address[1])
        where, token = joins_with(other.run("aliquot", "agent", "token", **env))
        assert where == f"localhost:{port}"
        fine(other.run("aliquot-agent", "--state", other.folder / "agent", "join", where, token))
        other.stop()
