# SPDX-License-Identifier: Apache-2.0
"""Standard input of 'aliquot run': passed on to the program, as a stream or as a terminal, and
what it says where it cannot."""

import os
import subprocess

import pytest

from cluster import Cluster, batch, wait_for, wait_status
from runtimes import settings_of
from terminal import Terminal
from world import BUILD

SMALL = ("-r", "cpu=1", "-r", "mem=64m")


@pytest.fixture(params=("process", "crun", "runc"), scope="module")
def cluster(request):
    settings = settings_of(request.param) if request.param != "process" else {}
    with Cluster(**settings, ALIQUOT_IMAGE_ALLOW="* host rootfs:*", TERM="xterm") as cluster:
        cluster.image = "process" if request.param == "process" else "host"
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


def words_of(cluster, *words):
    return [str(BUILD / "aliquot"), "run", *SMALL, "--image", cluster.image, *words]


def environ_of(cluster):
    return {**cluster.env, **cluster.cli_env()}


def run(cluster, *words, **options):
    return subprocess.run(words_of(cluster, *words), env=environ_of(cluster), capture_output=True,
                          timeout=100, check=False, **options)


def start(cluster, *words):
    return subprocess.Popen(words_of(cluster, *words), env=environ_of(cluster),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def terminal(cluster, *words):
    argv = words_of(cluster, *words)
    return Terminal(*argv, env=environ_of(cluster))


@pytest.mark.gate
def test_a_pipe_is_passed_on(cluster):
    done = run(cluster, "--", "tr", "a-z", "A-Z", input=b"hello\n")
    assert (done.returncode, done.stdout) == (0, b"HELLO\n"), done


@pytest.mark.gate
def test_all_of_a_large_input_arrives(cluster):
    data = os.urandom(1 << 20) * 5
    done = run(cluster, "sleep 1; sha256sum", input=data)
    want = subprocess.run(["sha256sum"], input=data, capture_output=True, check=True).stdout
    assert (done.returncode, done.stdout) == (0, want), done


@pytest.mark.gate
def test_a_file_is_passed_on(cluster, tmp_path):
    (tmp_path / "words").write_text("one\ntwo\n")
    with (tmp_path / "words").open("rb") as file:
        assert run(cluster, "wc -l", stdin=file).stdout.split() == [b"2"]


def test_a_program_need_not_read_it(cluster):
    done = run(cluster, "head -c 3", input=b"x" * 5_000_000)
    assert (done.returncode, done.stdout) == (0, b"xxx"), done
    done = run(cluster, "true", input=b"x" * 5_000_000)
    assert done.returncode == 0 and b"input" not in done.stderr, done


def test_input_comes_as_it_is_typed(cluster):
    process = start(cluster, "while read word; do echo got $word; done; echo over")
    for word in (b"one", b"two"):
        process.stdin.write(word + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"got " + word + b"\n"
    process.stdin.close()
    assert process.stdout.read() == b"over\n" and process.wait(60) == 0


@pytest.mark.gate
@pytest.mark.parametrize("how", ({"stdin": subprocess.DEVNULL},
                                 {"preexec_fn": lambda: os.close(0)}))
def test_without_input_it_is_empty(cluster, how):
    done = run(cluster, "wc -c", **how)
    assert done.returncode == 0 and done.stdout.split() == [b"0"], done


def test_input_can_be_declined(cluster):
    assert run(cluster, "--no-input", "wc -c", input=b"hello").stdout.split() == [b"0"]
    assert run(cluster, "-n", "2", "-q", "wc -c", input=b"hello").stdout.count(b"| 0") == 2
    done = run(cluster, "-i", "-n", "2", "cat", input=b"hello")
    assert done.returncode == 125 and b"-i and --count exclude each other" in done.stderr


def test_a_killed_command_ends_the_input(cluster):
    process = start(cluster, "--name", "orphaned", "read word; echo $word; cat; echo over")
    process.stdin.write(b"one\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"one\n"
    process.kill()
    process.communicate()
    wait_status(cluster.client(), "orphaned", "TERMINATED")
    assert "one\nover\n" == cluster.cli("logs", "orphaned").stdout


def test_a_lost_connection_is_told(cluster):
    """The agent is killed: the program gets the end of its input, and the command no success."""
    process = start(cluster, "--name", "cut-off", "read word; echo $word; cat; echo over")
    process.stdin.write(b"one\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"one\n"
    agent = cluster.programs["agent"]
    agent.kill()
    agent.start()
    out, err = process.communicate(timeout=100)
    assert out == b"over\n" and process.returncode == 125, (out, err)
    assert b"does not get all of its input, 4 bytes were read" in err
    wait_for(lambda: cluster.agent("agent").get("connected"), 60, "the agent")


def test_a_manager_that_restarts_is_told(cluster):
    process = start(cluster, "--name", "manager-died", "read word; echo $word; cat; echo over")
    process.stdin.write(b"one\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"one\n"
    manager = cluster.programs["manager"]
    manager.kill()
    manager.start()
    out, err = process.communicate(timeout=100)
    assert out == b"over\n" and process.returncode == 125, (out, err)
    assert b"does not get all of its input" in err
    wait_for(lambda: cluster.agent("agent").get("connected"), 60, "the agent")


def test_one_gives_it(cluster):
    """Who comes second is refused, and the first goes on."""
    process = start(cluster, "--name", "mine", "read word; echo $word; cat")
    process.stdin.write(b"one\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"one\n"
    reply = cluster.client().post("/session", batch("meant-so", "true", image=cluster.image,
                                                    input="keyboard"))
    assert reply.status == 400 and "input" in str(reply.json), reply
    process.stdin.write(b"two\n")
    process.stdin.close()
    assert process.stdout.read() == b"two\n" and process.wait(60) == 0


# ---- on a terminal ----

def test_it_gives_the_program_this_terminal(cluster):
    person = terminal(cluster, "-it", "--name", "typed-in", "sh")
    person.resize(33, 111)
    person.send(b"stty size; echo $((6*7)) $TERM; exit 5\r")
    person.expect(b"42 xterm")
    assert person.wait() == 5
    assert "42 xterm" in cluster.cli("logs", "typed-in").stdout


def test_it_can_be_left_and_come_back_to(cluster):
    person = terminal(cluster, "-it", "--name", "left", "sh")
    person.send(b"word=kept; echo $((40+2))\r")
    person.expect(b"42")
    person.send(b"\x10\x11")
    person.expect(b"Detached")
    assert person.wait() == 0
    person = Terminal(str(BUILD / "aliquot"), "session", "attach", "left",
                      env=environ_of(cluster))
    person.send(b"echo it is $word; exit\r")
    person.expect(b"it is kept")
    person.wait()
    wait_status(cluster.client(), "left", "TERMINATED")


def test_what_ends_at_once_is_shown(cluster):
    person = terminal(cluster, "-it", "echo $((40+2)); exit 3")
    person.expect(b"42")
    assert person.wait() == 3


@pytest.mark.gate
def test_lines_of_a_terminal_with_i(cluster):
    person = terminal(cluster, "-i", "tr a-z A-Z")
    person.send(b"hello\n")
    person.send(b"\x04")
    person.expect(b"HELLO")
    assert person.wait() == 0


@pytest.mark.parametrize("cluster", ("crun", "runc"), indirect=True)  # a process needs no image
def test_a_start_that_failed_says_why(cluster):
    """In one line, which a terminal has broken between words."""
    wrong = ("-q", "--name", "not-here", "--image", "rootfs:/no/such")
    says = b"'not-here' is ERROR without having run: Agent 'agent' could not start it: image"
    done = run(cluster, *wrong, "true")
    assert done.returncode == 125 and says in done.stderr.splitlines()[0], done
    person = terminal(cluster, "-it", *wrong, "true")
    person.expect(b"'not-here' is ERROR without having run: Agent 'agent' could not\r\nstart it: image")
    assert person.wait() == 125


def test_a_terminal_needs_one(cluster):
    done = run(cluster, "-t", "sh", input=b"")
    assert done.returncode == 125
    assert b"needs a terminal" in done.stderr and b"--name" in done.stderr
