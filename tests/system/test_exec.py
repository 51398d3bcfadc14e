# SPDX-License-Identifier: Apache-2.0
"""Commands and terminals in containers: 'aliquot exec' and 'session attach',
the runner as process 1, and what no process inside can reach."""

import hashlib
import json
import random
import shutil
import signal
import socket
import struct
import subprocess

import pytest

from client import WebSocket
from cluster import Cluster, batch, running, wait_for, wait_status
from exec_cli import command, run
from runtimes import settings_of
from terminal import Terminal
from world import BUILD


@pytest.fixture(params=("crun", "runc"), scope="module")
def cluster(request):
    with Cluster(**settings_of(request.param), ALIQUOT_IMAGE_ALLOW="* host rootfs:*") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


@pytest.fixture(scope="module")
def box(cluster):
    with running(cluster.client(), "boxy", image="host"):
        yield "boxy"


def terminal(cluster, *words, verb=("exec",), **size):
    env = {**cluster.env, **cluster.cli_env(), "TERM": "vt100"}
    return Terminal(str(BUILD / "aliquot"), *verb, *words, env=env, **size)


def wait_for_command(cluster, box, wanted):
    """Until the container has a process of this command line, arguments ended by spaces."""
    wait_for(lambda: wanted in run(cluster, box, "sh", "-c",
                                   "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")[1],
             60, wanted)


@pytest.mark.gate
def test_streams_and_status(cluster, box):
    assert run(cluster, box, "sh", "-c", "cat; echo out; echo err >&2; exit 7") == (
        7, b"out\n", b"err\n")
    assert run(cluster, box, "--", "tr", "a-z", "A-Z", data=b"hello\n") == (0, b"HELLO\n", b"")
    assert run(cluster, "-n", box, "cat", data=b"not read") == (0, b"", b"")
    assert run(cluster, box, "sh", "-c", "kill -9 $$")[0] == 137


def test_what_cannot_be_run(cluster, box):
    status, _, said = run(cluster, box, "no-such-program")
    assert status == 127 and b"no-such-program: execute: No such file or directory" in said
    status, _, said = run(cluster, box, "/etc/passwd")
    assert status == 126 and b"Permission denied" in said
    status, _, said = run(cluster, "nobody", "true")
    assert status == 125 and b"nobody" in said
    status, _, said = run(cluster, "-w", "/nowhere", box, "true")
    assert status == 127 and b"working folder" in said
    status, _, said = run(cluster, box, "echo", "x" * 65000, "y" * 5000)
    assert status == 126 and b"longer than" in said, (status, said)


@pytest.mark.gate
def test_environment_and_folder(cluster, box):
    _, said, _ = run(cluster, "-e", "A=b c", "-w", "/usr", box, "sh", "-c",
                     "echo $A; pwd; id -u; echo $ALIQUOT_KERNEL_ID$BACKENDAI_KERNEL_ID | wc -c")
    lines = said.decode().split("\n")
    assert lines[:3] == ["b c", "/usr", "1000"] and int(lines[3]) > 36
    assert run(cluster, box, "pwd")[1] == b"/home/work\n"
    _, said, _ = run(cluster, "-e", "ALIQUOT_ENDPOINT", "-e", "NOT_HERE", "-e", "EMPTY=", box,
                     "sh", "-c", "echo $ALIQUOT_ENDPOINT ${NOT_HERE-unset} ${EMPTY-unset}.")
    assert said.decode() == cluster.cli_env()["ALIQUOT_ENDPOINT"] + " unset .\n"
    status, _, said = run(cluster, "-e", "1A=x", box, "true")
    assert status == 125 and b"no digit first; not '1A=x'" in said


@pytest.mark.gate
def test_nothing_is_lost(cluster, box):
    data = random.Random(5).randbytes(6 << 20)
    status, said, _ = run(cluster, box, "sh", "-c", "sleep 0.5; exec cat", data=data)
    assert status == 0 and len(said) == len(data)
    assert hashlib.sha256(said).digest() == hashlib.sha256(data).digest()


def test_a_command_that_leaves_its_input_unread(cluster, box):
    """Nothing of that reaches the session's program."""
    for _ in range(5):
        assert run(cluster, box, "head", "-c", "1", data=bytes(4 << 20))[1] == b"\0"
    assert run(cluster, box, "true")[0] == 0


