# SPDX-License-Identifier: Apache-2.0
"""The life of sessions as a user sees it: everything through the command line."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess

import pytest

from cluster import Cluster, batch, wait_for
from terminal import Terminal
from world import BUILD, processes_of

pytestmark = pytest.mark.engines

SMALL = ("-r", "cpu=1", "-r", "mem=32m")


class Person:
    """Somebody with a shell and a key."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.env = {**cluster.env, **cluster.cli_env(), "TERM": "xterm"}

    def __call__(self, *words, status=0):
        done = self.cluster.cli(*words)
        assert done.returncode == status, f"{words}: {done}"
        return done.stdout

    def start(self, *words):
        return subprocess.Popen([BUILD / "aliquot", *words], env=self.env, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, errors="replace")

    def attach(self, name, **size):
        return Terminal(str(BUILD / "aliquot"), "session", "attach", name, env=self.env, **size)

    def create(self, name, *words):
        return self("session", "create", *SMALL, "-t", name, *words)

    def info(self, name):
        return json.loads(self("session", "info", name, "-o", "json"))

    def wait_status(self, name, *wanted):
        return wait_for(lambda: (shown := self.info(name))["status"] in wanted and shown, 60,
                        lambda: f"{name} to be {wanted}: {self.info(name)}")


@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="8", ALIQUOT_SESSIONS_KILL_GRACE="1s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


@pytest.fixture
def person(cluster):
    person = Person(cluster)
    yield person
    person("rm", "--all", "--yes", "--wait")


def pid_of(cluster, kernel):
    """A process that runs in a kernel of this name."""
    mark = f"BACKENDAI_CLUSTER_HOST={kernel}\0".encode()
    for pid in processes_of(cluster.folder):
        with contextlib.suppress(OSError):
            if mark in pathlib.Path(f"/proc/{pid}/environ").read_bytes():
                return pid
    return None


@pytest.mark.gate
def test_the_main_kernel_gives_the_exit_status(person, tmp_path):
    """Another one that was killed does not change it."""
    go = tmp_path / "go"
    run = person.start("run", *SMALL, "--name", "pair", "--cluster-size", "2",
                       "--on-failure", "continue", "--",
                       "sh", "-c", f"until [ -e {go} ]; do sleep 0.1; done")
    os.kill(wait_for(lambda: pid_of(person.cluster, "sub1"), 60, "the other kernel"), signal.SIGKILL)
    wait_for(lambda: person.info("pair")["kernels"][1]["exit_code"], 60, "its end")
    go.touch()
    assert run.wait(timeout=60) == 0, run.stderr.read()
    assert person.info("pair")["exit_code"] == 0
    assert "exit status 0" in person("session", "why", "pair")


# ---- logs ----

@pytest.mark.gate
def test_logs_are_followed_live(person, tmp_path):
    """A line is there before the next one is written."""
    go = tmp_path / "go"
    person.create("speaker", "--", "sh", "-c",
                  f"echo one; until test -e {go}; do sleep 0.05; done; echo two; exit 3")
    logs = person.start("logs", "-f", "speaker")
    assert logs.stdout.readline() == "one\n"
    assert logs.poll() is None and person.info("speaker")["status"] == "RUNNING"
    go.touch()
    assert logs.stdout.readline() == "two\n"
    assert (logs.stdout.read(), logs.wait(60)) == ("", 0)
    person.wait_status("speaker", "TERMINATED")
    assert person("logs", "speaker") == "one\ntwo\n", "kept"
    assert person("logs", "--tail", "1", "speaker") == "two\n"


def test_logs_are_followed_from_before_the_beginning(person, tmp_path):
    go = tmp_path / "go"
    person.create("earlier", "--", "sh", "-c", f"until test -e {go}; do sleep 0.05; done")
    person.create("late", "--after", "earlier", "--", "echo", "begun")
    logs = person.start("logs", "-f", "late")
    go.touch()
    assert logs.communicate(timeout=60)[0] == "begun\n" and logs.returncode == 0


# ---- a terminal ----

def test_a_terminal_has_the_size_of_the_window(person):
    person.create("shell")
    person.wait_status("shell", "RUNNING")
    terminal = person.attach("shell", rows=31, columns=97)
    terminal.send(b"PS1='rea''dy>'\r")
    terminal.send(b"until test \"$(stty size)\" = '31 97'; do sleep 0.05; done; echo first=$?\r")
    terminal.expect(b"first=0")
    terminal.resize(45, 123)
    terminal.send(b"until test \"$(stty size)\" = '45 123'; do sleep 0.05; done; echo second=$?\r")
    terminal.expect(b"second=0")
    terminal.expect(b"ready>")  # before it asks, the shell's library loses an end of the input
    terminal.send(b"\x04")  # an end of the input ends the shell, and with it the session
    terminal.wait()
    shown = person.wait_status("shell", "TERMINATED")
    assert shown["reason"] == "self-terminated"


