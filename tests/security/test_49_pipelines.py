# SPDX-License-Identifier: Apache-2.0
"""Pipelines: what a file and its runs may take of the manager, and who sees whose."""

import datetime
import time

import pytest

from cluster import Cluster, wait_for
from two_domains import TwoDomains, make_user

V1 = "/aliquot/v1"
RUNS = V1 + "/pipeline-runs"
DEFAULTS = "defaults: {image: process, resources: {cpu: 1, mem: 64m}}\n"
SMALL = f"name: small\n{DEFAULTS}parameters: {{secret: {{default: none}}}}\ntasks: {{a: {{command: x}}}}\n"
LIVE_MAX = 100
LONG = 50000


@pytest.fixture(name="there", scope="module")
def there_fixture():
    with Cluster() as cluster:
        cluster.start_manager()
        there = TwoDomains(cluster)
        there.cluster = cluster
        there.colleague = make_user(there.admin, "colleague@lablup.com", "default")
        yield there
        cluster.stop()


def matrix(values, rest="", names=""):
    numbers = ",".join(["1"] * values)
    return (f"name: bomb\n{DEFAULTS}{rest}tasks:\n  t:\n    command: x\n    matrix:\n{names}"
            f"      z: [{numbers}]\n")


def many_variables():
    """Each of them has the whole of a long parameter."""
    env = "".join(f"      E{n}: \"${{{{ parameters.p }}}}\"\n" for n in range(100))
    return (f"name: bomb\n{DEFAULTS}parameters: {{p: {{default: a}}}}\ntasks:\n  t:\n    command: x\n"
            f"    env:\n{env}    matrix:\n      z: [{','.join(['1'] * 100)}]\n")


