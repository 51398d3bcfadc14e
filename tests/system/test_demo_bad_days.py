# SPDX-License-Identifier: Apache-2.0
"""./demo where something is missing, is in the way, or ends it: a sentence that says what to do,
and nothing left behind."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from cluster import wait_for
from world import ROOT, World, own_network, processes_of

sys.path += [str(ROOT / "tools"), str(ROOT / "tools" / "demo")]
import commands  # noqa: E402
import folders  # noqa: E402
import python_images as images  # noqa: E402

AT_WORK = "a manager and two agents"
OLD_MESON = "meson.build:1:0: ERROR: Meson version is 0.56.2 but project requires >=1.0.0"
NO_LIBUV = 'meson.build:33:0: ERROR: Dependency "libuv" not found, tried pkgconfig and cmake'
NO_LOOPS = """\
mount -t tmpfs -o mode=755 dev "$0"
for name in null zero full random urandom tty; do
    touch "$0/$name" && mount --bind /dev/$name "$0/$name"
done
ln -s /proc/self/fd "$0/fd"
mkdir "$0/pts" "$0/shm" && mount --rbind /dev/pts "$0/pts" && mount --rbind /dev/shm "$0/shm"
mount --move "$0" /dev
"""
OVERLAY = """\
mkdir "$0/lower" "$0/upper" "$0/work" "$0/merged"
mount -t overlay o -o "lowerdir=$0/lower,upperdir=$0/upper,workdir=$0/work" "$0/merged"
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")


def mounted(script, folder):
    """A command that runs another one where 'script' has changed the mounts; $0 is a new folder."""
    folder.mkdir()
    return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script + 'exec "$@"',
            folder]


