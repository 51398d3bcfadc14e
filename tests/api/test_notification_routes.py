# SPDX-License-Identifier: Apache-2.0
"""Channels and rules of notifications: what is refused, what is kept, and what nobody is shown."""

import json
import uuid

import pytest

N = "/notifications"
HOOK = {"url": "https://hooks.example.org/x"}
MAIL = {"smtp": {"host": "smtp.example.org", "port": 587},
        "message": {"from_email": "a@example.org", "to_emails": ["b@example.org"]}}


def without(spec, *path):
    copy = json.loads(json.dumps(spec))
    place = copy
    for word in path[:-1]:
        place = place[word]
    del place[path[-1]]
    return copy


def mail(**more):
    return {word: {**MAIL.get(word, {}), **more.get(word, {})} for word in {*MAIL, *more}}


def make(admin, kind="webhook", spec=None, **more):
    return admin.post(N + "/channels", {"name": "n", "channel_type": kind,
                                        "spec": HOOK if spec is None else spec, **more})


@pytest.fixture
def channel(admin):
    made = make(admin)
    assert made.status == 201, made
    yield made.json["channel"]
    for rule in admin.get("/aliquot/v1/notification-rules").json["items"]:
        admin.delete(f"{N}/rules/{rule['id']}")
    assert admin.delete(f"{N}/channels/{made.json['channel']['id']}").status == 200


def rule(admin, channel, **more):
    return admin.post(N + "/rules", {"name": "r", "rule_type": "session.terminated",
                                     "channel_id": channel["id"], "message_template": "x", **more})


@pytest.mark.parametrize("field, kind, spec", [
    ("channel_type", "pigeon", HOOK),
    ("spec.url", "webhook", {}),
    ("spec.url", "webhook", {"url": "ftp://example.org"}),
    ("spec.url", "webhook", {"url": "http://127.0.0.1:8081/"}),
    ("spec.url", "webhook", {"url": "http://me@example.org/"}),
    ("spec.method", "webhook", {**HOOK, "method": "DELETE"}),
    ("spec.content_type", "webhook", {**HOOK, "content_type": "a\r\nX: y"}),
    ("spec.content_type", "webhook", {**HOOK, "content_type": "ä"}),
    ("spec.headers", "webhook", {**HOOK, "headers": {"X": "a\r\nY: b"}}),
    ("spec.headers", "webhook", {**HOOK, "headers": {"X Y": "a"}}),
    ("spec.headers", "webhook", {**HOOK, "headers": {"": "a"}}),
    ("spec.headers", "webhook", {**HOOK, "headers": {"host": "a"}}),
    ("spec.headers", "webhook", {**HOOK, "headers": {"content-LENGTH": "7"}}),
    ("spec.headers", "webhook", {**HOOK, "headers": {f"x{n}": "a" for n in range(21)}}),
    ("spec.timeout", "webhook", {**HOOK, "timeout": 301}),
    ("spec.success_status_codes", "webhook", {**HOOK, "success_status_codes": [99]}),
    ("spec.success_status_codes", "webhook", {**HOOK, "success_status_codes": [200] * 33}),
    ("spec.smtp", "webhook", {**HOOK, **MAIL}),
    ("spec.url", "email", {**HOOK, **MAIL}),
    ("spec.smtp", "email", without(MAIL, "smtp")),
    ("spec.message", "email", without(MAIL, "message")),
    ("spec.smtp.host", "email", without(MAIL, "smtp", "host")),
    ("spec.smtp.host", "email", mail(smtp={"host": "a b"})),
    ("spec.smtp.host", "email", mail(smtp={"host": "10.0.0.1"})),
    ("spec.smtp.host", "email", mail(smtp={"host": "localhost"})),
    ("spec.smtp.port", "email", mail(smtp={"port": 0})),
    ("spec.message.from_email", "email", mail(message={"from_email": "nobody"})),
    ("spec.message.from_email", "email", mail(message={"from_email": "a@b>\r\nRCPT TO:<c"})),
    ("spec.message.to_emails", "email", mail(message={"to_emails": []})),
    ("spec.message.to_emails", "email", mail(message={"to_emails": ["a@b.c", "<a@b.c>"]})),
    ("spec.message.subject_template", "email", mail(message={"subject_template": "a\r\nBcc: x"})),
    ("spec.message.subject_template", "email", mail(message={"subject_template": "{{ x }}"})),
    ("spec.auth", "email", mail(smtp={"use_tls": False}, auth={"username": "a", "password": "b"})),
    ("spec.auth.password", "email", mail(auth={"username": "a"})),
    ("spec.auth.password", "email", mail(auth={"username": "a", "password": "sealed:x"})),
    ("spec.headers", "webhook", {**HOOK, "headers": {"X": "sealed:" + "QUFB" * 20}}),
    ("spec.auth.username", "email", mail(auth={"password": "a"})),
])
def test_what_no_channel_can_be(admin, field, kind, spec):
    reply = make(admin, kind, spec)
    assert (reply.status, reply.slug) == (400, "invalid-api-params"), reply
    assert list(reply.json["data"]) == [field]


@pytest.mark.parametrize("template", [
    "{{ colour }}", "{{ session_name | upper }}", "{{ session_name", "{{ }}", "{{ 'x' }}",
    "{% if status %}x{% endif %}", "{# x #}", "{{ session_name.x }}", "{{- session_name }}",
    "fine {{ status }} then {{"])
