# SPDX-License-Identifier: Apache-2.0
"""A join token makes a new agent; another machine's name takes one that was made for it."""

import pytest

from cluster import Cluster, wait_for


@pytest.fixture
def cluster():
    with Cluster(ALIQUOT_AGENTS_TIMEOUT="3s", ALIQUOT_AGENTS_HEARTBEAT="1s") as cluster:
        cluster.start_manager()
        cluster.start_agent("node1")
        yield cluster
        cluster.stop()


def join(cluster, name, where, **token):
    """With a token on standard input, as arguments are shown to all users of a machine."""
    made = cluster.client().post("/aliquot/v1/join-tokens", token).json["token"]
    return cluster.run("aliquot-agent", "--state", cluster.folder / where, "join", cluster.link, "-",
                       says=made + "\n", ALIQUOT_ID=name)


def stop_agent(cluster, name="node1"):
    cluster.programs.pop(name).stop()
    wait_for(lambda: not cluster.agent(name).get("connected"), what="the agent to be gone")


def check_refused(cluster):
    done = join(cluster, "node1", "thief")
    assert done.returncode != 0 and "aliquot agent token --agent node1" in done.stderr, done
    assert not (cluster.folder / "thief" / "agent.crt").exists()


def test_a_connected_agents_name_is_not_given_away(cluster):
    check_refused(cluster)
    assert cluster.agent("node1")["connected"]


def test_nor_is_that_of_an_agent_that_is_off_or_lost(cluster):
    stop_agent(cluster)
    check_refused(cluster)
    wait_for(lambda: cluster.client().get("/aliquot/v1/agents/node1").json["status"] == "LOST",
             what="the agent to be lost")
    check_refused(cluster)
    cluster.start_agent("node1")  # its certificate is good


def test_nor_is_that_of_an_agent_whose_certificate_was_revoked(cluster):
    """Its sessions are still its own."""
    agent = cluster.programs["node1"]
    agent.may_end = True
    assert cluster.client().post("/aliquot/v1/agents/node1/revoke", {}).status == 204
    assert agent.process.wait(60) == 3
    cluster.programs.pop("node1")
    check_refused(cluster)


def test_a_token_for_the_name_hands_it_over_and_both_sides_are_told(cluster):
    old = cluster.programs["node1"]
    old.may_end = True
    done = join(cluster, "node1", "heir", agent_id="node1")
    assert done.returncode == 0, done.stderr
    assert "this machine takes the place of an agent of this name" in done.stderr
    assert old.process.wait(60) == 3, "it is put out"
    assert "a machine has joined by this name" in cluster.log_of("node1")
    assert "agent 'node1' has joined again: its former certificates are revoked" in \
        cluster.log_of("manager")
    old.start()
    assert old.process.wait(60) == 3, "and not let in again"
    assert "revoked" in cluster.log_of("node1")
    cluster.programs.pop("node1")
    cluster.start_program("heir", *old.command[:-1], cluster.folder / "heir", ALIQUOT_ID="node1")
    wait_for(lambda: cluster.agent("node1").get("connected"), 60, "the heir")


def test_a_removed_agents_name_is_free(cluster):
    stop_agent(cluster)
    assert cluster.client().delete("/aliquot/v1/agents/node1").status == 204
    assert join(cluster, "node1", "next").returncode == 0


def test_a_join_that_was_not_used_yet_may_be_made_again(cluster):
    """As after a machine that broke down between its certificate and its first greeting."""
    assert join(cluster, "node2", "first").returncode == 0
    assert join(cluster, "node2", "second").returncode == 0
    cluster.start_program("first", *cluster.programs["node1"].command[:-1],
                          cluster.folder / "first", ALIQUOT_ID="node2").may_end = True
    assert cluster.programs["first"].process.wait(60) == 3, "its certificate is revoked"


def test_joining_without_a_token(cluster):
    done = cluster.run("aliquot-agent", "--state", cluster.folder / "none", "join", cluster.link, "-")
    assert done.returncode == 1 and "standard input has no token" in done.stderr, done
