# SPDX-License-Identifier: Apache-2.0
"""Code in sessions that does what it should not: defined results, and the next run works."""

import contextlib
import os
import pathlib
import signal

import pytest

import containers
from cluster import GONE, Cluster, running, wait_for, wait_status
from execution import ask
from runtimes import settings_of

MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def cluster():
    with Cluster(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host rootfs:*") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


@pytest.fixture(scope="module")
def box(cluster):
    with running(cluster.client(), "tried", image="host", config={
            "resources": {"cpu": "1", "mem": "256m"}}):
        yield "tried"


def read_on(cluster, box, result):
    """(texts by kind, exit code) of a run to its end."""
    texts = {}
    while True:
        for kind, text in result["console"]:
            texts[kind] = texts.get(kind, "") + str(text)
        if result["status"] == "finished":
            return texts, result["exitCode"]
        assert result["status"] == "continued", result
        result = ask(cluster, box, "continue", run=result["runId"])


def execute(cluster, box, code, **options):
    return read_on(cluster, box, ask(cluster, box, "query", code, **options))


def interrupt(cluster, box):
    assert cluster.client().post(f"/session/{box}/interrupt", {}).status == 204


def works(cluster, box):
    return execute(cluster, box, "1 + 1")[0] == {"stdout": "2\n"}


def test_a_gigabyte(cluster, box):
    """It waits for its reader and fills no memory; an interrupt ends it."""
    result = ask(cluster, box, "query", "for _ in range(1 << 14): print('x' * (1 << 16))",
                 run="much")
    read = sum(len(text) for _, text in result["console"])
    while read < 8 * MEGABYTE:
        assert result["status"] == "continued"
        result = ask(cluster, box, "continue", run="much")
        read += sum(len(text) for _, text in result["console"])
    interrupt(cluster, box)
    texts, code = read_on(cluster, box, result)
    assert code == 1 and "KeyboardInterrupt" in texts["stderr"]
    assert len(texts.get("stdout", "")) < 32 * MEGABYTE
    assert works(cluster, box)


def test_one_huge_line(cluster, box):
    """A text larger than what is kept comes in pieces."""
    texts, code = execute(cluster, box, "import sys\nn = sys.stdout.write('y' * (20 << 20))\nNone")
    assert code == 0 and texts["stdout"] == "y" * (20 * MEGABYTE)


def test_a_shell_without_end(cluster, box):
    result = ask(cluster, box, "query", "while :; do :; done", run="loop", language="shell")
    assert result["status"] == "continued"
    interrupt(cluster, box)
    assert read_on(cluster, box, result)[1] != 0
    assert execute(cluster, box, "echo yes", language="shell") == ({"stdout": "yes\n"}, 0)


def test_a_batch_without_end(cluster, box):
    result = ask(cluster, box, "batch", run="batch", exec="sleep 1000")
    while result["status"] in ("clean-finished", "build-finished"):
        result = ask(cluster, box, "continue", run="batch")
    interrupt(cluster, box)
    assert read_on(cluster, box, result)[1] == 130


def test_code_that_ignores_interrupts(cluster, box):
    """It is the user's; the shell of the same session can end it."""
    result = ask(cluster, box, "query", "import os, signal, time\n"
                 "signal.signal(signal.SIGINT, signal.SIG_IGN)\nprint(os.getpid(), flush=True)\n"
                 "time.sleep(1000)", run="deaf")
    while not result["console"]:
        result = ask(cluster, box, "continue", run="deaf")
    interrupt(cluster, box)
    done = cluster.cli("exec", box, "kill", "-9", result["console"][0][1].strip())
    assert done.returncode == 0, done.stderr
    assert read_on(cluster, box, {"console": [], "status": "continued", "runId": "deaf"})[1] == 137
    assert works(cluster, box)


def test_forks(cluster, box):
    """A child that goes on running our driver would take the parent's requests."""
    texts, code = execute(cluster, box, "import os\nif os.fork() == 0:\n    os._exit(3)\n"
                                        "os.waitstatus_to_exitcode(os.wait()[1])")
    assert (texts, code) == ({"stdout": "3\n"}, 0)
    texts, code = execute(cluster, box, "import os, time\npid = os.fork()\nprint('both')\n"
                                        "pid > 0 and time.sleep(0.5)\nNone")
    assert code == 0 and texts["stdout"].count("both") == 2, texts
    texts, _ = execute(cluster, box, "import os\npid = os.fork()\nif pid == 0: input('? ')\n"
                                     "os.waitpid(pid, 0)[1] >> 8")
    assert "EOFError" in texts["stderr"] and texts["stdout"].endswith("1\n"), texts
    for _ in range(5):
        assert works(cluster, box)


def test_children_that_stay(cluster, box):
    """They hold the output open; the run ends all the same, and what they write comes later."""
    texts, code = execute(cluster, box, "import subprocess\n"
                          "p = subprocess.Popen(['sh', '-c', 'sleep 1; echo late; sleep 1000'])")
    assert (texts, code) == ({}, 0)
    texts, _ = execute(cluster, box, "import time\ntime.sleep(2)\np.kill()")
    assert texts == {"stdout": "late\n"}
    texts, code = execute(cluster, box, "sleep 1000 & echo begun", language="shell")
    assert (texts, code) == ({"stdout": "begun\n"}, 0)
    assert execute(cluster, box, "kill $!", language="shell")[1] == 0


@pytest.mark.parametrize("which", ["0, 3", "1, 2", "0, 1000"])
def test_closed_descriptors(cluster, box, which):
    texts, code = execute(cluster, box, f"import os\nos.closerange({which})\nprint('said')")
    assert code != 0 or "said" in texts.get("stdout", "said"), texts
    assert works(cluster, box)


def test_a_closed_shell(cluster, box):
    """It has said so itself, and lives on in silence until it is told to exit."""
    execute(cluster, box, "exec 1>&- 2>&-", language="shell")
    assert execute(cluster, box, "echo no; true", language="shell")[0].get("stdout") is None
    execute(cluster, box, "exit", language="shell")
    assert execute(cluster, box, "echo yes", language="shell") == ({"stdout": "yes\n"}, 0)


def test_a_shell_that_becomes_another_program(cluster, box):
    """Nobody would tell the end of the run, so it ends there."""
    texts, code = execute(cluster, box, "exec sleep 1000", language="shell")
    assert code == 137 and "the next run starts another" in texts["stderr"]
    assert execute(cluster, box, "echo yes", language="shell") == ({"stdout": "yes\n"}, 0)


def test_lies_to_the_executor(cluster, box):
    """Code has the driver's socket if it looks for it: only its own run believes it."""
    execute(cluster, box, "import os, socket\n"
            "for fd in range(3, 64):\n"
            "    try:\n"
            "        s = socket.socket(fileno=os.dup(fd))\n"
            "        for packet in (b'', b'?', b'f', b'fx', b'M' * 40000, b's{', b'w1', b'f7'):\n"
            "            try: s.send(packet, socket.MSG_DONTWAIT)\n"
            "            except OSError: pass\n"
            "    except OSError: pass\n")
    wait_for(lambda: works(cluster, box))


def test_full_memory(cluster, box):
    """Killed for memory, the interpreter has a successor; the session lives."""
    texts, code = execute(cluster, box, "held = []\nwhile True: held.append(bytearray(1 << 24))")
    assert code in (1, 137), (texts, code)
    assert works(cluster, box)


@pytest.mark.parametrize("name", ["KILL", "SEGV"])
def test_a_killed_executor(cluster, box, name):
    """Its runs are lost, which is said; the next request starts another."""
    result = ask(cluster, box, "query", "import os, time\nprint(os.getppid(), flush=True)\n"
                                        "time.sleep(1000)", run="lost")
    while not result["console"]:
        result = ask(cluster, box, "continue", run="lost")
    done = cluster.cli("exec", box, "kill", f"-{name}", result["console"][0][1].strip())
    assert done.returncode == 0, done.stderr
    reply = wait_for(lambda: (r := cluster.client().post(f"/session/{box}", {
        "mode": "continue", "runId": "lost"})).status == 400 and r)
    assert "no such run" in reply.body.decode()
    assert works(cluster, box)
    # what it had started is not left
    text, _ = execute(cluster, box, "cat /proc/[0-9]*/comm | grep -c python3", language="shell")
    assert text["stdout"] == "1\n", text


def test_questions_while_programs_are_killed(cluster, box):
    """Each gets an answer that says what is so; nothing stays behind."""
    for program, start in (("agent", cluster.start_agent), ("manager", cluster.start_manager)):
        result = ask(cluster, box, "query", "import time\nfor i in range(40):\n"
                                            "    print(i, flush=True); time.sleep(0.05)",
                     run=f"under-{program}")
        text = "".join(text for _, text in result["console"])
        cluster.programs[program].kill()
        with contextlib.suppress(*GONE):
            reply = cluster.client().post(f"/session/{box}", {
                "mode": "continue", "runId": f"under-{program}"})
            assert reply.status in (200, 503), reply
            if reply.status == 200:
                text += "".join(text for _, text in reply.json["result"]["console"])
        start()

        def again():
            with contextlib.suppress(*GONE):
                reply = cluster.client().post(f"/session/{box}", {"mode": "query", "code": "0"})
                assert reply.status in (200, 400, 401, 503), reply
                return reply.status == 200
        wait_for(again)
        result = ask(cluster, box, "continue", run=f"under-{program}")
        texts, code = read_on(cluster, box, result)
        assert code == 0
        assert (text + texts["stdout"]).splitlines()[-1] == "39"


def test_the_runner_is_killed():
    """The session ends, and with it what was asked of it."""
    with Cluster(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host rootfs:*") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        with running(cluster.client(), "doomed", image="host"):
            ask(cluster, "doomed", "query", "import time\ntime.sleep(1000)", run="last")
            for pid in containers.pids_of(cluster.folder):
                with contextlib.suppress(OSError):
                    if b"aliquot-runner" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                        os.kill(pid, signal.SIGKILL)
            reply = wait_for(lambda: (r := cluster.client().post("/session/doomed", {
                "mode": "continue", "runId": "last"})).status != 200 and r)
            assert reply.status in (400, 404, 503) and reply.json["msg"], reply
            wait_status(cluster.client(), "doomed", "TERMINATED")
        cluster.check_nothing_left()
        cluster.stop()
