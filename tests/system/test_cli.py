# SPDX-License-Identifier: Apache-2.0
"""The command line against a real cluster that 'aliquot up --dev' started."""

import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest
import yaml

from ports import free_port
from terminal import Terminal
from world import BUILD, World

pytestmark = pytest.mark.gate



def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


class Cluster:
    def __init__(self, world):
        self.folder, self.port = world.folder, free_port()
        self.env = {**world.env, "ALIQUOT_ENDPOINT": f"http://127.0.0.1:{self.port}"}
        self.log = (self.folder / "up.log").open("w+")
        self.up = subprocess.Popen(
            [BUILD / "aliquot", "up", "--dev", "--state", self.folder / "state", "--port",
             str(self.port), "--link-port", str(free_port())],
            env=self.env, stdout=self.log, stderr=subprocess.STDOUT)
        wait_until(self.is_ready, 60)
        self("login", "--dev")

    def is_ready(self):
        assert self.up.poll() is None, (self.folder / "up.log").read_text()
        return "Aliquot is ready." in (self.folder / "up.log").read_text()

    def pid(self, name):
        return json.loads((self.folder / "state" / "up.json").read_text())[f"{name}_pid"]

    def run(self, *words, timeout=120, **options):
        return subprocess.run([BUILD / "aliquot", *words], env=self.env, capture_output=True,
                              text=True, timeout=timeout, **options)

    def __call__(self, *words, status=0, **options):
        done = self.run(*words, **options)
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def session(self, name):
        return json.loads(self("session", "info", name, "-o", "json"))

    def wait_status(self, name, *statuses):
        wait_until(lambda: self.session(name)["status"] in statuses)


@pytest.fixture(scope="module")
def cluster():
    with World(TERM="xterm", LC_ALL="C.UTF-8", ALIQUOT_NETWORK_ENABLED="false") as world:
        cluster = Cluster(world)
        yield cluster
        cluster.up.send_signal(signal.SIGINT)
        assert cluster.up.wait(timeout=60) == 0


SMALL = ("-r", "cpu=1", "-r", "mem=32m")


# ---- run ----

def test_run_prints_and_succeeds(cluster):
    done = cluster.run("run", *SMALL, "--", "printf", "%s|", "a b", "it's", "$HOME")
    assert (done.returncode, done.stdout) == (0, "a b|it's|$HOME|")


@pytest.mark.parametrize("line, status", [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)])
def test_run_exits_as_the_program(cluster, line, status):
    assert cluster.run("run", *SMALL, line).returncode == status


def test_run_passes_the_environment(cluster):
    out = cluster("run", *SMALL, "-e", "A=b=c", "-e", "LC_ALL", "-e", "NOT_HERE", "--", "sh", "-c",
                  "echo $A $LC_ALL ${NOT_HERE-unset}")
    assert out == "b=c C.UTF-8 unset\n"


def test_run_several(cluster):
    out = cluster("run", *SMALL, "--name", "many", "-n", "3", "echo one; echo two")
    assert sorted(out.splitlines()) == [f"many-{i} | {word}" for i in (1, 2, 3)
                                        for word in ("one", "two")]


def test_each_of_several_knows_its_index(cluster):
    line = "echo $ALIQUOT_ARRAY_INDEX/$ALIQUOT_ARRAY_COUNT $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_MAX"
    out = cluster("run", *SMALL, "--name", "indexed", "-n", "3", "-e", "SLURM_ARRAY_TASK_MAX=mine",
                  line)
    assert sorted(out.splitlines()) == [f"indexed-{i + 1} | {i}/3 {i} mine" for i in range(3)]
    assert cluster("run", *SMALL, line) == "/\n"


def test_run_detached_then_wait_and_logs(cluster):
    out = cluster("run", "-d", *SMALL, "--name", "later", "-o", "json", "sleep 0.5; echo out; exit 4")
    assert json.loads(out)[0]["sessionName"] == "later"
    assert cluster.run("session", "wait", "later").returncode == 4
    assert cluster("logs", "later") == "out\n"
    info = cluster.session("later")
    assert (info["status"], info["result"], info["exit_code"]) == ("TERMINATED", "FAILURE", 4)


