# SPDX-License-Identifier: Apache-2.0
"""What a user meets in the first hour: whose project a session is in, how a machine joins, when
and whether a session would start."""

import contextlib
import datetime
import json
import re
import time

import pytest

from client import USER, WebSocket
from cluster import Cluster, batch, wait_for, wait_status
from link_agent import LinkAgent
from world import Space

SMALL = ("-r", "cpu=1", "-r", "mem=32m")


@pytest.fixture(scope="module")
def cluster():
    with Cluster(TERM="xterm", LC_ALL="C.UTF-8", NO_COLOR="1", TZ="UTC-9") as cluster:
        cluster.start_manager()
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module", name="with_agent")
def with_agent_fixture(cluster):
    cluster.start_agent()
    return cluster


def fine(done):
    assert done.returncode == 0, done
    return done.stdout


# ---- before a machine has joined ----

def test_a_cluster_without_machines_says_how_one_joins(cluster):
    fine(cluster.cli("session", "create", "-t", "early", *SMALL, "--", "true"))
    for words in (("session", "why", "early"), ("run", "--dry-run", *SMALL, "true")):
        said = fine(cluster.cli(*words, COLUMNS="1000"))
        assert "no machine has joined the cluster" in said and "aliquot agent token" in said, said
        assert "filter" not in said and "architecture" not in said, said
    fine(cluster.cli("rm", "early"))


def joins_with(done):
    assert done.returncode == 0, done
    return re.search(r"join (\S+) (\S+)$", done.stderr, re.M).groups()


def test_the_line_for_a_new_machine_has_the_address_of_the_link():
    """The API is on 127.0.0.1, and the link on another address: it is the one that is printed."""
    with Cluster() as other:
        port = other.link.rpartition(":")[2]
        other.link = f"127.0.0.3:{port}"
        other.start_manager()
        done = other.cli("agent", "token")
        where, token = joins_with(done)
        assert where == other.link and "[link] listen" in done.stderr
        assert token == done.stdout.split()[1]
        fine(other.run("aliquot-agent", "--state", other.folder / "agent", "join", where, token))
        other.stop()


@pytest.mark.parametrize("anything", ["0.0.0.0", "[::]"])
def test_a_link_on_all_addresses_is_named_as_the_manager_was(anything):
    with contextlib.closing(Space()) as network, Cluster() as other, network.entered():
        port = other.link.rpartition(":")[2]
        other.link = f"{anything}:{port}"
        done = other.run("aliquot-manager", "--state", other.folder / "manager", "--json", "init")
        keys = json.loads(done.stdout)
        other.start_manager(dev=False)
        env = dict(other.cli_env((keys["access_key"], keys["secret_key"])),
                   ALIQUOT_ENDPOINT="http://localhost:%d" % other.address[1])
        where, token = joins_with(other.run("aliquot", "agent", "token", **env))
        assert where == f"localhost:{port}"
        fine(other.run("aliquot-agent", "--state", other.folder / "agent", "join", where, token))
        other.stop()


# ---- projects ----

@pytest.fixture(scope="module", name="people")
def people_fixture(with_agent):
    """Users by the projects that they are in; each is a function that runs commands."""
    cluster = with_agent

    def admin(*words):
        return fine(cluster.cli("admin", *words))

    def person(name, domain, *projects):
        email = name + "@example.com"
        groups = [word for project in projects for word in ("--groups", project)]
        admin("user", "create", email, "--domain", domain, *groups)
        if not projects:
            admin("project", "remove-user", "default", email)
        made = json.loads(admin("keypair", "create", email, "-o", "json"))
        keys = cluster.cli_env((made["access_key"], made["secret_key"]))
        return lambda *words, **more: cluster.run("aliquot", *words, **keys, **more)

    for project in ("optics", "lasers"):
        admin("project", "create", project)
    admin("domain", "create", "physics")
    admin("project", "create", "quanta", "--domain", "physics")
    admin("resource-group", "allow", "default", "--domain", "physics")
    return {"one": person("one", "default", "optics"), "far": person("far", "physics", "quanta"),
            "two": person("two", "default", "optics", "lasers"),
            "usual": person("usual", "default", "optics", "default"),
            "none": person("none", "default")}


