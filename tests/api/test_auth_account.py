# SPDX-License-Identifier: Apache-2.0
"""What people do with their own account below /auth: leave, change their name."""

import re

import pytest

from client import Client
from cluster import wait_for

V1 = "/aliquot/v1"
PASSWORD, LATER = "long enough", "longer still"


@pytest.fixture
def account(admin, request):
    """A user of this test's own: its address, and a client with its keypair."""
    email = re.sub(r"[^a-z0-9]+", "-", request.node.name.replace("test_", "")) + "@lablup.com"
    made = admin.post(f"{V1}/users", {"email": email, "domain": "default", "password": PASSWORD,
                                      "full_name": "First Name"})
    assert made.status == 201
    key = admin.post(f"{V1}/keypairs", {"user": email}).json
    return email, Client(admin.address, (key["access_key"], key["secret_key"]))


def row(admin, email):
    rows = admin.get(f"{V1}/users?all=true&limit=1000").json["items"]
    return next(row for row in rows if row["email"] == email)


def login(nobody, email, password=PASSWORD):
    return nobody.post("/auth/authorize", {"type": "keypair", "domain": "default",
                                           "username": email, "password": password})


def renew(nobody, email, current=PASSWORD):
    return nobody.post("/auth/update-password-no-auth", {
        "domain": "default", "username": email, "current_password": current,
        "new_password": LATER})


def wait_audited(admin, email, action):
    return wait_for(lambda: [entry for entry in admin.get(
        f"{V1}/audit-log?limit=1000&action={action}").json["items"]
        if entry["user"] == email and entry["outcome"] == "ok"], 30, f"{action} in the audit log")


def test_a_full_name_is_changed_by_its_owner_alone(admin, account):
    email, client = account
    reply = client.post("/auth/update-full-name", {"email": email, "full_name": "Second Näme"})
    assert (reply.status, reply.json) == (200, {})
    assert row(admin, email)["full_name"] == "Second Näme"
    [entry] = wait_audited(admin, email, "update-full-name")
    assert (entry["address"], entry["domain"]) == ("127.0.0.1", "default") and entry["access_key"]
    for other in ("admin@lablup.com", "nobody-has-this@lablup.com"):
        reply = client.post("/auth/update-full-name", {"email": other, "full_name": "Third"})
        assert (reply.status, reply.slug) == (403, "generic-forbidden")
        assert reply.json["msg"] == "Not the account owner"
    reply = client.post("/auth/update-full-name", {"email": email, "full_name": "x" * 129})
    assert "full_name" in reply.json["data"]


def test_a_name_keeps_all_else_of_the_user(admin, account):
    email, client = account
    before = row(admin, email)
    assert client.post("/auth/update-full-name",
                       {"email": email, "full_name": "Other"}).status == 200
    assert row(admin, email) == {**before, "full_name": "Other"}


def test_the_last_superadmin_stays(admin):
    reply = admin.post("/auth/signout", {"email": "admin@lablup.com", "password": "wJalrXUt"})
    assert (reply.status, reply.slug) == (403, "generic-forbidden"), reply
    assert "would leave no active superadmin" in reply.json["msg"], reply
    assert admin.get("/auth?echo=x").status == 200


def test_signout_needs_the_password_and_ends_the_account(admin, nobody, account):
    email, client = account
    assert login(nobody, email).status == 200
    reply = client.post("/auth/signout", {"email": email, "password": "wrong"})
    assert (reply.status, reply.slug) == (401, "auth-failed")
    assert row(admin, email)["status"] == "active"
    reply = client.post("/auth/signout", {"email": "admin@lablup.com", "password": PASSWORD})
    assert (reply.status, reply.slug) == (403, "generic-forbidden")
    assert client.get("/auth?echo=x").status == 200
    reply = client.post("/auth/signout", {"username": email, "password": PASSWORD})
    assert (reply.status, reply.json) == (200, {})
    assert row(admin, email)["status"] == "inactive"
    assert client.get("/auth?echo=x").json["msg"] == "Access key not found"
    assert login(nobody, email).json["msg"] == "User credential mismatch."
    assert admin.send("PATCH", f"{V1}/users/{email}", {"status": "active"}).status == 200
    assert client.get("/auth?echo=x").status == 200


@pytest.mark.parametrize("status", ["inactive", "deleted"])
def test_who_is_not_active_is_answered_as_nobody(admin, nobody, account, status):
    email, client = account
    assert admin.send("PATCH", f"{V1}/users/{email}", {"status": status}).status == 200
    left, unknown = login(nobody, email), login(nobody, "nobody-" + email)
    assert (left.status, left.json) == (unknown.status, unknown.json)
    assert client.get("/auth?echo=x").json["msg"] == "Access key not found"