def test_run_survives_a_killed_manager(cluster):
    run = subprocess.Popen([BUILD / "aliquot", "run", *SMALL, "--name", "survivor",
                            "for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done; exit 3"],
                           env=cluster.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True)
    assert run.stdout.readline() == "1\n"
    os.kill(cluster.pid("manager"), signal.SIGKILL)
    out, err = run.communicate(timeout=60)
    assert out == "2\n3\n4\n5\n6\n" and run.returncode == 3 and "waiting for it" in err
    assert cluster("admin", "audit") == "clean\n"
    answer = json.loads(cluster("admin", "audit", "-o", "json"))
    assert answer["clean"] is True and yaml.safe_load(cluster("admin", "audit", "-o", "yaml")) == answer
    text = cluster("admin", "config", "set", "odd/key", "value", "-o", "yaml")
    assert yaml.safe_load(text)["without_effect"] == ["odd/key"] and "{" not in text
    cluster("admin", "config", "rm", "odd/key")


def test_ctrl_c_twice_cancels(cluster):
    run = subprocess.Popen([BUILD / "aliquot", "run", *SMALL, "--name", "cancelled",
                            "echo here; sleep 100"], env=cluster.env, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "here\n"
    run.send_signal(signal.SIGINT)
    while "Ctrl-C again" not in (line := run.stderr.readline()):
        assert line, "it ended at the first Ctrl-C"
    assert run.poll() is None
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)
    assert run.returncode == 130
    cluster.wait_status("cancelled", "TERMINATED", "CANCELLED")


# ---- sessions ----

def test_life_of_an_interactive_session(cluster):
    cluster("session", "create", *SMALL, "-t", "notebook")
    cluster.wait_status("notebook", "RUNNING")
    cluster("session", "rename", "notebook", "lab-book")
    assert "lab-book" in cluster("ps", "-o", "name").split()
    cluster("session", "restart", "lab-book")
    cluster.wait_status("lab-book", "RUNNING")
    cluster("rm", "--wait", "lab-book")
    assert "lab-book" not in cluster("ps", "-o", "name").split()
    assert cluster.session("lab-book")["status"] == "TERMINATED"


def test_why_it_waits(cluster):
    too_big = ("session", "create", "-t", "too-big", "-r", "cpu=1000", "-r", "mem=1g")
    refused = cluster.run(*too_big, "--", "true")
    assert refused.returncode and re.fullmatch(
        r"aliquot: -r cpu: No agent has cpu=1000: ask for \d+ at most, or let it "
        r"wait for such an agent \(--wait-for-capacity\)\.\n", refused.stderr), refused.stderr
    cluster(*too_big, "--wait-for-capacity", "--", "true")
    assert cluster("run", "--name", "passes-it", "echo", "it passed") == "it passed\n"
    assert "wait_for_capacity" in cluster("session", "info", "too-big", "-o", "json")
    wait_until(lambda: "cpu" in cluster("session", "why", "too-big"))
    assert json.loads(cluster("session", "why", "too-big", "-o", "json"))["status"] == "PENDING"
    assert cluster.run("session", "wait", "--timeout", "1s", "too-big").returncode == 3
    cluster("rm", "too-big")
    assert cluster.session("too-big")["status"] == "CANCELLED"


def test_dry_run(cluster):
    said = cluster("session", "create", "--dry-run", "-t", "only-asked", "-r", "cpu=1000",
                   "--wait-for-capacity", "--", "true")
    assert " missing on " in said and "default" in said
    assert "only-asked" not in cluster("ps", "--all", "-o", "name").split()
    done = cluster.run("session", "create", "--dry-run", "-t", "x", "--", "true")
    assert done.returncode and "name" in done.stderr


def test_why_it_is_there(cluster):
    cluster("session", "create", "-t", "placed", "--", "true")
    cluster.wait_status("placed", "TERMINATED")
    drawn = cluster("session", "why", "--explain", "placed")
    assert re.search(r"Requirement #1: of 1 agents 1 had room; selection \w+", drawn)
    assert re.search(r"^\* +\S+ +1 .*cpu.*#{20}", drawn, re.M), drawn
    best = json.loads(cluster("session", "why", "--explain", "placed", "-o", "json"))[0]["best"]
    assert best[0]["chosen"] is True
    shown = cluster("session", "history", "placed")
    assert "SCHEDULED" in shown and re.search(r"RESULT.*\n.* 1 +placed", shown), shown
    past = json.loads(cluster("session", "history", "placed", "-o", "json"))
    assert [a["kind"] for a in past["scheduling"]] == ["placed"]


