# SPDX-License-Identifier: Apache-2.0
"""Values that tasks of pipelines hand on by name, in containers and as processes: what is read, what
is refused, who is given them, and that none is lost when manager and agent are killed."""

import collections
import contextlib
import json
import random
import time

import pytest

from cluster import GONE, Cluster, running, wait_for
from runtimes import settings_of

RUNS = "/aliquot/v1/pipeline-runs"
ENDED = ("succeeded", "failed", "cancelled")
IMAGES = {"process": "process", "crun": "host", "runc": "host"}
DEFAULTS = "defaults: {{image: {image}, resources: {{cpu: 1, mem: 64m}}}}\n"


@pytest.fixture(params=IMAGES, scope="module")
def cluster(request):
    settings = {**settings_of(request.param), "ALIQUOT_RESOURCE_CPUS": "8",
                "ALIQUOT_IMAGE_ALLOW": "* host rootfs:*"}
    with Cluster(**settings) as cluster:
        cluster.image = IMAGES[request.param]
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


def begin(cluster, text, **more):
    payload = f"name: values\n{DEFAULTS.format(image=cluster.image)}{text}"
    reply = cluster.client().post(RUNS, {"payload": payload, **more})
    assert reply.status == 201, reply
    return reply.json["id"]


def wait_end(client, run, seconds=90):
    shown = {}

    def look():
        with contextlib.suppress(*GONE):
            shown.update(client.get(f"{RUNS}/{run}").json)
        return shown if shown.get("state") in ENDED else None
    return wait_for(look, seconds, lambda: f"the end of {shown}")


def tasks_of(shown):
    return {task["name"]: task for task in shown["tasks"]}


def run(cluster, text, **more):
    shown = wait_end(cluster.client(), begin(cluster, text, **more))
    return shown, tasks_of(shown)


def log_of(client, task):
    return client.get(f"/aliquot/v1/sessions/{task['session_id']}/logs", timeout=20).body.decode()


HANDED_ON = r"""
tasks:
  prepare:
    outputs: [rows, notes]
    command: |
      echo rows=7 >>$ALIQUOT_OUTPUT
      echo rows=12 >>$ALIQUOT_OUTPUT
      printf 'notes<<END\n%s\nsecond "line"\nEND\n' first >>$ALIQUOT_OUTPUT
      echo more=unused >>$ALIQUOT_OUTPUT
  train:
    needs: prepare
    matrix: {seed: [1, 2, 3]}
    outputs: [score]
    command: echo score=$(({{ rows }} * {{ seed }})) >>$ALIQUOT_OUTPUT
  use:
    needs: [prepare, train]
    when: tasks.prepare.outputs.rows > 10
    command: printf '%s\n' "$NOTES" '{{ scores }}'
    env: {NOTES: "{{ notes }}"}
  never: {needs: prepare, when: "{{ rows }} < 10", command: "false"}
""".replace("{{ rows }}", "${{ tasks.prepare.outputs.rows }}").replace(
    "{{ seed }}", "${{ matrix.seed }}").replace(
    "{{ scores }}", "${{ tasks.train.outputs.score }}").replace(
    "{{ notes }}", "${{ tasks.prepare.outputs.notes }}").replace(
    'when: "${{ tasks.prepare.outputs.rows }} < 10"',
    'when: "${{ tasks.prepare.outputs.rows < 10 }}"')


@pytest.mark.gate
def test_values_reach_the_tasks_that_need_them(cluster):
    client = cluster.client()
    shown, tasks = run(cluster, HANDED_ON)
    assert shown["state"] == "succeeded", shown
    assert tasks["prepare"]["outputs"] == {
        "rows": "12", "notes": 'first\nsecond "line"', "more": "unused"}
    assert [tasks[f"train.{i}"]["outputs"]["score"] for i in (1, 2, 3)] == ["12", "24", "36"]
    assert log_of(client, tasks["use"]).splitlines() == [
        "first", 'second "line"', '["12","24","36"]']
    assert tasks["use"]["outputs"] is None
    assert tasks["never"]["state"] == "skipped"
    session = client.get(f"/aliquot/v1/sessions/{tasks['prepare']['session_id']}").json
    assert session["outputs"] == tasks["prepare"]["outputs"]
    done = cluster.cli("pipeline", "show", shown["name"])
    assert "prepare.rows = 12" in done.stdout and "prepare.notes = first ..." in done.stdout, done
    said = json.loads(cluster.cli("pipeline", "show", shown["name"], "-o", "json").stdout)
    assert tasks_of(said)["train.2"]["outputs"] == {"score": "24"}


