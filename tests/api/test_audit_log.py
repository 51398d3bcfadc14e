# SPDX-License-Identifier: Apache-2.0
"""GET /aliquot/v1/audit-log: who sees what of it, and what it can be asked."""

import pytest

from cluster import wait_for

NAME = "audit@lablup.com"  # whom no other test logs in
PASSWORD = "4udit-trail"
LOG = "/aliquot/v1/audit-log"
MEMBERS = {"seq", "at", "user", "user_id", "domain", "access_key", "address", "action",
           "object_kind", "object_id", "object_name", "object_domain", "outcome", "times", "detail",
           "request_id"}


def try_login(nobody, name, password="wrong"):
    return nobody.post("/auth/authorize", {"type": "keypair", "domain": "default",
                                           "username": name, "password": password})


def rows(client, query=""):
    reply = client.get(LOG + query)
    assert reply.status == 200, reply
    return reply.json["items"]


@pytest.fixture(scope="module", autouse=True)
def key(admin, nobody):
    """Of the user, who failed to log in once and then did."""
    made = admin.post("/aliquot/v1/users", {"email": NAME, "domain": "default",
                                            "password": PASSWORD})
    assert made.status == 201, made
    [key] = [row["access_key"] for row in admin.get("/aliquot/v1/keypairs?limit=1000").json["items"]
             if row["user"] == NAME]
    assert try_login(nobody, "audit-nobody@lablup.com").status == 401
    assert try_login(nobody, NAME).status == 401
    assert try_login(nobody, NAME, PASSWORD).status == 200
    wait_for(lambda: len(rows(admin, f"?user={NAME}")) == 2, 30, "two entries")
    return key


def test_a_login_is_an_entry(admin, key):
    row = rows(admin, f"?user={NAME}&limit=1")[0]
    assert set(row) == MEMBERS
    assert (row["action"], row["outcome"], row["times"]) == ("login", "ok", 1)
    assert row["domain"] == "default" and row["user_id"] and row["address"] == "127.0.0.1"
    assert row["access_key"] == key and row["detail"] is None
    assert rows(admin, f"?user={NAME}")[1]["outcome"] == "failed"


def test_a_name_that_does_not_exist_is_kept_as_it_was_tried(admin):
    row = rows(admin, "?user=audit-nobody@lablup.com")[0]
    assert row["outcome"] == "failed"
    assert row["user_id"] is row["domain"] is row["access_key"] is None


def test_a_domains_administrator_sees_its_users_only(admin, domain_admin):
    mine = rows(domain_admin)
    assert mine and {row["object_domain"] for row in mine} == {"default"}
    assert "audit-nobody@lablup.com" not in {row["user"] for row in mine}
    assert rows(domain_admin, "?filter=domain==%22other%22%20%7C%20user==%22audit-nobody@lablup.com%22") == []


def test_users_and_strangers_are_refused(user, nobody):
    assert user.get(LOG).status == 401
    assert nobody.get(LOG).status == 401


def test_it_can_be_narrowed_and_ordered(admin):
    mine = f"?user={NAME}"
    all_rows = rows(admin, mine)
    assert [row["seq"] for row in all_rows] == sorted((row["seq"] for row in all_rows), reverse=True)
    assert rows(admin, mine + "&order=seq")[0] == all_rows[-1]
    assert rows(admin, mine + "&since=1h") == rows(admin, mine + "&since=2000-01-01") == all_rows
    assert rows(admin, mine + "&since=2100-01-01") == rows(admin, mine + "&action=logout") == []
    assert rows(admin, mine + "&action=login&limit=1&offset=1") == all_rows[1:2]
    later = admin.get(f"{LOG}{mine}&filter=seq%3E{all_rows[-1]['seq']}").json
    assert later["total"] == len(all_rows) - 1


@pytest.mark.parametrize("query", ["?since=yesterday", "?filter=nope==1", "?order=detail",
                                   "?limit=0", "?colour=red"])
def test_what_cannot_be_asked_is_named(admin, query):
    assert admin.get(LOG + query).status == 400
