# SPDX-License-Identifier: Apache-2.0
"""Who may call what: signatures, replays, clock skew, every route for every role."""

import re
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest

from client import ADMIN, DOMAIN_ADMIN, USER, Client, iso_now, sign

RANK = {"public": 0, "user": 1, "admin": 2, "superadmin": 3}


def test_hello(nobody):
    reply = nobody.raw("GET", "/")
    assert reply.status == 200
    assert re.fullmatch(r"v\d+\.\d{8}", reply.json["version"]) and reply.json["manager"]
    assert reply.headers["Content-Type"].startswith("application/json")
    assert reply.headers["Server"] == "BackendAI"


def test_documentation(nobody, routes):
    html = nobody.raw("GET", "/", headers={"Accept": "text/html,*/*"})
    assert html.headers["Content-Type"].startswith("text/html")
    assert "/session/{name}" in html.body.decode()
    assert nobody.raw("GET", "/?routes").json["routes"] == routes
    assert len({(r["method"], r["path"]) for r in routes}) == len(routes)


def sent_by(cluster, who, route):
    client = Client(cluster.address, who)
    path = re.sub(r"\{\w+\}", "nobody-has-this", route["path"])
    if path == "/events/session":
        path += "?sessionId=00000000-0000-4000-8000-000000000000"
    return client.send(route["method"], path)


@pytest.mark.parametrize("who", ["nobody", "user", "domain-admin", "admin"])
def test_every_route_for_every_role(cluster, routes, who):
    key, rank = {"nobody": (None, 0), "user": (USER, 1), "domain-admin": (DOMAIN_ADMIN, 2),
                 "admin": (ADMIN, 3)}[who]
    for route in routes:
        if route["path"] in ("/auth/authorize", "/auth/update-password-no-auth"):
            continue  # says 401 for its own reasons
        reply = sent_by(cluster, key, route)
        may = rank >= RANK[route["access"]]
        assert reply.status != 500, (route["method"], route["path"], reply)
        if may:
            assert reply.status != 401, (route["method"], route["path"], reply)
        else:
            assert reply.slug in ("auth-failed", "invalid-auth-params"), (route, reply)
            assert reply.status == (401 if reply.slug == "auth-failed" else 400)


def test_unknown_paths_and_methods(user):
    assert user.get("/nothing/here").slug == "url-not-found"
    reply = user.send("PUT", "/session")
    assert reply.status == 405 and reply.slug == "method-not-allowed"
    assert "POST" in reply.headers["Allow"]


def headers(secret=USER[1], access_key=USER[0], path="/auth?echo=x", date=None,
            version="v6.20220315", host=None, method="GET", signed_type="text/plain"):
    date = date or iso_now()
    return {"Date": date, "X-BackendAI-Version": version, "Content-Type": "text/plain",
            "Authorization": "BackendAI signMethod=HMAC-SHA256, credential=%s:%s" % (
                access_key, sign(secret, method, path, date, host, signed_type, version))}


def ask(cluster, changed=None, drop=None, **more):
    client = Client(cluster.address, None)
    sent = headers(host=more.pop("host", client.host), **more)
    sent.update(changed or {})
    for key in drop or ():
        del sent[key]
    return client.raw("GET", "/auth?echo=x", headers=sent)


@pytest.mark.parametrize("change, status, slug, msg", [
    ({}, 200, "", None),
    ({"secret": "wrong"}, 401, "auth-failed", "Signature mismatch"),
    ({"access_key": "AKIAAAAAAAAAAAAAAAAA"}, 401, "auth-failed", "Access key not found"),
    ({"path": "/auth/role"}, 401, "auth-failed", "Signature mismatch"),
    ({"method": "POST"}, 401, "auth-failed", "Signature mismatch"),
    ({"host": "elsewhere:1"}, 401, "auth-failed", "Signature mismatch"),
    ({"signed_type": "application/json"}, 401, "auth-failed", "Signature mismatch"),
    ({"drop": ["Authorization"]}, 401, "auth-failed", "Unauthorized access"),
    ({"drop": ["Date"]}, 400, "invalid-auth-params", "Date/time sync error"),
    ({"changed": {"Date": "yesterday"}}, 400, "invalid-auth-params", "Date/time sync error"),
    ({"drop": ["X-BackendAI-Version"]}, 400, "invalid-auth-params", None),
    ({"changed": {"X-BackendAI-Version": "v99.20990101"}}, 400, "generic-bad-request",
     "Unsupported API version."),
    ({"changed": {"Authorization": "Bearer x"}}, 400, "invalid-auth-params", None),
    ({"changed": {"Authorization": "BackendAI"}}, 400, "invalid-auth-params", None),
    ({"changed": {"Authorization": "BackendAI signMethod=HMAC-SHA256"}}, 400,
     "invalid-auth-params", None),
    ({"changed": {"Authorization": "BackendAI signMethod=HMAC-SHA256, credential=x"}}, 400,
     "invalid-auth-params", None),
])
def test_signature(cluster, change, status, slug, msg):
    reply = ask(cluster, **change)
    assert (reply.status, reply.slug) == (status, slug), reply
    if msg:
        assert reply.json["msg"] == msg


@pytest.mark.parametrize("seconds, good", [(-880, True), (880, True), (-920, False), (920, False)])
def test_clock_skew(cluster, seconds, good):
    date = (datetime.now(timezone.utc) + timedelta(seconds=seconds)).isoformat()
    assert (ask(cluster, date=date).status == 200) == good