def whoami(person, **more):
    return json.loads(fine(person("whoami", "-o", "json", **more)))


@pytest.mark.parametrize("name, domain, project", [
    ("one", "default", "optics"), ("far", "physics", "quanta"), ("usual", "default", "default")])
def test_the_project_of_a_user_is_taken(people, name, domain, project):
    """Neither an option nor a setting is needed, and whoami names the same project."""
    person = people[name]
    fine(person("run", *SMALL, "--name", "first-" + name, "true"))
    shown = json.loads(fine(person("session", "info", "first-" + name, "-o", "json")))
    assert (shown["domain"], shown["group"]) == (domain, project)
    known = whoami(person)
    assert (known["domain"], known["group"]) == (domain, project)
    assert project in known["projects"]
    assert "aliquot config set" not in person("whoami").stderr


def test_one_of_several_projects_is_to_be_named(people):
    person = people["two"]
    refused = person("run", *SMALL, "true")
    assert refused.returncode == 125 and "--group: no project was named" in refused.stderr
    assert re.search(r"name one of (lasers, optics|optics, lasers)", refused.stderr), refused
    known = person("whoami")
    assert "PROJECT " not in known.stdout and "aliquot config set group PROJECT" in known.stderr
    assert sorted(whoami(person)["projects"]) == ["lasers", "optics"]
    for option, settings in ((("--group", "lasers"), {}), ((), {"ALIQUOT_GROUP": "lasers"})):
        fine(person("run", *option, *SMALL, "--name", "named", "true", **settings))
    assert whoami(person, ALIQUOT_GROUP="lasers")["group"] == "lasers"
    wrong = person("run", "--group", "quanta", *SMALL, "true")
    assert re.search(r"'quanta' is not one of yours; name one of .*optics", wrong.stderr), wrong
    assert "you are not in project 'quanta'" in person("whoami", ALIQUOT_GROUP="quanta").stderr


def test_a_user_without_a_project_is_told_whom_to_ask(people):
    person = people["none"]
    assert "you are in no project: ask an administrator" in person("run", *SMALL, "true").stderr
    assert "aliquot admin project add-user PROJECT none@example.com" in person("whoami").stderr


def test_a_script_of_slurm_has_the_project_as_its_account(with_agent, people):
    script = with_agent.folder / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH --job-name=account -c 1 --mem=32M\n"
                      "echo \"account $SLURM_JOB_ACCOUNT\"\n")
    person = people["one"]
    fine(person("submit", "--wait", script))
    assert "account optics" in fine(person("logs", "account"))


# ---- forecasts ----

@pytest.fixture(name="played")
def played_fixture():
    """A cluster whose agent is the test: 3 cores, one image, and nothing runs."""
    with Cluster(ALIQUOT_AGENTS_HEARTBEAT="300s", ALIQUOT_AGENTS_TIMEOUT="1h", NO_COLOR="1") as cluster:
        cluster.start_manager()
        cluster.join("played")
        agent = LinkAgent(cluster, "played")
        assert agent.connect(agent.hello(slots={"cpu": ["count", "3"], "mem": ["bytes", "8589934592"]}))
        agent.send({"type": "heartbeat", "incarnation": agent.incarnation, "seq": 1, "kernels": []})
        agent.send({"type": "image.list", "images": [
            {"digest": "sha256:1", "names": ["docker.io/library/python:3"], "size_bytes": 1,
             "architecture": "x86_64", "labels": {}}]})
        wait_for(lambda: "python:3" in fine(cluster.cli("image", "ls")), what="the agent's image")
        yield cluster
        agent.close()
        cluster.stop()


def forecast(cluster, **more):
    body = {**batch("forecast", "true"), "image": "python:3", **more}
    reply = cluster.client(USER).post("/aliquot/v1/sessions/_/dry-run", body)
    assert reply.status == 200, reply
    return reply.json