class Demo:
    """./demo with a cache of its own, in whose path are a space, a quote and an umlaut, and a
    network of its own, from which nothing can be reached."""

    def __init__(self, world, network):
        self.world, self.network = world, network
        self.folder = world.folder / "d\N{LATIN SMALL LETTER A WITH DIAERESIS}m o's"
        self.cache = self.folder / "aliquot-demo"
        self.cache.mkdir(parents=True)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.count = 0

    def add_images(self):
        """Those of the user's own cache; made there if a demo never ran."""
        with folders.locked_cache(lambda: None):
            for version in images.RELEASES:
                layout = images.build(version)
                (self.cache / layout.name).symlink_to(layout)
        return self

    def fake(self, name, text):
        """A program that is found before the real one."""
        (self.bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.bin / name).chmod(0o755)

    def start(self, *words, inside=()):
        """./demo in the background, run by the command 'inside'."""
        self.count += 1
        self.log = self.folder / f"log-{self.count}"
        env = {**self.world.env, "XDG_CACHE_HOME": str(self.folder),
               "PATH": f"{self.bin}:{self.world.env['PATH']}"}
        with self.log.open("w") as log:
            return subprocess.Popen(self.network(*inside, ROOT / "demo", *words), env=env,
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def run(self, *words, **options):
        """./demo to its end; its exit status and what it said."""
        process = self.start(*words, **options)
        try:
            status = process.wait(800)  # before a test is taken to hang
        finally:
            process.kill()
        return status, self.log.read_text()

    def fail(self, *words, **options):
        """./demo that has to end in words; what it said."""
        status, said = self.run(*words, **options)
        assert status == 1 and "Traceback" not in said, said
        self.check_nothing_left()
        return said

    def wait_for(self, process, text, log=None):
        log = log or self.log
        wait_for(lambda: text in log.read_text() or process.poll() is not None, 300, text)
        assert text in log.read_text(), log.read_text()

    def check_nothing_left(self):
        wait_for(lambda: not processes_of(self.world.folder), 60,
                 lambda: processes_of(self.world.folder))
        assert str(self.world.folder) not in pathlib.Path("/proc/self/mountinfo").read_text()
        assert not list(self.cache.glob("new-*"))


@pytest.fixture
def demo():
    with World() as world, own_network() as network:
        yield Demo(world, network)


@pytest.fixture
def ready(demo):
    try:
        return demo.add_images()
    except commands.Failed as e:
        pytest.skip(f"the images cannot be made here: {e}")


# ---- what is missing ----

def test_demo_without_a_network(demo):
    said = demo.fail()
    assert "Temporary failure resolving" in said
    assert "Debian's package servers cannot be reached: check the network" in said


def test_demo_says_what_it_does_for_an_image(demo):
    """It takes more than a minute for one."""
    demo.fake("mmdebstrap", "echo 'I: extracting archives...'; exec sleep infinity")
    process = demo.start()
    demo.wait_for(process, "image with Python 3.9: extracting archives...")
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    demo.check_nothing_left()


def test_demo_without_space_for_images(demo):
    said = demo.fail(inside=mounted(f'mount -t tmpfs -o size=1m small "{demo.cache}"\n',
                                    demo.folder / "unused"))
    assert f"free some space in {demo.cache}" in said


def test_demo_without_space_for_its_state(ready):
    state = ready.folder / "state"
    inside = mounted('mount -t tmpfs -o size=16m small "$0"\n', state)
    said = ready.fail("--state", state, inside=inside)
    assert f"free some space in {state}" in said


@pytest.mark.parametrize("says, remedy", [
    (OLD_MESON, "install Debian's meson"),
    (NO_LIBUV, "install what is missing by tools/install-packages build")])
def test_demo_that_meson_cannot_set_up(ready, says, remedy):
    ready.fake("meson", f"echo '{says}'; exit 1")
    said = ready.fail("--build", ready.folder / "build")
    assert says in said and remedy in said


def test_demo_in_a_checkout_that_cannot_be_written(ready):
    read_only = f'mount --bind "{ROOT}" "{ROOT}"\nmount -o remount,bind,ro "{ROOT}"\n'
    said = ready.fail(inside=mounted(read_only, ready.folder / "unused"))
    assert "build: nothing can be written there" in said and "./demo --build FOLDER" in said


def test_demo_without_cgroups(ready):
    said = ready.fail(inside=mounted("umount -R /sys/fs/cgroup\n", ready.folder / "unused"))
    assert "this machine cannot run the demo's containers: they need root" in said
    assert "cgroup" in said.splitlines()[-4] and "'aliquot doctor containers'" in said


def test_demo_in_an_unprivileged_container(ready):
    said = ready.fail(inside=["setpriv", "--bounding-set=-sys_admin"])
    assert "Operation not permitted" in said
    assert "(in docker: --privileged)" in said


def test_demo_without_overlayfs(ready):
    """A state on overlayfs, as a container has it, and no loop device to put a disk of its own
    there: overlayfs refuses to be made of itself."""
    (folder := ready.folder / "overlay").mkdir()
    inside = mounted(OVERLAY.replace("$0", str(folder)) + NO_LOOPS, ready.folder / "devices")
    said = ready.fail("--state", folder / "merged" / "state", inside=inside)
    assert "this machine cannot run the demo's containers" in said


def test_demo_without_loop_devices(ready):
    process = ready.start(inside=mounted(NO_LOOPS, ready.folder / "devices"))
    ready.wait_for(process, AT_WORK)
    assert "this machine: scratch space has no limit: there are no loop devices" in \
        ready.log.read_text()
    process.terminate()
    assert process.wait(300) == 128 + signal.SIGTERM
    ready.check_nothing_left()


# ---- folders ----

@pytest.mark.parametrize("option, sentence", [
    ("--state", "is not empty and no demo made it: name a new folder"),
    ("--build", "is no build folder: name an empty or a new one")])
def test_demo_removes_no_folder_of_other_accounts(ready, option, sentence):
    (folder := ready.folder / "mine").mkdir()
    (folder / "thesis").write_text("the only copy")
    assert f"{folder} {sentence}" in ready.fail(option, folder)
    assert (folder / "thesis").read_text() == "the only copy"


def test_demo_twice_at_once(ready):
    first, log = ready.start(), ready.folder / "log-1"
    second = ready.start()
    ready.wait_for(first, AT_WORK, log)
    ready.wait_for(second, AT_WORK)
    assert "another ./demo has" in ready.run("--state", ready.cache / "cluster-1")[1]
    for process in (first, second):
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 128 + signal.SIGINT
    ready.check_nothing_left()
    assert [path.name for path in ready.cache.glob("cluster-*/*")] == ["demo.lock"] * 2


def test_demo_waits_for_the_images_of_another(demo):
    demo.fake("mmdebstrap", 'touch "$TMPDIR/begun"; exec sleep 1000')
    first = demo.start()
    wait_for(lambda: list(demo.cache.glob("new-*/begun")), 60, "the first image")
    second = demo.start()
    demo.wait_for(second, "another ./demo or ./check is building; waiting for it")
    for process in (second, first):
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 128 + signal.SIGINT
    demo.check_nothing_left()


# ---- interrupted ----

@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_demo_interrupted_at_its_images(demo, signum):
    """What was half made is never used, and removed."""
    demo.fake("mmdebstrap", 'for last; do :; done; echo partial > "$last"; exec sleep 1000')
    process = demo.start()
    wait_for(lambda: list(demo.cache.glob("new-*/root.tar")), 60, "an image")
    process.send_signal(signum)
    assert process.wait(300) == (-signum if signum == signal.SIGKILL else 128 + signum)
    wait_for(lambda: not processes_of(demo.folder), 60, lambda: processes_of(demo.folder))
    assert not list(demo.cache.glob("python-*"))
    demo.fake("mmdebstrap", "echo Temporary failure resolving; exit 1")
    assert "check the network" in demo.fail()


def end_everything(demo, process):
    """kill -9 of the demo and of all programs of its cluster; its containers run on."""
    info = json.loads((demo.cache / "cluster-1" / "up" / "up.json").read_text())
    for pid in (process.pid, info["pid"], info["manager_pid"], *info["agent_pids"]):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("end", [
    lambda demo, process: process.send_signal(signal.SIGTERM),
    lambda demo, process: process.send_signal(signal.SIGKILL), end_everything],
    ids=["terminated", "killed", "killed-with-its-cluster"])
def test_demo_interrupted_at_work(ready, end):
    first = ready.start()
    ready.wait_for(first, "two sessions run, the third waits")
    end(ready, first)
    first.wait(300)
    second = ready.start()
    ready.wait_for(second, AT_WORK)
    second.send_signal(signal.SIGINT)
    assert second.wait(300) == 128 + signal.SIGINT, ready.log.read_text()
    ready.check_nothing_left()
