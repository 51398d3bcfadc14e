# SPDX-License-Identifier: Apache-2.0
"""Sessions and arrays that wait for arrays and for their elements."""

import pytest

from client import USER
from cluster import WAITS, Cluster, batch, wait_for, wait_status
from runtimes import settings_of

pytestmark = pytest.mark.engines

ARRAYS = "/aliquot/v1/arrays"
SESSIONS = "/aliquot/v1/sessions"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="4", ALIQUOT_SESSIONS_KILL_GRACE="0.3s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


@pytest.fixture
def client(cluster):
    client = cluster.client()
    yield client
    cluster.check_audits()
    cluster.cli("rm", "--all", "--yes", "--wait")


@pytest.fixture
def gate(tmp_path):
    """A file for which commands of elements wait, in a directory that all may read."""
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.owner() == tmp_path.owner() and parent.stat().st_mode & 0o055 != 0o055:
            parent.chmod(0o755)
    return tmp_path / "gate"


def until(gate, then="true"):
    return f"while ! test -e {gate}; do sleep 0.1; done; {then}"


def make(client, name, command="true", array=None, **more):
    body = batch(name, command, **more)
    reply = client.post("/session", {**body, "array": array} if array else body)
    assert reply.status == 201, reply
    return reply.json["sessionId"]


def refuse(client, name="refused", array=None, **more):
    body = batch(name, "true", **more)
    reply = client.post("/session", {**body, "array": array} if array else body)
    assert reply.status in (400, 404), reply
    return str(reply.body)


def show(client, name):
    return client.get(f"{ARRAYS}/{name}").json


def session(client, name):
    return client.get(f"{SESSIONS}/{name}").json


def wait_end(client, name, seconds=100):
    return wait_for(lambda: (a := show(client, name))["terminated_at"] and a, seconds, f"{name} to end")


def started(client, array_id):
    """When each element of the array began and ended, by index."""
    rows = client.get(f"{SESSIONS}?array={array_id}&order=array_index&limit=1000"
                      "&fields=array,status,reason,started_at,terminated_at").json["items"]
    return {row["array"]["index"]: row for row in rows}


@pytest.mark.gate
def test_a_session_waits_for_all_elements(client, gate):
    make(client, "first", until(gate), "0-5%2")
    after = make(client, "after", dependencies=["first"])
    shown = session(client, after)
    assert shown["status"] == "PENDING"
    (on,) = shown["dependencies"]
    assert (on["name"], on["condition"], on["state"]) == ("first", "success", "waiting")
    assert on["array"] == show(client, "first")["id"]
    gate.touch()
    first = wait_end(client, "first")
    wait_status(client, after, "TERMINATED")
    shown = session(client, after)
    assert shown["result"] == "SUCCESS" and shown["started_at"] >= first["terminated_at"]
    assert shown["dependencies"][0]["state"] == "met"


def test_one_failure_dooms_those_that_need_success(client, gate):
    made = make(client, "bad", f"test $ALIQUOT_ARRAY_INDEX != 1 || exit 1; {until(gate)}", "0-3")
    doomed = make(client, "doomed", dependencies=["success:bad"])
    array = make(client, "doomed-too", array="0-999", dependencies=["bad"])
    glad = make(client, "glad", dependencies=["failure:bad"])
    any_end = make(client, "any-end", dependencies=[f"end:{made}"])
    wait_status(client, doomed, "CANCELLED")
    assert session(client, doomed)["reason"] == "dependency-failed"
    assert not show(client, "bad")["terminated_at"]  # said before the array has ended
    ended = wait_end(client, array)
    assert (ended["status"], ended["cancelled"]) == ("CANCELLED", 1000)
    assert [(on["name"], on["state"]) for on in ended["dependencies"]] == [("bad", "unmet")]
    why = client.get(f"{ARRAYS}/doomed-too/why").json["text"]
    assert "waited for the success of 'bad', which was not met" in why, why
    for name in ("success:bad", f"success:{made}"):
        assert "never start" in refuse(client, dependencies=[name])
    gate.touch()
    wait_status(client, glad, "TERMINATED")
    wait_status(client, any_end, "TERMINATED")
    assert "never start" in refuse(client, dependencies=["bad"])
    wait_status(client, make(client, "later", dependencies=["failure:bad"]), "TERMINATED")


