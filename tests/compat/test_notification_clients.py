# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line as it is on PyPI, 26.9: channels and rules of notifications."""

import json
import re

import pytest

import real_client
from client import USER
from cluster import Cluster
from receivers import ADDRESS, Listener

VERSIONS = ("26.9.6",)
MAIL = {"smtp": {"host": "smtp.example.org", "port": 587},
        "message": {"from_email": "a@example.org", "to_emails": ["b@example.org"]},
        "auth": {"username": "robot", "password": "Hush-1"}}


@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_API_CALLBACK_NETWORKS=ADDRESS + "/32") as made:
        made.start_manager()
        yield made
        made.stop()


def made(bai, *words):
    """The id that it prints, and the row."""
    text = bai.says("notification", *words)
    row = json.loads(text[text.index("{"):text.rindex("}") + 1])
    assert row["id"] in re.search(r"created: (\S+)", text)[1]
    return row["id"], row


def shown(bai, *words):
    text = bai.does("notification", *words)
    return json.loads(text[text.index("{"):])


@pytest.mark.backendai("notification channel create", "notification channel list",
                       "notification channel info", "notification channel update",
                       "notification channel delete")
def test_channels(bai):
    assert "No channels found" in bai.does("notification", "channel", "list")
    hook, row = made(bai, "channel", "create", "team", "--spec", json.dumps(
        {"url": "https://hooks.example.org/x", "headers": {"Authorization": "Hush-2"}}))
    assert row["spec"] == {"url": "https://hooks.example.org/x"} and row["enabled"]
    mail, row = made(bai, "channel", "create", "ops", "--channel-type", "email", "--disabled",
                     "--description", "who looks", "--spec", json.dumps(MAIL))
    assert row["spec"]["auth"] == {"username": "robot", "password": None}
    assert row["spec"]["smtp"] == {**MAIL["smtp"], "use_tls": True, "timeout": 30}
    assert row["spec"]["message"] == {**MAIL["message"], "subject_template": None}
    listed = bai.does("notification", "channel", "list")
    assert hook in listed and mail in listed and "Hush" not in listed
    enabled = bai.does("notification", "channel", "list", "--enabled-only")
    assert hook in enabled and mail not in enabled
    bai.says("notification", "channel", "update", mail, "--name", "late", "--enable")
    row = shown(bai, "channel", "info", mail)
    assert (row["name"], row["enabled"], row["description"]) == ("late", True, "who looks")
    bai.says("notification", "channel", "update", hook, "--channel-type", "webhook", "--disable",
             "--spec", '{"url": "https://hooks.example.org/y"}')
    row = shown(bai, "channel", "info", hook)
    assert row["spec"]["url"].endswith("/y") and not row["enabled"]
    assert "of e-mail channels" in bai.fails(
        "notification", "channel", "update", hook, "--channel-type", "email", "--spec",
        json.dumps(MAIL))
    for channel in (hook, mail):
        assert "deleted" in bai.says("notification", "channel", "delete", channel)
    assert "no channel" in bai.fails("notification", "channel", "info", hook)


@pytest.mark.backendai("notification rule create", "notification rule list",
                       "notification rule info", "notification rule update",
                       "notification rule delete", "notification rule types",
                       "notification rule schema", "notification rule validate")
def test_rules(cluster, bai):
    types = bai.does("notification", "rule", "types")
    assert "session.started" in types and "session_name" in types
    assert "termination_reason" in bai.does("notification", "rule", "schema", "session.terminated")
    with Listener(ADDRESS) as hook:
        channel, _ = made(bai, "channel", "create", "team", "--spec", json.dumps({"url": hook.url()}))
        rule, row = made(bai, "rule", "create", "ends", "session.terminated", channel, "--template",
                         '{"text": "{{ session_name }}: {{ termination_reason }}"}')
        assert (row["channel_id"], row["rule_type"]) == (channel, "session.terminated")
        other, _ = made(bai, "rule", "create", "begins", "session.started", channel, "--template",
                        "{{ session_id }}", "--disabled")
        listed = bai.does("notification", "rule", "list", "--enabled-only", "--rule-types",
                          "session.terminated")
        assert rule in listed and other not in listed
        assert other in bai.does("notification", "rule", "list")
        reply = cluster.client().post("/notifications/rules", {
            "name": "idle", "rule_type": "session.idle_warning", "channel_id": channel,
            "message_template": "soon"})
        assert reply.status == 201, reply
        assert other in bai.does("notification", "rule", "list")
        assert cluster.client().delete(
            "/notifications/rules/" + reply.json["rule"]["id"]).status in (200, 204)
        said = bai.says("notification", "rule", "validate", rule, "--data",
                        '{"session_name": "try", "termination_reason": "user-requested"}')
        assert '{"text": "try: user-requested"}' in said
        assert [json.loads(body) for _, _, body in hook.told] == [{"text": "try: user-requested"}]
        assert "no field" in bai.fails("notification", "rule", "update", rule, "--message-template",
                                       "{{ colour }}")
        bai.says("notification", "rule", "update", rule, "--message-template", "{{ status }}",
                 "--disable")
        row = shown(bai, "rule", "info", rule)
        assert (row["message_template"], row["enabled"]) == ("{{ status }}", False)
        for word in ("artifact.download.completed", "endpoint.lifecycle.changed"):
            assert "is not supported" in bai.fails("notification", "rule", "create", "x", word,
                                                   channel, "--template", "x")
        assert "uses the channel" in bai.fails("notification", "channel", "delete", channel)
        for one in (rule, other):
            bai.says("notification", "rule", "delete", one)
        bai.says("notification", "channel", "delete", channel)


def test_validate_of_a_channel_sends_and_fails_by_itself(cluster, bai):
    """The client looks for what its own class of answers does not have."""
    with Listener(ADDRESS) as hook:
        channel, _ = made(bai, "channel", "create", "team", "--spec", json.dumps({"url": hook.url()}))
        said = bai.fails("notification", "channel", "validate", channel, "--data", "hello")
        assert "success" in said and [body for _, _, body in hook.told] == [b"hello"]
        hook.statuses[:] = [500]
        assert "status 500" in bai.fails("notification", "channel", "validate", channel, "--data", "x")
        bai.says("notification", "channel", "delete", channel)


def test_others_are_refused(cluster, server):
    user = real_client.RealClient(server, cluster.address, USER)
    for words in (("channel", "list"), ("rule", "list"), ("rule", "types")):
        assert "401" in user.fails("notification", *words) or "403" in user.fails(
            "notification", *words)