@pytest.mark.gate
def test_several_at_once(cluster, box):
    argv, env = command(cluster, box, "sh", "-c", "read n; sleep 0.2; exit $n")
    running = [subprocess.Popen(argv, env=env, stdin=subprocess.PIPE) for _ in range(12)]
    for n, process in enumerate(running):
        process.stdin.write(b"%d\n" % n)
        process.stdin.close()
    assert [process.wait(60) for process in running] == list(range(12))


@pytest.mark.gate
def test_terminal(cluster, box):
    shell = terminal(cluster, box, "sh", rows=31, columns=97)
    shell.send(b"tty; stty size; echo $TERM\r")
    shell.expect(b"/dev/pts/")
    shell.expect(b"31 97")
    shell.expect(b"vt100")
    shell.resize(12, 34)
    shell.send(b"until stty size | grep '^12 34'; do sleep 0.05; done\r")
    shell.expect(b"12 34\r")
    shell.send(b"sleep 1234\r")
    wait_for_command(cluster, box, b"sleep 1234 ")
    shell.send(b"\x03")  # Ctrl-C is the business of the terminal in the container
    shell.send(b"exit 5\r")
    assert shell.wait() == 5


def masked(opcode, data):
    """A frame, masked by zeros."""
    size = bytes((0x80 | len(data),)) if len(data) < 126 else struct.pack("!BH", 0xFE, len(data))
    return bytes((0x80 | opcode,)) + size + bytes(4) + data


def test_what_is_said_before_the_agent_has_connected(cluster, box):
    """A size, input and its end, in one piece with the start."""
    ws = WebSocket(cluster.client(), f"/aliquot/v1/sessions/{box}/exec")
    command = ["sh", "-c", "sleep 1; stty size; exec head -n 1"]
    start = {"type": "start", "command": command, "tty": True, "input": True,
             "rows": 10, "cols": 20}
    texts = [start, {"type": "resize", "rows": 33, "cols": 44}, {"type": "end"}]
    frames = [masked(1, json.dumps(text).encode()) for text in texts]
    frames.insert(2, masked(2, b"\0typed\n"))
    ws.sock.sendall(b"".join(frames))
    shown = b""
    while (frame := ws.receive())[0] != 8:
        shown += frame[1][1:] if frame[0] == 2 else b""
    ws.close()
    assert shown.endswith(b"33 44\r\ntyped\r\n"), shown


def test_interrupt_reaches_the_command(cluster, box):
    argv, env = command(cluster, box, "sh", "-c",
                        "sleep 1000 & trap 'echo got; kill -9 $!; exit 3' INT; echo ready; wait")
    with subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"got\n" and process.wait(60) == 3


def test_a_client_that_goes_takes_its_command_along(cluster, box):
    argv, env = command(cluster, box, "sh", "-c",
                        "sleep 1000 & trap 'touch gone; kill -9 $!; exit' HUP; echo ready; wait")
    with subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        process.kill()
    wait_for(lambda: run(cluster, box, "test", "-e", "gone")[0] == 0, 30, "SIGHUP")


def test_runner_is_out_of_reach(cluster, box):
    """Neither its descriptors (socket and report) nor its memory."""
    look = ("readlink /proc/1/exe; ls /proc/1/fd; cat /proc/1/environ; cat /proc/1/mem; "
            "ls -l /proc/1/root; kill -9 1; tr '\\0' ' ' < /proc/1/cmdline")
    _, said, errors = run(cluster, box, "sh", "-c", look)
    assert b"\n/opt/kernel/aliquot-runner --socket 3 " in said and b" -> " not in said
    assert errors.count(b"ermission denied") >= 3 and b"not permitted" in errors
    assert run(cluster, box, "true")[0] == 0


def test_agent_that_is_killed(cluster, box):
    argv, env = command(cluster, box, "sleep", "4321")
    with subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as lost:
        wait_for_command(cluster, box, b"sleep 4321 ")
        cluster.programs["agent"].kill()
        assert lost.wait(60) == 125  # the connection broke off
    cluster.programs["agent"].start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    assert run(cluster, box, "echo", "still here") == (0, b"still here\n", b"")


def test_session_that_ends(cluster):
    with running(cluster.client(), "short", image="host") as name:
        argv, env = command(cluster, name, "sleep", "1000")
        with subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as process:
            wait_for_command(cluster, name, b"sleep 1000 ")
            cluster.client().send("DELETE", f"/session/{name}?forced=true")
            assert process.wait(60) == 125 and b"ended" in process.stderr.read()