def test_rm_all_asks(cluster):
    for name in ("first-one", "second-one"):
        cluster("session", "create", "-t", name, "-r", "cpu=1000",
                "--wait-for-capacity", "--", "true")
    done = cluster.run("rm", "--all")
    assert done.returncode == 2 and "--yes" in done.stderr
    cluster("rm", "--all", "--yes", "--wait")
    assert cluster("ps", "-o", "name") == ""


# ---- a terminal ----

def attach(cluster, name):
    return Terminal(str(BUILD / "aliquot"), "session", "attach", name, env=cluster.env)


def test_attach_and_detach(cluster):
    cluster("session", "create", *SMALL, "-t", "shell")
    cluster.wait_status("shell", "RUNNING")
    terminal = attach(cluster, "shell")
    terminal.send(b"echo $((6*7))\r")
    terminal.expect(b"42")
    terminal.send(b"\x10\x11")
    terminal.expect(b"Detached")
    assert terminal.wait() == 0
    assert cluster.session("shell")["status"] == "RUNNING"
    terminal = attach(cluster, "shell")
    terminal.send(b"exit\r")
    terminal.wait()
    cluster.wait_status("shell", "TERMINATED")


def test_attach_needs_a_terminal(cluster):
    cluster("session", "create", *SMALL, "-t", "no-terminal")
    done = cluster.run("session", "attach", "no-terminal", stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and "needs a terminal" in done.stderr
    cluster("rm", "no-terminal")


# ---- output ----

def test_formats_agree(cluster):
    cluster("run", *SMALL, "--name", "formats", "--tag", "a, \"b\" c: [d]", "true")
    options = ("ps", "--all", "--columns", "name,status,exit_code,tag,requested_slots")
    rows = json.loads(cluster(*options, "-o", "json"))
    assert rows == yaml.safe_load(cluster(*options, "-o", "yaml"))
    assert rows == [json.loads(line) for line in cluster(*options, "-o", "jsonl").splitlines()]
    table = list(csv.DictReader(io.StringIO(cluster(*options, "-o", "csv"))))
    row = next(row for row in table if row["name"] == "formats")
    assert row["tag"] == "a, \"b\" c: [d]" and json.loads(row["requested_slots"])["cpu"] == "1"
    assert [row["name"] for row in rows] == cluster("ps", "--all", "-o", "name").split()
    assert "\033" not in cluster("ps", "--all") and "\033" in cluster("ps", "--color=always")


def test_columns_that_are_not_shown(cluster):
    for name, tag, code in (("unseen-1", "x", 3), ("unseen-2", "y", 4), ("unseen-3", "x", 5)):
        cluster.run("run", *SMALL, "--name", name, "--tag", tag, f"exit {code}")
    found = cluster("ps", "--all", "--columns", "name", "--filter", "tag=x", "--filter",
                    "name=unseen-*", "--sort", "-exit", "--no-header")
    assert found.split() == ["unseen-3", "unseen-1"]
    assert cluster("ps", "--all", "-q", "--filter", "kernels~main1", "--filter", "exit=4",
                   "--filter", "name=unseen-2").strip() == json.loads(
                       cluster("session", "info", "unseen-2", "-o", "json"))["id"]


def test_every_column_alone(cluster):
    cluster.run("run", *SMALL, "--name", "alone", "--tag", "z", "exit 7")
    whole = json.loads(cluster("session", "info", "alone", "-o", "json"))
    assert (whole["exit_code"], len(whole["agents"]), whole["tag"]) == (7, 1, "z")
    for column, value in whole.items():
        [row] = json.loads(cluster("ps", "--all", "--filter", "name=alone", "--columns", column,
                                   "-o", "json"))
        assert row == {column: value}


def test_errors_as_json(cluster):
    done = cluster.run("session", "info", "nobody", "-o", "json")
    error = json.loads(done.stderr)["error"]
    assert done.returncode == 5 == error["exit_status"] and done.stdout == ""
    assert error["code"] == "object-not-found" and "aliquot ps" in error["hint"]


@pytest.mark.parametrize("words, status, says", [
    (["sesion", "ls"], 2, "did you mean 'aliquot session'"),
    (["ps", "--colums", "x"], 2, "did you mean '--columns'"),
    (["run"], 125, "COMMAND is missing"),
    (["session", "info", "nobody"], 5, "see what there is"),
    (["session", "create", "-r", "cpu=-1", "--", "true"], 4, "negative"),
    (["session", "create", "-r", "gpu", "--", "true"], 2, "SLOT=AMOUNT"),
    (["ps", "--endpoint", "http://127.0.0.1:1"], 8, "cannot reach"),
    (["agent", "drain", "nobody"], 5, "nobody"),
    (["completion", "tcsh"], 2, "bash"),
])
def test_failures(cluster, words, status, says):
    done = cluster.run(*words)
    assert done.returncode == status, done.stderr
    assert says in done.stderr and done.stdout == ""


def test_wrong_key_is_denied(cluster):
    env = dict(cluster.env, ALIQUOT_ACCESS_KEY="AKIAIOSFODNN7EXAMPLE", ALIQUOT_SECRET_KEY="wrong")
    done = subprocess.run([BUILD / "aliquot", "ps"], env=env, capture_output=True, text=True)
    assert done.returncode == 6 and "aliquot login" in done.stderr


# ---- people and machines ----

@pytest.mark.parametrize("password, why", [("long enough\0other", "contains NUL"),
                                           ("x" * 5000, "is longer than 4094 bytes")])
def test_a_password_is_not_cut(cluster, password, why):
    done = cluster.run("admin", "user", "create", "cut@example.com", "--password-stdin",
                       input=password + "\n")
    assert done.returncode == 2 and why in done.stderr and "xxx" not in done.stderr, done
    assert "cut@example.com" not in cluster("admin", "user", "ls")


def test_a_user_changes_the_password(cluster):
    cluster("admin", "user", "create", "changer@example.com", "--password-stdin",
            input="long enough\n")
    key = json.loads(cluster("admin", "keypair", "create", "changer@example.com", "-o", "json"))
    cluster("login", "--profile", "changer", "--access-key", key["access_key"], "--password-stdin",
            input=key["secret_key"] + "\n")
    mine = ("password", "--profile", "changer", "--password-stdin")
    assert cluster.run(*mine, input="wrong one\nlonger still\n").returncode != 0
    assert cluster.run(*mine, input="long enough\nshort\n").returncode != 0
    cluster(*mine, input="long enough\nlonger still\n")
    cluster("login", "--profile", "changer", "--password-stdin", "changer@example.com",
            input="longer still\n")
    expired = cluster.run("password", "--profile", "changer", "--password-stdin",
                          "changer@example.com", input="longer still\nand longer\n")
    assert expired.returncode != 0 and "has not expired" in expired.stderr


def test_login_with_a_password(cluster):
    cluster("login", "--profile", "user", "--password-stdin", "user@lablup.com", input="C8qnIo29\n")
    assert json.loads(cluster("whoami", "--profile", "user", "-o", "json"))["role"] == "user"
    profiles = pathlib.Path(cluster.env["XDG_CONFIG_HOME"], "aliquot", "profiles.json")
    assert profiles.stat().st_mode & 0o777 == 0o600
    assert set(json.loads(profiles.read_text())["profiles"]["user"]) == {
        "access_key", "secret_key", "endpoint"}
    assert cluster.run("admin", "user", "ls", "--profile", "user").returncode == 6
    cluster("logout", "--profile", "user")
    done = cluster.run("login", "--password-stdin", "user@lablup.com", input="wrong\n")
    assert done.returncode == 6
    cluster("login", "--dev", "--profile", "default")


def test_dev_login_is_for_loopback(cluster):
    done = cluster.run("login", "--dev", "--endpoint", "http://192.0.2.1:8081")
    assert done.returncode == 2 and "loopback" in done.stderr


def test_accounts(cluster):
    cluster("admin", "domain", "create", "physics", "--description", "Department")
    cluster("admin", "group", "create", "lasers", "--domain", "physics", "--total-slots", "cpu=2")
    out = cluster("admin", "group", "set", "lasers", "--total-slots", "cpu=4,mem=1g", "-o", "json")
    assert json.loads(out)["total_slots"] == {"cpu": "4", "mem": "1073741824"}
    cluster("admin", "user", "create", "ann@example.com", "--domain", "physics", "--groups",
            "lasers", "--password-stdin", input="correct horse\n")
    key = json.loads(cluster("admin", "keypair", "create", "ann@example.com", "-o", "json"))
    cluster("login", "--profile", "ann", "--access-key", key["access_key"], "--password-stdin",
            input=key["secret_key"] + "\n")
    assert json.loads(cluster("whoami", "--profile", "ann", "-o", "json"))["user_id"]
    cluster("admin", "keypair", "set", key["access_key"], "--is-active", "no", "--profile",
            "default")
    assert cluster.run("ps", "--profile", "ann").returncode == 6
    cluster("login", "--dev", "--profile", "default")
    again = cluster.run("admin", "user", "create", "ann@example.com", "--domain", "physics")
    assert again.returncode and again.stderr == "aliquot: this user exists already\n"
    missing = cluster.run("ps", "--profile", "anne")
    assert missing.returncode == 5 and "there is no profile 'anne'; there are: " in missing.stderr


def test_agents(cluster):
    agent = cluster("agent", "ls", "-o", "name").strip()
    cluster("agent", "drain", agent, "--reason", "a test")
    info = json.loads(cluster("agent", "info", agent, "-o", "json"))
    assert info["schedulable"] is False and info["drain_reason"] == "a test"
    cluster("agent", "undrain", agent)
    assert json.loads(cluster("agent", "info", agent, "-o", "json"))["schedulable"] is True
    assert cluster("agent", "token", "-o", "name").startswith("aq1.")


# ---- the shell ----

def test_completion_in_bash(cluster):
    script = """
        source <("$0" completion bash)
        COMP_WORDS=("$0" "${@:1}") COMP_CWORD=$# COMP_LINE="$0 $*" COMP_POINT=${#COMP_LINE}
        _aliquot
        printf '%s\\n' "${COMPREPLY[@]}"
    """

    def complete(*words):
        done = subprocess.run(["bash", "-c", script, BUILD / "aliquot", *words], env=cluster.env,
                              capture_output=True, text=True)
        return done.stdout.split()

    assert complete("ses") == ["session"]
    assert "rename" in complete("session", "re")
    assert complete("ps", "--col") == ["--columns", "--color"]
    assert "yaml" in complete("ps", "-o", "")
    assert cluster("agent", "ls", "-o", "name").strip() in complete("agent", "info", "")


def test_completion_in_zsh(cluster):
    """With its line editor, as typed by a person."""
    env = {**cluster.env, "PATH": f"{BUILD}:{cluster.env['PATH']}"}
    zsh = Terminal("/usr/bin/zsh", "-f", "-i", env=env, rows=50, columns=200)
    zsh.expect(b"\x1b[?2004h")  # it takes input
    zsh.send(b"PS1='ready''> '; autoload -U compinit; compinit -D\r")
    zsh.expect(b"ready> ")
    zsh.send(b"source <(aliquot completion zsh)\r")
    agent = cluster("agent", "ls", "-o", "name").strip().encode()
    for typed, shown in ((b"aliquot ses\t", b"aliquot session"), (b"aliquot session ren\t", b"rename"),
                         (b"aliquot ps --colu\t", b"--columns"), (b"aliquot ps -o ya\t", b"yaml"),
                         (b"aliquot session re\t", b"-- Give a session another name"),
                         (b"aliquot agent info \t", agent)):
        zsh.expect(b"ready> ")
        zsh.send(typed)
        zsh.expect(shown)
        zsh.send(b"\x15\r")  # on to an empty line
    zsh.kill()


def test_config_says_where_from(cluster):
    rows = {row["setting"]: row for row in json.loads(cluster("config", "show", "-o", "json"))}
    assert rows["endpoint"]["origin"] == "ALIQUOT_ENDPOINT"
    assert rows["access_key"]["origin"] == "profile"
    assert rows["secret_key"]["value"] == "(secret)"