def test_a_forecast_of_several_counts_those_that_fit(played):
    said = fine(played.cli("run", "--dry-run", "--image", "python:3", "--count", "5", *SMALL, "true"))
    assert "3 of 5 sessions would start now" in said and "cpu: 1 missing on played" in said, said
    found = forecast(played, count=5)
    assert (found["count"], found["starts_now"], found["explanation"]["kind"]) == (5, 3, "no-room")
    assert (found["explanation"]["position"], found["explanation"]["queue_length"]) == (1, 2)
    found = forecast(played, count=3)
    assert found["starts_now"] == 3 and found["explanation"]["kind"] == "placed"
    assert found["text"] == "All 3 sessions fit and start with the next pass."
    assert forecast(played)["text"] == "There is room; it starts with the next pass."
    assert played.cli("ps", "--all", "-o", "name").stdout == ""


@pytest.mark.parametrize("count", [0, -1, 1001, "2", 1.5, None, True])
def test_a_forecast_is_of_a_number_of_sessions(played, count):
    reply = played.client(USER).post("/aliquot/v1/sessions/_/dry-run",
                                     {**batch("forecast", "true"), "count": count})
    assert reply.status == 400 and "from 1 to 1000" in reply.json["data"]["count"], reply


def test_a_forecast_keeps_to_limits(played):
    """As many as a limit allows start, and a request above one never does."""
    admin = ("admin", "policy", "set", "default")
    fine(played.cli(*admin, "--max-concurrent-sessions", "2"))
    found = forecast(played, count=3)
    assert (found["starts_now"], found["explanation"]["kind"]) == (2, "concurrency")
    fine(played.cli(*admin, "--max-concurrent-sessions", "0", "--total-slots", "cpu=2"))
    found = forecast(played, count=3)
    assert (found["starts_now"], found["explanation"]["kind"]) == (2, "quota")
    assert "never" not in found["explanation"] and "never" not in found["text"]
    found = forecast(played, config={"resources": {"cpu": "3", "mem": "64m"}})
    assert (found["starts_now"], found["explanation"]["never"]) == (0, True)
    assert "limit 2" in found["text"] and "It never starts" in found["text"], found
    done = played.cli("run", "--dry-run", "--image", "python:3", "-r", "cpu=3", "true")
    assert "It never starts: the limit allows cpu=2 at most. Request less" in fine(done)


def test_a_forecast_names_an_image_that_no_agent_has(played):
    done = played.cli("run", "--dry-run", "--image", "registry.example.org/nosuch:1", *SMALL, "true")
    assert "has the image 'registry.example.org/nosuch:1'" in fine(done)
    assert "fetches it from 'registry.example.org' first" in done.stdout
    found = forecast(played, image="nosuch:1")["explanation"]
    assert found["image_to_fetch"] == "docker.io/library/nosuch:1"
    for known in ("python:3", "docker.io/library/python:3", "process", "host"):
        assert "image_to_fetch" not in forecast(played, image=known)["explanation"], known


def test_a_session_behind_another_reads_that_it_waits_its_turn(played):
    """Without backfill no pass looks at the second one in the queue: it has words all the same."""
    fine(played.cli("admin", "resource-group", "set", "default", "--backfill", "no"))
    user = played.client(USER)

    def make(name, cpu):
        return user.post("/session", batch(name, "true", config={
            "resources": {"cpu": cpu, "mem": "64m"}})).json["sessionId"]

    wait_status(user, make("holds", "2"), "SCHEDULED", "PREPARING", "PULLING", "PREPARED", "CREATING")
    first, second = make("first", "3"), make("second", "1")
    feed = WebSocket(user, "/aliquot/v1/live")
    feed.send(json.dumps({"subscribe": ["queue"]}))
    texts = {}

    def read():
        opcode, payload = feed.receive()
        if opcode == 9:
            feed.send(payload, opcode=10)
        elif opcode == 1:
            for session, row in json.loads(payload).get("set", {}).items():
                texts[session] = row.get("text", texts.get(session))
        return texts.get(first) and texts.get(second)
    wait_for(read, what=lambda: f"both to have words: {texts}")
    assert "cpu: " in texts[first] and texts[second].startswith("It waits its turn"), texts
    said = fine(played.run("aliquot", "session", "why", second, **played.cli_env(USER)))
    assert "session 'first'" in said and "is before it" in said, said


