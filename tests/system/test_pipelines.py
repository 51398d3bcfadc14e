# SPDX-License-Identifier: Apache-2.0
"""Pipelines: graphs of sessions that are run, fail, are resumed, and survive the manager's death."""

import collections
import contextlib
import json
import random
import subprocess
import time

import pytest

from client import DOMAIN_ADMIN, USER
from cluster import GONE, Cluster, wait_for
from world import BUILD

pytestmark = pytest.mark.engines

RUNS = "/aliquot/v1/pipeline-runs"
ENDED = ("succeeded", "failed", "cancelled")

FILE = """\
name: digits
parameters: {{word: {{default: hello}}, code: {{default: 1, type: integer}}}}
defaults: {{image: process, resources: {{cpu: 1, mem: 64m}}}}
tasks:
  prepare: {{command: "{note} prepare ${{{{ parameters.word }}}}"}}
  left: {{needs: [prepare], command: "{note} left"}}
  right: {{needs: [prepare], command: "{note} right"}}
  join: {{needs: [left, right], command: "{note} join"}}
  train:
    needs: [join]
    matrix: {{lr: [0.1, 0.01], seed: [1, 2]}}
    command: "{note} train ${{{{ matrix.lr }}}} ${{{{ matrix.seed }}}}"
  bad: {{needs: [join], retry: 1, command: "{note} bad; exit {code}"}}
  after: {{needs: [bad, train], command: "{note} after"}}
  report: {{needs: [train, bad], when: always, command: "{note} report ${{{{ tasks.bad.state }}}}"}}
  onfail: {{needs: [bad], when: "${{{{ failure() }}}}", command: "{note} onfail"}}
"""
# how often each is run when 'bad' fails
COUNTS = {"prepare hello": 1, "left": 1, "right": 1, "join": 1, "train 0.1 1": 1, "train 0.1 2": 1,
          "train 0.01 1": 1, "train 0.01 2": 1, "bad": 2, "report failed": 1, "onfail": 1}


@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="8", ALIQUOT_MANAGER_HEARTBEAT="0.2s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.stop()


@pytest.fixture(name="note")
def note_fixture(tmp_path):
    """A command that appends its words to a file, and what is there."""
    tmp_path.chmod(0o777)
    return Note(tmp_path / "notes")


class Note:
    def __init__(self, path):
        self.path = path
        path.write_text("")
        path.chmod(0o666)
        self.command = path.with_name("note")
        self.command.write_text(f'#!/bin/sh\necho "$*" >>{path}\n')
        self.command.chmod(0o755)

    def __str__(self):
        return str(self.command)

    def counts(self):
        return dict(collections.Counter(self.path.read_text().splitlines()))


def write(tmp_path, text):
    path = tmp_path / "pipeline.yaml"
    path.write_text(text)
    return str(path)


def digits(note, code=1):
    return FILE.format(note=note, code=code)


def run_cli(cluster, *words):
    done = cluster.cli("pipeline", *words)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.strip()


def show(client, run):
    return client.get(f"{RUNS}/{run}").json


def states(shown):
    return {task["name"]: task["state"] for task in shown["tasks"]}


def wait_end(client, run, seconds=60):
    shown = {}

    def look():
        with contextlib.suppress(*GONE):
            shown.update(show(client, run))
        return shown if shown.get("state") in ENDED else None
    return wait_for(look, seconds, lambda: f"the end of {shown}")


