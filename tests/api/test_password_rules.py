# SPDX-License-Identifier: Apache-2.0
"""What [auth] asks of passwords: length, kinds of characters, and an age."""

import pytest

from client import ADMIN, Client
from cluster import Cluster, wait_for

V1 = "/aliquot/v1"
OLD, NEW = "Old passw0rd", "New passw0rd"


@pytest.fixture(scope="module")
def strict():
    with Cluster(ALIQUOT_AUTH_PASSWORD_MIN_LENGTH="10", ALIQUOT_AUTH_PASSWORD_CLASSES="3",
                 ALIQUOT_AUTH_MAX_PASSWORD_AGE="1s") as made:
        made.start_manager()
        yield made
        made.stop()


def add_user(cluster, email, password=OLD):
    return cluster.client(ADMIN).post(f"{V1}/users", {"email": email, "domain": "default",
                                                      "password": password})


def add_key(cluster, email):
    made = cluster.client(ADMIN).post(f"{V1}/keypairs", {"user": email}).json
    return Client(cluster.address, (made["access_key"], made["secret_key"]))


def login(cluster, email, password=OLD):
    return cluster.client(None).post("/auth/authorize", {
        "type": "keypair", "domain": "default", "username": email, "password": password})


def renew(cluster, email, current=OLD, new=NEW):
    return cluster.client(None).post("/auth/update-password-no-auth", {
        "domain": "default", "username": email, "current_password": current, "new_password": new})


@pytest.mark.parametrize("bad,why", [("Sh0rt one", "at least 10 characters"),
                                     ("Kürz 1üü", "at least 10 characters"),
                                     ("lowercaseonly", "at least 3 of"),
                                     ("lower and blank", "at least 3 of")])
def test_a_bad_password_is_refused_wherever_it_is_set(strict, bad, why):
    email = f"rules-{len(bad)}-{bad[:2].lower().encode().hex()}@lablup.com"
    refused = add_user(strict, email, bad)
    assert refused.status == 400 and why in refused.json["data"]["password"]
    assert add_user(strict, email).status == 201
    client = add_key(strict, email)
    refused = strict.client(ADMIN).send("PATCH", f"{V1}/users/{email}", {"password": bad})
    assert refused.status == 400 and why in refused.json["data"]["password"]
    refused = client.post("/auth/update-password",
                          {"old_password": OLD, "new_password": bad, "new_password2": bad})
    assert refused.status == 400 and why in refused.json["data"]["new_password"]
    refused = renew(strict, email, new=bad)
    assert refused.status == 400 and why in refused.json["data"]["new_password"]


def test_the_old_password_is_no_new_one(strict):
    assert add_user(strict, "same@lablup.com").status == 201
    for reply in (renew(strict, "same@lablup.com", new=OLD),
                  add_key(strict, "same@lablup.com").post(
                      "/auth/update-password", {"old_password": OLD, "new_password": OLD,
                                                "new_password2": OLD})):
        assert reply.status == 400 and reply.json["data"]["new_password"] == "is the old one"


def test_a_password_that_has_expired_must_be_changed(strict):
    email = "expired@lablup.com"
    assert add_user(strict, email).status == 201
    client = add_key(strict, email)
    refused = wait_for(lambda: (reply := login(strict, email)).status != 200 and reply, 30,
                       "the password to expire")
    assert (refused.status, refused.slug) == (401, "password-expired")
    assert client.get("/auth?echo=x").status == 200, "keypairs go on"
    wrong, unknown = login(strict, email, "wrong"), login(strict, "nobody@lablup.com", "wrong")
    assert (wrong.status, wrong.slug, wrong.json) == (401, "auth-failed", unknown.json)
    wrong, unknown = renew(strict, email, "wrong"), renew(strict, "nobody@lablup.com", "wrong")
    assert (wrong.status, wrong.json) == (unknown.status, unknown.json)
    assert wrong.json["msg"] == "User credential mismatch."
    changed = renew(strict, email)
    assert changed.status == 201 and changed.json["password_changed_at"]
    assert login(strict, email).slug == "auth-failed", "it is the old one no longer"
    assert login(strict, email, NEW).slug in ("", "password-expired")


def test_passwords_do_not_expire_by_default(cluster):
    refused = renew(cluster, "user@lablup.com", "C8qnIo29")
    assert (refused.status, refused.slug) == (400, "generic-bad-request")
    assert login(cluster, "user@lablup.com", "C8qnIo29").status == 200


def test_guesses_by_the_expired_way_wait_as_logins_do(strict):
    email = "guessed@lablup.com"
    assert add_user(strict, email).status == 201
    statuses = [renew(strict, email, f"guess-{n}").status for n in range(30)]
    assert set(statuses) == {401, 429}
    assert renew(strict, email).status == 429, "also with the right one, until the wait is over"