def test_elements_before_and_after_they_have_a_row(client, gate):
    found = make(client, "parts", until(gate), "0-999%1")
    wait_for(lambda: show(client, "parts")["running"] == 1, 60, "the first element")
    first = make(client, "on-first", dependencies=["start:parts[0]"])
    last = make(client, "on-last", dependencies=["end:parts[999]"])
    by_id = make(client, "by-id", dependencies=[f"{found}[998]"])
    wait_status(client, first, "TERMINATED")
    (on,) = session(client, last)["dependencies"]
    assert (on["name"], on["index"], on["state"]) == ("parts[999]", 999, "waiting")
    (node,) = client.get("/session/on-last/dependency-graph").json["depends_on"]
    assert (node["session_name"], node["session_id"]) == ("parts[999]", found)
    (node,) = client.get("/session/on-first/dependency-graph").json["depends_on"]
    assert node["session_name"] == "parts[0]" and node["session_id"] != found
    assert client.delete(f"{ARRAYS}/parts", {"elements": "998-999"}).status == 204
    wait_status(client, last, "TERMINATED")   # it ended without a row
    wait_status(client, by_id, "CANCELLED")
    assert "never start" in refuse(client, dependencies=["parts[999]"])
    assert "no element 1000" in refuse(client, dependencies=["parts[1000]"])
    assert "one index" in refuse(client, dependencies=["parts[1-3]"])
    assert "no session or array" in refuse(client, dependencies=["none"])
    whole = make(client, "on-cancelled", dependencies=["end:parts"])
    middle = make(client, "on-middle", dependencies=["failure:parts[500]"])
    assert client.delete(f"{ARRAYS}/parts").status == 204
    wait_status(client, whole, "TERMINATED")
    wait_status(client, middle, "TERMINATED")


@pytest.mark.gate
def test_corresponding_elements(client):
    one = make(client, "one", "sleep 0.2; test $ALIQUOT_ARRAY_INDEX != 3", "0-9%3")
    two = make(client, "two", array="1-6", dependencies=["corresponding:one"])
    ended = wait_end(client, two)
    assert (ended["succeeded"], ended["cancelled"]) == (5, 1), ended
    before, after = started(client, one), started(client, two)
    assert after[3]["status"] == "CANCELLED" and after[3]["reason"] == "dependency-failed"
    for index in (1, 2, 4, 5, 6):
        assert after[index]["started_at"] >= before[index]["terminated_at"]
    wait_end(client, one)
    again = make(client, "again", array="0-4", dependencies=["corresponding:one"])
    ended = wait_end(client, again)
    assert (ended["succeeded"], ended["cancelled"]) == (4, 1), ended
    assert "no element 10" in refuse(client, array="5-12", dependencies=["corresponding:one"])
    assert "only an array" in refuse(client, dependencies=["corresponding:one"])
    assert "whole array" in refuse(client, array="0-1", dependencies=["corresponding:one[1]"])
    alone = make(client, "alone")
    assert "whole array" in refuse(client, array="0-1", dependencies=[f"corresponding:{alone}"])


def test_arrays_of_others_are_unknown(client, cluster, gate):
    found = make(client, "mine", until(gate), "0-9%1")
    other = cluster.client(USER)
    for name in ("mine", found, "mine[9]", f"{found}[9]", "corresponding:mine"):
        assert "no session or array" in refuse(other, array="0-1", dependencies=[name]), name
    gate.touch()
    wait_end(client, "mine")
    for name in (found, f"{found}[9]", f"corresponding:{found}"):
        assert "no session or array" in refuse(other, array="0-1", dependencies=[name]), name


def test_start_of_all_elements(client, gate):
    make(client, "team", until(gate), "0-3")
    watcher = make(client, "watcher", dependencies=["start:team"])
    cluster_full = show(client, "team")
    assert cluster_full["size"] == 4
    wait_for(lambda: show(client, "team")["running"] == 4 or gate.touch(), 60, "four to run")
    gate.touch()
    wait_status(client, watcher, "TERMINATED")


def test_a_restart_of_the_manager(client, cluster, gate):
    made = make(client, "kept", until(gate), "0-599%2")
    whole = make(client, "kept-whole", dependencies=["end:kept"])
    element = make(client, "kept-element", dependencies=["end:kept[300]"])
    array = make(client, "kept-array", array="0-9", dependencies=["corresponding:kept"])
    assert client.delete(f"{ARRAYS}/kept", {"elements": "10-299,301-599"}).status == 204
    cluster.programs["manager"].kill()
    cluster.start_manager()
    cluster.check_audits()
    gate.touch()
    assert wait_end(client, made)["succeeded"] == 11
    wait_status(client, whole, "TERMINATED")
    wait_status(client, element, "TERMINATED")
    assert wait_end(client, array)["succeeded"] == 10
    cluster.programs["manager"].kill()
    cluster.start_manager()
    wait_status(client, make(client, "kept-late", dependencies=["kept[300]"]), "TERMINATED")


def test_commands_show_them(client, cluster, gate):
    make(client, "shown", until(gate), "0-3%1")
    make(client, "waits", dependencies=["end:shown"])
    make(client, "waits-too", array="0-3", dependencies=["end:shown[3]"])
    for name, on in (("waits", "shown"), ("waits-too", "shown[3]")):
        lines = cluster.cli("session", "info", name).stdout.splitlines()
        assert [on, "end", "waiting"] in [line.split()[:3] for line in lines], lines
    assert show(client, "shown")["id"] in cluster.cli("session", "why", "waits").stdout
    assert cluster.cli("run", "--detach", "--name", "third", "--after", "end:shown[2]",
                       "-r", "mem=32m", "true").returncode == 0
    gate.touch()
    wait_end(client, "waits-too")
    wait_status(client, "third", "TERMINATED")


