# SPDX-License-Identifier: Apache-2.0
"""/logs/error: "backend.ai server-logs", and what web pages report of themselves."""

import json
import time

import pytest

from client import Client

REPORT = {"severity": "ERROR", "source": "webui", "message": "it broke", "context_lang": "en-US",
          "context_env": {"page": "sessions"}, "request_url": "/session/x", "request_status": 500,
          "traceback": "at line 1"}


def report(client, **changes):
    reply = client.post("/logs/error", {**REPORT, **changes})
    assert (reply.status, reply.json) == (200, {"success": True}), reply


def logs(client, **params):
    given = {"mark_read": False, "page_size": 20, "page_no": 1, **params}
    reply = client.get("/logs/error?" + "&".join(f"{k}={v}" for k, v in given.items()))
    assert reply.status == 200, reply
    return reply.json


def named(client, message, **params):
    return [log for log in logs(client, **params)["logs"] if log["message"] == message]


@pytest.fixture(scope="module", name="other")
def other_fixture(admin):
    """A user of another domain."""
    assert admin.post("/aliquot/v1/domains", {"name": "logs-other"}).status == 201
    assert admin.post("/aliquot/v1/users", {"email": "logs@lablup.com",
                                            "domain": "logs-other"}).status == 201
    key = admin.post("/aliquot/v1/keypairs", {"user": "logs@lablup.com"}).json
    return Client(admin.address, (key["access_key"], key["secret_key"]))


def test_a_report_is_listed(user, name):
    before = logs(user)["count"]
    report(user, message=name)
    shown = logs(user)
    assert shown["count"] == before + 1
    first = shown["logs"][0]
    assert list(first) == ["log_id", "created_at", "severity", "source", "user", "is_read",
                           "message", "context_lang", "context_env", "request_url",
                           "request_status", "traceback"]
    assert {key: first[key] for key in REPORT} == {**REPORT, "severity": "error", "message": name}
    assert abs(time.time() - first["created_at"]) < 600 and first["is_read"] is False
    report(user, message=name + "-2", request_url=None, request_status=None, traceback=None,
           context_env=[1, "x"])
    newest = logs(user, page_size=1)["logs"]
    assert [log["message"] for log in newest] == [name + "-2"]
    assert newest[0]["request_status"] is None and newest[0]["context_env"] == [1, "x"]
    assert named(user, name, page_size=1, page_no=2)


def test_reading_marks(user, name):
    report(user, message=name)
    assert named(user, name, mark_read=True)[0]["is_read"] is False
    assert named(user, name)[0]["is_read"] is True


def test_clearing(user, domain_admin, other, name):
    report(user, message=name)
    [log] = named(user, name)
    path = f"/logs/error/{log['log_id']}/clear"
    assert other.post(path).status == 404, "of another domain"
    assert user.post(path).json == {"success": True}
    assert named(user, name) == [] and user.post(path).status == 404
    for bad in ("x", "00000000-0000-4000-8000-000000000000"):
        assert user.post(f"/logs/error/{bad}/clear").json["title"] == "No such error log."
    report(user, message=name)
    [log] = named(user, name)
    assert domain_admin.post(f"/logs/error/{log['log_id']}/clear").status == 200


def test_who_sees_whose(user, domain_admin, admin, other, name):
    report(user, message=name)
    report(other, message=name)
    assert [len(named(client, name, page_size=100)) for client in
            (user, other, domain_admin, admin)] == [1, 1, 1, 2]


def test_few_of_a_user_are_kept(other):
    for n in range(205):
        report(other, message=f"many-{n}")
    shown = logs(other, page_size=100)
    assert shown["count"] == 200 and shown["logs"][0]["message"] == "many-204"


@pytest.mark.parametrize("changes, field", [
    ({"severity": "fatal"}, "severity"), ({"severity": None}, "severity"),
    ({"message": ""}, "message"), ({"message": "x" * 4097}, "message"),
    ({"context_env": {"x": "y" * 4096}}, "context_env"),
    ({"request_status": 99}, "request_status"), ({"traceback": "x" * 16385}, "traceback"),
    ({"more": 1}, "more")])
def test_bad_reports(user, changes, field):
    reply = user.post("/logs/error", {**REPORT, **changes})
    assert (reply.slug, list(reply.json["data"])) == ("invalid-api-params", [field]), reply


@pytest.mark.parametrize("query, field", [("page_size=101", "page_size"), ("page_no=0", "page_no"),
                                          ("mark_read=perhaps", "mark_read")])
def test_bad_pages(user, query, field):
    assert list(user.get("/logs/error?" + query).json["data"]) == [field]


def test_they_go_with_their_user(admin, name):
    email = "gone-logs@lablup.com"
    assert admin.post("/aliquot/v1/users", {"email": email, "domain": "default"}).status == 201
    key = admin.post("/aliquot/v1/keypairs", {"user": email}).json
    report(Client(admin.address, (key["access_key"], key["secret_key"])), message=name)
    assert named(admin, name, page_size=100)
    for purge in ("", "?purge=true"):
        reply = admin.delete(f"/aliquot/v1/users/{email}{purge}")
        assert reply.status in (200, 204), reply
    assert not named(admin, name, page_size=100)


def test_command_line(cluster, admin):
    for number in range(3):
        report(admin, message=f"typed {number}")
    ls = ("admin", "error-log", "ls")
    newest, older = json.loads(cluster.cli(
        *ls, "-n", "2", "-o", "json", "--columns", "log_id,created_at,message,traceback").stdout)
    assert (newest["message"], older["message"]) == ("typed 2", "typed 1")
    assert newest["created_at"].startswith("20") and newest["traceback"] == "at line 1"
    shown = cluster.cli(*ls, "-n", "1", "--page", "2")
    assert "typed 1" in shown.stdout and "the next: --page 3" in shown.stderr + shown.stdout
    assert cluster.cli("admin", "error-log", "clear", newest["log_id"],
                       older["log_id"]).returncode == 0
    assert not named(admin, "typed 2") and not named(admin, "typed 1")
    again = cluster.cli("admin", "error-log", "clear", newest["log_id"])
    assert again.returncode == 5 and "there is no such error log" in again.stderr
    for words in (("-n", "0"), ("-n", "101"), ("--page", "0")):
        assert "takes 1 to" in cluster.cli(*ls, *words).stderr
