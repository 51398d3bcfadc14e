# SPDX-License-Identifier: Apache-2.0
"""Sessions of several kernels on the command line: how they are started, and how each is reached."""

import json
import re
import subprocess

import pytest

from cluster import Cluster, wait_for, wait_status
from runtimes import settings_of
from world import BUILD

SMALL = ("-r", "cpu=1", "-r", "mem=64m", "--image", "host")
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"


@pytest.fixture(scope="module")
def cluster():
    settings = {**settings_of("crun"), "ALIQUOT_RESOURCE_CPUS": "16"}
    with Cluster(**settings) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


def cli(cluster, *words, status=0):
    done = cluster.cli(*words)
    assert done.returncode == status, f"{words}: {done}"
    return done.stdout if status == 0 else done.stderr


def start(cluster, *words):
    return subprocess.Popen(["timeout", "120", BUILD / "aliquot", *words], env={**cluster.env, **cluster.cli_env()},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def three(cluster):
    """An interactive session of main1, sub1 and sub2."""
    cli(cluster, "session", "create", "-t", "three", "--cluster", "3", *SMALL)
    session = wait_status(cluster.client(), "three", "RUNNING")
    yield session
    cli(cluster, "rm", "--wait", "three")


# ---- starting ----

def test_its_kernels(cluster, three):
    assert (three["cluster_size"], three["cluster_mode"]) == (3, "multi-node")
    shown = cli(cluster, "session", "info", "three")
    for name in ("main1", "sub1", "sub2"):
        assert re.search(rf"^\S+ +{name} +{name[:-1]} +RUNNING +agent +- +cpu=1 mem=64 MiB", shown,
                         re.M), shown


def test_roles(cluster):
    out = cli(cluster, "run", "--name", "roles", *SMALL, "-e", "A=session", "--role",
              "worker=2,env.A=role,mem=32m", "--role", "ps=1,command=echo $A, as $BACKENDAI_CLUSTER_HOST",
              "--", "sh", "-c", "echo $A and $BACKENDAI_CLUSTER_ROLE; sleep 1")
    assert sorted(out.splitlines()) == [
        "main1   | session and main", "ps1     | session, as ps1", "worker1 | role and worker",
        "worker2 | role and worker"], out
    shown = json.loads(cli(cluster, "session", "info", "roles", "-o", "json"))
    asked = {kernel["hostname"]: kernel["requested_slots"]["mem"] for kernel in shown["kernels"]}
    assert asked == {"main1": "67108864", "ps1": "67108864", "worker1": "33554432",
                     "worker2": "33554432"}


@pytest.mark.parametrize("words, says", [
    (["--cluster", "8-2"], "the minimum comes first: --cluster 2-8"),
    (["--cluster", "10000"], "--cluster: a session has 1 to 1000 kernels, not 10000"),
    (["--cluster", "2", "--cluster-size", "2"], "--cluster and --cluster-size exclude each other"),
    (["--role", "main=2"], "main1 is the kernel that the session itself describes"),
    (["--role", "a=1", "--role", "a=2"], "--role a is given twice"),
    (["--cluster", "2", "--role", "a=2"], "are 3 kernels, and --cluster says 2"),
    (["--role", "a=1,cpu=x"], "--role a: cpu: 'x' is not a number"),
    (["--role", "a=1,cpu=1.5"], "--role a: cpu: cores are given whole"),
    (["--role", "a=1,cpu=99"], "--role a: cpu: No agent has cpu=99"),
    (["--role", "a=1,image=b c"], "--role: "),
])
def test_what_is_refused(cluster, words, says):
    assert says in cli(cluster, "run", *SMALL, *words, "--", "true", status=125)


# ---- reaching them ----

def test_commands_and_files(cluster, three, tmp_path):
    for rank, kernel in enumerate(("main1", "sub1", "sub2")):
        assert cli(cluster, "exec", "--kernel", kernel, "three", "sh", "-c",
                   "echo $RANK") == f"{rank}\n"
    assert cli(cluster, "exec", "three", "sh", "-c", "echo $RANK") == "0\n"
    (tmp_path / "file").write_text("for sub2")
    cli(cluster, "cp", "--kernel", "sub2", str(tmp_path / "file"), "three:")
    assert cli(cluster, "exec", "--kernel", "sub2", "three", "cat", "file") == "for sub2"
    cli(cluster, "exec", "--kernel", "sub1", "three", "cat", "file", status=1)


def test_code(cluster, three):
    code = "import os; print(os.environ['RANK'])"
    assert cli(cluster, "eval", "-l", "python", "--kernel", "sub2", "three", code) == "2\n"
    assert cli(cluster, "eval", "-l", "python", "three", code) == "0\n"


def test_statistics(cluster, three):
    shown = json.loads(cli(cluster, "session", "stats", "--kernel", "sub1", "three", "-o", "json"))
    assert "sub1" in json.dumps(shown) and "main1" not in json.dumps(shown), shown


@pytest.mark.parametrize("words", [
    ["exec", "--kernel", "sub3", "three", "true"], ["logs", "--kernel", "sub3", "three"],
    ["app", "--kernel", "sub3", "three"], ["session", "apps", "--kernel", "sub3", "three"],
    ["session", "stats", "--kernel", "sub3", "three"], ["eval", "--kernel", "sub3", "three", "1"],
    ["cp", "--kernel", "sub3", "three:x", "-"], ["port-forward", "--kernel", "sub3", "three", "0:1"],
])
def test_no_such_kernel(cluster, three, words):
    done = cluster.cli(*words)
    assert done.returncode and "has no kernel 'sub3'; it has main1, sub1 to sub2" in done.stderr, done


@pytest.mark.parametrize("words, offered", [
    (["logs", "three", "--kernel", ""], ["main1", "sub1", "sub2"]),
    (["session", "stats", "three", "--kernel=s"], ["--kernel=sub1", "--kernel=sub2"]),
    (["exec", "--kernel", "sub"], ["sub1", "sub2"]),
    (["logs", "nobody", "--kernel", ""], []),
])
def test_names_of_kernels_are_completed(cluster, three, words, offered):
    assert three
    lines = cli(cluster, "completion", "words", "--", *words).splitlines()
    assert [line.split("\t")[0] for line in lines] == offered


def test_hosts_of_ssh(cluster, three):
    shown = cli(cluster, "ssh-config", "three")
    assert re.findall(r"^Host (\S+)$", shown, re.M) == [
        "three.aliquot", "main1.three.aliquot", "sub1.three.aliquot", "sub2.three.aliquot"]
    assert len(re.findall(r"ssh --stdio '--kernel' 'sub2' 'three'", shown)) == 1, shown


# ---- logs ----

def talk(seconds=0):
    """Each kernel says one line per turn, in the order of ranks."""
    return ("for turn in 1 2 3; do sleep 0.$RANK; echo $BACKENDAI_CLUSTER_HOST says $turn; "
            f"sleep 0.$((9 - RANK)); done; sleep {seconds}")


WANTED = [f"{kernel} says {turn}" for turn in (1, 2, 3) for kernel in ("main1", "sub1", "sub2")]


def test_run_shows_all_of_them(cluster):
    out = cli(cluster, "run", "--name", "talk", "--cluster", "3", *SMALL, "--", "sh", "-c", talk(1))
    lines = out.splitlines()
    assert sorted(lines) == sorted(f"{line.split()[0]:5} | {line}" for line in WANTED), out
    merged = cli(cluster, "logs", "talk").splitlines()
    assert sorted(merged) == sorted(lines)
    stamps = [line.split()[2] for line in cli(cluster, "logs", "-t", "talk").splitlines()]
    assert len(stamps) == 9 and stamps == sorted(stamps) and re.fullmatch(STAMP, stamps[0])
    assert cli(cluster, "logs", "--kernel", "sub1", "talk") == "".join(
        f"sub1 says {turn}\n" for turn in (1, 2, 3))
    assert sorted(cli(cluster, "logs", "--no-prefix", "talk").splitlines()) == sorted(WANTED)
    assert len(cli(cluster, "logs", "--tail", "1", "talk").splitlines()) == 3
    assert {line.split(" | ")[1] for line in cli(
        cluster, "logs", "--grep", "says [12]$", "talk").splitlines()} == {
            line for line in WANTED if not line.endswith("3")}
    assert set(re.findall("\033\\[3\\dm(\\w+)", cli(cluster, "logs", "--color", "always", "talk"))
               ) == {"main1", "sub1", "sub2"}


def test_logs_as_json(cluster):
    cli(cluster, "run", "--name", "json", "--cluster", "2", *SMALL, "--", "sh", "-c",
        "printf 'a \"b\"\\377\\nlast'; sleep 1")
    lines = [json.loads(line) for line in cli(cluster, "logs", "-o", "json", "json").splitlines()]
    assert sorted((line["kernel"], line["line"]) for line in lines) == [
        (kernel, text) for kernel in ("main1", "sub1") for text in ('a "b"\ufffd', "last")]
    assert all(re.fullmatch(STAMP, line["time"]) for line in lines)
    one = [json.loads(line) for line in cli(
        cluster, "logs", "-o", "json", "--kernel", "sub1", "json").splitlines()]
    assert [line["kernel"] for line in one] == ["sub1"] * 2


def test_logs_are_followed(cluster, tmp_path):
    """Those of kernels that end before, and until the last has ended."""
    cli(cluster, "session", "create", "--name", "follow", "--cluster", "3", *SMALL, "--", "sh", "-c",
        "echo first of $RANK; if [ $RANK = 1 ]; then exit 0; fi; until [ -e go ]; do sleep 0.1; "
        "done; echo second of $RANK")
    with start(cluster, "logs", "-f", "follow") as logs:
        first = {logs.stdout.readline() for _ in range(3)}
        assert first == {"main1 | first of 0\n", "sub1  | first of 1\n", "sub2  | first of 2\n"}
        cli(cluster, "exec", "--kernel", "sub2", "follow", "touch", "go")
        assert logs.stdout.readline() == "sub2  | second of 2\n"
        cli(cluster, "exec", "follow", "touch", "go")
        assert logs.stdout.readline() == "main1 | second of 0\n"
        assert logs.stdout.read() == "" and logs.wait(60) == 0, logs.stderr.read()


def test_logs_go_on_when_the_manager_was_away(cluster):
    with start(cluster, "run", "--name", "away", "--cluster", "2", *SMALL, "--", "sh", "-c",
               "echo one $RANK; until [ -e go ]; do sleep 0.1; done; echo two $RANK; sleep 1") as run:
        assert {run.stdout.readline() for _ in range(2)} == {"main1 | one 0\n", "sub1  | one 1\n"}
        cluster.programs["manager"].kill()
        cluster.programs["manager"].start()
        wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
        for kernel in ("sub1", "main1"):
            cli(cluster, "exec", "--kernel", kernel, "away", "touch", "go")
        assert set(run.stdout.read().splitlines()) == {"main1 | two 0", "sub1  | two 1"}
        assert run.wait(60) == 0, run.stderr.read()


def check_amounts(cluster):
    """Of the session 'grows', one of whose three kernels runs: lists show what it holds."""
    listed = cli(cluster, "ps", "--filter", "name=grows", "--columns", "resources,requested", "--no-header")
    assert listed.split() == ["cpu=6", "mem=64", "MiB", "cpu=18", "mem=192", "MiB"]
    assert cli(cluster, "ps", "--filter", "resources.cpu>6", "--columns", "name", "--no-header") == ""
    info = cli(cluster, "session", "info", "grows")
    assert re.search(r"^REQUESTED +cpu=18 mem=192 MiB\nOCCUPIED +cpu=6 mem=64 MiB$", info, re.M), info
    assert not re.search("^RESOURCES ", info, re.M), info


def test_logs_of_kernels_that_start_later_or_never(cluster):
    cli(cluster, "session", "create", "-t", "holds", "-r", "cpu=5", "-r", "mem=64m", "--image", "host")
    wait_status(cluster.client(), "holds", "RUNNING")
    with start(cluster, "run", "--name", "grows", "--cluster", "1-3", "-r", "cpu=6", "-r", "mem=64m",
               "--image", "host", "--", "sh", "-c",
               "echo here is $RANK; until [ -e go ]; do sleep 0.1; done") as run:
        assert run.stdout.readline() == "main1 | here is 0\n"
        check_amounts(cluster)
        with start(cluster, "logs", "-f", "grows") as logs:
            assert logs.stdout.readline() == "main1 | here is 0\n"
            cli(cluster, "rm", "--wait", "holds")
            for shown in (run, logs):
                assert shown.stdout.readline() == "sub1  | here is 1\n"
            cli(cluster, "exec", "grows", "touch", "go")
            for shown in (run, logs):
                assert shown.stdout.read() == "" and shown.wait(60) == 0, shown.stderr.read()
    shown = json.loads(cli(cluster, "session", "info", "grows", "-o", "json"))
    assert shown["cluster_size_min"] == 1 and len(shown["kernels"]) == 3


def test_logs_of_a_node_that_is_away(cluster):
    """What cannot be read is named, and the command fails; followed, it comes when the node does."""
    cli(cluster, "session", "create", "--name", "lost", "--cluster", "2", *SMALL, "--", "sh", "-c",
        "echo one $RANK; until [ -e go ]; do sleep 0.1; done; echo two $RANK")
    wait_status(cluster.client(), "lost", "RUNNING")
    wait_for(lambda: len(cli(cluster, "logs", "lost").splitlines()) == 2, 30, "both lines")
    cluster.programs["agent"].kill()
    wait_for(lambda: not cluster.agent()["connected"], 30, "the agent to be missed")
    said = cli(cluster, "logs", "lost", status=1)
    for kernel in ("main1", "sub1"):
        assert f"aliquot: the log of kernel '{kernel}' cannot be read: " in said, said
    with start(cluster, "logs", "-f", "lost") as logs:
        cluster.programs["agent"].start()
        wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
        for kernel in ("sub1", "main1"):
            cli(cluster, "exec", "--kernel", kernel, "lost", "touch", "go")
        assert sorted(logs.stdout.read().splitlines()) == [
            "main1 | one 0", "main1 | two 0", "sub1  | one 1", "sub1  | two 1"]
        assert logs.wait(60) == 0
