# SPDX-License-Identifier: Apache-2.0
"""The tarball for other distributions, in bare roots of Debian and one of busybox and musl."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "lib")]
from bare_root import PROXY_CONF, Root, cache_dir  # noqa: E402
from images import Layout, archive, programs  # noqa: E402
from world import BUILD  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
DEBIAN = ["bullseye", "bookworm", "trixie"]
WITH_CONTAINERS = "bookworm"
DYNAMIC = {"aliquot-accel", "aliquot-gpu", "aliquot-gpu-probe"}
# Names and users are asked of modules that these programs must not load.
NSSWITCH = """hosts: mdns4_minimal [NOTFOUND=return] resolve [!UNAVAIL=return] files dns
passwd: sss systemd files
group: sss systemd files
services: db files
"""
MOCK = """slot_name = "cuda"
device_plugin_name = "CUDADevice"
devices = [
  { mother_uuid = "00000000-0000-4000-8000-000000000001", model_name = "CUDA GPU", numa_node = 0,\
 subproc_count = 108, memory_size = "2G", is_mig_device = false },
]
"""


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True,
                          text=True).stdout.strip()


def make(out, *words):
    done = subprocess.run([ROOT / "tools" / "make-tarball", "--out", out, *words], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return pathlib.Path(done.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def tarball(tmp_path_factory):
    """That of this commit is made once; that of a changed tree each time."""
    if os.geteuid() != 0:
        pytest.skip("the tarball is made in a bare root, which needs root")
    if git("status", "--porcelain"):
        return make(tmp_path_factory.mktemp("tarball"))
    kept = cache_dir() / "built" / f"{git('rev-parse', 'HEAD')[:16]}-tarball"
    if not kept.exists():
        fresh = kept.with_name(f"{kept.name}.{os.getpid()}")
        make(fresh)
        fresh.rename(kept)
    return next(kept.iterdir())


@pytest.fixture(scope="session")
def unpacked(tarball, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    subprocess.run(["tar", "-C", folder, "-xf", tarball], check=True)
    return next(folder.iterdir())


# The roots


def make_musl(folder):
    """busybox and musl alone, from Debian's packages, and a program that musl-gcc compiled."""
    bare = folder.with_name("packages")
    root = Root.make("bookworm", bare)
    done = root.run(["sh", "-ec", "cd /tmp; apt-get -q update; apt-get -q download busybox-static"
                     " musl; for p in *.deb; do dpkg -x $p /tmp/files; done"],
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    files = bare / "tmp" / "files"
    for name in ("bin", "sbin", "etc/apt/apt.conf.d", "lib", "proc", "sys", "dev", "run", "root",
                 "tmp", "usr/bin"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(files / "bin" / "busybox", folder / "bin")
    for name in subprocess.run([folder / "bin" / "busybox", "--list"], capture_output=True,
                               text=True, check=True).stdout.split():
        (folder / "bin" / name).symlink_to("busybox") if name != "busybox" else None
    shutil.copytree(files / "lib", folder / "lib", symlinks=True, dirs_exist_ok=True)
    (folder / "hello.c").write_text('#include <stdio.h>\nint main(void) { puts("musl"); }\n')
    subprocess.run(["musl-gcc", "-o", folder / "bin" / "hello", folder / "hello.c"], check=True)
    for name, text in {"passwd": "root:x:0:0::/root:/bin/sh\ndaemon:x:1:1::/:/bin/false\n",
                       "group": "root:x:0:\ndaemon:x:1:\n", "hostname": "musl\n",
                       "hosts": "127.0.0.1 localhost\n"}.items():
        (folder / "etc" / name).write_text(text)
    (folder / PROXY_CONF).touch()
    root.remove()
    return Root(folder)


def add_containers(root):
    """What an agent runs containers with."""
    groups = (ROOT / "tools/packages.txt").read_text().splitlines()
    words = next(line for line in groups if line.startswith("containers ")).split()[1:]
    done = root.run(["sh", "-ec", "apt-get -q update; apt-get -qy install --no-install-recommends "
                     + " ".join(words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    text=True, env={"DEBIAN_FRONTEND": "noninteractive"})
    assert done.returncode == 0, done.stdout


def add_files(root, unpacked):
    """What the steps need besides."""
    with open(root.folder / "etc/hosts", "a") as hosts:
        hosts.write("127.0.0.1 manager.example\n")
    (root.folder / "etc/nsswitch.conf").write_text(NSSWITCH)
    (root.folder / "results").mkdir()
    tarball = root.folder / "tarball"
    tarball.mkdir()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=api",
                    "-addext", "subjectAltName=DNS:manager.example", "-out", tarball / "api.crt",
                    "-keyout", tarball / "api.key"], check=True, capture_output=True)
    for name, user in (("no-user", "nosuch"), ("a-user", "daemon")):
        (tarball / f"{name}.toml").write_text(f'[process]\nuser = "{user}"\n')
    (tarball / "mock.toml").write_text(MOCK)
    Layout(tarball / "image").image("small", [archive(programs("sh", "echo"))])
    shutil.copy(HERE / "tarball_steps.sh", tarball)
    shutil.copytree(unpacked, root.folder / "opt" / "a place" / unpacked.name)


def has_newer_libc(suite):
    """Do programs of this machine run there?"""
    ours = re.search(r"VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text())
    return suite in DEBIAN and ours and DEBIAN.index(suite) >= DEBIAN.index(ours[1])


class Results:
    def __init__(self, folder, suite, output):
        self.folder, self.suite, self.output = folder, suite, output

    def text(self, name):
        path = self.folder / name
        return path.read_text() if path.exists() else f"step {name} did not run:\n{self.output}"

    def status(self, name):
        path = self.folder / f"{name}.status"
        return int(path.read_text()) if path.exists() else None


@pytest.fixture(scope="module", params=[*DEBIAN, "musl"])
def results(request, unpacked, tmp_path_factory):
    suite = request.param
    folder = tmp_path_factory.mktemp(suite) / "root"
    root = make_musl(folder) if suite == "musl" else Root.make(suite, folder)
    if suite == WITH_CONTAINERS:
        add_containers(root)
    add_files(root, unpacked)
    env, program, binds = {}, "true", []
    if has_newer_libc(suite):
        card = folder / "tarball" / "card"
        subprocess.run([BUILD / "simgpu" / "simgpu", "create", card], check=True)
        program = "/client/gpu-bypass dlsym"
        env = {"SIMGPU_DEVICE": "/tarball/card", "LD_LIBRARY_PATH": "/simgpu/12.8"}
        binds = [((BUILD / "simgpu").resolve(), "/simgpu"),
                 ((BUILD / "tests" / "gpu").resolve(), "/client")]
        (folder / "simgpu").mkdir()
        (folder / "client").mkdir()
    done = root.run(["sh", "/tarball/tarball_steps.sh", f"/opt/a place/{unpacked.name}", program],
                    offline=True, env=env, binds=binds, timeout=600, text=True,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    yield Results(folder / "results", suite, done.stdout)
    root.remove()


# What is in it


def files(unpacked):
    return sorted([*(unpacked / "bin").iterdir(), *(unpacked / "libexec/aliquot").iterdir(),
                   *(unpacked / "lib/aliquot").iterdir()])


def test_programs_are_static(unpacked):
    for path in files(unpacked):
        told = subprocess.run(["readelf", "-ld", path], capture_output=True, text=True,
                              check=True).stdout
        is_static = "NEEDED" not in told and "INTERP" not in told
        assert is_static == (path.suffix != ".so" and path.name not in DYNAMIC), path.name


def test_the_others_take_older_c_libraries(unpacked):
    for path in files(unpacked):
        told = subprocess.run(["objdump", "-T", path], capture_output=True, text=True).stdout
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", told)}
        limit = (2, 17) if path.name == "libaliquot-gpu.so" else (2, 28)
        assert not versions or max(versions) <= limit, path.name
        needed = re.findall(r"NEEDED.*\[(.*)\]", subprocess.run(
            ["readelf", "-d", path], capture_output=True, text=True).stdout)
        assert not any("stdc++" in name or "jansson" in name for name in needed), path.name


def test_it_is_complete(tarball, unpacked):
    for name in ("README", "LICENSE", "share/man/man1/aliquot.1", "share/aliquot/agent.toml",
                 "share/bash-completion/completions/aliquot", "lib/systemd/system/aliquot-agent.service",
                 "libexec/aliquot/aliquot-runner", "libexec/aliquot/aliquot-monitor",
                 "bin/backend.ai", "share/man/man1/backend.ai.1"):
        assert (unpacked / name).exists() or (unpacked / f"{name}.gz").exists(), name
    listed = subprocess.run(["tar", "-tvf", tarball, "--numeric-owner"], capture_output=True,
                            text=True, check=True).stdout.splitlines()
    assert {line.split()[1] for line in listed} == {"0/0"}
    assert len({tuple(line.split()[3:5]) for line in listed}) == 1
    names = [line.split(None, 5)[5] for line in listed]
    assert names == sorted(names, key=lambda name: name.encode())


def test_nothing_names_the_place_where_it_was_built(unpacked):
    for path in unpacked.rglob("*"):
        if path.is_file():
            assert not re.search(rb"/stage/|/build/|/\d+-\w+/source|" + os.fsencode(ROOT),
                                 path.read_bytes()), path


# What it does


def test_version(results):
    assert re.fullmatch(r"aliquot \S+\n", results.text("version"))


def test_a_cluster_comes_up_and_ends(results):
    assert results.status("up") == 0, results.text("up")


def test_a_session(results):
    assert results.text("run") == "hello from a session\n", results.text("up")
    assert results.status("exit") == 3, results.text("exit")


def test_a_container(results):
    """Runs, or is refused in words where there is nothing to run it with."""
    if results.suite == WITH_CONTAINERS:
        assert results.text("container") == "hello from a container\n", results.text("why")
    else:
        assert results.status("container") not in (0, None)
        assert "no containers" in results.text("why"), results.text("why")


def test_users(results):
    assert "there is no user 'nosuch'" in results.text("no-user")
    assert "there is no user" not in results.text("a-user")


def test_names_of_hosts(results):
    assert results.status("no-name") not in (0, None)
    assert "nowhere.example" in results.text("no-name")


@pytest.mark.parametrize("step", ["https-ca-file", "https-variable", "https-bundle"])
def test_https(results, step):
    assert results.text(step).strip() == "[]", results.text("https")
    assert results.status(step) == 0


def test_https_of_a_stranger(results):
    assert results.status("https-stranger") not in (0, None)
    assert "certificate refused" in results.text("https-stranger")


def test_gpu_run(results):
    text = results.text("gpu")
    if results.suite == "musl":
        assert "needs the GNU C library (glibc), which this machine does not have" in text
    elif has_newer_libc(results.suite):
        assert results.status("gpu") == 0, text
    else:
        assert "no NVIDIA driver here: libnvidia-ml.so.1" in text


def test_accelerator_plugins(results):
    """On musl the agent says why there are none, and has done all else."""
    if results.suite == "musl":
        assert ("aliquot-accel: it needs the GNU C library (glibc), which this machine does not"
                " have") in results.text("agent-log")
        assert "cuda." not in results.text("slots")
    else:
        assert results.status("accelerator") == 0, results.text("accelerator")
        assert '"identity"' in results.text("accelerator")
        assert "cuda." in results.text("slots"), results.text("agent-log")


def test_a_scheduler_plugin_is_refused_in_words(results):
    assert results.status("scheduler-plugin") not in (0, None)
    assert "linked statically" in results.text("scheduler-plugin")
