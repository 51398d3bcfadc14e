# SPDX-License-Identifier: Apache-2.0
"""A program that writes the memory that it shares with the agent does not hold the agent up."""

import re
import time

import pytest

import containers
from cluster import wait_for
from gpu_cluster import body_of, started_cluster
from runtimes import Session, run

SECONDS = 8

# Two processes change all words of charges as fast as they can, while others of the container
# register and are killed, so that the agent gives back what they held, from these words.
VANDAL = """
import os, subprocess
libc = ctypes.CDLL(None)
[region] = [line for line in open("/proc/self/maps") if "rw-s" in line
            and 788608 <= int(line.split("-")[1].split()[0], 16) - int(line.split("-")[0], 16) < 800000]
usage = int(region.split("-")[0], 16)
words, slots = 128, 128 + 16 * 128   # of devices; of processes: the first 64
noise = [os.urandom(2048 + 64 * 768) for _ in range(2)]
for _ in range(2):
    if not os.fork():
        while True:
            for some in noise:
                libc.memmove(ctypes.c_void_p(usage + words), some, len(some))
die = [sys.executable, "-c", os.environ["CUDA"] + "say('up'); time.sleep(600)"]
deaths = 0
while True:
    child = subprocess.Popen(die, stdout=subprocess.PIPE)
    child.stdout.readline()
    child.kill()
    child.wait()
    deaths += 1
    say("deaths", deaths)
"""


@pytest.fixture(scope="module")
def cluster():
    if why := containers.why_not("crun"):
        pytest.skip(why)
    with started_cluster(ALIQUOT_IMAGE_ALLOW="host rootfs:*") as made:
        yield made


def cpu_of(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_the_agent_goes_on(cluster):
    body = body_of("0.5", VANDAL)
    body["config"]["resources"]["cpu"] = "2"
    vandal = Session(cluster, 'exec python3 -c "$MAIN"', **body)
    vandal.wait_log("deaths 3")
    agent = cluster.programs["agent"].pid
    began, before, took = time.monotonic(), cpu_of(agent), []
    while time.monotonic() - began < SECONDS:
        start = time.monotonic()
        shown, log = run(cluster, 'exec python3 -c "$MAIN"',
                         **body_of("0.5", 'say("got", alloc(1000))'))
        took.append(time.monotonic() - start)
        assert shown["result"] == "SUCCESS" and log == "got 0\n", (shown, log)
    used = (cpu_of(agent) - before) / (time.monotonic() - began)
    assert max(took) < 15, took
    assert used < 0.5, f"the agent's loop took {used:.2f} processors"
    # between these lines is what those say that find no memory left
    deaths = re.findall(r"^deaths (\d+)$", vandal.log, re.MULTILINE)
    assert int(deaths[-1]) > 3, "its processes came and went"
    vandal.end(forced=True)
    vandal.wait()
    wait_for(lambda: cluster.card.show()[0]["used"] == 0, 30, "the card to be empty")