BAD = {
    "line": (r"printf 'a=1\nb 2\n' >>$ALIQUOT_OUTPUT",
             "line 2: expected NAME=VALUE or NAME<<MARKER, not 'b 2'"),
    "dots": ("echo a.b=1 >>$ALIQUOT_OUTPUT", "line 1: name 'a.b' must have"),
    "nul": (r"printf 'a=\000\n' >>$ALIQUOT_OUTPUT", "line 1: byte 3 is NUL"),
    "utf8": (r"printf 'a=\303\050\n' >>$ALIQUOT_OUTPUT", "line 1: the text is not valid UTF-8"),
    "marker": (r"printf 'a<<END\nb\n' >>$ALIQUOT_OUTPUT", "line 1: no later line is the marker"),
    "many": ("for i in $(seq 65); do echo n$i=1; done >>$ALIQUOT_OUTPUT", "line 65: 'n65'"),
    "megabyte": ("{ printf a=; head -c 1048576 /dev/zero | tr '\\0' x; } >>$ALIQUOT_OUTPUT",
                 "the file has more than 65536 bytes"),
    "sparse": ("truncate -s 1T $ALIQUOT_OUTPUT || truncate -s 1G $ALIQUOT_OUTPUT",
               "the file has more than 65536 bytes"),
    "missing": ("echo b=1 >>$ALIQUOT_OUTPUT", "it has not written output 'a'"),
}
# what a task may put in the place of its file, if it can at all
REPLACED = {
    "link": "ln -sf /etc/passwd $ALIQUOT_OUTPUT",
    "zero": "ln -sf /dev/zero $ALIQUOT_OUTPUT",
    "fifo": "rm -f $ALIQUOT_OUTPUT && mkfifo $ALIQUOT_OUTPUT",
    "folder": "rm -f $ALIQUOT_OUTPUT && mkdir $ALIQUOT_OUTPUT",
    "gone": "rm -f $ALIQUOT_OUTPUT",
}


@pytest.mark.gate
def test_files_that_break_the_rules_fail_their_task(cluster):
    lines = [f"  {name}:\n    outputs: [a]\n    command: |\n      {command}\n"
             for name, (command, _) in BAD.items()]
    lines += [f"  {name}:\n    command: |\n      {command}\n" for name, command in REPLACED.items()]
    shown, tasks = run(cluster, "tasks:\n" + "".join(lines) + r"""
  failed: {command: "echo a=kept >>$ALIQUOT_OUTPUT; exit 3"}
""")
    assert shown["state"] == "failed"
    for name, (_, expected) in BAD.items():
        assert tasks[name]["state"] == "failed", tasks[name]
        assert expected in tasks[name]["reason"], tasks[name]
        assert name == "missing" or "bad-output: $ALIQUOT_OUTPUT: " in tasks[name]["reason"]
    for name in REPLACED:
        task = tasks[name]
        assert task["state"] == "failed" and not task["outputs"], task
        if cluster.image == "process":  # the file is its user's
            assert "the file was removed or replaced" in task["reason"], task
        else:  # its folder is root's
            assert "task-failed, exit code" in task["reason"], task
    assert "exit code 3" in tasks["failed"]["reason"]
    assert tasks["failed"]["outputs"] == {"a": "kept"}


def test_of_several_kernels_the_main_one_has_values(cluster):
    _, tasks = run(cluster, r"""
tasks:
  two:
    cluster_size: 2
    outputs: [role]
    command: echo role=$BACKENDAI_CLUSTER_ROLE >>${ALIQUOT_OUTPUT-/dev/null}
""")
    assert tasks["two"]["outputs"] == {"role": "main"}, tasks


@pytest.mark.gate
def test_a_plain_batch_session_has_values(cluster):
    done = cluster.cli("run", "--name", "plain-values", "--image", cluster.image, "-r", "cpu=1",
                       "-r", "mem=64m", "echo answer=42 >>$ALIQUOT_OUTPUT")
    assert done.returncode == 0, done
    shown = json.loads(cluster.cli("session", "show", "plain-values", "-o", "json").stdout)
    assert shown["outputs"] == {"answer": "42"}
    done = cluster.cli("run", "--name", "bad-values", "--image", cluster.image, "-r", "cpu=1",
                       "-r", "mem=64m", "echo answer 42 >>$ALIQUOT_OUTPUT")
    assert done.returncode != 0 and "line 1: expected NAME=VALUE" in done.stderr, done
    shown = json.loads(cluster.cli("session", "show", "bad-values", "-o", "json").stdout)
    assert shown["reason"] == "bad-output" and shown["result"] == "FAILURE"


def test_an_interactive_session_has_no_file(cluster):
    with running(cluster.client(), "no-file", image=cluster.image):
        done = cluster.cli("exec", "no-file", "sh", "-c", "echo ${ALIQUOT_OUTPUT-none}")
        assert done.stdout == "none\n", done


CHAIN = r"""
parameters: {{fail: "1"}}
tasks:
  draw: {{outputs: [value], command: "{draw} >>$ALIQUOT_OUTPUT"}}
  use: {{needs: draw, outputs: [got], command: "echo got=${{{{ tasks.draw.outputs.value }}}} >>$ALIQUOT_OUTPUT"}}
  last: {{needs: use, command: "test ${{{{ tasks.use.outputs.got }}}} = {wanted}"}}
"""


