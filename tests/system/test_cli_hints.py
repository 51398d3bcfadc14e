# SPDX-License-Identifier: Apache-2.0
"""What the command line says to one who asked for too much, or typed another program's words."""

import pytest

from cluster import Cluster



@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="2") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.stop()


# ---- refusals ----

@pytest.mark.parametrize("words, says", [
    (["logs", "nobody"], "session 'nobody': no session of this owner matches 'nobody'"),
    (["agent", "drain", "nobody"], "agent 'nobody': there is no agent 'nobody'"),
    (["admin", "user", "rm", "no@example.com"], "there is no user 'no@example.com'"),
    (["admin", "keypair", "rm", "nokey"], "there is no keypair 'nokey'"),
    (["admin", "project", "create", "x", "--domain", "nowhere"], "there is no domain 'nowhere'"),
])
def test_what_is_missing_is_said_once(cluster, words, says):
    done = cluster.cli(*words)
    assert done.returncode == 5 and done.stderr.splitlines()[0] == f"aliquot: {says}", done.stderr
