# SPDX-License-Identifier: Apache-2.0
"""Code in sessions by a Jupyter kernel: IPython's, as pip installs it."""

import json

import pytest

import fetched
from client import WebSocket
from cluster import Cluster, running, wait_for
from execution import ask, join
from runtimes import settings_of

PACKAGES = ("ipykernel==7.4.0",)


@pytest.fixture(scope="module")
def cluster():
    with Cluster(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


@pytest.fixture(scope="module")
def box(cluster):
    """Its variable does what the label aliquot.interpreter.python does."""
    packages = fetched.python_packages(*PACKAGES)
    with running(cluster.client(), "jupyter", image="host", config={
            "resources": {"cpu": "1", "mem": "1g"},
            "environ": {"ALIQUOT_INTERPRETER_python": "jupyter:python3",
                        "ALIQUOT_INTERPRETER_r": "jupyter:ir", "PYTHONPATH": "/home/work/site"}}):
        done = cluster.cli("cp", packages, "jupyter:site")
        assert done.returncode == 0, done.stderr
        yield "jupyter"


def read_on(cluster, box, result):
    """(console, exit code) to the end or a question, where neighbours of one kind are one."""
    console = result["console"]
    while result["status"] == "continued":
        result = ask(cluster, box, "continue", run=result["runId"])
        console += result["console"]
    return join(console), result["exitCode"] if result["status"] == "finished" else result["options"]


def execute(cluster, box, code, **options):
    return read_on(cluster, box, ask(cluster, box, "query", code, **options))


def test_state_and_results(cluster, box):
    assert execute(cluster, box, "x = 41\nprint('héllo')\nx + 1") \
        == ([["stdout", "héllo\n42\n"]], 0)
    assert execute(cluster, box, "%who_ls") == ([["stdout", "['x']\n"]], 0), "it is IPython"
    assert execute(cluster, box, "import sys\nprint('out')\nsys.stdout.flush()\n"
                                 "print('err', file=sys.stderr)") \
        == ([["stdout", "out\n"], ["stderr", "err\n"]], 0)


def test_pictures(cluster, box):
    code = ("from IPython.display import Image, HTML, display\n"
            "display(HTML('<b>bold</b>'))\nImage(b'\\x89PNG' + bytes(100000), format='png')")
    console, code = execute(cluster, box, code)
    assert code == 0
    assert console[0] == ["media", ["text/html", "<b>bold</b>"]]
    kind, (mime, data) = console[1]
    assert (kind, mime) == ("media", "image/png")
    assert data.startswith("data:image/png;base64,iVBORw") and len(data) > 130000


def test_errors(cluster, box):
    console, code = execute(cluster, box, "def f():\n    return 1 / 0\nf()")
    assert code == 1
    assert "return 1 / 0" in console[0][1] and "ZeroDivisionError" in console[0][1]
    assert "\x1b" not in console[0][1], "colors"
    assert execute(cluster, box, "raise SystemExit(7)")[1] == 7
    assert execute(cluster, box, "x") == ([["stdout", "41\n"]], 0), "the state is still there"


def test_questions(cluster, box):
    result = ask(cluster, box, "query", "name = input('name? ')\nname")
    console, options = read_on(cluster, box, result)
    assert (console, options) == ([["stdout", "name? "]], {"is_password": False})
    result = ask(cluster, box, "input", "Ada", run=result["runId"])
    assert read_on(cluster, box, result) == ([["stdout", "'Ada'\n"]], 0)
    result = ask(cluster, box, "query", "import getpass\nlen(getpass.getpass('secret: '))")
    assert read_on(cluster, box, result) == ([["stdout", "secret: "]], {"is_password": True})
    assert cluster.client().post(f"/session/{box}/interrupt", {}).status == 204
    console, code = read_on(cluster, box, ask(cluster, box, "continue", run=result["runId"]))
    assert code == 1 and "KeyboardInterrupt" in console[-1][1]


def test_interrupt(cluster, box):
    result = ask(cluster, box, "query", "import time\ntime.sleep(1000)", run="sleeper")
    assert result["status"] == "continued"
    assert cluster.client().post(f"/session/{box}/interrupt", {}).status == 204
    console, code = read_on(cluster, box, result)
    assert code == 1 and "KeyboardInterrupt" in console[-1][1]
    assert execute(cluster, box, "x") == ([["stdout", "41\n"]], 0)


def test_completion(cluster, box):
    execute(cluster, box, "import json")
    reply = cluster.client().post(f"/session/{box}/complete",
                                  {"code": "json.du", "options": {"row": 0, "col": 7}})
    assert reply.status == 200, reply
    assert {"dump", "dumps"} <= {found.rpartition(".")[2]
                                 for found in reply.json["result"]["completions"]}


def test_much_output(cluster, box):
    console, code = execute(cluster, box, "for i in range(50000): print('line', i)")
    assert (console, code) == ([["stdout", "".join(f"line {i}\n" for i in range(50000))]], 0)


def test_a_kernel_that_dies(cluster, box):
    console, code = execute(cluster, box, "import os\nos.kill(os.getpid(), 9)")
    assert code == 137 and "the next run starts another" in console[-1][1]
    assert execute(cluster, box, "'x' in globals()") == ([["stdout", "False\n"]], 0)
    assert execute(cluster, box, "x = 1") == ([], 0)
    assert execute(cluster, box, "exit()")[1] == 0
    assert execute(cluster, box, "'x' in globals()") == ([["stdout", "False\n"]], 0)
    assert execute(cluster, box, "1 + 1") == ([["stdout", "2\n"]], 0)


def test_a_driver_that_is_killed(cluster, box):
    """Its kernel goes with it."""
    console, _ = execute(cluster, box, "import os\nos.getpid(), os.getppid()")
    kernel, driver = json.loads(console[0][1].replace("(", "[").replace(")", "]"))
    console, code = execute(cluster, box, f"import os, time\nos.kill({driver}, 9)\n"
                                          "time.sleep(1000)")
    assert code == 137 and "the next run starts another" in console[-1][1]
    wait_for(lambda: execute(cluster, box, f"kill -0 {kernel}", language="shell")[1] != 0)


def test_a_kernel_that_the_image_has_not(cluster, box):
    console, code = execute(cluster, box, "1 + 1", language="r")
    assert code == 127 and "the Jupyter kernel 'ir' cannot be started" in console[0][1]


def test_an_image_without_jupyter(cluster):
    with running(cluster.client(), "bare", image="host", config={
            "resources": {"cpu": "1", "mem": "256m"},
            "environ": {"ALIQUOT_INTERPRETER_python": "jupyter:python3"}}):
        console, code = execute(cluster, "bare", "1 + 1")
        assert code == 127 and "needs jupyter_client in the image" in console[0][1]


def test_web_socket(cluster, box):
    ws = WebSocket(cluster.client(), f"/stream/session/{box}/execute")
    ws.send(json.dumps({"mode": "query", "code": "input('? ') + '!'", "options": {}}))
    text, status = "", None
    while status != "finished":
        piece = json.loads(ws.receive()[1])
        text += "".join(words for _, words in piece["console"])
        status = piece["status"]
        if status == "waiting-input":
            ws.send("yes")
    assert text == "? 'yes!'\n"
    ws.close()