def test_values_of_kept_tasks_are_kept(cluster):
    client = cluster.client()
    draw = "echo value=$(cat /proc/sys/kernel/random/uuid)"
    first, tasks = run(cluster, CHAIN.format(draw=draw, wanted="other"))
    value = tasks["draw"]["outputs"]["value"]
    assert first["state"] == "failed" and tasks["use"]["outputs"] == {"got": value}
    # the same tasks in another run have another value
    second, tasks = run(cluster, CHAIN.format(draw=draw, wanted="other"))
    newer = tasks["draw"]["outputs"]["value"]
    assert newer != value and tasks["use"]["outputs"] == {"got": newer}
    # resumed, the first keeps its own
    text = f"name: values\n{DEFAULTS.format(image=cluster.image)}" + CHAIN.format(draw=draw,
                                                                                 wanted=value)
    assert client.post(f"{RUNS}/{first['id']}/resume", {"payload": text}).status == 200
    shown = wait_end(client, first["id"])
    assert shown["state"] == "succeeded", shown
    assert tasks_of(shown)["use"]["outputs"] == {"got": value}
    # and who takes over tasks of earlier runs gets those that belong together
    cached, tasks = run(cluster, CHAIN.format(draw=draw, wanted="$(echo other)"), cache=True)
    assert cached["state"] == "failed"
    assert tasks["draw"]["reason"].startswith("as in values.")
    assert tasks["use"]["outputs"] == {"got": tasks["draw"]["outputs"]["value"]}
    assert second["number"] == first["number"] + 1


TEN = r"""
max_parallel: 4
tasks:
  prepare: {outputs: [token], command: "{draw}"}
  left: {needs: prepare, outputs: [got], command: "{pass} prepare"}
  right: {needs: prepare, outputs: [got], command: "{pass} prepare"}
  join: {needs: [left, right], outputs: [token], command: "{draw}"}
  train: {needs: join, matrix: {i: [1, 2, 3]}, outputs: [token], command: "{draw}"}
  scores: {needs: train, outputs: [got], command: "{list} >>$ALIQUOT_OUTPUT"}
  bad: {needs: join, retry: 1, outputs: [token], command: "{draw}; exit 1"}
  after: {needs: [bad, scores], command: "true"}
  report: {needs: [scores, bad], when: always, outputs: [got], command: "{state} >>$ALIQUOT_OUTPUT"}
  onfail: {needs: bad, when: "failure()", command: "true"}
""".replace("{draw}", "sleep 0.2; echo token=$(cat /proc/sys/kernel/random/uuid) >>$ALIQUOT_OUTPUT"
            ).replace("{pass} prepare", "echo got=${{ tasks.prepare.outputs.token }} "
                      ">>$ALIQUOT_OUTPUT").replace(
    "{list}", "echo 'got=${{ tasks.train.outputs.token }}'").replace(
    "{state}", "echo got=${{ tasks.bad.state }}")
SESSIONS = {"prepare": 1, "left": 1, "right": 1, "join": 1, "train.1": 1, "train.2": 1,
            "train.3": 1, "scores": 1, "bad": 2, "report": 1, "onfail": 1}


@pytest.mark.parametrize("number", [pytest.param(0, marks=pytest.mark.gate),
                                    *(pytest.param(number, marks=pytest.mark.exhaustive)
                                      for number in range(1, 200))])
def test_values_survive_the_death_of_manager_and_agent(number):
    """Ten tasks in containers; each has as many sessions as its policy says, each program has run
    once, and who needs a value has got the one that is kept.
    """
    seed = random.randrange(1 << 32)
    print(f"run {number}, seed {seed}")
    chance = random.Random(seed)
    with Cluster(**{**settings_of("crun"), "ALIQUOT_RESOURCE_CPUS": "8",
                    "ALIQUOT_IMAGE_ALLOW": "* host rootfs:*"}) as cluster:
        cluster.image = "host"
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        cluster.supervise()
        run_id = begin(cluster, TEN)
        for _ in range(12):
            time.sleep(chance.uniform(0.05, 1.2))
            cluster.programs[chance.choice(["manager", "agent"])].process.kill()
        shown = wait_end(client, run_id, 180)
        tasks = tasks_of(shown)
        wait_for(cluster.is_serving, 60, "the manager")
        assert shown["state"] == "failed", shown
        assert {name: task["state"] for name, task in tasks.items()} == {
            **dict.fromkeys(SESSIONS, "succeeded"), "bad": "failed", "after": "skipped"}
        sessions = client.get("/aliquot/v1/sessions?limit=100&all=true").json["items"]
        counts = collections.Counter(one["name"].removeprefix("values.1.") for one in sessions)
        assert counts == SESSIONS
        token = tasks["prepare"]["outputs"]["token"]
        assert tasks["left"]["outputs"] == tasks["right"]["outputs"] == {"got": token}
        assert json.loads(tasks["scores"]["outputs"]["got"]) == [
            tasks[f"train.{i}"]["outputs"]["token"] for i in (1, 2, 3)]
        assert tasks["report"]["outputs"] == {"got": "failed"}
        for session in sessions:
            whole = client.get(f"/aliquot/v1/sessions/{session['id']}").json
            assert not whole["attempts"] or len(whole["attempts"]) == 1, whole
        cluster.check_audits()
        cluster.stop()
