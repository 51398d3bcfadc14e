# SPDX-License-Identifier: Apache-2.0
"""Reports as CSV: what is in them, what narrows and orders them, whose rows a caller gets."""

import csv
import io

import pytest

from client import DOMAIN_ADMIN, USER
from cluster import WAITS, batch

REPORTS = ("users", "sessions", "projects", "keypairs", "audit-logs")


def fetch(client, report, **body):
    reply = client.post(f"/export/{report}/csv", body)
    assert reply.status == 200, reply
    assert reply.headers["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(reply.body.decode(), newline="")))


def column(client, report, key, **body):
    return [list(row.values()) for row in fetch(client, report, fields=[key], **body)]


def test_which_there_are(admin):
    reports = {one["report_key"]: one for one in admin.get("/export/reports").json["reports"]}
    assert tuple(reports) == REPORTS
    for key, report in reports.items():
        assert admin.get("/export/reports/" + key).json == {"report": report}
        assert report["name"] and report["description"]
        header = admin.post(f"/export/{key}/csv", {}).body.decode().split("\r\n")[0]
        assert header == ",".join(field["name"] for field in report["fields"])
        kinds = {field["field_type"] for field in report["fields"]}
        assert kinds <= {"string", "uuid", "datetime", "boolean", "integer"}
    assert admin.get("/export/reports/none").status == 404
    assert admin.post("/export/none/csv", {}).status == 404


def test_users(admin):
    rows = {row["Email"]: row for row in fetch(admin, "users")}
    assert rows["admin@lablup.com"]["Role"] == "superadmin"
    assert rows["user@lablup.com"]["Status"] == "active"
    assert column(admin, "users", "email", filter={"role": ["superadmin"]}) == [
        ["admin@lablup.com"]]
    some = {"email": {"starts_with": "user@"}, "domain_name": {"equals": "default"}}
    assert column(admin, "users", "email", filter=some) == [["user@lablup.com"]]
    for test, value in (("contains", "ser@lab"), ("ends_with", "ser@lablup.com"),
                        ("i_equals", "USER@lablup.com"), ("i_contains", "SER@")):
        assert ["user@lablup.com"] in column(admin, "users", "email",
                                             filter={"email": {test: value}}), test
    others = column(admin, "users", "email", filter={"email": {"not_contains": "user@"}})
    assert others and ["user@lablup.com"] not in others
    down = column(admin, "users", "email", order=[{"field": "email", "direction": "DESC"}])
    assert down == sorted(down, reverse=True) and len(down) > 2
    assert column(admin, "users", "email", filter={"created_at": {"before": "2001-01-01T00:00:00Z"}}
                  ) == []
    for sign in ("%", "_", '"', "\\"):  # they mean themselves
        found = column(admin, "users", "email", filter={"email": {"contains": sign}})
        assert all(sign in email for [email] in found), (sign, found)


def test_what_needs_quotes(admin):
    email = "quotes@example.com"
    name = 'A "quoted", long name'
    made = admin.post("/aliquot/v1/users", {"email": email, "username": "quotes", "domain": "default",
                                            "full_name": name, "password": "long enough 1"})
    assert made.status == 201, made
    [row] = fetch(admin, "users", fields=["full_name", "email"],
                  filter={"username": {"equals": "quotes"}})
    assert row == {"Full Name": name, "Email": email}
    assert list(row) == ["Full Name", "Email"], "in the order that was asked for"
    assert admin.delete(f"/aliquot/v1/users/{email}").status == 200


def test_sessions(admin, user, name):
    body = batch(name, "true", **WAITS)
    assert user.post("/session", body).status == 201
    [row] = fetch(admin, "sessions", filter={"name": {"equals": name}, "status": ["PENDING"],
                                             "user": {"email": {"equals": "user@lablup.com"}}})
    assert (row["Type"], row["Status"], row["Access Key"]) == ("batch", "PENDING", USER[0])
    assert row["Slots"] == '{"cpu":"1000","mem":"67108864"}' and row["Terminated At"] == ""
    assert column(admin, "sessions", "name", filter={"user": {"username": {"equals": "nobody"}}}) == []
    assert user.delete(f"/session/{name}").status == 200
    assert column(admin, "sessions", "status", filter={"name": {"equals": name}}) == [["CANCELLED"]]


def test_more_rows_than_are_written_at_once(admin):
    names = [f"many-{i:04}" for i in range(900)]
    made = admin.post("/aliquot/v1/sessions", [batch(one, "true", **WAITS) for one in names])
    assert made.status == 201, made
    some = {"name": {"starts_with": "many-"}}
    assert column(admin, "sessions", "name", filter=some, order=[{"field": "name"}]) == [
        [one] for one in names]
    ids = [item["sessionId"] for item in made.json["items"]]
    assert admin.delete("/aliquot/v1/sessions", {"sessions": ids}).status == 200
    assert {row["Status"] for row in fetch(admin, "sessions", filter=some)} == {"CANCELLED"}


def test_no_secret_is_in_any(admin):
    for report in REPORTS:
        text = admin.post(f"/export/{report}/csv", {}).body.decode()
        assert USER[1] not in text and DOMAIN_ADMIN[1] not in text
    assert [USER[0]] in column(admin, "keypairs", "access_key", filter={"is_active": True})


def test_whose_rows(admin, domain_admin, user, nobody):
    assert admin.post("/aliquot/v1/domains", {"name": "elsewhere"}).status == 201
    assert admin.post("/aliquot/v1/groups", {"name": "far", "domain": "elsewhere"}).status == 201
    try:
        assert ["far"] in column(admin, "projects", "name")
        own = fetch(domain_admin, "projects")
        assert {row["Domain"] for row in own} == {"default"}
        for report in REPORTS:
            fetch(domain_admin, report)
    finally:
        assert admin.delete("/aliquot/v1/domains/elsewhere").status == 200
    for client in (user, nobody):
        for report in REPORTS:
            assert client.post(f"/export/{report}/csv", {}).status == 401
        assert client.get("/export/reports").status == 401


@pytest.mark.parametrize("body, field", (
    ({"fields": ["secret_key"]}, "fields"), ({"fields": 7}, "fields"),
    ({"fields": ["email"] * 65}, "fields"), ({"encoding": "euc-kr"}, "encoding"),
    ({"filter": []}, "filter"), ({"filter": {"password": {"equals": "a"}}}, "filter.password"),
    ({"filter": {"email": "a"}}, "filter.email"), ({"filter": {"email": {"near": "a"}}},
                                                   "filter.email.near"),
    ({"filter": {"email": {"equals": 1}}}, "filter.email.equals"),
    ({"filter": {"role": "user"}}, "filter.role"), ({"filter": {"role": [1]}}, "filter.role"),
    ({"filter": {"role": []}}, "filter.role"),
    ({"filter": {"created_at": {"during": "x"}}}, "filter.created_at.during"),
    ({"filter": {"created_at": {"after": "x"}}}, "filter"),
    ({"order": {}}, "order"), ({"order": [{"field": "uuid"}]}, "order"),
    ({"order": [{"field": "email", "direction": "up"}]}, "order"), ({"order": ["email"]}, "order"),
    ({"filter": {"email": {"contains": "x" * 5000}}}, "filter"), ({"color": "red"}, "color")))
def test_what_is_refused(admin, body, field):
    reply = admin.post("/export/users/csv", body)
    assert (reply.status, reply.slug) == (400, "invalid-api-params"), reply
    assert field in reply.json["data"], reply
