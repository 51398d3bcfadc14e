# SPDX-License-Identifier: Apache-2.0
"""The demo's cluster: a manager and two agents with mock GPUs, by 'aliquot up --dev'."""

import json
import os
import signal
import subprocess
import sys
import time

import commands
import screen
from commands import Failed
from folders import try_lock
from ports import free_port

SIMULATED = "GPU-513a5f0e-7721-4b6c-9d10-000000000000"  # the first device of each such card
AGENTS = ("gpu01", "gpu02")
SHARED = "shared-gpus"  # the resource group of the second agent
STOP_SEC = 60
NEEDED = """they need root with all capabilities, overlayfs, and cgroups that can be written
(in docker: --privileged); 'aliquot doctor containers' says what is missing and how to mend it.
Without containers: 'aliquot up --dev' runs sessions as processes"""
ENDED = ("TERMINATED", "ERROR", "CANCELLED")

AGENT = """\
id = {id}

[node]
resource-group = {group}

[resource]
mem = "6g"
reserved-mem = "0"
cpu-overcommit-factor = 8

[container]
scratch-size = "1g"

[image]
insecure = {registry}

[accelerators]
mock = {mock}
"""

CARDS = """\
slot_name = "cuda"
device_plugin_name = "CUDADevice"
attributes = {{ nvidia_driver = "550.54", cuda_runtime = "12.4" }}
allocation_mode = "fractional"
unit_mem = "{unit_mem}"
unit_proc = {unit_proc}
{simulator}devices = [
{devices}]

[formats.shares]
human_readable_name = "fGPU"
description = "CUDA-capable GPU (fractional)"
display_unit = "fGPU"
display_icon = "gpu1"
number_format = {{ binary = false, round_length = 2 }}
"""
SIMULATOR = """\
simulator = {folder}
simulated_card = {card}
"""
CARD = ('  {{ mother_uuid = "{uuid}", model_name = "{model}", numa_node = {node}, '
        'subproc_count = 108, memory_size = "{memory}", is_mig_device = false }},\n')


def quote(value):
    """A TOML string."""
    return json.dumps(str(value), ensure_ascii=False)


