# SPDX-License-Identifier: Apache-2.0
"""The scenes: each does what users do and looks at what came of it."""

import datetime
import http.client
import json
import os
import pathlib
import signal
import statistics
import time
import urllib.parse

import screen
from client import Client
from cluster import AGENTS, ENDED, SHARED
from commands import Failed

TRAINING = """\
import random, sys
random.seed(1)
data = [(x / 50, 3 * x / 50 + 2 + random.gauss(0, 0.1)) for x in range(100)]
a = b = 0.0
for step in range(2000):
    da = sum((a * x + b - y) * x for x, y in data) / len(data)
    db = sum(a * x + b - y for x, y in data) / len(data)
    a, b = a - 0.3 * da, b - 0.3 * db
loss = sum((a * x + b - y) ** 2 for x, y in data) / len(data)
print("Python %d.%d loss %.4f" % (*sys.version_info[:2], loss))
"""
COUNTING = "import time\nn = 0\nwhile True:\n    n += 1\n    print(n, flush=True)\n    time.sleep(0.2)\n"
QUEUE = 24
EMAIL, PASSWORD = "admin@lablup.com", "wJalrXUt"  # of every cluster for development
AVERAGING = """\
rows = [float(line) for line in open("/home/work/survey/heights.csv")]
open("/home/work/results/mean.txt", "w").write("%s\\n" % (sum(rows) / len(rows)))
"""
FILLING = """\
import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1")
context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
got, refused = 0, 0
while not refused:
    refused = cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(64 << 20))
    got += 64 * (refused == 0)
print("sees", total.value >> 20, "got", got, "error", refused, flush=True)
time.sleep(600)
"""


def expect(condition, text):
    if not condition:
        raise Failed(f"not as it should be: {text}")
    screen.good(text)


def create(cluster, name, image, *words):
    words = ["session", "create", "-t", name, "--image", image, "-r", "cpu=1", *words]
    screen.command(words)
    cluster.run(*words)


def end(cluster, *names):
    cluster.run("rm", "--force", "--yes", "--wait", *names)


def graphql(cluster, query, **variables):
    host, port = cluster.endpoint.removeprefix("http://").split(":")
    return Client((host, int(port))).gql(query, variables).json["data"]


def gpu_alloc_map(cluster, image):
    """0.2 of the second card, then 0.6 of each."""
    for name, share in (("preprocess", "0.2"), ("finetune", "1.2")):
        create(cluster, name, image, "-r", "mem=2g", "-r", f"cuda.shares={share}")
        cluster.wait_status(name, "RUNNING")
    query = "query ($agent_id: String!) { agent(agent_id: $agent_id) { gpu_alloc_map } }"
    shown = json.loads(graphql(cluster, query, agent_id=AGENTS[0])["agent"]["gpu_alloc_map"])
    by_card = {uuid[-2:]: amount for uuid, amount in shown.items()}
    screen.note(json.dumps(shown))
    expect(by_card == {"02": "0.80", "01": "0.60"}, "0.80 of the second card and 0.60 of the first")
    screen.note(cluster.run("agent", "info", AGENTS[0]))
    end(cluster, "preprocess", "finetune")
    return shown


def queue(cluster, image):
    """Three sessions of 1 fGPU on 2 fGPU; then a queue that fills and drains."""
    names = [f"train-{n}" for n in (1, 2, 3)]
    for name in names:
        create(cluster, name, image, "-r", "mem=256m", "-r", "cuda.shares=1",
               "--resource-group", SHARED)
    for name in names[:2]:
        cluster.wait_status(name, "RUNNING")
    first = [cluster.status(name) for name in names]
    expect(first == ["RUNNING", "RUNNING", "PENDING"], "two sessions run, the third waits")
    why = cluster.run("session", "why", names[2])
    screen.note(why)
    end(cluster, names[0])
    cluster.wait_status(names[2], "RUNNING")
    screen.good("one was ended, the waiting one runs by itself")
    end(cluster, *names[1:])
    return {"first": first, "why": why, "after": "RUNNING", "drained": drain(cluster, image)}


def drain(cluster, image):
    """QUEUE sessions of which only some have room; how many have succeeded."""
    cluster.run("run", "-d", "-n", str(QUEUE), "--name", "sweep", "--image", image, "-r", "cpu=1",
                "-r", "mem=1g", "--", "python3", "-c", "import time; time.sleep(0.3)")
    highest = 0
    while True:
        rows = [row for row in cluster.json("ps", "--all") if row["name"].startswith("sweep")]
        done = sum(row["status"] in ENDED for row in rows)
        highest = max(highest, sum(row["status"] == "PENDING" for row in rows))
        screen.bar("queue", done, QUEUE, " sessions")
        if done == QUEUE:
            break
        time.sleep(0.2)
    good = sum(row.get("result") == "SUCCESS" for row in rows)
    expect(good == QUEUE and highest, f"{QUEUE} sessions queued (up to {highest} waiting), "
                                      "all of them ran")
    return {"sessions": QUEUE, "succeeded": good, "most_waiting": highest}