def test_a_closed_window_ends_nothing(person):
    person.create("patient")
    person.wait_status("patient", "RUNNING")
    terminal = person.attach("patient")
    terminal.send(b"mark=kept-$((40+2))\r")
    terminal.send(b"echo $mark\r")
    terminal.expect(b"kept-42\r\n")
    terminal.hang_up()
    second = person.attach("patient")
    second.send(b"echo again $mark\r")
    second.expect(b"again kept-42\r\n")
    second.kill()
    assert person.info("patient")["status"] == "RUNNING"


@pytest.mark.gate
def test_two_windows_show_the_same(person):
    person.create("shared")
    person.wait_status("shared", "RUNNING")
    left, right = person.attach("shared"), person.attach("shared")
    right.send(b"true\r")
    right.expect(b"true")
    left.send(b"echo seen-by-$((1+1))\r")
    left.expect(b"seen-by-2")
    right.expect(b"seen-by-2")
    left.kill()
    right.kill()


# ---- dependencies ----

def test_one_after_the_other(person, tmp_path):
    ran, go = tmp_path / "ran", tmp_path / "go"
    person.create("prepare", "--", "sh", "-c",
                  f"until test -e {go}; do sleep 0.05; done; echo prepare >> {ran}")
    person.create("train", "--after", "prepare", "--", "sh", "-c", f"echo train >> {ran}")
    person.create("report", "--after", "prepare", "--after", "train", "--", "sh", "-c",
                  f"echo report >> {ran}")
    prepare = person.info("prepare")["id"]
    wait_for(lambda: prepare in person("session", "why", "train"), 30, "a reason")
    assert person.info("report")["status"] == "PENDING" and not ran.exists()
    go.touch()
    person("session", "wait", "prepare", "train", "report")
    assert ran.read_text().split() == ["prepare", "train", "report"]


def test_nothing_comes_after_a_failure(person):
    person.create("broken", "--starts-at", "2s", "--", "sh", "-c", "exit 3")
    person.create("hopeful", "--after", "broken", "--", "true")
    person.create("orphan", "--after", "hopeful", "--", "true")
    for name in ("hopeful", "orphan"):
        shown = person.wait_status(name, "CANCELLED")
        assert shown["reason"] == "dependency-failed", shown
    for dependency, says in (("broken", "ended without success"), ("nobody-knows", "nobody-knows")):
        done = person.cluster.cli("session", "create", *SMALL, "--after", dependency, "--", "true")
        assert done.returncode != 0 and says in done.stderr, done


def test_what_comes_after_a_start_an_end_or_a_failure(person, tmp_path):
    go, ran = tmp_path / "go", tmp_path / "ran"
    person.create("first", "--", "sh", "-c", f"until test -e {go}; do sleep 0.05; done; exit 4")
    for condition in ("start", "end", "failure", "success"):
        person.create(f"on-{condition}", "--after", f"{condition}:first", "--",
                      "sh", "-c", f"echo {condition} >> {ran}")
    person("session", "wait", "on-start")
    first = person.info("first")["id"]
    assert f"(end of {first})" in person("session", "why", "on-end")
    assert ran.read_text().split() == ["start"]
    # A manager that restarts knows which conditions were met.
    person.create("later", "--after", "start:first", "--after", "on-start", "--starts-at", "1s",
                  "--", "sh", "-c", f"echo later >> {ran}")
    manager = person.cluster.programs["manager"]
    manager.kill()
    manager.start()
    wait_for(person.cluster.is_serving, 60, "the manager")
    person("session", "wait", "later")
    go.touch()
    person("session", "wait", "on-end", "on-failure")
    shown = person.wait_status("on-success", "CANCELLED")
    assert shown["reason"] == "dependency-failed", shown
    assert sorted(ran.read_text().split()) == ["end", "failure", "later", "start"]
    for after, says in (("success:first", "what waits for its success would never start"),
                        ("failure:on-end", "what waits for its failure would never start"),
                        ("ok:first", "must be success, failure, end, start or corresponding"),
                        ("start:nobody", "no session or array of yours is called 'nobody'")):
        done = person.cluster.cli("session", "create", *SMALL, "--after", after, "--", "true")
        assert done.returncode != 0 and says in done.stderr, done
    for after in ("first", "failure:first"):
        done = person.cluster.cli("session", "create", *SMALL, "--after", "end:first", "--after",
                                  after, "--", "true")
        assert done.returncode != 0, done
    assert person.cluster.cli("admin", "audit").returncode == 0


