# SPDX-License-Identifier: Apache-2.0
"""/aliquot/v1/retention: how long rows are kept, and removing old ones."""

import pytest

from cluster import wait_for

RETENTION = "/aliquot/v1/retention"
RUN = RETENTION + "/run"
KEPT = {"sessions": "forever", "history": "forever", "usage": "forever", "agent-history": "365d",
        "series": "31d", "audit-log": "90d", "error-logs": "90d",
        "events": "7d"}
MEMBERS = {"entity", "keep", "running", "last_run_at", "last_run_ended_at", "last_removed"}
COUNTED = {"rows", "removable", "oldest_at"}


def items(reply):
    assert reply.status in (200, 202), reply
    return {item["entity"]: item for item in reply.json["items"]}


def test_what_is_kept_for_how_long(admin):
    shown = items(admin.get(RETENTION))
    assert {name: item["keep"] for name, item in shown.items()} == KEPT
    assert all(set(item) == MEMBERS | COUNTED for item in shown.values())
    assert all(item["removable"] == 0 for item in shown.values())
    assert all(set(item) == MEMBERS for item in items(admin.get(RETENTION + "?count=false")).values())


def test_a_dry_run_says_what_other_settings_would_do(admin):
    shown = items(admin.post(RUN, {"dry_run": True}))
    assert list(shown) == ["agent-history", "series", "audit-log", "error-logs",
                           "events"]  # the others stay forever
    shown = items(admin.post(RUN, {"dry_run": True, "keep": "1s", "entities": ["sessions"]}))
    assert list(shown) == ["sessions"] and shown["sessions"]["keep"] == "1s"
    assert shown["sessions"]["removable"] <= shown["sessions"]["rows"]
    assert len(items(admin.post(RUN, {"dry_run": True, "keep": "36h"}))) == len(KEPT)
    assert items(admin.get(RETENTION))["sessions"]["last_run_at"] is None


def test_a_run(admin):
    begun = items(admin.post(RUN, {"entities": ["series", "audit-log"]}))
    assert list(begun) == ["series", "audit-log"]
    shown = wait_for(lambda: (now := items(admin.get(RETENTION + "?count=false")))
                     and not now["series"]["running"] and not now["audit-log"]["running"] and now,
                     60, "the end of the run")
    assert shown["series"]["last_removed"] == 0 and shown["series"]["last_run_ended_at"]


@pytest.mark.parametrize("body, field", [
    ({"entities": ["logs"]}, "entities"), ({"entities": ["sessions"]}, "entities"),
    ({"keep": "1d"}, "keep"), ({"keep": "soon", "dry_run": True}, "keep"),
    ({"keep": "0", "dry_run": True}, "keep"), ({"dry_run": "perhaps"}, "dry_run"),
    ({"colour": "red"}, "colour"),
])
def test_what_cannot_be_asked_is_named(admin, body, field):
    reply = admin.post(RUN, body)
    assert reply.slug == "invalid-api-params" and list(reply.json["data"]) == [field], reply


def test_only_superadmins(user, domain_admin, nobody):
    for client in (user, domain_admin, nobody):
        assert client.get(RETENTION).status in (401, 403)
        assert client.post(RUN, {}).status in (401, 403)