def gpu_slices(cluster, image):
    """A card of 8 GB is 2 fGPU, and 0.5 fGPU sees 2 GB. The card is simulated."""
    names = [f"inference-{n}" for n in (1, 2)]
    for name in names:
        words = ["run", "-d", "--name", name, "--image", image, "-r", "cpu=1", "-r", "mem=256m",
                 "-r", "cuda.shares=0.5", "--resource-group", SHARED, "--", "python3", "-c"]
        screen.command([*words, "..."])
        cluster.run(*words, FILLING)
    said = []
    for name in names:
        cluster.wait(lambda n=name: "error" in output(cluster, n), "its memory to be full")
        sees, got, error = (int(word) for word in output(cluster, name)[1::2])
        said.append({"sees_mib": sees, "got_mib": got, "error": error})
    expect(all(one["sees_mib"] == 2048 and 1700 < one["got_mib"] <= 2048 and one["error"] == 2
               for one in said),
           f"two programs on one card of 8192 MiB, side by side: each sees 2048, gets "
           f"{said[0]['got_mib']} beside its context, and is refused more (out of memory)")
    end(cluster, *names)
    return said


def runtimes(cluster, references):
    """Programs of several Python versions side by side."""
    running, said = {}, {}
    for version, reference in references.items():
        running[version] = cluster.begin("run", "--name", f"train-{version.replace('.', '-')}",
                                         "--image", reference, "-r", "cpu=1", "-r", "mem=256m",
                                         "-r", "cuda.shares=0.1", "-q", "--",
                                         "python3", "-c", TRAINING)
    for version, process in running.items():
        said[version] = process.communicate()[0].strip()
        expect(process.returncode == 0 and f"Python {version} loss 0.0" in said[version],
               f"Python {version}: {said[version] or 'nothing'}")
    return said


def log_in(cluster):
    """As the page of the console does it; whether the server let us in."""
    host, port = cluster.console.removeprefix("http://").split(":")
    link = http.client.HTTPConnection(host, int(port), timeout=60)
    link.request("POST", "/server/login", json.dumps({"username": EMAIL, "password": PASSWORD}),
                 {"Content-Type": "application/json"})
    is_in = json.loads(link.getresponse().read())["authenticated"]
    expect(is_in, f"{cluster.console} lets {EMAIL} in, password {PASSWORD}")
    return is_in


def data_folders(cluster, image):
    """A table goes into a folder, and what a session makes of it comes out of another one."""
    table, said = cluster.state / "heights.csv", cluster.state / "mean.txt"
    table.write_text("".join(f"{height}\n" for height in range(150, 191)))
    for words in (["folder", "create", "survey"], ["folder", "create", "results"],
                  ["folder", "cp", str(table), "survey:"]):
        screen.command(words)
        cluster.run(*words)
    expect("heights.csv" in cluster.run("folder", "files", "survey"), "the file is in the folder")
    if not cluster.json("agent", "info", AGENTS[0])["volumes"]:
        screen.note("this machine's file system cannot be mounted into containers "
                    "('aliquot doctor containers')")
        return {"mean": None}
    words = ["run", "-q", "--name", "average", "--image", image, "-r", "cpu=1", "-r", "mem=128m",
             "-v", "survey:ro", "-v", "results", "--", "python3", "-c"]
    screen.command([*words, "..."])
    cluster.run(*words, AVERAGING)
    cluster.run("folder", "cp", "results:mean.txt", str(said))
    expect(said.read_text() == "170.0\n", "a session read one folder and wrote its result to another")
    return {"mean": said.read_text().strip()}


def batch(cluster, image):
    """One that succeeds, one that fails, one that wants too much memory."""
    programs = {"succeeds": "print('done')", "fails": "raise SystemExit(3)",
                "too-hungry": "data = bytearray(300 << 20); print('not reached')"}
    seen = {}
    for name, program in programs.items():
        done = cluster.call("run", "--name", name, "--image", image, "-r", "cpu=1", "-r", "mem=128m",
                            "--", "python3", "-c", program)
        session = cluster.session(name)
        seen[name] = {"exit": done.returncode, "result": session["result"],
                      "reason": session["reason"],
                      "why": cluster.run("session", "why", name)}
        screen.note(f"{name}: exit {done.returncode}, {session['result']}, {session['reason']}")
    expect(seen["succeeds"]["exit"] == 0 and seen["succeeds"]["result"] == "SUCCESS", "one succeeded")
    expect(seen["fails"]["exit"] == 3 and seen["fails"]["result"] == "FAILURE",
           "one failed, with its exit code")
    expect(seen["too-hungry"]["exit"] == 137 and "memory" in seen["too-hungry"]["why"],
           "one was killed for memory, and is told so")
    return seen