# ---- results ----

@pytest.mark.gate
@pytest.mark.parametrize("program, result, code, reason", [
    ("true", "SUCCESS", 0, "task-finished"), ("exit 7", "FAILURE", 7, "task-failed"),
    ("kill -9 $$", "FAILURE", 137, "task-failed"), ("kill $$", "FAILURE", 143, "task-failed"),
    ("no-such-command-here", "FAILURE", 127, "task-failed"),
])
def test_results(person, program, result, code, reason):
    name = f"result-{code}"
    person.create(name, "--", "sh", "-c", program)
    assert person.cluster.cli("session", "wait", name).returncode == code
    shown = person.info(name)
    assert (shown["status"], shown["result"], shown["exit_code"], shown["reason"]) \
        == ("TERMINATED", result, code, reason), shown


def test_a_program_that_takes_too_long(person):
    person.create("endless", "--timeout", "1s", "--", "sleep", "1000")
    shown = person.wait_status("endless", "TERMINATED")
    assert (shown["result"], shown["reason"]) == ("FAILURE", "task-timeout"), shown


@pytest.mark.gate
def test_time_limits_as_they_are_written(person):
    """0 is none; fractions and several units are taken by both, the command line and REST."""
    for limit in ("0", "1h30m", "1.5d"):
        person("run", *SMALL, "--timeout", limit, "--", "true")
    client = person.cluster.client()
    for limit, status in ((0, 201), (1.5, 201), ("90", 201), ("1h30m", 201), (-1, 400), ("soon", 400),
                          (1e12, 400)):
        reply = client.post("/session", batch(f"limit-{status}-{limit}".replace(".", "-"), "true",
                                              image="process", batch_timeout=limit))
        assert reply.status == status, reply
        assert status == 201 or "batch_timeout" in str(reply.json), reply


OBLIGING = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"


@pytest.mark.gate
def test_who_is_ended_has_not_succeeded_whatever_the_exit_status(person, tmp_path):
    """Its time limit, or its user: 0 is the answer to the signal, not the end of the work."""
    person.create("opens", "--", "sh", "-c", f"until [ -e {tmp_path}/go ]; do sleep 0.05; done")
    at_limit = person.start("run", *SMALL, "--name", "obliging", "--after", "opens", "--timeout",
                            "0.5s", "--", "sh", "-c", OBLIGING)
    wait_for(lambda: "obliging" in person("ps", "-o", "name"), 30, "the session")
    person.create("obliged", "--after", "obliging", "--", "true")
    (tmp_path / "go").touch()
    person.create("asked", "--", "sh", "-c", OBLIGING)
    wait_for(lambda: person("logs", "asked") == "ready\n", 30, "the program")
    person("rm", "--wait", "asked")
    out, err = at_limit.communicate(timeout=60)
    assert at_limit.returncode == 124 and "its --timeout of 0.5 s was over" in err, (out, err)
    assert person.cluster.cli("session", "wait", "obliging").returncode == 124
    assert person.cluster.cli("session", "wait", "asked").returncode == 1
    for name, reason in (("obliging", "task-timeout"), ("asked", "user-requested")):
        shown = person.info(name)
        assert (shown["result"], shown["exit_code"], shown["reason"]) == ("FAILURE", 0, reason)
    assert person.wait_status("obliged", "CANCELLED")["reason"] == "dependency-failed"


# ---- restart, rename ----

@pytest.mark.gate
def test_restart(person, tmp_path):
    """The program runs again, in the same directory, once per command."""
    starts = tmp_path / "starts"
    person.create("again", "--", "sh", "-c",
                  f"echo start >> {starts}; touch here; ls > {tmp_path}/seen; exec sleep 1000")
    for count in (1, 2, 3):
        wait_for(lambda: starts.exists() and starts.read_text() == "start\n" * count, 60,
                 lambda: f"{count} starts: {starts.exists() and starts.read_text()}")
        person.wait_status("again", "RUNNING")
        if count < 3:
            person("session", "restart", "again")
    assert "here" in (tmp_path / "seen").read_text().split()
    assert starts.read_text() == "start\n" * 3
    person("rm", "--wait", "again")
    done = person.cluster.cli("session", "restart", "again")
    assert done.returncode != 0 and "again" in done.stderr


