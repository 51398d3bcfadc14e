# SPDX-License-Identifier: Apache-2.0
"""Everybody knows the keys of --dev: a state that has them lets nobody in by them without it."""

import json

import pytest

from client import ADMIN, DOMAIN_ADMIN, USER, Client
from cluster import Cluster

pytestmark = pytest.mark.gate

PASSWORDS = {"admin@lablup.com": "wJalrXUt", "domain-admin@lablup.com": "cWbsM_vB",
             "user@lablup.com": "C8qnIo29"}


@pytest.fixture(scope="module")
def cluster():
    """Served with --dev once, then an administrator is made, and it is served without."""
    with Cluster() as cluster:
        cluster.start_manager()
        cluster.made = cluster.client().post("/aliquot/v1/keypairs", {"user": "user@lablup.com"}).json
        cluster.programs.pop("manager").stop()
        done = cluster.run("aliquot-manager", "--state", cluster.folder / "manager", "--json", "init")
        assert done.returncode == 0, done.stderr
        cluster.fresh = json.loads(done.stdout)
        cluster.start_manager(dev=False)
        yield cluster
        cluster.stop()


@pytest.mark.parametrize("keypair", [ADMIN, DOMAIN_ADMIN, USER])
def test_published_keys_sign_nothing(cluster, keypair):
    reply = cluster.client(keypair).get("/auth?echo=x")
    assert (reply.status, reply.json["msg"]) == (401, "Access key not found")


@pytest.mark.parametrize("email", PASSWORDS)
def test_published_passwords_log_nobody_in(cluster, email):
    reply = cluster.client(None).post("/auth/authorize", {
        "type": "keypair", "domain": "default", "username": email, "password": PASSWORDS[email]})
    assert (reply.status, reply.slug) == (401, "auth-failed")


def test_the_log_says_what_to_do(cluster):
    log = cluster.log_of("manager")
    assert f"keypair {ADMIN[0]} is one of --dev" in log and "aliquot-manager init" in log


def test_other_keys_of_these_users_work(cluster):
    made = cluster.made
    own = Client(cluster.address, (made["access_key"], made["secret_key"]))
    assert own.get("/auth?echo=x").status == 200
    change = {"old_password": PASSWORDS["user@lablup.com"], "new_password": "not-published",
              "new_password2": "not-published"}
    assert own.post("/auth/update-password", change).status == 401, "the old one is published"


def test_the_new_administrator_removes_them(cluster):
    admin = cluster.client((cluster.fresh["access_key"], cluster.fresh["secret_key"]))
    for key in (ADMIN, DOMAIN_ADMIN, USER):
        assert admin.delete("/aliquot/v1/keypairs/" + key[0]).status == 204


def test_a_second_administrator_is_not_made(cluster):
    cluster.programs.pop("manager").stop()
    done = cluster.run("aliquot-manager", "--state", cluster.folder / "manager", "init")
    assert done.returncode != 0 and "has an administrator already" in done.stderr
    cluster.start_manager(dev=False)


def test_none_of_them_moves_in(cluster):
    admin = cluster.client((cluster.fresh["access_key"], cluster.fresh["secret_key"]))
    users = {row["email"]: row["id"] for row in admin.get("/aliquot/v1/users").json["items"]}
    admin.delete("/aliquot/v1/keypairs/" + USER[0])
    reply = admin.post("/aliquot/v1/import/backendai", {"tables": {"keypairs": [
        {"access_key": USER[0], "secret_key": USER[1], "user": users["user@lablup.com"]}]}})
    (item,) = reply.json["items"]
    assert item["status"] == "left" and "everybody knows this key" in item["note"]