def test_before_verification_is_told_with_the_password_only(admin, nobody, account):
    email, client = account
    assert admin.send("PATCH", f"{V1}/users/{email}",
                      {"status": "before-verification"}).status == 200
    refused = login(nobody, email)
    assert (refused.status, refused.slug) == (401, "auth-failed")
    assert refused.json["msg"] == "This account needs email verification."
    wrong = nobody.post("/auth/authorize", {"type": "keypair", "domain": "default",
                                            "username": email, "password": "wrong"})
    assert wrong.json["msg"] == "User credential mismatch."
    assert client.get("/auth?echo=x").json["msg"] == "Access key not found"


def allow(admin, email, networks):
    return admin.send("PATCH", f"{V1}/users/{email}", {"allowed_client_ip": networks})


def test_a_user_is_let_in_from_allowed_addresses_alone(admin, nobody, account):
    email, client = account
    assert row(admin, email)["allowed_client_ip"] is None
    networks = ["10.0.0.0/8", "fd00::/8"]
    assert allow(admin, email, networks).json["allowed_client_ip"] == networks
    refused = client.get("/auth?echo=x")
    assert (refused.status, refused.slug) == (401, "auth-failed")
    assert refused.json["msg"] == "'127.0.0.1' is not allowed IP address"
    assert login(nobody, email).json["msg"] == "'127.0.0.1' is not allowed IP address"
    wrong = nobody.post("/auth/authorize", {"type": "keypair", "domain": "default",
                                            "username": email, "password": "wrong"})
    assert wrong.json["msg"] == "User credential mismatch.", "told to who knows the password"
    assert admin.send("PATCH", f"{V1}/users/{email}", {"full_name": "Kept"}).status == 200
    assert client.get("/auth?echo=x").status == 401, "other changes keep the list"
    for networks in (["127.0.0.0/8", "::1"], ["127.0.0.1"], [], ["any"]):
        assert allow(admin, email, networks).status == 200
        assert client.get("/auth?echo=x").status == 200, networks
        assert login(nobody, email).status == 200
    assert row(admin, email)["allowed_client_ip"] is None


@pytest.mark.parametrize("bad", ["10.0.0.0/99", "elsewhere", "10.0.0.1,10.0.0.2", "x" * 99],
                         ids=["bits", "word", "two", "long"])
def test_what_is_no_network_is_refused(admin, account, bad):
    reply = allow(admin, account[0], ["127.0.0.1", bad])
    assert (reply.status, reply.slug) == (400, "invalid-api-params")
    assert "is no network such as" in reply.json["data"]["allowed_client_ip"]


def test_allowed_addresses_by_graphql(admin, account):
    email, client = account
    change = """mutation($e: String!, $p: ModifyUserInput!) {
                modify_user(email: $e, props: $p) { ok msg user { allowed_client_ip } } }"""
    reply = admin.gql(change, {"e": email, "p": {"allowed_client_ip": ["10.0.0.0/8", "::1"]}})
    changed = reply.json["data"]["modify_user"]
    assert changed["ok"] and changed["user"]["allowed_client_ip"] == ["10.0.0.0/8", "::1"]
    assert client.get("/auth?echo=x").status == 401


def test_a_marked_user_must_change_the_password_before_the_next_login(admin, nobody, account):
    email, client = account
    assert row(admin, email)["need_password_change"] is False
    assert renew(nobody, email).json["msg"] == "the password has not expired; log in and change it"
    marked = admin.send("PATCH", f"{V1}/users/{email}", {"need_password_change": True})
    assert (marked.status, marked.json["need_password_change"]) == (200, True)
    refused = login(nobody, email)
    assert (refused.status, refused.slug) == (401, "password-expired")
    assert "must be changed" in refused.json["msg"]
    assert login(nobody, email, "wrong").slug == "auth-failed", "told to who knows the password"
    assert client.get("/auth?echo=x").status == 200, "keypairs go on"
    assert admin.send("PATCH", f"{V1}/users/{email}", {"full_name": "Kept"}).status == 200
    assert login(nobody, email).slug == "password-expired", "other changes keep the mark"
    assert renew(nobody, email, "wrong").slug == "auth-failed"
    assert renew(nobody, email).status == 201
    assert row(admin, email)["need_password_change"] is False
    assert login(nobody, email, LATER).status == 200
    [entry] = wait_audited(admin, email, "update-password")
    assert entry["user_id"] and entry["times"] == 1


def test_a_change_with_a_signature_takes_the_mark_as_well(admin, nobody, account):
    email, client = account
    assert admin.send("PATCH", f"{V1}/users/{email}",
                      {"need_password_change": True}).status == 200
    change = {"old_password": PASSWORD, "new_password": LATER, "new_password2": LATER}
    assert client.post("/auth/update-password", change).status == 200
    assert row(admin, email)["need_password_change"] is False
    assert login(nobody, email, LATER).status == 200
    wait_audited(admin, email, "update-password")
