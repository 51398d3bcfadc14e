# SPDX-License-Identifier: Apache-2.0
"""What the measurements share: the release build, a cluster, Slurm as a peer."""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "lib"))
BUILD = ROOT / "build"
os.environ.setdefault("ALIQUOT_BUILD", str(BUILD))  # for what is shared with the tests
from ports import free_port  # noqa: E402
from world import World  # noqa: E402

PEERS = pathlib.Path(os.environ.get("ALIQUOT_PEERS") or next(
    (found for folder in ROOT.parents if (found := folder / "shared" / "peers").is_dir()),
    ROOT.parent / "shared" / "peers"))  # a worktree may lie deeper than the folder beside it
KEYPAIR = {"ALIQUOT_ACCESS_KEY": "AKIAIOSFODNN7EXAMPLE",
           "ALIQUOT_SECRET_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}


def arguments(description, **options):
    """--smoke and the given options, numbers or texts, as a namespace."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--smoke", action="store_true", help="once, small, without peers")
    for name, default in options.items():
        parser.add_argument("--" + name, type=type(default), default=default)
    return parser.parse_args()


def program(name):
    """The path of a program of the release build."""
    path = BUILD / name
    if not path.exists():
        sys.exit(f"{path} is missing: meson setup build -Dtests=enabled && "
                 "ninja -C build all benches test-programs")
    return str(path)


def exec_program(name):
    """Become a measuring program of the release build."""
    path = program(name)
    os.execv(path, [path, *[a for a in sys.argv[1:] if a != "--smoke"]])


class Cluster:
    """Manager and agent by `aliquot up --dev`, in a world of their own; with_fronts: also proxy,
    storage host and web server, whose ports are in 'fronts'."""

    def __init__(self, cpus=64, with_fronts=False, **settings):
        self.port, self.link_port = free_port(), free_port()
        self.fronts = {name: free_port() for name in ("proxy", "storage", "web") if with_fronts}
        self.world = World("aliquot-bench-", **{
            **KEYPAIR, "ALIQUOT_ENDPOINT": f"http://127.0.0.1:{self.port}",
            "ALIQUOT_RUNTIME_DRIVER": "process", "ALIQUOT_NETWORK_ENABLED": "false",
            "ALIQUOT_RESOURCE_CPUS": str(cpus), "ALIQUOT_RESOURCE_MEM": "1t", **settings})
        self.state, self.env = self.world.folder, self.world.env
        self.process = subprocess.Popen(
            [program("aliquot"), "up", "--dev", "--state", self.state / "state",
             "--port", str(self.port), "--link-port", str(self.link_port),
             *(word for name, port in self.fronts.items() for word in (f"--{name}-port", str(port)))],
            env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)

    def __enter__(self):
        deadline = time.monotonic() + 30
        while "ALIVE" not in self.cli("agent", "ls", "-o", "json").stdout:
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                sys.exit("the cluster does not start")
            time.sleep(0.1)
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.world.end()

    def cli(self, *args):
        return subprocess.run([program("aliquot"), *args], env=self.env, capture_output=True,
                              text=True)

    def pids(self):
        return json.loads((self.state / "state" / "up.json").read_text())

    def load(self, clients, count, command="true", prefix="load-"):
        """Create sessions; returns the client's figures."""
        done = subprocess.run([program("bench/load"), str(self.port), str(clients), str(count),
                               command, prefix], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"creating sessions failed: {done.stderr}")
        return json.loads(done.stdout)

    def database(self):
        """A read-only connection to the manager's database."""
        import sqlite3
        path = self.state / "state" / "manager" / "aliquot.db"
        return sqlite3.connect(f"file:{path}?mode=ro", uri=True)

    def wait_empty(self, poll_s=0.1, but=0):
        """Wait until no session lives, 'but' so many, as Slurm's queue is polled."""
        with contextlib.closing(self.database()) as db:
            while db.execute("SELECT count(*) FROM sessions WHERE terminated_at IS NULL"
                             ).fetchone()[0] > but:
                time.sleep(poll_s)


def resident_kb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def stolen_ticks():
    """Processor time that the host of a virtual machine gave to others, and all time."""
    ticks = [int(n) for n in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return ticks[7], sum(ticks)


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Slurm:
    """The peer of the folder of peers, in a scratch folder."""

    @staticmethod
    def missing():
        """Why it cannot be measured here: a sentence, or None."""
        if not (PEERS / "slurm" / "up.sh").exists():
            return f"{PEERS / 'slurm' / 'up.sh'} is missing: say with ALIQUOT_PEERS where peers are"
        absent = [name for name in ("slurmctld", "slurmd", "sbatch", "sdiag", "munged", "munge")
                  if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
        if absent:
            return f"{', '.join(absent)}: not installed (packages slurmctld slurmd slurm-client munge)"
        return None

    @staticmethod
    def find():
        """None where it is missing; then standard error says why."""
        why = Slurm.missing()
        if why:
            print(f"without Slurm: {why}", file=sys.stderr)
        return None if why else Slurm()

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="aliquot-slurm-"))
        shutil.copytree(PEERS / "slurm", self.folder, dirs_exist_ok=True)
        for name in ("state", "spool", "log", "dev"):
            (self.folder / name).mkdir(exist_ok=True)
        (self.folder / "j.sh").write_text("#!/bin/sh\ntrue\n")
        self.env = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *command, **kwargs):
        return subprocess.run(command, cwd=self.folder, env=self.env, text=True,
                              stdin=subprocess.DEVNULL, stdout=kwargs.pop("stdout", subprocess.DEVNULL),
                              stderr=subprocess.DEVNULL, **kwargs)

    def up(self, nodes, slots):
        self.run("./gen.sh", str(nodes), str(slots), "tuned")
        conf = self.folder / "slurm.conf"
        text = "\n".join(line for line in conf.read_text().splitlines()
                         if not line.startswith("GresTypes"))
        import re
        text = re.sub(r" Gres=gpu\S*", "", text).replace(",defer,max_rpc_cnt=0", "")
        conf.write_text(text + "\n")
        (self.folder / "gres.conf").write_text("")
        self.run("./up.sh")

    def down(self):
        self.run("./down.sh")

    def why_silent(self):
        """The last words of its controller, if there are no figures."""
        log = self.folder / "log" / "ctld.out"
        said = log.read_text(errors="replace").split("\n") if log.exists() else []
        return " / ".join(line for line in said[-4:] if line) or "its controller said nothing"

    def jobs_per_s(self, count, give_up_s=120):
        """Distinct sbatch calls, four at a time, until the queue is empty."""
        started = time.monotonic()
        self.run("sh", "-c", f"seq {count} | xargs -P4 -I{{}} sbatch -Q -o /dev/null -n1 j.sh")
        left = count
        while time.monotonic() - started < give_up_s:
            listed = self.run("squeue", "-h", "-t", "PD,R,CG,S,CF", stdout=subprocess.PIPE)
            left = len(listed.stdout.splitlines())
            if not left:
                break
            time.sleep(0.1)
        return (count - left) / (time.monotonic() - started)

    def controller_pid(self):
        return int((self.folder / "ctld.mypid").read_text())

    def hold(self, count):
        """Jobs that wait until somebody releases them."""
        self.run("sh", "-c", f"seq {count} | xargs -P4 -I{{}} sbatch -Q -H -o /dev/null -n1 j.sh")

    def submits_per_s(self, count):
        """The same, as a rate."""
        def queued():
            listed = self.run("squeue", "-h", stdout=subprocess.PIPE)
            return len(listed.stdout.splitlines())
        before, started = queued(), time.monotonic()
        self.hold(count)
        took = time.monotonic() - started
        return (queued() - before) / took

    def squeue_ms(self, count):
        started = time.monotonic()
        done = self.run("squeue", stdout=subprocess.PIPE)
        took = (time.monotonic() - started) * 1e3
        assert done.stdout.count("\n") >= count, "not all jobs are listed"
        return took

    def srun_ms(self):
        started = time.monotonic()
        done = self.run("srun", "-n1", "true")
        return (time.monotonic() - started) * 1e3 if done.returncode == 0 else None

    def remove(self):
        self.down()
        shutil.rmtree(self.folder, ignore_errors=True)


def median(values):
    return statistics.median(values) if values else None


def report(**figures):
    """The last line of every measurement: one JSON object."""
    print(json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in figures.items()}),
          flush=True)
