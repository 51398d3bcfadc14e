# SPDX-License-Identifier: Apache-2.0
"""A simulated GPU, and slices of it, for tests and benches."""
import contextlib
import json
import mmap
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time

from world import BUILD


LIBRARY = BUILD / "libaliquot-gpu.so"
SIMGPU = BUILD / "simgpu" / "simgpu"


def preloadable(library, folder):
    """A link in 'folder', which has no spaces in its path: LD_PRELOAD is parted by them."""
    link = pathlib.Path(folder, library.name)
    if not link.is_symlink():
        link.symlink_to(library.resolve())
    return str(link)


class Card:
    """One file with simulated GPUs, in a new folder ('within' another); 'version' is the CUDA
    version of the driver.

    With virtual=N the programs have a clock of discrete events in common, which starts
    when N of their threads wait for it (simgpu/virtual_clock.c)."""

    def __init__(self, version="12.8", within=None, **options):
        self.folder = tempfile.mkdtemp(prefix="simgpu", dir=within)
        self.path = os.path.join(self.folder, "device")
        subprocess.run([SIMGPU, "create", self.path, *(f"{k}={v}" for k, v in options.items())],
                       check=True)
        self.env = {**os.environ, "SIMGPU_DEVICE": self.path, "XDG_RUNTIME_DIR": self.folder,
                    "LD_LIBRARY_PATH": str((BUILD / "simgpu" / version).resolve())}
        if options.get("virtual"):
            self.env["LD_PRELOAD"] = preloadable(BUILD / "simgpu" / "libsimgpu-time.so", self.folder)
            self.env["ASAN_OPTIONS"] = "verify_asan_link_order=0"

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def set(self, **options):
        subprocess.run([SIMGPU, "set", self.path, *(f"{k}={v}" for k, v in options.items())],
                       check=True)

    def show(self):
        out = subprocess.run([SIMGPU, "show", self.path], check=True, capture_output=True,
                             env=self.env)
        return json.loads(out.stdout)["devices"]

    @contextlib.contextmanager
    def watched(self, window_us, count):
        """What 'show' says at the begin and after each of 'count' windows: an iterator."""
        process = subprocess.Popen([SIMGPU, "watch", self.path, str(window_us), str(count)],
                                   env=self.env, text=True, stdout=subprocess.PIPE)
        try:
            yield (json.loads(line) for line in process.stdout)
        finally:
            process.kill()
            process.wait()

    def command(self, *words, options=()):
        """'aliquot gpu run' on this card."""
        return [str(BUILD / "aliquot-gpu"), "run", *options, "--", *map(str, words)]

    def run(self, *words, options=(), timeout=60, **more):
        """Run to its end on a slice; output through files, so children that stay hold nothing."""
        with open(os.path.join(self.folder, "out"), "w+") as out, \
                open(os.path.join(self.folder, "err"), "w+") as err:
            done = subprocess.run(self.command(*words, options=options), timeout=timeout,
                                  env={**self.env, **more.pop("env", {})}, stdout=out, stderr=err,
                                  stdin=subprocess.DEVNULL, **more)
            out.seek(0)
            err.seek(0)
            done.stdout, done.stderr = out.read(), err.read()
        return done

    def run_plain(self, *words, timeout=60, env=None):
        """Run without a slice."""
        return subprocess.run([str(word) for word in words], timeout=timeout, capture_output=True,
                              text=True, env={**self.env, **(env or {})})

    @contextlib.contextmanager
    def started(self, *words, options=(), env=None, **more):
        """Run beside the test; killed with all of its children at the end."""
        process = subprocess.Popen(self.command(*words, options=options), text=True,
                                   env={**self.env, **(env or {})}, start_new_session=True, **more)
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()

    @contextlib.contextmanager
    def slice(self, *options):
        """A slice whose programs are started by the test: a Slice."""
        with self.started("sh", "-c", "env -0 > \"$0/env\"; mv \"$0/env\" \"$0/slice\"; exec sleep 600",
                          self.folder, options=options) as run:
            path = pathlib.Path(self.folder, "slice")
            wait_until(path.exists)
            env = dict(line.split("=", 1) for line in path.read_text().split("\0") if line)
            path.unlink()
            yield Slice(env, run)


def wait_until(check, seconds=60):
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.005)


class Slice:
    """The environment of a slice's programs, and its memory as an onlooker sees it."""

    CHARGED = 128  # of the first device, in struct aq_gpu_usage: granules in the upper 24 bits

    def __init__(self, env, run):
        self.env, self.run = env, run
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as agent:
            agent.connect(env["ALIQUOT_GPU_SOCKET"])
            agent.send(struct.pack("<IIiIq", 0x75706771, 1, 0, 0, 0))
            fds = socket.recv_fds(agent, 64, 2)[1]
        self.usage = mmap.mmap(fds[1], 0)
        for fd in fds:
            os.close(fd)

    def charged(self):
        """Bytes, contexts included."""
        return struct.unpack_from("<Q", self.usage, self.CHARGED)[0] >> 40 << 21

    def start(self, *words, **more):
        return subprocess.Popen([str(word) for word in words], env=self.env, text=True, **more)