@pytest.mark.gate
def test_a_graph_runs_fails_and_is_resumed(cluster, note, tmp_path):
    client = cluster.client()
    run = run_cli(cluster, "run", write(tmp_path, digits(note)))
    assert run == "digits.1"
    ended = wait_end(client, run)
    assert ended["state"] == "failed"
    assert note.counts() == COUNTS
    assert states(ended) == {
        "prepare": "succeeded", "left": "succeeded", "right": "succeeded", "join": "succeeded",
        **{f"train.{i}": "succeeded" for i in range(1, 5)}, "bad": "failed", "after": "skipped",
        "report": "succeeded", "onfail": "succeeded"}
    tasks = {task["name"]: task for task in ended["tasks"]}
    assert tasks["after"]["reason"] == "task 'bad', which it needs, has failed"
    assert "exit code 1" in tasks["bad"]["reason"] and tasks["bad"]["attempt"] == 2
    shown = run_cli(cluster, "show", run)
    assert "digits.1  failed  10 of 12 tasks succeeded" in shown
    assert "4 tasks: 4 succeeded" in shown

    run_cli(cluster, "resume", run, "--file", write(tmp_path, digits(note, code=0)))
    ended = wait_end(client, run)
    assert ended["state"] == "succeeded" and ended["version"] == 2
    # what needs 'bad' is run again; 'onfail' has nothing to do
    assert note.counts() == {**COUNTS, "bad": 3, "report succeeded": 1, "after": 1}
    assert states(ended)["onfail"] == "skipped"
    done = cluster.cli("pipeline", "resume", run)
    assert done.returncode == 7 and "nothing is left to run" in done.stderr
    assert run in run_cli(cluster, "runs")
    assert run in run_cli(cluster, "ls")


def test_watching_without_a_terminal_prints_changes(cluster, note, tmp_path):
    path = write(tmp_path, f"""\
name: short
defaults: {{image: process, resources: {{cpu: 1, mem: 64m}}}}
tasks:
  one: {{command: "{note} one"}}
  two: {{needs: one, command: "{note} two; exit 3"}}
""")
    done = cluster.cli("pipeline", "run", path, "--watch")
    lines = done.stdout.splitlines()
    assert done.returncode == 1, done
    assert lines[0] == "short.1" and lines[-1] == "short.1 failed"
    assert "one succeeded" in lines and any(line.startswith("two failed: ") for line in lines)
    again = cluster.cli("pipeline", "watch", "short.1")
    assert again.returncode == 1 and "two failed" in again.stdout
    assert "#f8d0cc" in run_cli(cluster, "graph", "short.1", "--format", "svg")
    shown = json.loads(run_cli(cluster, "show", "short.1", "-o", "json"))
    session = cluster.client().get("/aliquot/v1/sessions/" + shown["tasks"][0]["session_id"]).json
    assert session["name"] == "short.1.one"


def test_a_cancelled_run_ends_its_sessions(cluster, note, tmp_path):
    client = cluster.client()
    run = run_cli(cluster, "run", write(tmp_path, f"""\
name: long
defaults: {{image: process, resources: {{cpu: 1, mem: 64m}}}}
tasks:
  one: {{command: "{note} one; sleep 1000"}}
  two: {{needs: one, command: "{note} two"}}
"""))
    wait_for(note.counts, 30, "the first task")
    done = cluster.cli("pipeline", "resume", run)
    assert done.returncode == 7 and "has not ended; cancel it first" in done.stderr
    run_cli(cluster, "cancel", run)
    ended = wait_end(client, run)
    assert ended["state"] == "cancelled"
    assert states(ended) == {"one": "cancelled", "two": "cancelled"}
    wait_for(lambda: not cluster.live_sessions(), 30, "the session to end")
    assert note.counts() == {"one": 1}


def test_tasks_of_an_earlier_run_are_taken_over_when_asked(cluster, note, tmp_path):
    client = cluster.client()
    text = f"""\
name: cached
parameters: {{word: a}}
defaults: {{image: process, resources: {{cpu: 1, mem: 64m}}}}
tasks:
  one: {{command: "{note} one"}}
  two: {{needs: one, command: "{note} two ${{{{ parameters.word }}}}"}}
  three: {{needs: two, command: "{note} three"}}
"""
    run_cli(cluster, "run", write(tmp_path, text))
    wait_end(client, "cached.1")
    run_cli(cluster, "run", "cached", "--cache", "-p", "word=b")
    ended = wait_end(client, "cached.2")
    assert ended["state"] == "succeeded" and ended["tasks"][0]["reason"] == "as in cached.1"
    assert note.counts() == {"one": 1, "two a": 1, "two b": 1, "three": 2}
    run_cli(cluster, "run", "cached")
    assert wait_end(client, "cached.3")["state"] == "succeeded"
    assert note.counts() == {"one": 2, "two a": 2, "two b": 1, "three": 3}


