# SPDX-License-Identifier: Apache-2.0
"""A further manager joins a cluster on a server: what it is given, and who may give it."""

import json
import stat

import pytest

from managers import FILES, TOKENS, join, make_token, managers, modes

SECRETS = ("PRIVATE KEY", "postgresql://")


def assert_joined(cluster, state):
    """The folder has what the leader's has, and nothing that others can read."""
    folder, leader = cluster.folder / state, cluster.folder / "manager"
    assert modes(folder) == {name: 0o600 for name in FILES}
    assert stat.S_IMODE((folder / "ca").stat().st_mode) == 0o700
    for name in ("aliquot.db.key", "ca/ca.key", "ca/ca.crt"):
        assert (folder / name).read_bytes() == (leader / name).read_bytes()


@pytest.fixture
def leader(cluster):
    cluster.start_manager(ALIQUOT_MANAGER_NAME="first")
    yield cluster
    cluster.stop()


@pytest.mark.gate
def test_a_manager_joins(leader, server):
    made = leader.cli("admin", "manager", "token", "--name", "second", "-o", "json")
    assert made.returncode == 0, made
    token = json.loads(made.stdout)["token"]
    done = join(leader, "second", token, "--name", "second")
    assert done.returncode == 0 and "manager 'second' has joined" in done.stdout, done
    assert_joined(leader, "second")
    assert (leader.folder / "second/database").read_text() == server.uri("cluster") + "\n"
    assert (leader.folder / "second/name").read_text() == "second\n"
    there = managers(leader)
    assert list(there) == ["first", "second"]
    assert there["first"]["role"] == "leader" and there["first"]["connected"]
    assert there["first"]["epoch"] >= 1 and there["first"]["since"]
    assert there["second"]["role"] == "standby" and not there["second"]["connected"]
    assert there["second"]["epoch"] is None and there["second"]["heard"] is None
    # It needs no further setting: its programs find the database and the key.
    info = leader.run("aliquot-manager", "--state", leader.folder / "second", "--json", "db",
                      "info", ALIQUOT_MANAGER_DATABASE="")
    assert info.returncode == 0 and json.loads(info.stdout)["epoch"] >= 1, info
    # Keys and address are in no log, and in no output.
    for text in (done.stdout, done.stderr, leader.log_of("manager")):
        assert not any(secret in text for secret in SECRETS), text
    listed = leader.cli("manager", "ls")
    assert listed.returncode == 0 and "second" in listed.stdout and "standby" in listed.stdout


def test_tokens(leader):
    """A token is good once, for the name and the kind that it was made for."""
    named, any_name = make_token(leader, "second"), make_token(leader)
    agents = leader.client().post(TOKENS, {}).json["token"]
    for token, name in ((named, "third"), (agents, "third"), (agents, "second")):
        done = join(leader, "refused", token, "--name", name)
        assert done.returncode == 1, done
        assert modes(leader.folder / "refused") == {}
    assert "made for it: 'aliquot admin manager token --name second'" in done.stderr, done
    # None of these was used up.
    assert join(leader, "second", named, "--name", "second").returncode == 0
    done = join(leader, "again", named, "--name", "second")
    assert done.returncode == 1 and "unknown, used, expired" in done.stderr, done
    assert join(leader, "third", any_name, "--name", "third").returncode == 0
    assert set(managers(leader)) == {"first", "second", "third"}
    # It does not take the name of a manager that is there, and stays good.
    any_name = make_token(leader)
    done = join(leader, "thief", any_name, "--name", "third")
    assert done.returncode == 1 and "there is a manager called 'third'" in done.stderr, done
    assert "--name" in done.stderr, done
    assert join(leader, "fourth", any_name, "--name", "fourth").returncode == 0
    assert join(leader, "third-again", make_token(leader, "third"), "--name",
                "third").returncode == 0
    assert set(managers(leader)) == {"first", "second", "third", "fourth"}
    # Nor does it make an agent.
    token = make_token(leader)
    done = leader.run("aliquot-agent", "--state", leader.folder / "agent", "join", leader.link,
                      token, ALIQUOT_ID="a")
    assert done.returncode != 0 and "token" in done.stderr, done


def test_expired(leader):
    token = make_token(leader, "second")
    leader.jump(wall=7200)
    done = join(leader, "second", token, "--name", "second")
    assert done.returncode == 1 and "the join token has expired" in done.stderr, done
    # By the leader's clock alone, too.
    done = join(leader, "second", token, "--name", "second",
                ALIQUOT_CLOCK_FILE=str(leader.folder / "own-clock"))
    assert done.returncode == 1 and "unknown, used, expired" in done.stderr, done
    leader.jump()
    assert "second" not in managers(leader)


def test_refused(leader):
    token = make_token(leader)
    done = join(leader, "x", token, "--name", "first")
    assert done.returncode == 1 and "name of the manager that leads" in done.stderr, done
    done = join(leader, "x", token, "--name", "a b")
    assert done.returncode == 1 and "manager.name" in done.stderr, done
    done = join(leader, "x", token, "--name", "b", ALIQUOT_LINK_ADVERTISE="host:port")
    assert done.returncode == 1 and "link.advertise" in done.stderr, done
    done = join(leader, "manager", token, "--name", "b")  # the leader's own folder
    assert done.returncode == 1 and "has a cluster already" in done.stderr, done
    (leader.folder / "authority" / "ca").mkdir(parents=True)
    done = join(leader, "authority", token, "--name", "b")
    assert done.returncode == 1 and "authority' has a cluster already (ca)" in done.stderr, done
    assert "--state" in done.stderr, done
    # All of it left the token good.
    assert join(leader, "x", token, "--name", "b").returncode == 0
    reply = leader.client().post(TOKENS, {"manager": "c", "expires_sec": 86401})
    assert reply.status == 400 and "24 hours" in str(reply.json), reply
    told = leader.cli("admin", "manager", "token", "--name", "c", "--expires", "25h")
    assert "--expires: a token for a manager" in told.stderr, told
    told = leader.run("aliquot-manager", "--state", leader.folder / "c", "join", leader.link)
    assert "'join' takes HOST[:PORT] of a manager and TOKEN" in told.stderr, told


def test_removed(leader):
    assert join(leader, "b", make_token(leader, "b"), "--name", "b").returncode == 0
    client = leader.client()
    assert client.delete("/aliquot/v1/managers/nobody").status == 404
    assert client.delete("/aliquot/v1/managers/first").status == 409
    done = leader.cli("manager", "rm", "--yes", "b")
    assert done.returncode == 0, done
    assert list(managers(leader)) == ["first"]
    # It joins again with another token, and an empty folder.
    assert join(leader, "b2", make_token(leader, "b"), "--name", "b").returncode == 0
    assert list(managers(leader)) == ["b", "first"]
    reply = client.post("/aliquot/v1/managers/yield", {})
    assert reply.status == 409 and "no other manager is connected" in reply.json["msg"], reply
    reply = client.post("/aliquot/v1/managers/yield", {"to": "b"})
    assert reply.status == 409 and "not connected" in reply.json["msg"], reply
    assert client.post("/aliquot/v1/managers/yield", {"to": "nobody"}).status == 404
