# SPDX-License-Identifier: Apache-2.0
"""Code that is run in sessions: state between runs, prompts, pictures, batches, interrupts; over
requests and over the WebSocket."""

import contextlib
import json
import subprocess

import pytest

from client import WebSocket, sse_events
from cluster import Cluster, running, wait_for, wait_status
from execution import ask, join
from runtimes import settings_of
from world import BUILD


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
    with running(cluster.client(), "coded", image="host"):
        yield "coded"


@contextlib.contextmanager
def events_of(client, query):
    """(event, data) of what follows."""
    sock, file, _ = client.stream("/events/session?" + query, timeout=60)
    try:
        yield sse_events(file)
    finally:
        sock.close()


def execute(cluster, box, code, mode="query", **options):
    """(console, exit code) of a run to its end, where neighbours of one kind are one."""
    result = ask(cluster, box, mode, code, **options)
    console = result["console"]
    while result["status"] != "finished":
        assert result["status"] in ("continued", "clean-finished", "build-finished")
        result = ask(cluster, box, "continue", run=result["runId"])
        console += result["console"]
    return join(console), result["exitCode"]


@pytest.mark.gate
def test_python_keeps_its_state(cluster, box):
    assert execute(cluster, box, "x = 41\nprint('héllo')\nx + 1") \
        == ([["stdout", "héllo\n42\n"]], 0)
    assert execute(cluster, box, "x") == ([["stdout", "41\n"]], 0)
    console, code = execute(cluster, box, "def f():\n    return x / 0\nf()")
    assert code == 1
    assert console[0][0] == "stderr"
    assert "return x / 0" in console[0][1] and "ZeroDivisionError" in console[0][1]
    assert "receive" not in console[0][1], "the driver's own frames"
    assert execute(cluster, box, "import sys; sys.exit(7)") == ([], 7)


@pytest.mark.gate
def test_order_of_outputs(cluster, box):
    console, code = execute(cluster, box, "import sys\nprint('a')\nprint('b', file=sys.stderr)\n"
                                          "print('c')")
    assert console == [["stdout", "a\n"], ["stderr", "b\n"], ["stdout", "c\n"]]
    console, _ = execute(cluster, box, "import os\nos.system('echo from a child')\nNone")
    assert console == [["stdout", "from a child\n"]]


@pytest.mark.gate
def test_pictures(cluster, box):
    html = "class Bold:\n    def _repr_html_(self):\n        return '<b>bold</b>'\nBold()"
    assert execute(cluster, box, html) == ([["media", ["text/html", "<b>bold</b>"]]], 0)
    png = "class Dot:\n    def _repr_png_(self):\n        return b'\\x89PNG' + bytes(100000)\nDot()"
    console, _ = execute(cluster, box, png)
    (kind, (mime, data)), = console
    assert (kind, mime) == ("media", "image/png")
    assert data.startswith("data:image/png;base64,iVBORw") and len(data) > 130000


def test_a_picture_that_is_too_large(cluster, box):
    png = "class Wall:\n    def _repr_png_(self):\n        return bytes(600000)\nWall()"
    (kind, text), = execute(cluster, box, png)[0]
    assert kind == "log" and "512 KiB" in text


@pytest.mark.gate
def test_input(cluster, box):
    result = ask(cluster, box, "query", "name = input('name? ')\nname")
    while result["status"] == "continued":
        result = ask(cluster, box, "continue", run=result["runId"])
    assert (result["status"], result["options"]) == ("waiting-input", {"is_password": False})
    assert result["console"] == [["stdout", "name? "]]
    result = ask(cluster, box, "input", "Ada", run=result["runId"])
    assert result["console"] == [["stdout", "'Ada'\n"]] and result["exitCode"] == 0
    result = ask(cluster, box, "query", "import getpass\nlen(getpass.getpass('secret: '))")
    assert (result["status"], result["options"]) == ("waiting-input", {"is_password": True})
    result = ask(cluster, box, "input", "12345", run=result["runId"])
    assert result["console"] == [["stdout", "5\n"]]