BOMBS = {
    "names": (matrix(500, names="".join(f"      n{n}: [1]\n" for n in range(500))), {}),
    "texts": (matrix(1000, names=f"      n: [{'x' * LONG}]\n      m: [{'x' * LONG}]\n"), {}),
    "variables": (many_variables(), {"p": "y" * LONG}),
    "definition": (matrix(1000).replace("command: x", "command: " + "x" * LONG), {}),
    "parameters": (f"name: bomb\n{DEFAULTS}parameters: {{{', '.join(f'p{n}: a' for n in range(20))}}}\n"
                   "tasks: {a: {command: x}}\n", {f"p{n}": "y" * LONG for n in range(20)}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_does_not_become_a_large_run(there, name):
    text, parameters = BOMBS[name]
    reply = there.user.post(RUNS, {"payload": text, "parameters": parameters})
    assert (reply.status, reply.slug) == (400, "invalid-api-params"), reply


def test_runs_that_have_not_ended_are_bounded_by_their_size(there):
    """Files and parameters: a default is in both."""
    defaults = ", ".join(f"p{n}: {'x' * LONG}" for n in range(4))
    large = SMALL.replace("small", "large").replace("parameters: {", f"parameters: {{{defaults}, ")
    for count in range(LIVE_MAX):
        reply = there.stranger.post(RUNS, {"payload": large})
        if reply.status != 201:
            break
    assert count == (8 << 20) // (2 * 4 * LONG) + 1, reply
    assert reply.status == 400 and "8192 are allowed" in reply.json["msg"], reply
    assert there.strange_boss.post(RUNS, {"payload": large}).status == 201, "another user's count"


def end(client, run):
    assert client.post(f"{RUNS}/{run}/cancel", {}).status == 200
    wait_for(lambda: client.get(f"{RUNS}/{run}").json["state"] == "cancelled")


def test_no_more_runs_are_live_by_resuming_them(there):
    ended = there.colleague.post(RUNS, {"payload": SMALL}).json["id"]
    end(there.colleague, ended)
    ids = []
    for _ in range(LIVE_MAX):
        made = there.colleague.post(RUNS, {"payload": SMALL})
        assert made.status == 201, made
        ids.append(made.json["id"])
    assert there.colleague.post(RUNS, {"payload": SMALL}).status == 400
    reply = there.colleague.post(f"{RUNS}/{ended}/resume", {})
    assert reply.status == 400 and "100 pipeline runs" in reply.json["msg"], reply
    end(there.colleague, ids[0])
    assert there.colleague.post(f"{RUNS}/{ended}/resume", {}).status == 200


def test_only_superadmins_see_runs_of_superadmins(there):
    """An administrator of their domain neither shows nor lists them, with their parameters."""
    run = there.admin.post(RUNS, {"payload": SMALL, "parameters": {"secret": "of-an-admin"}}).json["id"]
    own = there.user.post(RUNS, {"payload": SMALL, "parameters": {"secret": "of-a-user"}}).json["id"]
    assert there.boss.get(f"{RUNS}/{run}").status == 404
    assert there.boss.post(f"{RUNS}/{run}/cancel", {}).status == 404
    listed = there.boss.get(RUNS + "?all=true&limit=1000")
    assert own in listed.body.decode() and "of-a-user" in listed.body.decode()
    assert run not in listed.body.decode() and "of-an-admin" not in listed.body.decode(), listed
    kept = there.boss.get(V1 + "/pipelines?all=true&limit=1000").json["items"]
    assert {row["user_email"] for row in kept} & {"admin@lablup.com", "user@lablup.com"} == {
        "user@lablup.com"}
    assert run in there.admin.get(RUNS + "?all=true&limit=1000").body.decode()


def test_others_neither_see_nor_touch_a_run(there):
    text = SMALL.replace("small", "mine")
    run = there.user.post(RUNS, {"payload": text}).json
    for client in (there.colleague, there.stranger, there.strange_boss):
        assert run["id"] not in client.get(RUNS + "?all=true&limit=1000").body.decode()
        for name in (run["id"], run["name"]):
            assert client.get(f"{RUNS}/{name}").status == 404
            assert client.post(f"{RUNS}/{name}/cancel", {}).status == 404
            assert client.post(f"{RUNS}/{name}/resume", {"payload": text}).status == 404
        assert client.post(RUNS, {"payload": SMALL, "owner_access_key":
                                  there.user.keypair[0]}).status == 403


TRIGGERS = V1 + "/pipeline-triggers"
TRIGGERED_MAX = 100


def triggered(name, count):
    schedules = ", ".join(["{cron: 0 0 1 1 *}"] * count)
    return f"name: {name}\ntriggers: {{schedule: [{schedules}]}}\n{DEFAULTS}tasks: {{a: {{command: x}}}}\n"


def test_enabled_triggers_are_bounded(there):
    reply = there.user.post(V1 + "/pipelines", {"payload": triggered("many", 17)})
    assert reply.status == 400 and "at most 16 triggers" in str(reply.json), reply
    for i in range(TRIGGERED_MAX // 16):
        assert there.user.post(V1 + "/pipelines", {"payload": triggered(f"t{i}", 16)}).status == 201
        assert there.user.post(f"{V1}/pipelines/t{i}/enable", {}).status == 200
    assert there.user.post(V1 + "/pipelines", {"payload": triggered("more", 5)}).status == 201
    reply = there.user.post(V1 + "/pipelines/more/enable", {})
    assert reply.status == 400 and "101 enabled triggers" in str(reply.json), reply
    assert there.user.post(V1 + "/pipelines", {"payload": triggered("more", 4)}).status == 201
    assert there.user.post(V1 + "/pipelines/more/enable", {}).status == 200
    reply = there.user.post(V1 + "/pipelines", {"payload": triggered("more", 5)})
    assert reply.status == 400, "a new version of an enabled pipeline goes beyond the limit"
    assert there.colleague.post(V1 + "/pipelines", {"payload": triggered("more", 5)}).status == 201
    assert there.colleague.post(V1 + "/pipelines/more/enable", {}).status == 200, "another user's"
    assert there.user.post(V1 + "/pipelines/more/disable", {}).status == 200


def test_a_due_time_passes_while_too_many_runs_are_live(there):
    """It starts nothing beyond the limit, and says so."""
    busy = make_user(there.admin, "busy@lablup.com", "default")
    busy.post(V1 + "/pipelines", {"payload": triggered("yearly", 1)})
    (row,) = busy.post(V1 + "/pipelines/yearly/enable", {}).json["items"]
    for _ in range(LIVE_MAX):
        assert busy.post(RUNS, {"payload": SMALL}).status == 201
    busy.shift = int(datetime.datetime.fromisoformat(row["next_at"]).timestamp() - time.time()) + 1
    there.cluster.jump(wall=busy.shift)
    try:
        def result():
            return busy.get(TRIGGERS).json["items"][0]["last_result"]
        assert wait_for(result) == ("skipped: you have 100 pipeline runs that have not ended; wait for"
                                    " one, or cancel it")
        assert busy.get(RUNS + "?filter=name==\"yearly\"").json["total"] == 0
    finally:
        there.cluster.jump(wall=0)


def test_others_neither_see_nor_switch_triggers(there):
    """An administrator of the domain sees those of its users and none of superadmins."""
    there.admin.post(V1 + "/pipelines", {"payload": triggered("of-an-admin", 1)})
    there.user.post(V1 + "/pipelines", {"payload": triggered("of-a-user", 1)})
    for client in (there.colleague, there.stranger, there.strange_boss):
        assert "of-a-user" not in client.get(TRIGGERS + "?all=true&limit=1000").body.decode()
        for action in ("enable", "disable"):
            assert client.post(f"{V1}/pipelines/of-a-user/{action}", {}).status == 404
            assert client.post(f"{V1}/pipelines/of-a-user/{action}",
                               {"owner_access_key": there.user.keypair[0]}).status == 403
    listed = there.boss.get(TRIGGERS + "?all=true&limit=1000").body.decode()
    assert "of-a-user" in listed and "of-an-admin" not in listed
    assert there.boss.post(V1 + "/pipelines/of-a-user/enable",
                           {"owner_access_key": there.user.keypair[0]}).status == 200


def test_a_time_zone_is_no_path(there):
    for zone in ("../../../etc/passwd", "/etc/passwd", "posix/../UTC", "a" * 5000):
        reply = there.user.post(V1 + "/pipelines", {"payload": triggered("zone", 1).replace(
            "0 0 1 1 *", f"0 0 1 1 *, zone: '{zone}'")})
        assert reply.status == 400 and "not the name of a time zone" in str(reply.json), reply