def test_what_no_template_can_be(admin, channel, template):
    reply = rule(admin, channel, message_template=template)
    assert list(reply.json["data"]) == ["message_template"], reply
    made = rule(admin, channel).json["rule"]
    reply = admin.send("PATCH", f"{N}/rules/{made['id']}", {"message_template": template})
    assert list(reply.json["data"]) == ["message_template"], reply
    spec = mail(message={"subject_template": template})
    assert list(make(admin, "email", spec).json["data"]) == ["spec.message.subject_template"]


def test_what_no_rule_can_be(admin, channel):
    for field, value in (("rule_type", "session.odd"), ("rule_type", "endpoint.lifecycle.changed"),
                         ("channel_id", str(uuid.uuid4()))):
        reply = rule(admin, channel, **{field: value})
        assert (reply.status, list(reply.json["data"])) == (400, [field]), reply
    made = rule(admin, channel).json["rule"]
    assert list(rule(admin, {"id": made["id"]}).json["data"]) == ["channel_id"]
    assert list(rule(admin, channel, rule_type="session.started",
                     message_template="{{ termination_reason }}").json["data"]) == ["message_template"]
    reply = admin.delete(f"{N}/channels/{channel['id']}")
    assert reply.status == 400 and "uses the channel" in reply.json["msg"], reply
    assert admin.get(f"{N}/channels/{made['id']}").status == 404
    assert admin.get(f"{N}/rules/{channel['id']}").status == 404
    reply = admin.post(f"{N}/rules/{made['id']}/validate", {"notification_data": {"status": 5}})
    assert list(reply.json["data"]) == ["notification_data"], reply


def test_search(admin, channel):
    for name, more in (("Alpha", {}), ("beta", {"enabled": False})):
        assert rule(admin, channel, name=name, **more).status == 201
    rule(admin, channel, name="gamma", rule_type="session.started")

    def names(**body):
        reply = admin.post(N + "/rules/search", body)
        assert reply.status == 200, reply
        return [row["name"] for row in reply.json["rules"]]

    assert names() == ["Alpha", "beta", "gamma"]
    for tests, found in (({"contains": "a"}, ["Alpha", "beta", "gamma"]),
                         ({"i_starts_with": "a"}, ["Alpha"]), ({"starts_with": "a"}, []),
                         ({"ends_with": "ta", "equals": None}, ["beta"]),
                         ({"not_equals": "beta"}, ["Alpha", "gamma"]),
                         ({"i_not_contains": "ALPHA"}, ["beta", "gamma"])):
        assert names(filter={"name": tests}) == found, tests
    assert names(filter={"enabled": False}) == ["beta"]
    assert names(filter={"rule_types": ["session.started"]}) == ["gamma"]
    assert rule(admin, channel, name="delta", rule_type="session.idle_warning",
                message_template="soon").status == 201
    assert names() == ["Alpha", "beta", "gamma"]
    assert names(filter={"rule_types": ["session.idle_warning"]}) == ["delta"]
    assert "delta" in [row["name"] for row in admin.get(
        "/aliquot/v1/notification-rules").json["items"]]
    assert names(order=[{"field": "name", "direction": "desc"}]) == ["gamma", "beta", "Alpha"]
    reply = admin.post(N + "/rules/search", {"limit": 1, "offset": 1})
    assert [row["name"] for row in reply.json["rules"]] == ["beta"]
    assert reply.json["pagination"] == {"total": 3, "offset": 1, "limit": 1}
    for body, field in (({"filter": {"name": {"odd": "x"}}}, "filter"),
                        ({"filter": {"name": {"equals": 5}}}, "filter"),
                        ({"order": [{"field": "odd"}]}, "order"), ({"order": 5}, "order"),
                        ({"order": [{"field": "name", "direction": "up"}]}, "order")):
        reply = admin.post(N + "/rules/search", body)
        assert (reply.status, list(reply.json["data"])) == (400, [field]), reply


def test_secrets_are_in_no_answer_and_no_entry(admin, cluster):
    spec = mail(auth={"username": "robot", "password": "Hush-channel-1"})
    made = make(admin, "email", spec).json["channel"]
    hook = make(admin, spec={**HOOK, "headers": {"Authorization": "Hush-channel-2"}}).json["channel"]
    assert hook["spec"]["headers"] == {"Authorization": None}
    fresh = {**spec, "auth": {"username": "robot", "password": "Hush-channel-3"}}
    assert admin.send("PATCH", f"{N}/channels/{made['id']}", {"spec": fresh}).status == 200
    entries = admin.get("/aliquot/v1/audit-log?limit=3").json["items"]
    assert [row["action"] for row in entries] == [
        "modify-notification-channel", "create-notification-channel", "create-notification-channel"]
    assert entries[0]["object_name"] == made["id"] and entries[0]["object_domain"] is None
    for path in ("/audit-log?limit=100", "/notification-channels"):
        text = admin.get("/aliquot/v1" + path).body
        assert b"Hush" not in text and b"sealed" not in text
    for one in (made, hook):
        assert admin.delete(f"{N}/channels/{one['id']}").json == {"deleted": True}
    for path in (cluster.folder / "manager").rglob("*"):
        assert not path.is_file() or b"Hush-channel" not in path.read_bytes(), path


def test_two_hundred_at_most(admin):
    ids = []
    while (reply := make(admin, name=f"n{len(ids)}")).status == 201:
        ids.append(reply.json["channel"]["id"])
    assert len(ids) == 200 and "200" in reply.body.decode(), reply
    for one in ids:
        assert admin.delete(f"{N}/channels/{one}").status == 200


def test_types_that_other_clients_do_not_know_are_apart(admin):
    assert admin.get("/notifications/rule-types").json == {
        "rule_types": ["session.started", "session.terminated"],
        "extension_types": ["session.idle_warning"]}
