# SPDX-License-Identifier: Apache-2.0
"""What one user's batch work takes from all: long values that programs hand on, and reservations of a
domain's administrator."""

import socket
import struct
import time

import pytest

from cluster import Cluster, batch, wait_for, wait_status
from two_domains import TwoDomains

V1 = "/aliquot/v1"
RUNS = V1 + "/pipeline-runs"
RESERVATIONS = V1 + "/reservations"
OF_A_DOMAIN = 250
DEFAULTS = "defaults: {image: sh, resources: {cpu: 1, mem: 64m}}\n"


@pytest.fixture(name="there", scope="module")
def there_fixture():
    with Cluster(ALIQUOT_RESOURCE_CPUS="8", ALIQUOT_MANAGER_HEARTBEAT="0.2s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        there = TwoDomains(cluster)
        there.cluster = cluster
        yield there
        cluster.check_audits()
        cluster.stop()


# ---- values of programs ----

def many_digits(rest):
    """A pipeline whose first task hands on 60000 digits."""
    return (f"name: digits\n{DEFAULTS}tasks:\n  a:\n    outputs: [x]\n    command: |\n"
            "      printf 'x=%060000d' 0 > $ALIQUOT_OUTPUT\n"
            f"  b:\n    needs: [a]\n    command: 'true'\n{rest}")


def end_of(client, text):
    """The states and reasons of the tasks of a run that has ended."""
    made = client.post(RUNS, {"payload": text})
    assert made.status == 201, made

    def ended():
        run = client.get(f"{RUNS}/{made.json['id']}").json
        return run if run["state"] != "running" else None
    return [(task["state"], task["reason"]) for task in wait_for(ended, 120)["tasks"]]


def test_a_value_in_many_variables_does_not_fill_the_managers_memory(there):
    env = "".join(f"      E{n}: \"${{{{ tasks.a.outputs.x }}}}\"\n" for n in range(200))
    first, *others = end_of(there.user, many_digits(
        f"    env:\n{env}    matrix: {{z: [{','.join(['1'] * 100)}]}}\n"))
    assert first == ("succeeded", None) and len(others) == 100
    for state, reason in others:
        assert state == "failed" and "more than 256 KiB with all values" in reason, reason


def test_long_values_are_not_compared_for_each_task(there):
    same = " and ".join(["tasks.a.outputs.x == tasks.a.outputs.x"] * 20)
    first, *others = end_of(there.user, many_digits(
        f"    when: {same}\n    matrix: {{z: [{','.join(['1'] * 100)}]}}\n"))
    assert first == ("succeeded", None) and len(others) == 100
    for state, reason in others:
        assert state == "failed" and "both values have more than 4096 bytes" in reason, reason
    whole = many_digits("    when: tasks.a.outputs.x != ''\n")
    assert end_of(there.user, whole)[1] == ("succeeded", None)


# ---- reservations ----

def reserve(client, name, **more):
    return client.post(RESERVATIONS, {"name": name, "for": ["project:default"], "duration": "1h",
                                      "start": "1d", "resources": {"mem": "1"}, **more})


def cancel_all(client):
    for row in client.get(RESERVATIONS).json["items"]:
        assert client.post(f"{RESERVATIONS}/{row['id']}/cancel").status == 204


def test_a_domain_does_not_take_all_reservations(there):
    for i in range(OF_A_DOMAIN):
        assert reserve(there.boss, f"r{i}").status == 201
    reply = reserve(there.boss, "more")
    assert reply.slug == "quota-exceeded" and "250 reservations of the domain" in str(reply.json), reply
    assert there.boss.send("PATCH", f"{RESERVATIONS}/r0", {"duration": "2h"}).status == 200
    assert reserve(there.strange_boss, "strange").status == 201
    assert reserve(there.admin, "more").status == 201
    cancel_all(there.admin)


def test_a_domains_administrator_keeps_no_more_than_its_quota(there):
    """At no time; one after the other is no more than one."""
    path = V1 + "/domains/default"
    assert there.admin.send("PATCH", path, {"total_slots": {"cpu": "3"}}).status == 200
    try:
        assert reserve(there.boss, "two", resources={"cpu": "2"}).status == 201
        assert reserve(there.boss, "next", resources={"cpu": "2"}, start="25h").status == 201
        for name, more in (("four", {"resources": {"cpu": "4"}}),
                           ("between", {"resources": {"cpu": "2"}, "start": "24h30m"})):
            reply = reserve(there.boss, name, **more)
            assert reply.slug == "quota-exceeded" and "its quota is 3" in str(reply.json), reply
        reply = there.boss.send("PATCH", f"{RESERVATIONS}/two", {"duration": "3h"})
        assert reply.slug == "quota-exceeded", reply
        assert there.boss.send("PATCH", f"{RESERVATIONS}/two", {"name": "pair"}).status == 200
        assert reserve(there.admin, "four", resources={"cpu": "4"}).status == 201
    finally:
        assert there.admin.send("PATCH", path, {"total_slots": {}}).status == 200
        cancel_all(there.admin)


def test_strangers_do_not_learn_which_reservations_there_are(there):
    assert reserve(there.boss, "secret").status == 201
    found, unknown = (there.stranger.post("/session", {**batch("stray", "true"), "reservation": name})
                      for name in ("secret", "nothing"))
    assert found.status == unknown.status == 404
    assert found.body.replace(b"secret", b"nothing") == unknown.body
    cancel_all(there.admin)


def test_a_refusal_names_nothing_of_other_domains(there):
    assert reserve(there.boss, "secret", resources={"cpu": "5"}).status == 201
    for client, text in ((there.strange_boss, "1 reservation keeps some of it"),
                         (there.admin, "reservation secret keeps some of it")):
        reply = reserve(client, "all", resources={"cpu": "5"})
        assert reply.slug == "reservation-does-not-fit" and text in str(reply.json), reply
        assert ("secret" in str(reply.json)) == (client is there.admin)
    cancel_all(there.admin)


def test_a_reservation_is_not_moved_into_the_past(there):
    made = reserve(there.admin, "moved").json
    before = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(time.time() - 30 * 86400))
    reply = there.admin.send("PATCH", f"{RESERVATIONS}/moved", {"start": before, "duration": "31d"})
    assert reply.status == 400 and "is past" in str(reply.json), reply
    assert there.admin.get(f"{RESERVATIONS}/moved").json["start"] == made["start"]
    assert there.admin.send("PATCH", f"{RESERVATIONS}/moved", {"start": "0s"}).status == 200
    reply = there.admin.send("PATCH", f"{RESERVATIONS}/moved", {"start": "1h"})
    assert reply.status == 409 and reply.slug == "conflict", reply
    cancel_all(there.admin)


# ---- clients that leave ----

def test_clients_that_leave_at_once_are_in_the_audit_log(there):
    """While the store reads what they ask for; the session is made, and by whom is known."""
    assert there.user.post("/session", batch("done", "true")).status == 201
    wait_status(there.user, "done", "TERMINATED")
    for i in range(200):
        with socket.create_connection(there.user.address) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.sendall(there.user.request("POST", V1 + "/sessions/done/retry", {"name": f"left-{i}"}))
            time.sleep(i % 20 / 4000)  # the server has read it, and has not answered
    wait_for(lambda: there.user.get(V1 + "/sessions?status=PENDING,PREPARING,RUNNING").json["total"] == 0,
             60)
    log = there.admin.get(V1 + "/audit-log?limit=1000").json["items"]
    addresses = {row["address"] for row in log if (row["object_name"] or "").startswith("left-")}
    assert addresses == {"127.0.0.1"}
