# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's own command line, unmodified, as pip installs it."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

import fetched

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))
import commands  # noqa: E402
from bare_root import Root  # noqa: E402

# Newer ones of these break the signing of requests, or the building of what has no wheel.
CONSTRAINTS = "cython<3\nsetuptools<70\nyarl<1.10\nmultidict<6.1\n"

NEWEST = "26.9.6"  # needs the Python of Debian 13
WITHOUT_WHEEL = ("temporenc~=0.1.0", "pytest-dependency>=0.6.0")  # the second is the tester's
MAIN = "from ai.backend.cli.loader import load_entry_points; load_entry_points()()"
TREE = """
import click
from ai.backend.cli.loader import load_entry_points

def walk(command, words=()):
    if not isinstance(command, click.Group):
        return print(*words)
    context = click.Context(command)
    for name in command.list_commands(context):
        walk(command.get_command(context, name), (*words, name))

walk(load_entry_points())
"""
# Commands run in children of one process, which has loaded the client: loading takes seconds.
SERVER = """
import gc, importlib, json, os, pkgutil, signal, sys, tempfile
from ai.backend.client import func
from ai.backend.cli.loader import load_entry_points

client = load_entry_points()
for module in pkgutil.iter_modules(func.__path__, func.__name__ + '.'):
    importlib.import_module(module.name)  # commands do it late
gc.freeze()
os.chdir(os.environ['HOME'])
for line in iter(sys.stdin.readline, ''):
    words, env, answer = json.loads(line)
    files = [tempfile.TemporaryFile() for _ in range(3)]
    files[0].write(answer.encode())
    files[0].seek(0)
    child = os.fork()
    if not child:
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
        signal.alarm(300)
        sys.stdin = open(0, closefd=False)
        os.environ.update(env)
        sys.argv[1:] = words
        sys.exit(client())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for file in files:
        file.seek(0)
    print(json.dumps([code, *(file.read().decode() for file in files[1:])]), flush=True)
"""
COMMANDS = []  # the words of each command that succeeded, of the test that runs


def install(version):
    """The folder of the client, made once; a test that cannot have it is skipped."""
    is_newest = version == NEWEST
    if is_newest and os.geteuid() != 0:
        pytest.skip("bare roots need root")
    python = "3.13-trixie" if is_newest else f"{sys.version_info[0]}.{sys.version_info[1]}"
    with fetched.folder(f"clients/{version}-python{python}") as (folder, is_new):
        if is_new:
            (install_in_root if is_newest else install_in_venv)(version, folder)
        if is_newest:
            install_programs(Root(folder / "root"))
    return folder


def pip(folder, *words, **env):
    fetched.run(words[-1], [folder / "venv/bin/pip", "-q", *words], env={**os.environ, **env})


def make_venv(folder):
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder / "venv"], check=True)


def install_in_venv(version, folder):
    (folder / "constraints").write_text(CONSTRAINTS)
    make_venv(folder)
    pip(folder, "install", f"backend.ai-client=={version}",
        PIP_CONSTRAINT=str(folder / "constraints"))