def test_so_many_tasks_at_a_time(cluster, note, tmp_path):
    client = cluster.client()
    run = run_cli(cluster, "run", write(tmp_path, f"""\
name: narrow
max_parallel: 1
defaults: {{image: process, resources: {{cpu: 1, mem: 64m}}}}
tasks:
  all: {{matrix: {{i: [1, 2, 3]}}, command: "{note} begin; sleep 0.3; {note} end"}}
"""))
    assert wait_end(client, run)["state"] == "succeeded"
    assert note.path.read_text().split() == ["begin", "end"] * 3


def test_a_run_is_watched_while_the_manager_restarts(cluster, note, tmp_path):
    gate = tmp_path / "gate"
    path = write(tmp_path, f"""\
name: watched
defaults: {{image: process, resources: {{cpu: 1, mem: 64m}}}}
tasks:
  one: {{command: "{note} one"}}
  two: {{needs: one, command: "until test -e {gate}; do sleep 0.1; done"}}
""")
    watching = subprocess.Popen([BUILD / "aliquot", "pipeline", "run", path, "--watch"], text=True,
                                env={**cluster.env, **cluster.cli_env()}, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
    while "two running" not in watching.stdout.readline():
        pass
    cluster.programs["manager"].kill()
    cluster.start_manager()
    gate.touch()
    out, errors = watching.communicate(timeout=100)
    assert watching.returncode == 0 and "watched.1 succeeded" in out, (out, errors)


def test_what_cannot_be_a_session_fails_with_why(cluster, tmp_path):
    client = cluster.client()
    run = run_cli(cluster, "run", write(tmp_path, """\
name: wrong
defaults: {image: process}
tasks:
  one: {command: "true", resources: {unknown.slot: 1}}
  two: {needs: one, command: "true"}
"""))
    ended = wait_end(client, run)
    assert states(ended) == {"one": "failed", "two": "skipped"}
    assert "unknown.slot" in ended["tasks"][0]["reason"]


def test_mistakes_are_refused_before_anything_runs(cluster, tmp_path):
    done = cluster.cli("pipeline", "run", write(tmp_path, "name: a\ntasks: {b: {comand: x}}\n"))
    assert done.returncode == 4 and "line 2, column 13: unknown key 'comand'" in done.stderr
    reply = cluster.client().post(RUNS, {"payload": "name: a\ntasks: {b: {comand: x}}\n"})
    assert reply.status == 400 and "did you mean 'command'" in reply.json["title"] + str(reply.json)
    done = cluster.cli("pipeline", "run", write(
        tmp_path, "name: a\ntasks: {b: {command: x, image: i, resources: {mem: lots}}}\n"))
    assert done.returncode == 4 and "'lots' is not an amount of mem" in done.stderr
    path = write(tmp_path, digits("true"))
    done = cluster.cli("pipeline", "run", path, "-p", "code=many")
    assert done.returncode == 4 and "not of type integer" in done.stderr
    done = cluster.cli("pipeline", "run", path, "-p", "wrod=x")
    assert done.returncode == 4 and "did you mean 'word'" in done.stderr
    assert cluster.cli("pipeline", "run", "unknown").returncode == 5


def test_a_request_that_is_sent_again_begins_one_run(cluster):
    client = cluster.client()
    body = json.dumps({"payload": 'name: once\ntasks: {a: {image: process, command: "true"}}\n'})
    headers = client.headers("POST", RUNS, "application/json")
    first = client.raw("POST", RUNS, body.encode(), headers)
    again = client.raw("POST", RUNS, body.encode(), headers)
    assert first.status == again.status == 201 and first.json == again.json
    assert again.headers["Idempotent-Replayed"] == "true"
    assert client.get(RUNS + '?filter=name=="once"').json["total"] == 1
    wait_end(client, first.json["id"])


def test_a_resumption_that_is_sent_again_resumes_once(cluster, note):
    client = cluster.client()
    text = f"""\
name: again
defaults: {{image: process, resources: {{cpu: 1, mem: 64m}}}}
tasks: {{a: {{command: "{note} a; exit 1"}}}}
"""
    run = client.post(RUNS, {"payload": text}).json["id"]
    assert wait_end(client, run)["state"] == "failed"
    path = f"{RUNS}/{run}/resume"
    headers = {**client.headers("POST", path, "application/json"), "Idempotency-Key": "again-1"}
    first = client.raw("POST", path, b"{}", headers)
    assert first.status == 200 and first.json["id"] == run, first
    assert wait_end(client, run)["tasks"][0]["attempt"] == 2
    # the answer was lost, and the run has failed once more meanwhile
    headers = {**client.headers("POST", path, "application/json"), "Idempotency-Key": "again-1"}
    again = client.raw("POST", path, b"{}", headers)
    assert again.status == 200 and again.json == first.json, again
    assert again.headers["Idempotent-Replayed"] == "true"
    assert wait_end(client, run)["tasks"][0]["attempt"] == 2
    assert note.counts() == {"a": 2}


@pytest.mark.gate
def test_kept_pipelines_and_their_versions_are_listed(cluster, tmp_path):
    client = cluster.client()
    old = 'name: kept\ntasks: {a: {image: process, command: "true"}}\n'
    new = 'name: kept\ntasks: {b: {image: process, command: "true"}}\n'
    assert client.post("/aliquot/v1/pipelines", {"payload": old}).status == 201
    assert client.post("/aliquot/v1/pipelines", {"payload": new}).status == 201
    rows = {row["name"]: row for row in json.loads(run_cli(cluster, "ls", "-o", "json"))}
    assert rows["kept"]["version"] == 2
    assert rows["kept"]["last_run"] is None and rows["kept"]["last_run_state"] is None
    versions = json.loads(run_cli(cluster, "versions", "kept", "-o", "json"))
    assert [row["version"] for row in versions] == [2, 1]
    assert run_cli(cluster, "show", "kept") == new.strip()
    assert run_cli(cluster, "show", "kept", "--version", "1") == old.strip()
    assert json.loads(run_cli(cluster, "show", "kept", "-o", "json"))["version"] == 2
    # the older one is the latest again when it is run
    run = run_cli(cluster, "run", write(tmp_path, old))
    assert wait_end(client, run)["version"] == 1
    shown = json.loads(run_cli(cluster, "show", "kept", "-o", "json"))
    assert (shown["version"], shown["last_run"], shown["last_run_state"]) == (
        1, "kept.1", "succeeded")
    for words, status in ((("show", "kept", "--version", "9"), 5), (("versions", "unknown"), 5),
                          (("show", run, "--version", "1"), 2), (("show", "unknown"), 5)):
        done = cluster.cli("pipeline", *words)
        assert done.returncode == status, (words, done)


def test_runs_that_have_not_ended_are_limited(cluster):
    user, live = cluster.client(), []

    def begin(cpu, command, number):
        return user.post(RUNS, {"parameters": {"number": str(number)}, "payload": f"""\
name: full
parameters: {{number: "0"}}
tasks: {{a: {{image: process, command: "{command}", resources: {{cpu: {cpu}, mem: 64m}}}}}}
"""})
    ended = begin(1, "exit 1", 0).json["id"]
    assert wait_end(user, ended)["state"] == "failed"
    live.append(begin(8, "sleep 600", 0).json["id"])
    try:
        while (reply := begin(8, "true", len(live))).status == 201:
            live.append(reply.json["id"])
            assert len(live) <= 100
        assert reply.status == 400 and "100 pipeline runs" in str(reply.json)
        reply = user.post(f"{RUNS}/{ended}/resume", {})
        assert reply.status == 400 and "100 pipeline runs" in str(reply.json)
    finally:
        for run in live:
            user.post(f"{RUNS}/{run}/cancel", {})
    wait_end(user, live[0])
    assert user.post(f"{RUNS}/{ended}/resume", {}).status == 200
    for run in (ended, *live):
        wait_end(user, run)


def test_runs_are_seen_by_their_owner_and_administrators(cluster, tmp_path):
    client, user = cluster.client(), cluster.client(USER)
    path = write(tmp_path, 'name: own\ntasks: {a: {image: process, command: "true"}}\n')
    run = json.loads(run_cli(cluster, "run", path, "-o", "json"))["id"]
    assert user.get(f"{RUNS}/{run}").status == 404
    assert user.post(f"{RUNS}/{run}/cancel", {}).status == 404
    assert user.post(f"{RUNS}/{run}/resume", {}).status == 404
    assert not user.get(RUNS).json["items"]
    theirs = user.post(RUNS, {"payload": 'name: x\ntasks: {a: {image: process, command: "true"}}'})
    assert theirs.status == 201, theirs
    assert client.get(f"{RUNS}/{theirs.json['id']}").json["user_email"] == "user@lablup.com"
    assert theirs.json["id"] not in [one["id"] for one in client.get(RUNS).json["items"]]
    assert theirs.json["id"] in [one["id"] for one in client.get(RUNS + "?all=true").json["items"]]
    other = cluster.client(DOMAIN_ADMIN)  # acts for users of the domain, not for superadmins
    assert other.get(f"{RUNS}/{theirs.json['id']}").status == 200
    assert other.post(f"{RUNS}/{run}/resume", {}).status == 404
    wait_end(client, run)
    wait_end(user, theirs.json["id"])


def test_nothing_runs_twice_when_the_manager_is_killed(note):
    """Manager and agent at random times, also while sessions are made; each task runs as often as
    without.
    """
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    with Cluster(ALIQUOT_RESOURCE_CPUS="8", ALIQUOT_MANAGER_HEARTBEAT="0.2s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        cluster.supervise()
        run = json.loads(run_cli(cluster, "run", write(note.path.parent, digits(note)), "-o",
                                 "json"))["id"]
        for _ in range(12):
            time.sleep(chance.uniform(0.05, 1.2))
            cluster.programs[chance.choice(["manager", "manager", "agent"])].process.kill()
        ended = wait_end(client, run, 120)
        assert ended["state"] == "failed"
        assert note.counts() == COUNTS
        cluster.check_audits()
        cluster.stop()


def test_what_a_page_draws(cluster, note, tmp_path):
    """Boxes, declared parameters and values of matrices, of a kept file and of a run."""
    client = cluster.client(USER)
    reply = client.post("/aliquot/v1/pipelines", {"payload": digits(note)})
    assert reply.status == 201, reply
    kept = client.get("/aliquot/v1/pipelines/digits?graph=true").json
    assert kept["declared"] == [
        {"name": "word", "type": "string", "default": "hello", "description": None},
        {"name": "code", "type": "integer", "default": "1", "description": None}]
    assert kept["matrix"]["train.2"] == {"lr": "0.1", "seed": "2"}
    found = {box["name"]: box for box in kept["graph"]["boxes"]}
    names = list(found)
    assert [names[need] for need in found["join"]["needs"]] == ["left", "right"]
    assert found["train"]["column"] == 3 and found["train"]["nodes"] == [[4, 4]]
    assert "graph" not in client.get("/aliquot/v1/pipelines/digits").json
    run = client.post(RUNS, {"pipeline": "digits"}).json
    shown = client.get(f"{RUNS}/{run['id']}?graph=true").json
    assert shown["graph"] == kept["graph"] and len(shown["tasks"]) == 12
    assert client.post(f"{RUNS}/{run['id']}/cancel", {"graph": True}).status == 400
    assert wait_end(client, run["id"])["state"] == "failed"

    many = "".join(f"  step-{i}: {{command: x}}\n" for i in range(100))
    image = run_cli(cluster, "graph", "--format", "svg", write(
        tmp_path, f"name: many\ndefaults: {{image: process}}\ntasks:\n{many}"))
    assert image.count("<rect") == 1 and "step-*" in image and "100 tasks" in image
