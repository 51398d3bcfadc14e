"""The demo's cluster: a manager and two agents with mock GPUs, by 'aliquot up --dev'."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import screen

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "lib"))
from ports import free_port  # noqa: E402

BUILD = ROOT / "build"
WITH_US = ["setpriv", "--pdeathsig", "TERM"]  # what we start ends when we are killed
SIMULATED = "GPU-513a5f0e-7721-4b6c-9d10-000000000000"  # the first device of each such card
ENDED = ("TERMINATED", "ERROR", "CANCELLED")

AGENT = """\
id = "{id}"

[node]
resource-group = "{group}"

[resource]
mem = "6g"
reserved-mem = "0"
cpu-overcommit-factor = 8

[image]
insecure = "{registry}"

[accelerators]
mock = "{mock}"
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
simulator = "{folder}"
simulated_card = "{card}"
"""
CARD = ('  {{ mother_uuid = "{uuid}", model_name = "{model}", numa_node = {node}, '
        'subproc_count = 108, memory_size = "{memory}", is_mig_device = false }},\n')


class Failed(SystemExit):
    pass


class Cluster:
    """state: everything below this folder; registry: the address that agents may pull from."""

    def __init__(self, state, registry):
        self.state, self.registry = pathlib.Path(state), registry
        self.endpoint, self.up = None, None

    def write_agent(self, name, group, cards, unit_mem, unit_proc, simulator=""):
        mock = self.state / f"{name}-cards.toml"
        mock.write_text(CARDS.format(devices="".join(CARD.format(**card) for card in cards),
                                     unit_mem=unit_mem, unit_proc=unit_proc,
                                     simulator=simulator))
        path = self.state / f"{name}.toml"
        path.write_text(AGENT.format(id=name, group=group, registry=self.registry, mock=mock))
        return path

    def make_card(self):
        """A GPU of 8 GB that is not there: a file, and a driver that works on it."""
        card = self.state / "card"
        subprocess.run([BUILD / "simgpu" / "simgpu", "create", card, "memory=8G",
                        "processors=108"], check=True)
        return SIMULATOR.format(folder=BUILD / "simgpu" / "12.8", card=card)

    def start(self):
        shutil.rmtree(self.state, ignore_errors=True)
        self.state.mkdir(parents=True)
        known = "c59395cd-ac91-4cd3-a1b0-3d2568aa2d0"
        # Document 001: two cards of 1 fGPU, one at each NUMA node. Document 002: a card of
        # 8 GB that the administrator makes 2 fGPU.
        agents = [
            self.write_agent("first", "default", [
                {"uuid": f"{known}{n + 1}", "model": "CUDA GPU", "node": n, "memory": "2G"}
                for n in range(2)], "2G", 108),
            self.write_agent("second", "halves", [
                {"uuid": SIMULATED, "model": "CUDA GPU", "node": 0, "memory": "8G"}],
                "4G", 54, self.make_card())]
        port = free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        words = [*WITH_US, BUILD / "aliquot", "up", "--dev", "--state", self.state / "up",
                 "--port", str(port), "--link-port", str(free_port())]
        for path in agents:
            words += ["--agent", path]
        self.log = (self.state / "up.log").open("w")
        self.up = subprocess.Popen(words, stdout=self.log, stderr=self.log, start_new_session=True)
        self.wait(lambda: self.call("admin", "resource-group", "create", "halves").returncode == 0,
                  "the manager")
        self.run("admin", "resource-group", "allow", "halves", "--domain", "default")
        self.wait(lambda: "is ready" in (self.state / "up.log").read_text(), "the cluster")
        self.wait(lambda: len(self.json("agent", "ls")) == 2, "two agents")

    def stop(self):
        if self.up and self.up.poll() is None:
            self.up.send_signal(signal.SIGINT)
            try:
                self.up.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(self.up.pid, signal.SIGKILL)

    def pids(self):
        """{"manager": pid, "first": pid, "second": pid}"""
        info = json.loads((self.state / "up" / "up.json").read_text())
        return {"manager": info["manager_pid"],
                **dict(zip(("first", "second"), info["agent_pids"]))}

    # ---- the command line, as a user has it ----

    def environment(self):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ALIQUOT_", "BACKEND_"))}
        return {**kept, "ALIQUOT_ENDPOINT": self.endpoint, 
                "ALIQUOT_ACCESS_KEY": "AKIAIOSFODNN7EXAMPLE",
                "ALIQUOT_SECRET_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}

    def call(self, *words):
        """The completed process of one command."""
        return subprocess.run([BUILD / "aliquot", *words], env=self.environment(), text=True,
                              capture_output=True, stdin=subprocess.DEVNULL)

    def begin(self, *words):
        """A command in the background; its output is a pipe."""
        return subprocess.Popen([BUILD / "aliquot", *words], env=self.environment(), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL)

    def show(self, *words):
        """A command whose progress people see."""
        screen.command(words)
        if subprocess.run([BUILD / "aliquot", *words], env=self.environment(),
                          stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode:
            raise Failed(f"aliquot {' '.join(words)} failed")

    def run(self, *words):
        done = self.call(*words)
        if done.returncode:
            raise Failed(f"aliquot {' '.join(words)}: {done.stderr or done.stdout}")
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
            if self.up.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"waited in vain for {what}; see {self.state}/up.log")
            time.sleep(0.05)
        return value

    def wait_status(self, name, *wanted):
        def look():
            status = self.status(name)
            if status in ENDED and status not in wanted:
                raise Failed(f"{name} is {status}: {self.run('session', 'why', name)}")
            return status in wanted
        self.wait(look, f"{name} to be {' or '.join(wanted)}")