def install_programs(root):
    """Those that the client runs itself."""
    if (root.folder / "usr/bin/ssh").exists():
        return
    got = root.run(["sh", "-c", "apt-get -q update && apt-get -qy --no-install-recommends install "
                    "python3 openssh-client"], env={"DEBIAN_FRONTEND": "noninteractive"},
                   text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if got.returncode:
        fetched.missing("openssh-client", got.stdout)


def install_in_root(version, folder):
    """In a root of Debian 13, which has no network: the packages come from this machine's pip."""
    for name in ("root", "wheels"):
        shutil.rmtree(folder / name, ignore_errors=True)
    try:
        root = Root.make("trixie", folder / "root")
    except commands.Failed as e:
        fetched.missing("a root of Debian 13", f"{e}: {e.last_lines}")
    install_programs(root)
    make_venv(folder)
    install_into(folder, "client", f"backend.ai-client=={version}", *WITHOUT_WHEEL[:1])


def install_into(folder, name, package, *needed):
    """A package, and what it needs: of 'needed' there is no wheel, so one is made."""
    forms = [f"--platform={form}" for form in ("manylinux2014_x86_64", "manylinux_2_28_x86_64")]
    pip(folder, "wheel", "--use-pep517", "--no-deps", "-w", str(folder / "wheels"), *needed)
    pip(folder, "install", "--target", str(folder / "root" / name), "--ignore-requires-python",
        "--python-version=3.13", "--implementation=cp", "--abi=cp313", "--abi=abi3", "--abi=none",
        *forms, "--only-binary=:all:", "--find-links", str(folder / "wheels"), package)


def install_tester(version):
    """Backend.AI's own tester, in the root of the client; the folder of that."""
    folder = install(version)
    with fetched.folder(f"testers/{folder.name}") as (_, is_new):
        if is_new or not (folder / "root/tester").exists():
            shutil.rmtree(folder / "root/tester", ignore_errors=True)
            install_into(folder, "tester", f"backend.ai-test=={version}", *WITHOUT_WHEEL)
    return folder


def python_of(folder, home="/root", packages="client"):
    """The words that start the client's interpreter, in the network of the tests."""
    if (folder / "root").exists():
        return ["chroot", folder / "root", "/usr/bin/env", f"PYTHONPATH=/{packages}",
                f"HOME={home}", "python3"]
    return [folder / "venv/bin/python"]


def tree_of(folder):
    """All its commands, aliases included."""
    return subprocess.run([*python_of(folder), "-c", TREE], text=True, capture_output=True,
                          check=True).stdout.splitlines()


class Server:
    """A process that has loaded a client and runs its commands, with a home directory."""

    def __init__(self, folder):
        root = folder / "root"
        self.root = root if root.exists() else pathlib.Path("/")
        self.home = tempfile.TemporaryDirectory(prefix="aliquot-client-", dir=self.root / "tmp")
        home = "/" + str(pathlib.Path(self.home.name).relative_to(self.root))
        self.python = python_of(folder, home)
        self.env = {"PATH": os.environ["PATH"], "HOME": home, "LC_ALL": "C.UTF-8", "COLUMNS": "400"}
        self.process = subprocess.Popen([*self.python, "-c", SERVER], env=self.env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, words, env, answer):
        print(json.dumps([words, env, answer]), file=self.process.stdin, flush=True)
        return subprocess.CompletedProcess(words, *json.loads(self.process.stdout.readline()))

    def end(self):
        self.process.communicate()
        self.home.cleanup()


class RealClient:
    """Who types its commands against a cluster."""

    def __init__(self, server, address, keypair):
        self.server = server
        self.home = pathlib.Path(server.home.name)  # where it runs
        self.env = {"BACKEND_ENDPOINT_TYPE": "api", "BACKEND_ENDPOINT": "http://%s:%d" % address,
                    "BACKEND_ACCESS_KEY": keypair[0], "BACKEND_SECRET_KEY": keypair[1]}

    def run(self, *words, answer="", **env):
        """'answer' is what is typed when it asks."""
        return self.server.run(words, self.env | env, answer)

    def start(self, output, *words):
        """A process of its own, for a command that stays; what it says goes to a file."""
        with output.open("w") as file:
            return subprocess.Popen([*self.server.python, "-c", MAIN, *words],
                                    env=self.server.env | self.env, stdin=subprocess.DEVNULL,
                                    stdout=file, stderr=file)

    def python(self, program, *words):
        """A program that uses the client's library: its status and what it says."""
        done = subprocess.run([*self.server.python, "-c", program, *words],
                              env=self.server.env | self.env, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def does(self, *words, answer="", **env):
        """What it prints, of a command that succeeds."""
        done = self.run(*words, answer=answer, **env)
        assert done.returncode == 0, (words, done.stdout, done.stderr[-2000:])
        COMMANDS.append(" ".join(words).removeprefix("--output json "))
        return done.stdout

    def says(self, *words, answer=""):
        """What it says beside what it prints, of a command that succeeds."""
        done = self.run(*words, answer=answer)
        assert done.returncode == 0, (words, done.stdout, done.stderr[-2000:])
        COMMANDS.append(" ".join(words))
        return done.stdout + done.stderr

    def fails(self, *words, answer=""):
        """What it prints, of a command that is refused."""
        done = self.run(*words, answer=answer)
        assert done.returncode == 1, (words, done.stdout, done.stderr[-2000:])
        return done.stdout + done.stderr

    def json(self, *words):
        """What it prints after the line that it is older than the manager."""
        text = self.does("--output", "json", *words)
        return json.loads(text[text.index("{"):])