@pytest.mark.gate
def test_attach_to_the_program(cluster, box):
    shell = terminal(cluster, box, verb=("session", "attach"), rows=22, columns=66)
    shell.send(b"tty; until test \"$(stty size)\" = '22 66'; do sleep 0.05; done; echo $((6*7))\r")
    shell.expect(b"/dev/pts/")
    shell.expect(b"42")
    shell.send(b"\x10\x11")
    shell.expect(b"Detached")
    assert shell.wait() == 0
    again = terminal(cluster, box, verb=("session", "attach"))
    again.expect(b"42")  # what was there before
    again.send(b"\x10\x11")
    assert again.wait() == 0


def test_orphans_are_reaped(cluster):
    name = "orphans"
    line = ("i=0; while [ $i -lt 1000 ]; do ( : & ); i=$((i+1)); done; "
            "while cat /proc/[0-9]*/stat 2> /dev/null | grep -q ') Z '; do sleep 0.1; done; "
            "echo none is left")
    client = cluster.client()
    client.post("/session", {**batch(name, line), "image": "host"})
    shown = wait_status(client, name, "TERMINATED")
    assert shown["result"] == "SUCCESS"
    assert client.get(f"/aliquot/v1/sessions/{shown['id']}/logs").body == b"none is left\n"


def test_image_without_anything(cluster):
    """No libc, no shell, no /etc/passwd: one static program."""
    image = cluster.folder / "nothing"
    image.mkdir()
    shutil.copy(BUILD / "aliquot-runner", image / "program")
    image.chmod(0o755)
    with running(cluster.client(), "bare", image=f"rootfs:{image}") as name:
        assert run(cluster, name, "/program", "--version")[1].startswith(b"aliquot-runner ")
        status, _, said = run(cluster, name)
        assert status == 127 and b"a shell: find a shell" in said


# ---- standard input that others use, too ----

def shell(cluster, line, data=b"", **more):
    """Standard output of a line of the shell, in which 'aliquot exec' is $E."""
    argv, env = command(cluster)
    done = subprocess.run(["sh", "-c", line], env={**env, "E": " ".join(map(str, argv))},
                          capture_output=True, timeout=100, check=False,
                          **(more or {"input": data}))
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout.decode()


@pytest.mark.gate
def test_input_that_is_not_read_is_left(cluster, box, tmp_path):
    """To the loop that runs the command: in a pipe, a file and a socket."""
    loop = f"while read x; do $E {box} echo $x; done"
    assert shell(cluster, "printf 'a\\nb\\nc\\n' | " + loop) == "a\nb\nc\n"
    (tmp_path / "lines").write_text("a\nb\nc\n")
    with open(tmp_path / "lines", encoding="utf-8") as file:
        assert shell(cluster, loop, stdin=file) == "a\nb\nc\n"
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"a\nb\n")
        ours.shutdown(socket.SHUT_WR)
        assert shell(cluster, loop, stdin=theirs) == "a\nb\n"
    assert shell(cluster, f"(echo early; sleep 0.3; echo late) | ($E {box} sleep 0.6; cat)") == (
        "early\nlate\n")
    assert shell(cluster, f"$E {box} no-such-program 2>/dev/null; cat", b"kept") == "kept"
    assert shell(cluster, f"$E {box} sh -c 'exec 0<&-; sleep 0.2'; cat", b"kept") == "kept"


@pytest.mark.gate
def test_as_much_input_is_taken_as_is_read(cluster, box):
    loop = f"while read x; do $E {box} sh -c 'read y; echo '$x' $y'; done"
    assert shell(cluster, loop, b"a\nb\nc\nd\n") == "a b\nc d\n"
    assert shell(cluster, f"$E {box} head -c 5 | wc -c; wc -c", bytes(3)) == "3\n0\n"
    assert shell(cluster, f"$E {box} sh -c 'read a; read b; wc -l' ", b"x\n" * 50000) == "49998\n"
    assert shell(cluster, f"(echo 1; sleep 0.2; echo 2; sleep 0.2; echo 3) | $E {box} sh -c "
                          "'while read x; do echo got $x; done'") == "got 1\ngot 2\ngot 3\n"
    assert shell(cluster, f"$E {box} head -3", b"1\n2\n3\n4\n") == "1\n2\n3\n"
    assert shell(cluster, f"$E {box} cat <&-") == ""
    assert shell(cluster, f"$E -i {box} sleep 0.5; cat", b"all of it is gone") == ""
    assert shell(cluster, f"$E -n {box} cat; cat", b"kept") == "kept"