def test_interrupted_input(cluster, box):
    result = ask(cluster, box, "query", "input('never? ')", run="asks")
    while result["status"] == "continued":
        result = ask(cluster, box, "continue", run="asks")
    assert cluster.client().post(f"/session/{box}/interrupt", {}).status == 204
    result = {"status": "continued"}
    while result["status"] == "continued":
        result = ask(cluster, box, "continue", run="asks")
    assert result["status"] == "finished" and "KeyboardInterrupt" in result["console"][0][1]


@pytest.mark.gate
def test_shell_keeps_its_state(cluster, box):
    assert execute(cluster, box, "A=5; cd /tmp", language="shell") == ([], 0)
    assert execute(cluster, box, "echo $A; pwd; false", language="shell") \
        == ([["stdout", "5\n/tmp\n"]], 1)


@pytest.mark.gate
def test_c(cluster, box):
    code = '#include <stdio.h>\nint main(void) { puts("from C"); return 3; }\n'
    assert execute(cluster, box, code, language="c") == ([["stdout", "from C\n"]], 3)
    console, code = execute(cluster, box, "int main(void) { return x; }", language="c")
    assert code != 0 and "'x' undeclared" in console[0][1].replace("‘", "'").replace("’", "'")


@pytest.mark.gate
def test_batch(cluster, box):
    result = ask(cluster, box, "batch", clean="echo clean", build="echo build; exit 3",
                 exec="echo never")
    assert (result["status"], result["exitCode"], result["console"]) \
        == ("clean-finished", 0, [["stdout", "clean\n"]])
    result = ask(cluster, box, "continue", run=result["runId"])
    assert (result["status"], result["exitCode"]) == ("build-finished", 3)
    result = ask(cluster, box, "continue", run=result["runId"])
    assert (result["status"], result["exitCode"], result["console"]) == ("finished", 127, [])
    execute(cluster, box, "echo 'print(6 * 7)' > main.py", language="shell")
    assert execute(cluster, box, "", "batch", exec="*")[1] in (0, 127)


def test_interrupt(cluster, box):
    result = ask(cluster, box, "query", "import time\ntime.sleep(1000)", run="sleeper")
    assert result["status"] == "continued"
    assert cluster.client().post(f"/session/{box}/interrupt", {}).status == 204
    while result["status"] != "finished":
        result = ask(cluster, box, "continue", run="sleeper")
    assert "KeyboardInterrupt" in result["console"][0][1]
    assert execute(cluster, box, "x")[0] == [["stdout", "41\n"]], "the state is still there"


@pytest.mark.gate
def test_complete(cluster, box):
    execute(cluster, box, "import json")
    reply = cluster.client().post(f"/session/{box}/complete",
                                  {"code": "json.du", "options": {"row": 0, "col": 7}})
    assert reply.status == 200, reply
    assert {"json.dump", "json.dumps"} <= set(reply.json["result"]["completions"])


def test_much_output_is_whole(cluster, box):
    """Who writes waits for who reads; nothing is lost and the order stays."""
    console, code = execute(cluster, box, "for i in range(100000): print('line', i)")
    assert code == 0
    assert console == [["stdout", "".join(f"line {i}\n" for i in range(100000))]]


def test_bytes_that_are_no_text(cluster, box):
    console, _ = execute(cluster, box, "import os\nos.write(1, b'a\\xffb')\nNone")
    assert console == [["stdout", "a\ufffdb"]]


def test_nul_in_what_code_writes(cluster, box):
    assert execute(cluster, box, "import sys\nprint('x\\0y')\nprint('\\0', file=sys.stderr)") \
        == ([["stdout", "x\0y\n"], ["stderr", "\0\n"]], 0)
    assert execute(cluster, box, "head -c 3 /dev/zero", language="shell") \
        == ([["stdout", "\0\0\0"]], 0)
    console, _ = execute(cluster, box, "cat /proc/self/environ", language="shell")
    assert console[0][1].count("\0") > 2 and "PATH=" in console[0][1]
    html = "class Odd:\n    def _repr_html_(self):\n        return '<b>\\0</b>'\nOdd()"
    assert execute(cluster, box, html) == ([["media", ["text/html", "<b>\0</b>"]]], 0)
    result = ask(cluster, box, "query", "input('a\\0b? ')", run="nul")
    while result["status"] == "continued":
        result = ask(cluster, box, "continue", run="nul")
    assert (result["status"], result["console"]) == ("waiting-input", [["stdout", "a\0b? "]])
    assert ask(cluster, box, "input", "1", run="nul")["status"] == "finished"