class Cluster:
    """state: everything is below this folder; build: the programs; registry: the address that
    agents may pull from."""

    def __init__(self, state, build, registry):
        self.state, self.build, self.registry = state, build, registry
        self.log = state / "up.log"
        self.endpoint, self.proxy, self.console, self.up = None, None, None, None

    # ---- starting and ending ----

    def write_agent(self, name, group, cards, unit_mem, unit_proc, simulator=""):
        mock = self.state / f"{name}-cards.toml"
        mock.write_text(CARDS.format(devices="".join(CARD.format(**card) for card in cards),
                                     unit_mem=unit_mem, unit_proc=unit_proc,
                                     simulator=simulator))
        (self.state / f"{name}.toml").write_text(AGENT.format(
            id=quote(name), group=quote(group), registry=quote(self.registry), mock=quote(mock)))

    def make_card(self):
        """A GPU of 8 GB that is not there: a file, and a driver that works on it."""
        card = self.state / "card"
        commands.run([self.build / "simgpu" / "simgpu", "create", card, "memory=8G",
                      "processors=108"], "making a simulated GPU")
        return SIMULATOR.format(folder=quote(self.build / "simgpu" / "12.8"), card=quote(card))

    def launch(self, port, link_port):
        proxy_port, storage_port, web_port = free_port(), free_port(), free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        self.console = f"http://127.0.0.1:{web_port}"
        self.proxy = ("127.0.0.1", proxy_port)
        words = [self.build / "aliquot", "up", "--dev", "--state", self.state / "up",
                 "--port", str(port), "--link-port", str(link_port),
                 "--proxy-port", str(proxy_port), "--storage-port", str(storage_port),
                 "--web-port", str(web_port)]
        for name in AGENTS:
            words += ["--agent", self.state / f"{name}.toml"]
        with self.log.open("w") as log:
            self.up = commands.start(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     start_new_session=True)

    def start(self):
        known = "c59395cd-ac91-4cd3-a1b0-3d2568aa2d0"
        # Two cards of 1 fGPU, one at each NUMA node, and a card of 8 GB that its administrator
        # makes 2 fGPU.
        self.write_agent(AGENTS[0], "default", [
            {"uuid": f"{known}{n + 1}", "model": "CUDA GPU", "node": n, "memory": "2G"}
            for n in range(2)], "2G", 108)
        self.write_agent(AGENTS[1], SHARED, [
            {"uuid": SIMULATED, "model": "CUDA GPU", "node": 0, "memory": "8G"}],
            "4G", 54, self.make_card())
        self.launch(free_port(), free_port())
        self.wait(lambda: self.call("admin", "resource-group", "create", SHARED).returncode == 0,
                  "the manager")
        self.run("admin", "resource-group", "allow", SHARED, "--domain", "default")
        self.wait_ready()
        self.wait(lambda: len(self.json("agent", "ls")) == 2, "two agents")
        self.check_containers()

    def fail(self, what):
        raise Failed(what, self.log.read_text(), f"more is in the logs in {self.state}")

    def wait_ready(self):
        self.wait(lambda: "is ready" in self.log.read_text(), "the cluster")

    def check_containers(self):
        info = self.json("agent", "info", AGENTS[0])
        notes = info["runtime_notes"] or ""
        if info["runtime"] == "process":
            raise Failed("this machine cannot run the demo's containers", notes, NEEDED)
        if notes:
            screen.note(f"this machine: {notes}")

    def end_interrupted(self):
        """End what a demo that was killed has left: wait for its cluster, which ends with it, or
        if that was killed, too, start it once more and stop it in order."""
        if not (self.state / "up" / "lock").exists():
            return
        screen.note("ending what an interrupted demo has left")
        deadline = time.monotonic() + STOP_SEC
        while not (lock := try_lock(self.state / "up" / "lock")):
            if time.monotonic() > deadline:
                self.fail("the cluster of an interrupted demo does not end")
            time.sleep(0.1)
        lock.close()
        try:
            info = json.loads((self.state / "up" / "up.json").read_text())
        except FileNotFoundError:
            return  # it was stopped in order
        self.launch(*(info[key].rpartition(":")[2] for key in ("endpoint", "link")))
        self.wait_ready()
        self.stop()

    def stop(self):
        if self.up:
            self.up.send_signal(signal.SIGINT)
            try:
                self.up.wait(STOP_SEC)
            except subprocess.TimeoutExpired:
                os.killpg(self.up.pid, signal.SIGKILL)
            commands.finish(self.up)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def pids(self):
        """{"manager": pid, and of each agent by its name}"""
        info = json.loads((self.state / "up" / "up.json").read_text())
        return {"manager": info["manager_pid"],
                **dict(zip(AGENTS, info["agent_pids"]))}

    # ---- the command line, as a user has it ----

    def environment(self):
        """No browser comes up during a scene."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(
            ("ALIQUOT_", "BACKEND_", "BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))}
        return {**kept, "ALIQUOT_ENDPOINT": self.endpoint,
                "ALIQUOT_ACCESS_KEY": "AKIAIOSFODNN7EXAMPLE",
                "ALIQUOT_SECRET_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}

    def aliquot(self, *words):
        """The words of one command, which ends with us: alone it waits minutes for a manager."""
        return commands.ended_with_us([self.build / "aliquot", *words])

    def call(self, *words):
        """The completed process of one command."""
        return subprocess.run(self.aliquot(*words), env=self.environment(), text=True,
                              capture_output=True, stdin=subprocess.DEVNULL)

    def begin(self, *words):
        """A command in the background; its output is a pipe."""
        return subprocess.Popen(self.aliquot(*words), env=self.environment(), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL)

    def show(self, *words):
        """A command whose progress users see."""
        screen.command(words)
        if subprocess.run(self.aliquot(*words), env=self.environment(), stdin=subprocess.DEVNULL,
                          stdout=sys.stderr).returncode:
            raise Failed(f"aliquot {' '.join(words)} failed")

    def run(self, *words):
        done = self.call(*words)
        if done.returncode:
            raise Failed(f"aliquot {' '.join(words)} failed", done.stderr or done.stdout)
        return done.stdout.strip()

    def json(self, *words):
        return json.loads(self.run(*words, "-o", "json"))

    def session(self, name):
        found = self.json("session", "info", name)
        return found[0] if isinstance(found, list) else found

    def status(self, name):
        return self.session(name)["status"]

    def wait(self, condition, what, seconds=120):
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            if self.up.poll() is not None:
                self.fail("the cluster has ended by itself")
            if time.monotonic() > deadline:
                self.fail(f"{what} did not come within {seconds} s")
            time.sleep(0.05)
        return value

    def wait_status(self, name, *wanted):
        def look():
            status = self.status(name)
            if status in ENDED and status not in wanted:
                raise Failed(f"{name} is {status}: {self.run('session', 'why', name)}")
            return status in wanted
        self.wait(look, f"{name} to be {' or '.join(wanted)}")
