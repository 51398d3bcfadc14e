# SPDX-License-Identifier: Apache-2.0
"""A keypair's own key for the SSH servers of sessions: made, given, shown and removed."""

import itertools

import pytest

from client import Client
from cluster import wait_for

V1, ROUTE = "/aliquot/v1", "/auth/ssh-keypair"
KEY = ("ssh-ed25519 "
       "AAAAC3NzaC1lZDI1NTE5AAAAILgn0v/o9KeGk4xWaCz4nh9qfb8Z0llgEYXbaYbiGVXp")
numbers = itertools.count(1)


@pytest.fixture
def account(admin):
    """A user of this test's own, with two keypairs: its address, and a client with each."""
    email = f"ssh{next(numbers)}@lablup.com"
    assert admin.post(f"{V1}/users", {"email": email, "domain": "default"}).status == 201
    keys = [admin.post(f"{V1}/keypairs", {"user": email}).json for _ in range(2)]
    return email, *(Client(admin.address, (key["access_key"], key["secret_key"])) for key in keys)


def shown(client):
    reply = client.get(ROUTE)
    assert reply.status == 200 and set(reply.json) == {"ssh_public_key"}
    return reply.json["ssh_public_key"]


def test_a_key_is_made_and_its_private_half_shown_once(admin, account):
    email, client, other = account
    assert shown(client) == ""
    made = client.send("PATCH", ROUTE)
    assert made.status == 200 and set(made.json) == {"ssh_public_key", "ssh_private_key"}
    public, private = made.json["ssh_public_key"], made.json["ssh_private_key"]
    assert public.startswith("ssh-ed25519 AAAA") and "\n" not in public
    assert private.startswith("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    assert private.endswith("\n-----END OPENSSH PRIVATE KEY-----\n")
    assert shown(client) == public and shown(other) == "", "each keypair has its own"
    assert client.gql("{ keypair { ssh_public_key } }").json["data"]["keypair"] == {
        "ssh_public_key": public}
    again = client.send("PATCH", ROUTE).json
    assert again["ssh_public_key"] != public and shown(client) == again["ssh_public_key"]
    [key] = [key for key in admin.get(f"{V1}/keypairs?limit=1000").json["items"]
             if key["access_key"] == client.keypair[0]]
    assert key["ssh_public_key"] == again["ssh_public_key"]
    wait_for(lambda: [entry for entry in admin.get(
        f"{V1}/audit-log?action=update-ssh-key").json["items"]
        if entry["user"] == email and entry["access_key"] == client.keypair[0]], 30, "an entry")


def test_ones_own_key(account):
    _, client, other = account
    given = client.post(ROUTE, {"pubkey": KEY + " me@home\n", "privkey": "kept by me"})
    assert (given.status, given.json) == (200, {"ssh_public_key": KEY,
                                                "ssh_private_key": "kept by me"})
    assert shown(client) == KEY
    assert client.post(ROUTE, {"pubkey": KEY}).json == {"ssh_public_key": KEY}
    removed = client.send("DELETE", ROUTE)
    assert (removed.status, removed.json) == (200, {"ssh_public_key": ""})
    assert shown(client) == "" and client.send("DELETE", ROUTE).status == 200


@pytest.mark.parametrize("bad,why", [
    ("", "must be a line"), ("hello", "must be a line"), ("ssh-ed25519 AAAA", "is no key of the type"),
    ("command=\"id\" " + KEY, "must be a line"), (KEY + "\n" + KEY, "more than one line"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA", "private key"), ("x" * 9000, "longer")])
def test_what_is_no_key_is_refused(account, bad, why):
    _, client, _ = account
    refused = client.post(ROUTE, {"pubkey": bad})
    assert (refused.status, refused.slug) == (400, "invalid-api-params")
    assert why in refused.json["data"]["pubkey"] and shown(client) == ""


def test_other_changes_of_the_keypair_keep_it(admin, account):
    _, client, _ = account
    assert client.post(ROUTE, {"pubkey": KEY}).status == 200
    assert admin.send("PATCH", f"{V1}/keypairs/{client.keypair[0]}",
                      {"rate_limit": 20000}).status == 200
    assert shown(client) == KEY and client.get("/auth?echo=x").status == 200


def test_nobody_without_a_signature(nobody):
    for method in ("GET", "PATCH", "POST", "DELETE"):
        assert nobody.send(method, ROUTE, {} if method == "POST" else None).status == 401


def test_the_command_line(cluster, account, tmp_path):
    _, client, _ = account

    def cli(*words):
        return cluster.run("aliquot", "ssh-key", *words, **cluster.cli_env(client.keypair))

    assert "make one" in cli("show").stderr
    path = tmp_path / "key"
    assert cli("create", path).returncode == 0
    assert path.stat().st_mode & 0o777 == 0o600 and "PRIVATE KEY" in path.read_text()
    assert cli("show").stdout == (tmp_path / "key.pub").read_text() == shown(client) + "\n"
    before = path.read_text()
    assert cli("create", path).returncode != 0 and path.read_text() == before
    (tmp_path / "own.pub").write_text(KEY + " me@home\n")
    assert cli("set", tmp_path / "own.pub").returncode == 0
    assert cli("show").stdout == KEY + "\n"
    refused = cli("set", path)
    assert refused.returncode != 0 and "is a private key" in refused.stderr
    assert cli("rm").returncode == 0 and shown(client) == ""