def test_names_that_are_no_text(cluster, box):
    execute(cluster, box, "class Odd: pass\nodd = Odd()\nsetattr(odd, 'n\\0x', 1)\n"
                          "setattr(odd, 'n\\ud800y', 1)")
    reply = cluster.client().post(f"/session/{box}/complete", {
        "code": "odd.n", "options": {"row": 0, "col": 5, "line": "odd.n", "post": ""}})
    assert reply.status == 200, reply
    assert set(reply.json["result"]["completions"]) == {"odd.n\0x", "odd.n?y"}


def test_nul_over_the_web_socket(cluster, box):
    ws = WebSocket(cluster.client(), f"/stream/session/{box}/execute")
    ws.send(json.dumps({"mode": "query", "code": "print('x\\0y')", "options": {}}))
    text, status = "", "continued"
    while status != "finished":
        piece = json.loads(ws.receive()[1])
        text, status = text + "".join(words for _, words in piece["console"]), piece["status"]
    assert text == "x\0y\n"
    ws.close()


def test_an_interpreter_that_ends(cluster, box):
    console, code = execute(cluster, box, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert code == 137 and "the next run starts another" in console[-1][1]
    assert execute(cluster, box, "1 + 1") == ([["stdout", "2\n"]], 0)


def test_runs_wait_for_each_other(cluster, box):
    first = ask(cluster, box, "query", "import time\ntime.sleep(5)\nprint('first')", run="one")
    assert first["status"] == "continued"
    second = ask(cluster, box, "query", "print('second')", run="two")
    while second["status"] != "finished":
        second = ask(cluster, box, "continue", run="two")
    assert second["console"] == [["stdout", "second\n"]]
    first = ask(cluster, box, "continue", run="one")
    assert first["console"] == [["stdout", "first\n"]], "it is kept until somebody reads it"


def test_bad_requests(cluster, box):
    client = cluster.client()
    for body, field in (({"mode": "fly"}, "mode"), ({"mode": "continue"}, "runId"),
                        ({"mode": "query", "code": 5}, "code"),
                        ({"mode": "query", "runId": "a b"}, "runId"),
                        ({"mode": "query", "options": {"language": "cobol"}}, "language"),
                        ({"mode": "batch", "options": {"exec": 5}}, "exec")):
        reply = client.post(f"/session/{box}", body)
        assert reply.status == 400 and field in reply.body.decode(), (body, reply)
    reply = client.post(f"/session/{box}", {"mode": "continue", "runId": "unknown"})
    assert reply.status == 400 and "no such run" in reply.body.decode()
    reply = client.post("/session/nobody", {"mode": "query", "code": "1"})
    assert reply.status == 404


@pytest.mark.gate
def test_web_socket(cluster, box):
    ws = WebSocket(cluster.client(), f"/stream/session/{box}/execute")
    ws.send(json.dumps({"mode": "query", "code": "print(1, flush=True)\ninput('? ')",
                        "options": {}}))
    text = ""

    def read_until(wanted):
        nonlocal text
        while True:
            piece = json.loads(ws.receive()[1])
            text += "".join(words for _, words in piece["console"])
            if piece["status"] == wanted:
                return piece

    assert read_until("waiting-input")["options"] == {"is_password": False}
    assert text == "1\n? "
    ws.send("yes")
    assert read_until("finished")["exitCode"] == 0
    assert text == "1\n? 'yes'\n"
    assert ws.receive()[0] == 8, "it is closed"
    ws.close()


def test_a_web_socket_that_is_read_late(cluster, box):
    """The code waits for its reader, and so do later runs; nothing is lost."""
    ws = WebSocket(cluster.client(), f"/stream/session/{box}/execute")
    ws.send(json.dumps({"mode": "query", "code": "for i in range(300000): print(f'{i:060}')"}))
    piece = json.loads(ws.receive()[1])
    text = [words for _, words in piece["console"]]
    later = ask(cluster, box, "query", "'later'", run="later")
    assert later["status"] == "continued"
    while piece["status"] != "finished":
        piece = json.loads(ws.receive()[1])
        text += [words for _, words in piece["console"]]
    assert "".join(text) == "".join(f"{i:060}\n" for i in range(300000))
    ws.close()
    while later["status"] != "finished":
        later = ask(cluster, box, "continue", run="later")


def test_agent_and_manager_killed(cluster, box):
    """The run is the container's: it goes on, and what it has written is there afterwards."""
    result = ask(cluster, box, "query", "import time\nfor i in range(5):\n    print(i, flush=True)\n"
                                        "    time.sleep(0.5)", run="long")
    console = result["console"]
    cluster.programs["agent"].kill()
    cluster.programs["manager"].kill()
    cluster.start_manager()
    cluster.start_agent()
    wait_for(lambda: cluster.client().post(f"/session/{box}", {"mode": "query", "code": "0"})
             .status == 200)
    while result["status"] != "finished":
        result = ask(cluster, box, "continue", run="long")
        console += result["console"]
    assert "".join(text for _, text in console) == "0\n1\n2\n3\n4\n"


def evaluate(cluster, *words, data=""):
    done = subprocess.run([BUILD / "aliquot", "eval", *words], input=data, capture_output=True,
                          text=True, timeout=60, env={**cluster.env, **cluster.cli_env()})
    return done.returncode, done.stdout, done.stderr


@pytest.mark.gate
def test_command_line(cluster, box):
    assert evaluate(cluster, box, "word = 'kept'") == (0, "", "")
    assert evaluate(cluster, box, data="print(word)") == (0, "kept\n", "")
    assert evaluate(cluster, "-l", "shell", box, "echo no >&2; exit 4")[:2] == (4, "")
    code, out, err = evaluate(cluster, box, "1 / 0")
    assert (code, out) == (1, "") and "ZeroDivisionError" in err
    assert evaluate(cluster, box, "input('who? ') + '!'", data="Ada\n") \
        == (0, "who? 'Ada!'\n", "")
    assert evaluate(cluster, box, "print('x\\0y')") == (0, "x\0y\n", "")
    assert evaluate(cluster, "-l", "shell", box, "head -c 3 /dev/zero") == (0, "\0\0\0", "")
    code, _, err = evaluate(cluster, box, b"print('\xff')".decode(errors="surrogateescape"))
    assert code != 0 and "not UTF-8" in err
    code, _, err = evaluate(cluster, "-l", "cobol", box, "1")
    assert code != 0 and "python, shell, c" in err


def test_events(cluster, box):
    """Of the run, not of each question."""
    with events_of(cluster.client(), f"sessionName={box}&scope=*") as events:
        execute(cluster, box, "1 + 1")
        result = ask(cluster, box, "query", "import time\ntime.sleep(3)\nexit(3)", run="slow")
        while result["status"] != "finished":
            result = ask(cluster, box, "continue", run="slow")
        seen = []
        for event, data in events:
            if event.startswith("execution_"):
                seen.append((event, data["runId"], data.get("exitCode")))
                assert data["sessionName"] == box and "kernelId" not in data
            if data.get("exitCode") == 3:
                break
    quick = seen[0][1]
    assert seen == [("execution_started", quick, None), ("execution_finished", quick, 0),
                    ("execution_started", "slow", None), ("execution_finished", "slow", 3)]


def test_time_limit():
    """The code is killed, with what it has started; the session ends once that is told."""
    with Cluster(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host rootfs:*",
                 ALIQUOT_SESSIONS_EXECUTION_TIMEOUT="2s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        with running(client, "limited", image="host"):
            assert execute(cluster, "limited", "1 + 1") == ([["stdout", "2\n"]], 0)
            with events_of(client, "sessionName=limited&scope=*") as events:
                result = ask(cluster, "limited", "query", "print('begun', flush=True)\n"
                             "import os; os.system('sleep 1000')", run="long")
                console = result["console"]
                while result["status"] == "continued":
                    result = ask(cluster, "limited", "continue", run="long")
                    console += result["console"]
                assert (result["status"], result["exitCode"]) == ("exec-timeout", None)
                assert console == [["stdout", "begun\n"]]
                assert next(data["runId"] for event, data in events
                            if event == "execution_timeout") == "long"
            shown = wait_status(client, "limited", "TERMINATED")
            assert shown["reason"] == "exec-timeout", shown
        cluster.check_nothing_left()
        cluster.stop()
