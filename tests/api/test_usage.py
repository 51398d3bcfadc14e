# SPDX-License-Identifier: Apache-2.0
"""GET /aliquot/v1/usage: what it takes, and whose rows it shows."""

import pytest

from client import Client

USAGE = "/aliquot/v1/usage?"


@pytest.mark.parametrize("query, field", [
    ("month=2026-13", "month"), ("month=2026-1", "month"), ("month=2026--1", "month"),
    ("month=202611&since=1d", "month"), ("month=999912", "month"), ("since=yesterday", "since"),
    ("since=2026-02-30", "since"), ("until=2026-02-28", "since"),
    ("since=2026-02-03&until=2026-02-01", "until"), ("since=2999-01-01", "since"),
    ("since=2020-01-01&until=2026-01-01", "since"), ("by=colour", "by"),
    ("project=nobody", "project"), ("user=nobody@lablup.com", "user")])
def test_what_cannot_be(admin, query, field):
    reply = admin.get(USAGE + query)
    assert (reply.slug, list(reply.json["data"])) == ("invalid-api-params", [field]), reply


@pytest.mark.parametrize("query", ["", "month=2026-02", "month=202602", "since=1d",
                                   "since=2026-02-01&until=2026-02-28", "since=20260201&until=20260201",
                                   "since=2026-02-01T00:00:00Z&until=2026-02-01T12:00:00Z"])
def test_what_can_be(admin, user, domain_admin, query):
    for client in (admin, user, domain_admin):
        for by in ("domain", "project", "user", "resource-group"):
            reply = client.get(f"{USAGE}{query}&by={by}")
            assert reply.status == 200 and reply.json["total"] == len(reply.json["items"]), reply


def test_times_that_were_asked_for(admin):
    shown = admin.get(USAGE + "since=2026-02-01&until=2026-02-28").json
    assert (shown["from"], shown["until"]) == ("2026-02-01T00:00:00+00:00",
                                               "2026-03-01T00:00:00+00:00")
    assert admin.get(USAGE + "month=2026-02").json == shown


def test_another_domain_is_not_seen(admin, domain_admin, user):
    assert admin.post("/aliquot/v1/domains", {"name": "usage-far"}).status == 201
    made = admin.post("/aliquot/v1/users", {"email": "usage-far@lablup.com", "domain": "usage-far",
                                            "role": "admin"})
    assert made.status == 201, made
    key = admin.post("/aliquot/v1/keypairs", {"user": "usage-far@lablup.com"}).json
    far = Client(admin.address, (key["access_key"], key["secret_key"]))
    assert far.get(USAGE + "since=30d&by=user").json["items"] == []
    for client, query in ((far, "user=user@lablup.com"), (far, "domain=default"),
                          (domain_admin, "user=usage-far@lablup.com"),
                          (domain_admin, "domain=usage-far"), (user, "domain=usage-far"),
                          (user, "user=domain-admin@lablup.com")):
        reply = client.get(USAGE + query)
        assert reply.slug == "invalid-api-params", (query, reply)
    assert user.get(USAGE + "user=user@lablup.com").status == 200
    assert admin.get(USAGE + "domain=usage-far").json["items"] == []