def output(cluster, name):
    """The words a session has printed; none while its agent is away."""
    done = cluster.call("logs", name)
    return done.stdout.split() if done.returncode == 0 else []


def recovery(cluster, image):
    """kill -9 of agent and manager under running sessions."""
    names = [f"simulation-{n}" for n in (1, 2)]
    for name in names:
        cluster.run("run", "-d", "--name", name, "--image", image, "-r", "cpu=1", "-r", "mem=128m",
                    "-r", "cuda.shares=0.3", "--", "python3", "-c", COUNTING)
    for name in names:
        cluster.wait_status(name, "RUNNING")
        cluster.wait(lambda n=name: len(output(cluster, n)) > 2, "its first output")
    before = {name: len(output(cluster, name)) for name in names}
    old = cluster.pids()
    started = time.monotonic()
    for who in (AGENTS[0], "manager"):
        os.kill(old[who], signal.SIGKILL)
        screen.note(f"kill -9 {who} (pid {old[who]})")
    cluster.wait(lambda: all(p and p != old[w] for w, p in cluster.pids().items()
                             if w in (AGENTS[0], "manager")), "both to be restarted")
    cluster.wait(lambda: cluster.call("ps").returncode == 0, "the manager")
    cluster.wait(lambda: all(row["status"] == "ALIVE" for row in cluster.json("agent", "ls")),
                 "the agents")
    back = time.monotonic() - started
    for name in names:
        cluster.wait_status(name, "RUNNING")
        cluster.wait(lambda n=name: len(output(cluster, n)) > before[n] + 5, "its output to go on")
        told = [int(word) for word in output(cluster, name)]
        if told != list(range(1, len(told) + 1)):
            raise Failed(f"{name} lost output")
    screen.good("both sessions ran on, no line of output is missing")
    audit = cluster.call("admin", "audit")
    expect(audit.returncode == 0, "ledger, memory and agents agree (aliquot admin audit)")
    end(cluster, *names)
    return {"back_s": round(back, 2), "sessions_kept": len(names), "audit": "clean"}


def get_as_browser(cluster, url):
    """The page behind an address of the proxy, whose redirects and cookies are followed; names
    below localhost are this machine, as browsers have it."""
    cookies = {}
    while True:
        _, _, host, path = url.split("/", 3)
        link = http.client.HTTPConnection(*cluster.proxy, timeout=60)
        link.request("GET", "/" + path, headers={
            "Host": host, "Accept": "text/html",
            "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())})
        reply = link.getresponse()
        for header in reply.headers.get_all("Set-Cookie") or ():
            cookies.update([header.partition(";")[0].split("=", 1)])
        if not reply.headers["Location"]:
            return reply.status, reply.read().decode(errors="replace")
        url = urllib.parse.urljoin(url, reply.headers["Location"])


def notebook_words(image):
    return ["notebook", "-r", "cpu=1", "-r", "mem=512m", image]


def notebook(cluster, image):
    """Jupyter by one command, up to its page; seconds."""
    words = notebook_words(image)
    words[1:1] = ["-t", "notes"]
    started = time.monotonic()
    screen.command(words)
    status, page = get_as_browser(cluster, cluster.run(*words))
    took = round(time.monotonic() - started, 1)
    expect(status == 200 and "Jupyter" in page, f"its page came after {took} s")
    end(cluster, "notes")
    return took


def session_start(cluster, image, count=20):
    """Milliseconds between the creation of a session and its RUNNING, by the manager's clock."""
    took = []
    for n in range(count):
        name = f"start-{n}"
        cluster.run("run", "--name", name, "--image", image, "-r", "cpu=1", "-r", "mem=64m", "-q",
                    "--", "true")
        times = {}
        for entry in cluster.json("session", "history", name)["items"]:
            times.setdefault(entry["status"], datetime.datetime.fromisoformat(entry["at"]))
        took.append((times["RUNNING"] - times["PENDING"]) / datetime.timedelta(milliseconds=1))
        screen.bar("starts", n + 1, count)
    took.sort()
    result = {"median": round(statistics.median(took), 1), "p90": round(took[int(0.9 * count)], 1)}
    screen.good(f"{count} sessions, one after another: a container runs {result['median']} ms after "
                f"it was asked for (p90 {result['p90']} ms)")
    return result


def resident_kb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0
