# SPDX-License-Identifier: Apache-2.0
"""Process 1 of a container is our runner, whatever links an image has where it is mounted, and
whatever a session's programs have put there before it is started again."""

import json
import os
import pathlib
import subprocess

import pytest

import containers
from cluster import Cluster
from images import Layout, archive, file, folder, link, programs
from runtimes import Session, exit_code, run, settings_of

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64",
                                reason="the foreign loader is written for x86-64")

LOADER = "lib64/ld-linux-x86-64.so.2"
# The image's "loader", which the Linux kernel starts with an OCI runtime that executes itself:
# no library, no stack of its own, only calls.
FOREIGN = r"""
static long call(long number, long a, long b, long c)
{
    long r;
    register long d __asm__("r10") = 0, e __asm__("r8") = 0;
    __asm__ volatile("syscall" : "=a"(r) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d), "r"(e)
                     : "rcx", "r11", "memory");
    return r;
}
static void say(const char *what, long result)
{
    char text[64] = "FOREIGN ";
    int n = 8;
    while (*what) text[n++] = *what++;
    for (const char *more = result < 0 ? " refused\n" : " done\n"; *more;) text[n++] = *more++;
    call(1, 1, (long)text, n);
}
void _start(void)
{
    say("vsock", call(41, 40, 1, 0));
    say("user namespace", call(272, 0x10000000, 0, 0));
    say("packets", call(41, 17, 3, 0));
    call(231, 0, 0, 0);
}
"""
# Put things where process 1 is to be at the next start: the folder, the link, and the attack.
PLANT = r"""
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    (void)argc;
    if (access("/home/work/planted", F_OK) < 0) {
        rename("/opt", "/opt-before");
        rename("/home/work/kernel", "/home/work/kernel-before");
        mkdir("/home/work/kernel", 0755);
        symlink("/home/work", "/opt");
        symlink("/proc/self/exe", "/home/work/kernel/aliquot-runner");
        mkdir("/home/work/planted", 0755);
    }
    printf("started %d\n", getuid());
    fflush(stdout);
    for (;;) pause();
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(the foreign loader, the program that plants links), static both."""
    path, files = tmp_path_factory.mktemp("built"), []
    # not where crun and runc are, should they have fixed addresses
    for name, text, flags in (
            ("foreign", FOREIGN, ["-nostdlib", "-ffreestanding", "-fno-builtin", "-no-pie",
                                  "-fno-stack-protector", "-Wl,-Ttext-segment=0x70000000"]),
            ("plant", PLANT, [])):
        (path / f"{name}.c").write_text(text)
        subprocess.run(["cc", "-O1", "-static", *flags, "-o", path / name, path / f"{name}.c"],
                       check=True)
        files.append((path / name).read_bytes())
    return files


@pytest.fixture(params=("crun", "runc"), scope="module")
def runtime(request):
    return request.param


@pytest.fixture(scope="module")
def place(runtime, tmp_path_factory):
    """A cluster whose programs are root in their containers, and a layout of images."""
    settings = settings_of(runtime)
    path = tmp_path_factory.mktemp("place")
    path.chmod(0o755)
    layout = Layout(path / "layout")
    with Cluster(**settings, ALIQUOT_IMAGE_ALLOW="* host oci:/", ALIQUOT_IMAGE_KEEP_FREE="0",
                 ALIQUOT_CONTAINER_UID="0", ALIQUOT_CONTAINER_GID="0") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster, layout
        cluster.check_nothing_left()
        cluster.stop()


def usual(*more):
    return [*programs("sh", "cat", "id", "readlink", "sleep"), *more]


def attacking(built, *more):
    """An image whose loader is not one."""
    return [folder("lib64"), file(LOADER, built[0], mode=0o755),
            file("plant", built[1], mode=0o755), *more]


def test_a_link_in_the_place_of_the_runner_gives_way(place):
    cluster, layout = place
    layout.image("itself", [archive(usual(
        folder("opt"), folder("opt/kernel"), link("opt/kernel/aliquot-runner", "/proc/self/exe")))])
    shown, log = run(cluster, "readlink /opt/kernel/aliquot-runner; cat /proc/1/comm",
                     image=layout.reference("itself"))
    assert (exit_code(shown), log) == (0, "aliquot-runner\n"), json.dumps([shown, log])


@pytest.mark.parametrize("tag, entries, words", [
    ("opt", [link("opt", "/home/work")], "'/opt' is a link"),
    ("kernel", [folder("opt"), link("opt/kernel", "../home/work/kernel")], "'/opt/kernel' is a link"),
    ("etc", [folder("home"), folder("home/work"), link("etc", "/home/work")], "is below '/home/work'"),
])
def test_a_link_above_it_is_refused_by_name(place, built, tag, entries, words):
    cluster, layout = place
    layout.image(tag, [archive(attacking(built, *entries))])
    shown, log = run(cluster, "/plant", image=layout.reference(tag))
    assert words in json.dumps(shown) and "FOREIGN" not in log, json.dumps([shown, log])


def restart(session):
    assert session.client.send("PATCH", f"/session/{session.id}").status == 204


def test_what_programs_leave_there_is_not_executed(place, built):
    """Root of the container has replaced /opt by a link when the session is started again."""
    cluster, layout = place
    layout.image("plain", [archive(attacking(built))])
    session = Session(cluster, "/plant", image=layout.reference("plain"))
    session.wait_log("started 0")
    session.wait("RUNNING")
    restart(session)
    shown = session.wait()
    assert "FOREIGN" not in session.log, session.log
    assert "'/opt' is a link" in json.dumps(shown), json.dumps([shown, session.log])


def stage_of(cluster, session):
    """The folder in which the container's file system was put together, from outside."""
    [pid] = [pid for pid in containers.pids_of(cluster.folder)
             if b"aliquot-runner" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
    keeper = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    [line] = [line.split()[4] for line in pathlib.Path(
        f"/proc/{keeper}/mountinfo").read_text().splitlines() if line.split()[4].endswith("/stage")]
    return pathlib.Path(f"/proc/{keeper}/root") / line[1:]


def test_links_in_the_layer_of_a_session_lead_nowhere(runtime, tmp_path):
    """A folder that is made empty there is made, given away and marked on the node's file system."""
    if not containers.can_limit_scratch():
        pytest.skip("the layer lies on the node's own file system")
    victim = tmp_path / "victim"
    victim.mkdir()
    with Cluster(**settings_of(runtime)) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        session = Session(cluster, "echo ready; exec sleep 1000")
        session.wait_log("ready")
        upper = stage_of(cluster, session) / "scratch/upper"
        (upper / "srv").rename(upper / "srv-before")
        (upper / "srv").symlink_to(victim)
        restart(session)
        shown = session.wait()
        assert "in the place of the folder 'srv'" in json.dumps(shown), json.dumps(shown)
        assert victim.stat().st_uid == 0 and not os.listxattr(victim)
        cluster.check_nothing_left()
        cluster.stop()