def test_date_without_fraction_and_other_forms(cluster):
    now = datetime.now(timezone.utc).replace(microsecond=0)
    assert ask(cluster, date=now.isoformat()).status == 200
    client = Client(cluster.address, None)
    date = format_datetime(now, usegmt=True)
    text = {"Date": date, "X-BackendAI-Version": "v6.20220315", "Content-Type": "text/plain"}
    # the day in the key derivation is the parsed date's
    import client as c
    key = c.hmac_sha256(c.hmac_sha256(USER[1].encode(), now.strftime("%Y%m%d")), client.host)
    canonical = "\n".join(["GET", "/auth?echo=x", date, "host:" + client.host,
                           "content-type:text/plain", "x-backendai-version:v6.20220315",
                           c.EMPTY_HASH])
    text["Authorization"] = "BackendAI signMethod=HMAC-SHA256, credential=%s:%s" % (
        USER[0], c.hmac_sha256(key, canonical).hex())
    assert client.raw("GET", "/auth?echo=x", headers=text).status == 200


def test_replays_of_what_changes_something(cluster):
    client = Client(cluster.address, USER)
    sent = client.headers("POST", "/auth", "application/json")
    assert client.raw("POST", "/auth", b'{"echo":"x"}', sent).status == 200
    again = client.raw("POST", "/auth", b'{"echo":"x"}', sent)
    assert (again.status, again.slug) == (401, "auth-failed")


def test_requests_without_content_type_sign_octet_stream(cluster):
    sock, _, head = Client(cluster.address, USER).stream("/auth?echo=x")
    sock.close()
    assert " 200 " in head.splitlines()[0]


def test_rate_headers(user, nobody, admin):
    reply = nobody.get("/config/resource-slots")
    assert reply.headers["X-RateLimit-Limit"] == "1000"
    assert reply.headers["X-RateLimit-Window"] == "900"
    made = admin.post("/aliquot/v1/keypairs", {"user": "user@lablup.com", "rate_limit": 3}).json
    client = Client(user.address, (made["access_key"], made["secret_key"]))
    left = [client.get("/auth?echo=x") for _ in range(5)]
    assert [r.status for r in left] == [200, 200, 200, 429, 429]
    assert [r.headers["X-RateLimit-Remaining"] for r in left] == ["2", "1", "0", "0", "0"]
    assert left[3].slug == "rate-limit-exceeded"
    assert admin.delete("/aliquot/v1/keypairs/" + made["access_key"]).status == 204
    assert client.get("/auth?echo=x").json["msg"] == "Access key not found"


def test_authorize(nobody):
    good = {"type": "keypair", "domain": "default", "username": "user@lablup.com",
            "password": "C8qnIo29"}
    reply = nobody.post("/auth/authorize", good)
    assert reply.status == 200
    assert reply.json["data"]["access_key"] == USER[0]
    assert reply.json["data"]["secret_key"] == USER[1]
    assert reply.json["data"]["role"] == "user"
    for change in ({"password": "wrong"}, {"username": "who@lablup.com"}, {"domain": "other"}):
        reply = nobody.post("/auth/authorize", {**good, **change})
        assert (reply.status, reply.slug) == (401, "auth-failed"), change
        assert reply.json["msg"] == "User credential mismatch."
    assert nobody.post("/auth/authorize", {**good, "type": "odd"}).slug == "invalid-api-params"


def test_roles(user, domain_admin, admin):
    assert user.get("/auth/role").json["global_role"] == "user"
    assert user.get("/auth/role?group=default").json["group_role"] == "user"
    assert user.get("/auth/role?group=other").json["group_role"] is None
    assert domain_admin.get("/auth/role").json["domain_role"] == "admin"
    assert admin.get("/auth/role").json["global_role"] == "superadmin"


def test_password_change(admin, nobody):
    assert admin.post("/aliquot/v1/users", {"email": "pw@lablup.com", "domain": "default",
                                            "password": "first-pw"}).status == 201
    made = admin.post("/aliquot/v1/keypairs", {"user": "pw@lablup.com"}).json
    client = Client(admin.address, (made["access_key"], made["secret_key"]))
    change = {"old_password": "first-pw", "new_password": "second-pw",
              "new_password2": "second-pw"}
    assert client.post("/auth/update-password", {**change, "old_password": "x"}).status == 401
    assert client.post("/auth/update-password", {**change, "new_password2": "x"}).status == 400
    assert client.post("/auth/update-password", change).status == 200
    login = {"type": "keypair", "domain": "default", "username": "pw@lablup.com"}
    assert nobody.post("/auth/authorize", {**login, "password": "first-pw"}).status == 401
    assert nobody.post("/auth/authorize", {**login, "password": "second-pw"}).status == 200


def test_frozen(admin, user):
    assert admin.send("PUT", "/manager/status", {"status": "frozen"}).status == 204
    try:
        reply = user.post("/session", {"name": "cold", "image": "sh"})
        assert (reply.status, reply.slug) == (503, "server-frozen")
        assert user.get("/aliquot/v1/sessions").status == 200
        assert user.get("/manager/status", ).json["status"] == "frozen"
    finally:
        assert admin.send("PUT", "/manager/status", {"status": "running"}).status == 204
    assert user.get("/manager/status").json["status"] == "running"


def test_announcement(admin, user):
    assert user.get("/manager/announcement").json == {"enabled": False, "message": ""}
    assert admin.post("/manager/announcement", {"enabled": True, "message": "hear"}).status == 204
    assert user.get("/manager/announcement").json == {"enabled": True, "message": "hear"}
    assert admin.post("/manager/announcement", {"enabled": False}).status == 204
    assert user.get("/manager/announcement").json["enabled"] is False
