# SPDX-License-Identifier: Apache-2.0
"""What was held is reported by the time that lies in the period, also of sessions that are gone."""

import csv
import datetime
import io
import json

import pytest

from client import USER
from cluster import ENDED, Cluster, batch, wait_for, wait_status

pytestmark = [pytest.mark.engines, pytest.mark.gate]

HOUR, DAY = 3600, 86400


@pytest.fixture(name="held", scope="module")
def held_fixture():
    """A session that held a processor and 64 MiB for 30 hours, and one of a moment after it.

    The cluster's clock is 32 days after its end, when retention may remove it.
    """
    with Cluster(ALIQUOT_RETENTION_SESSIONS="30d") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        session = client.post("/session", batch("holds", "sleep 600")).json["sessionId"]
        began = parse(wait_status(client, session, "RUNNING")["scheduled_at"])
        move(cluster, client, 30 * HOUR)
        assert client.delete("/session/holds").status == 200
        ended = parse(wait_status(client, session, *ENDED)["terminated_at"])
        latest = client.post("/session", batch("latest", "true")).json["sessionId"]
        wait_status(client, latest, *ENDED)
        move(cluster, client, 33 * DAY)
        yield cluster, client, began, ended
        cluster.stop()


def parse(text):
    return datetime.datetime.fromisoformat(text)


def move(cluster, client, seconds):
    """The cluster's clock, and that of who signs."""
    cluster.jump(wall=seconds)
    client.shift = seconds


def by_period(client, first, last):
    """email -> (containers, seconds, memory) of the days from 'first' to 'last'."""
    query = f"start_date={first:%Y%m%d}&end_date={last:%Y%m%d}"
    reply = client.get("/resource/usage/period?" + query)
    assert reply.status == 200, reply
    return [(info["email"], info["name"], seconds(info["used_time"]), info["cpu_allocated"],
             info["mem_allocated"]) for item in reply.json for info in item["c_infos"]]


def seconds(text):
    """Of "1 day, 2:03:04"."""
    days, _, clock = text.rpartition("day")
    parts = [int(part) for part in clock.removeprefix("s").removeprefix(",").split(":")]
    return int(days or 0) * DAY + parts[0] * HOUR + parts[1] * 60 + parts[2]


def test_only_the_time_in_the_period_counts(held):
    _, client, began, ended = held
    total = 0
    for shift in range((ended.date() - began.date()).days + 1):
        day = began.date() + datetime.timedelta(days=shift)
        start = datetime.datetime.combine(day, datetime.time(), datetime.timezone.utc)
        inside = (min(ended, start + datetime.timedelta(days=1)) - max(began, start)).total_seconds()
        [found] = [one for one in by_period(client, day, day) if one[1] == "holds"]
        assert abs(found[2] - inside) <= 5, (day, found, inside)
        total += found[2]
    assert abs(total - (ended - began).total_seconds()) <= 5
    assert by_period(client, began - datetime.timedelta(days=3),
                     began - datetime.timedelta(days=2)) == []


def totals(client, **params):
    query = "&".join(f"{name}={value}" for name, value in params.items())
    reply = client.get("/aliquot/v1/usage?" + query)
    assert reply.status == 200, reply
    return reply.json["items"]


def hours(began, ended):
    return (ended - began).total_seconds() / HOUR


def test_hours_are_summed_by_whom_and_where(held):
    _, client, began, ended = held
    when = {"since": f"{began:%Y-%m-%d}", "until": f"{ended:%Y-%m-%d}"}
    seen = {by: totals(client, by=by, **when) for by in ("domain", "project", "user",
                                                         "resource-group")}
    for by, [item] in seen.items():
        assert item["sessions"] == 2 and item["accelerator_hours"] == {}, by
        assert abs(item["cpu_hours"] - hours(began, ended)) < 0.01, by
        assert item["mem_gib_hours"] == pytest.approx(item["cpu_hours"] / 16, abs=1e-5), by
    assert seen["domain"][0]["domain"] == "default"
    assert (seen["project"][0]["project"], seen["user"][0]["user"]) == ("default", "admin@lablup.com")
    assert seen["resource-group"][0]["resource_group"] == "default"


def test_each_day_has_its_hours(held):
    _, client, began, ended = held
    days = [began.date() + datetime.timedelta(days=i)
            for i in range((ended.date() - began.date()).days + 1)]
    found = [totals(client, since=day, until=day)[0]["cpu_hours"] for day in days]
    assert all(0 < one <= 24 for one in found)
    assert abs(sum(found) - hours(began, ended)) < 0.01
    months = {f"{day:%Y-%m}" for day in days}
    assert abs(sum(totals(client, month=one)[0]["cpu_hours"] for one in months)
               - hours(began, ended)) < 0.01


def test_the_command_line_shows_them(held):
    cluster, client, began, ended = held
    words = ("admin", "usage", "--since", f"{began:%Y-%m-%d}", "--until", f"{ended:%Y-%m-%d}")
    [item] = totals(client, by="user", since=f"{began:%Y-%m-%d}", until=f"{ended:%Y-%m-%d}")
    shown = cluster.cli(*words, "--by", "user", "-o", "json")
    assert shown.returncode == 0 and json.loads(shown.stdout) == [item], shown
    [row] = csv.DictReader(io.StringIO(cluster.cli(*words, "--by", "user", "-o", "csv").stdout))
    assert (row["user"], float(row["cpu_hours"])) == ("admin@lablup.com", item["cpu_hours"])
    table = cluster.cli(*words)
    assert "CPU-HOURS" in table.stdout and "held from" in table.stderr, table
    nothing = cluster.cli("admin", "usage", "--month", "2000-01")
    assert nothing.returncode == 0 and "nothing was held" in nothing.stderr
    assert cluster.cli("admin", "usage", "--month", "2000-13").returncode == 4
    assert cluster.cli("admin", "usage", "--by", "colour").returncode == 2


def test_users_see_what_was_theirs(held):
    cluster, client, began, _ = held
    since = f"{began:%Y-%m-%d}"
    user = cluster.client(USER)
    user.shift = client.shift
    assert totals(user, since=since, by="user") == []
    assert totals(user, since=since, by="domain") == []
    for param, value in (("user", "admin@lablup.com"), ("domain", "other"), ("project", "other")):
        refused = user.get(f"/aliquot/v1/usage?{param}={value}")
        assert list(refused.json["data"]) == [param], refused


def test_what_removed_sessions_held_is_in_reports(held):
    _, client, began, ended = held
    before = by_period(client, began, ended)
    held_before = [one for one in before if one[1] == "holds"]
    sums = totals(client, since=f"{began:%Y-%m-%d}", by="user")
    assert client.post("/aliquot/v1/retention/run", {"entities": ["sessions"]}).status == 202
    wait_for(lambda: client.get("/session/holds").status == 404 and "holds" not in
             [one[1] for one in by_period(client, began, ended)], 60, "the session to be removed")
    after = by_period(client, began, ended)
    removed = [one for one in after if one[1] is None]
    assert [one[:1] + one[2:] for one in removed] == [one[:1] + one[2:] for one in held_before]
    assert len(after) == len(before)
    assert totals(client, since=f"{began:%Y-%m-%d}", by="user") == sums