def test_recursive_ends_reach_elements_without_a_row(client, cluster, gate):
    """one <- two (corresponding) <- end-two, and on-seven, on-five of single elements."""
    make(client, "one", until(gate), "0-999%1")
    make(client, "two", array="0-999", dependencies=["corresponding:one"])
    five = make(client, "on-five", dependencies=["end:two[5]"])
    seven = make(client, "on-seven", dependencies=["failure:one[700]"])
    later = make(client, "later", array="0-9", dependencies=["end:on-seven"])
    whole = make(client, "end-two", dependencies=["end:two"])
    assert cluster.cli("rm", "--recursive", "one[700-701]").returncode == 0
    for name in (seven, whole):
        wait_status(client, name, "CANCELLED")
        assert session(client, name)["reason"] == "user-requested"
    assert wait_end(client, later)["cancelled"] == 10
    assert session(client, five)["status"] == "PENDING"
    for name in ("one", "two"):
        assert show(client, name)["cancelled"] == 2, name
        assert not show(client, name)["terminated_at"]
    assert cluster.cli("rm", "--recursive", "one").returncode == 0
    wait_status(client, five, "CANCELLED")
    assert wait_end(client, "two")["cancelled"] == 1000


def test_recursive_ends_of_sessions(client, cluster, gate):
    root = make(client, "root", until(gate))
    array = make(client, "leaves", array="0-499", dependencies=["end:root"])
    last = make(client, "last", dependencies=["failure:leaves[400]"])
    other = make(client, "other", until(gate))
    assert client.delete(f"{SESSIONS}", {"sessions": [root], "recursive": True}).status == 200
    assert session(client, last)["status"] == "CANCELLED"  # durable with the answer
    assert wait_end(client, array)["cancelled"] == 500
    assert session(client, other)["status"] != "CANCELLED"
    root = make(client, "root-2", until(gate))
    array = make(client, "leaves-2", array="0-499", dependencies=["failure:root-2"])
    assert client.delete("/session/root-2?recursive=true").status == 200  # as Backend.AI's client
    assert wait_end(client, array)["cancelled"] == 500
    gate.touch()


@pytest.mark.gate
def test_in_containers():
    """Elements of containers wait for those of another array, and see which they are."""
    with Cluster(**settings_of("crun")) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        host = {"image": "host"}
        one = make(client, "one", "test $ALIQUOT_ARRAY_INDEX != 2", "0-2%2", **host)
        two = make(client, "two", "echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT", "0-2",
                   dependencies=["corresponding:one"], **host)
        after = make(client, "after", dependencies=["end:two", "failure:one"], **host)
        ended = wait_end(client, two)
        assert (ended["succeeded"], ended["cancelled"]) == (2, 1), ended
        assert cluster.cli("logs", "two[1]").stdout == "1 of 3\n"
        wait_status(client, after, "TERMINATED")
        assert session(client, after)["started_at"] >= max(
            show(client, array)["terminated_at"] for array in (one, two))
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


def test_retention_keeps_what_is_waited_for(gate):
    with Cluster(ALIQUOT_RETENTION_SESSIONS="30d") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()

        def remove_old():
            reply = client.post("/aliquot/v1/retention/run", {"entities": ["sessions"]})
            assert reply.status == 202, reply

        make(client, "old", until(gate), "0-3%1")
        waiting = make(client, "waiting", dependencies=["end:old[3]", "end:old"], **WAITS)
        gate.touch()
        wait_end(client, "old")
        last = make(client, "last")
        wait_status(client, last, "TERMINATED")
        cluster.programs["agent"].stop()
        cluster.jump(wall=40 * 86400)
        client.shift = 40 * 86400
        remove_old()
        wait_for(lambda: client.get(f"{SESSIONS}/old[0]").status == 404, 60, "elements to go")
        assert client.get(f"{SESSIONS}/old[3]").status == client.get(f"{ARRAYS}/old").status == 200
        assert {on["state"] for on in session(client, waiting)["dependencies"]} == {"met"}
        assert client.delete("/session/waiting").status == 200
        wait_status(client, waiting, "CANCELLED")
        newest = make(client, "newest", **WAITS)
        remove_old()
        wait_for(lambda: client.get(f"{ARRAYS}/old").status == 404, 60, "the array to go")
        assert session(client, waiting)["dependencies"] == []
        client.delete("/session/newest")
        wait_status(client, newest, "CANCELLED")
        assert client.get("/aliquot/v1/audit").json["clean"]
        cluster.stop()