def test_agents_that_take_nothing_are_counted(played):
    fine(played.cli("admin", "resource-group", "create", "bare"))
    fine(played.cli("admin", "resource-group", "allow", "bare", "--domain", "default"))
    bare = fine(played.cli("run", "--dry-run", "--resource-group", "bare", *SMALL, "true"))
    assert "resource group 'bare' has none" in bare and "--resource-group" in bare, bare
    fine(played.cli("agent", "drain", "played"))
    said = fine(played.cli("run", "--dry-run", *SMALL, "true"))
    assert "none in resource group 'default' takes new sessions (drained: 1, not connected: 0" in said, said
    for text in (bare, said):
        assert "filter" not in text and "blocked by a limit" not in text, text


# ---- times ----

def local(seconds):
    """A date of the cluster's time zone, nine hours east of UTC, without saying so."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 9 * 3600 + seconds))


def seconds_until(iso):
    return datetime.datetime.fromisoformat(iso).timestamp() - time.time()


def test_a_start_without_a_zone_is_local(with_agent):
    """--starts-at is read as sbatch's --begin, and shown by the local clock."""
    cluster = with_agent
    done = cluster.cli("session", "create", "-t", "soon", *SMALL, "--starts-at", local(3600), "--", "true")
    fine(done)
    assert re.search(r"starts at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(in (59|60) min\)", done.stderr), done
    shown = json.loads(fine(cluster.cli("session", "info", "soon", "-o", "json")))
    assert 3000 < seconds_until(shown["starts_at"]) <= 3600, shown["starts_at"]
    assert re.search(r"^STARTS +in 59 min$", fine(cluster.cli("session", "info", "soon")), re.M)
    zoned = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 7200))
    fine(cluster.cli("session", "create", "-t", "zoned", *SMALL, "--starts-at", zoned, "--", "true"))
    shown = json.loads(fine(cluster.cli("session", "info", "zoned", "-o", "json")))
    assert 6600 < seconds_until(shown["starts_at"]) <= 7200, shown["starts_at"]
    fine(cluster.cli("rm", "--yes", "soon", "zoned"))


def test_lists_since_a_date_without_a_zone_are_local(with_agent):
    cluster = with_agent
    fine(cluster.cli("admin", "project", "create", "dated"))
    words = ("admin", "audit-log", "--object", "dated", "-o", "name")
    everything = fine(cluster.cli(*words))
    assert everything
    assert fine(cluster.cli(*words, "--since", local(-600))) == everything
    assert fine(cluster.cli(*words, "--since", local(600))) == ""
    assert fine(cluster.cli(*words, "--until", local(600))) == everything
    assert fine(cluster.cli(*words, "--until", local(-600))) == ""
    day = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 9 * 3600))
    for given in (day, day.replace("-", "")):
        used = json.loads(fine(cluster.cli("admin", "usage", "--since", given, "-o", "json")))
        note = cluster.cli("admin", "usage", "--since", given).stderr
        assert used == [] or f"held from {day} 00:00" in note, note


def test_a_time_limit_is_shown_with_what_is_left(with_agent):
    cluster = with_agent
    fine(cluster.cli("run", "-d", "--name", "limited", *SMALL, "--timeout", "1h30m", "sleep 600"))
    fine(cluster.cli("run", "-d", "--name", "later", *SMALL, "--timeout", "90s", "--starts-at", "1h", "true"))
    wait_status(cluster.client(), "limited", "RUNNING")
    info = fine(cluster.cli("session", "info", "limited"))
    assert re.search(r"^TIME-LIMIT +1h30m$", info, re.M), info
    assert re.search(r"^ENDS-BY +in (89|90) min|^ENDS-BY +in 1 h$", info, re.M), info
    found = json.loads(fine(cluster.cli("session", "info", "limited", "-o", "json")))
    assert found["timeout_sec"] == 5400 and 5000 < seconds_until(found["ends_by"]) <= 5400
    said = fine(cluster.cli("session", "why", "limited"))
    assert re.search(r"Its time limit of 1h30m ends at \d{4}-\S+ \d\d:\d\d:\d\d \(in ", said), said
    assert "Its time limit is 1m30s from its start on." in fine(cluster.cli("session", "why", "later"))
    fine(cluster.cli("run", "--name", "endless", *SMALL, "true"))
    assert "TIME-LIMIT" not in fine(cluster.cli("session", "info", "endless"))
    fine(cluster.cli("rm", "--yes", "limited", "later"))