@pytest.mark.gate
def test_rename(person):
    person.create("first-name")
    person.create("other-name")
    person("session", "rename", "first-name", "second-name")
    assert sorted(person("ps", "-o", "name").split()) == ["other-name", "second-name"]
    done = person.cluster.cli("session", "rename", "second-name", "other-name")
    assert done.returncode != 0 and "other-name" in done.stderr, done
    assert person.cluster.cli("session", "info", "first-name").returncode == 5
    person.create("first-name")  # the name is free


# ---- ending ----

POLITE = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.05; done"


@pytest.mark.gate
def test_ended_gracefully(person):
    person.create("polite", "--", "sh", "-c", POLITE)
    wait_for(lambda: person("logs", "polite") == "ready\n", 30, "the program")
    person("rm", "--wait", "polite")
    assert person("logs", "polite").split() in (["ready", "bye"], ["ready", "Terminated", "bye"])
    shown = person.info("polite")
    assert (shown["status"], shown["exit_code"], shown["reason"]) \
        == ("TERMINATED", 3, "user-requested"), shown


def test_a_line_for_the_shell_is_ended_gracefully_too(person):
    """The shell minds the signal at once; the program has its grace."""
    person.create("in-a-shell", f"sh -c \"trap 'sleep 0.2; echo bye; exit' TERM; echo ready; "
                  "while :; do sleep 0.05; done\"; echo never")
    wait_for(lambda: person("logs", "in-a-shell") == "ready\n", 30, "the program")
    person("rm", "--wait", "in-a-shell")
    assert "bye" in person("logs", "in-a-shell").split()


def test_ended_by_force_after_the_grace_time(person):
    person.create("stubborn", "--", "sh", "-c", STUBBORN)
    wait_for(lambda: person("logs", "stubborn") == "ready\n", 30, "the program")
    person("rm", "--wait", "stubborn")
    shown = person.info("stubborn")
    assert (shown["status"], shown["exit_code"]) == ("TERMINATED", 137), shown


def test_ended_by_force_at_once(person):
    """SIGTERM, which the program would answer, is never sent."""
    person.create("forced", "--", "sh", "-c", POLITE)
    wait_for(lambda: person("logs", "forced") == "ready\n", 30, "the program")
    person("rm", "--force", "--wait", "forced")
    assert person("logs", "forced") == "ready\n"
    assert person.info("forced")["reason"] == "force-terminated"


def test_descendants_end_too(person, tmp_path):
    child = tmp_path / "child"
    person.create("parent", "--", "sh", "-c",
                  f"sleep 1000 & echo $! > {child}.new; mv {child}.new {child}; wait")
    wait_for(child.exists, 30, "the child")
    pid = int(child.read_text())
    os.kill(pid, 0)
    person("rm", "--wait", "parent")

    def is_gone():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
    wait_for(is_gone, 30, "the child to end")


# ---- several at once ----

def test_several_at_once(person):
    out = json.loads(person("session", "create", *SMALL, "-t", "many", "-n", "40", "-o", "json",
                            "--", "sh", "-c", "echo $BACKENDAI_SESSION_NAME"))
    names = [row["sessionName"] for row in out]
    assert names == [f"many-{n}" for n in range(1, 41)]
    person("session", "wait", *names)
    assert all(person("logs", name) == name + "\n" for name in names)


def test_several_of_which_one_exists(person):
    """All or none: nothing is half done."""
    person.create("row-2")
    done = person.cluster.cli("session", "create", *SMALL, "-t", "row", "-n", "3", "--", "true")
    assert done.returncode != 0 and "row-2" in done.stderr, done
    assert person("ps", "--all", "-o", "name").split().count("row-1") == 0


def test_a_session_outlives_its_command(person):
    run = person.start("run", *SMALL, "--name", "cut-off", "echo here; sleep 1000")
    assert run.stdout.readline() == "here\n"
    run.send_signal(signal.SIGKILL)
    run.communicate()
    assert person.info("cut-off")["status"] == "RUNNING"


@pytest.mark.gate
def test_many_are_ended_in_few_requests(person):
    """Many more sessions than the key may send requests."""
    client = person.cluster.client()
    key = "/aliquot/v1/keypairs/" + client.keypair[0]
    person("session", "create", *SMALL, "-t", "crowd", "-n", "1500", "--", "sleep", "1000")
    assert client.send("PATCH", key, {"rate_limit": 100}).status == 200
    try:
        person.cluster.jump(monotonic=1000)  # a new window of the rate
        person("rm", "--all", "--yes", "--wait", "--force")
    finally:
        assert client.send("PATCH", key, {"rate_limit": 30000}).status == 200
        person.cluster.jump()
    assert not person.cluster.live_sessions()
