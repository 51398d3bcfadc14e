# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line as it is on PyPI, from 22.03 to 26.9: what administrators type about
domains, projects, users, keypairs, policies and resource groups.
"""

import pytest

import real_client
from client import ADMIN, USER, Client

V1 = "/aliquot/v1"
YES = "y\n"
VERSIONS = ("22.3.2", "23.9.10", "26.9.6")


@pytest.fixture
def name(request, folder):
    """Of this test and client, for rows that are to be made."""
    return f"{request.node.originalname[5:9]}{folder.name[:2]}"


def row(cluster, kind, key, value):
    rows = cluster.client(ADMIN).get(f"{V1}/{kind}?all=true&limit=1000").json["items"]
    return next((row for row in rows if row[key] == value), None)


@pytest.mark.backendai("admin domain add", "admin domain info", "admin domain list",
                       "admin domain update", "admin domain delete", "admin domain purge")
def test_domain(cluster, bai, name):
    assert name in bai.does("admin", "domain", "add", name, "-d", "Dept")
    assert "Dept" in bai.does("admin", "domain", "info", name)
    assert name in bai.does("admin", "domain", "list")
    assert "exists already" in bai.fails("admin", "domain", "add", name)
    bai.does("admin", "domain", "update", name, "--description", "Better",
             "--total-resource-slots", '{"cpu": "8"}', "--allowed-docker-registries", "quay.io")
    bai.does("admin", "domain", "update", name, "--description", "Best")
    shown = row(cluster, "domains", "name", name)
    assert (shown["description"], shown["total_slots"], shown["registries"]) == (
        "Best", {"cpu": "8"}, ["quay.io"])
    bai.does("admin", "domain", "update", name, "--new-name", name + "-new")
    assert row(cluster, "domains", "name", name) is None
    assert row(cluster, "domains", "name", name + "-new")["description"] == "Best"
    assert "cannot be renamed" in bai.fails("admin", "domain", "update", "default", "--new-name", "x")
    bai.does("admin", "domain", "update", name + "-new", "--new-name", name)
    bai.does("admin", "domain", "delete", name)
    assert row(cluster, "domains", "name", name)["is_active"] is False
    bai.does("admin", "domain", "purge", name, answer=YES)
    assert row(cluster, "domains", "name", name) is None
    assert "there is no domain" in bai.fails("admin", "domain", "delete", name)


@pytest.mark.backendai("admin group add", "admin group list", "admin group info",
                       "admin group update", "admin group add-users", "admin group remove-users",
                       "admin group delete", "admin group purge")
def test_group(cluster, bai, name):
    assert name in bai.does("admin", "group", "add", "default", name, "-d", "Lab")
    gid = row(cluster, "groups", "name", name)["id"]
    assert gid in bai.does("admin", "group", "list")
    assert name in bai.does("admin", "group", "info", gid)
    bai.does("admin", "group", "update", gid, "-d", "Laboratory")
    assert row(cluster, "groups", "id", gid)["description"] == "Laboratory"
    user = row(cluster, "users", "email", "user@lablup.com")["id"]
    bai.does("admin", "group", "add-users", gid, user)
    assert name in row(cluster, "users", "id", user)["projects"]
    bai.does("admin", "group", "remove-users", gid, user)
    assert name not in row(cluster, "users", "id", user)["projects"]
    assert "there is no user" in bai.fails("admin", "group", "add-users", gid, "nobody")
    bai.does("admin", "group", "delete", gid)
    assert row(cluster, "groups", "id", gid)["is_active"] is False
    bai.does("admin", "group", "purge", gid, answer=YES)
    assert row(cluster, "groups", "id", gid) is None


@pytest.mark.backendai("admin user add", "admin user info", "admin user list",
                       "admin user update", "admin user delete", "admin user purge")
def test_user(cluster, bai, name):
    email = name + "@example.com"
    assert email in bai.does("admin", "user", "add", "default", email, "long enough", "-u", name,
                             "-n", "A B")
    assert name in bai.does("admin", "user", "info", "-e", email)
    listed = bai.json("admin", "user", "list")["items"][0]
    assert listed["email"] == email, "the newest comes first"
    assert listed["full_name"] == "A B" and listed["status"] == "active"
    key = row(cluster, "keypairs", "user", email)
    assert key["policy"] == "default"
    logged = cluster.client(None).post("/auth/authorize", {
        "type": "keypair", "domain": "default", "username": email, "password": "long enough"})
    assert logged.json["data"]["access_key"] == key["access_key"]
    bai.does("admin", "user", "update", email, "-n", "C D")
    assert row(cluster, "users", "email", email)["full_name"] == "C D"
    bai.does("admin", "user", "update", email, "-s", "inactive")
    assert row(cluster, "users", "email", email)["status"] == "inactive"
    assert "shorter" in bai.fails("admin", "user", "add", "default", "b" + email, "pass")
    bai.does("admin", "user", "delete", email)
    assert row(cluster, "users", "email", email)["status"] == "deleted"
    bai.does("admin", "user", "purge", email, answer=YES)
    assert row(cluster, "users", "email", email) is None


@pytest.mark.backendai("admin keypair add", "admin keypair list", "admin keypair info", "admin keypair deactivate",
                       "admin keypair activate", "admin keypair update", "admin keypair delete")
def test_keypair(cluster, bai):
    made = bai.does("admin", "keypair", "add", "user@lablup.com", "default", "-r", "0")
    words = dict(line.split(None, 1) for line in made.splitlines() if len(line.split()) == 2)
    key = (words["access_key"], words["secret_key"])
    assert Client(cluster.address, key).get("/auth?echo=x").status == 200
    assert key[0] in bai.does("admin", "keypair", "list")
    assert all(text in bai.does("admin", "keypair", "info") for text in ("admin@lablup.com", *ADMIN))
    bai.does("admin", "keypair", "deactivate", key[0])
    assert row(cluster, "keypairs", "access_key", key[0])["is_active"] is False
    bai.does("admin", "keypair", "activate", key[0])
    assert row(cluster, "keypairs", "access_key", key[0])["is_active"] is True
    bai.does("admin", "keypair", "update", key[0], "--rate-limit", "77")
    assert row(cluster, "keypairs", "access_key", key[0])["rate_limit"] == 77
    bai.does("admin", "keypair", "delete", key[0])
    assert row(cluster, "keypairs", "access_key", key[0]) is None
    assert "there is no keypair" in bai.fails("admin", "keypair", "delete", key[0])


@pytest.mark.backendai("admin keypair-resource-policy add", "admin keypair-resource-policy list",
                       "admin keypair-resource-policy info",
                       "admin keypair-resource-policy update",
                       "admin keypair-resource-policy delete")
def test_policy(cluster, bai, name):
    policy = ("admin", "keypair-resource-policy")
    assert name in bai.does(*policy, "add", name)
    assert name in bai.does(*policy, "list")
    assert "1800" in bai.does(*policy, "info", name)
    bai.does(*policy, "update", name, "--max-concurrent-sessions", "5")
    saved = row(cluster, "keypair-policies", "name", name)
    assert (saved["max_concurrent_sessions"], saved["idle_timeout_sec"]) == (5, 1800)
    bai.does(*policy, "delete", name, answer=YES)
    assert row(cluster, "keypair-policies", "name", name)["is_active"] is False
    assert "restore or purge it" in bai.fails(*policy, "add", name)


OLD = ("22.3.2", "23.9.10")


@pytest.mark.backendai("admin scaling-group add", "admin scaling-group list",
                       "admin scaling-group info", "admin scaling-group update",
                       "admin scaling-group delete")
@pytest.mark.backendai("admin scaling-group associate-scaling-group", versions=("22.3.2", "23.9.10"))
@pytest.mark.backendai("admin scaling-group associate-scaling",
                       "admin scaling-group dissociate-scaling", versions=("26.9.6",))
def test_scaling_group(cluster, bai, version, name):
    end = "-group" if version in OLD else ""
    group, admin = ("admin", "scaling-group"), cluster.client(ADMIN)
    usable = lambda: {"name": name} in admin.get("/scaling-groups?group=default").json[  # noqa: E731
        "scaling_groups"]
    assert name in bai.does(*group, "add", name, "--driver", "static", "--scheduler", "fifo",
                            "--driver-opts", '{"x": 1}')
    assert name in bai.does(*group, "list")
    assert "fifo" in bai.does(*group, "info", name)
    bai.does(*group, "update", name, "-d", "Night", "--scheduler", "drf")
    saved = row(cluster, "resource-groups", "name", name)
    assert (saved["description"], saved["scheduler"], saved["driver_opts"]) == (
        "Night", "drf", {"x": 1})
    assert "success" in bai.does(*group, "associate-scaling" + end, name, "default") and usable()
    dissociate = (*group, "dissociate-scaling" + end, name, "default")
    if version in OLD:
        assert "KeyError: 'scaling_group'" in bai.fails(*dissociate)
    else:
        assert "is dissociated from domain default" in bai.says(*dissociate)
    assert not usable()
    assert "there is no domain" in bai.fails(*group, "associate-scaling" + end, name, "none")
    bai.does(*group, "delete", name)
    assert row(cluster, "resource-groups", "name", name)["is_active"] is False


def test_others_are_refused(cluster, server, name):
    bai = real_client.RealClient(server, cluster.address, USER)
    assert "no permission to execute create_domain" in bai.fails("admin", "domain", "add", name)
    assert row(cluster, "domains", "name", name) is None
    assert "no permission to execute modify_user" in bai.fails(
        "admin", "user", "update", "user@lablup.com", "-r", "superadmin")
    assert row(cluster, "users", "email", "user@lablup.com")["role"] == "user"
