# SPDX-License-Identifier: Apache-2.0
"""tools/install-packages with stand-ins for dpkg, apt and sudo: what it installs, and what it says
where it cannot."""

import os
import pathlib
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "install-packages"
PACKAGES = """\
# a comment
build   gcc meson
test    old-one|new-one
"""
# Names in the file "installed" are; what apt-get says is in "UPDATE" and "INSTALL".
PROGRAMS = {
    "dpkg-query": 'grep -qx "$4" "$HERE/installed" && echo install ok installed',
    "apt-cache": 'grep -qx "$2" "$HERE/available" && echo "  Candidate: 1.0"',
    "apt-get": """\
echo "apt-get $*" >> "$HERE/calls"
case " $* " in *" update "*) what=update ;; *) what=install ;; esac
if [ -e "$HERE/$what" ]; then
    cat "$HERE/$what"
    [ ! -e "$HERE/$what-once" ] || rm "$HERE/$what" "$HERE/$what-once"
    exit 100
fi""",
    "dpkg": 'echo "dpkg $*" >> "$HERE/calls"',
    "id": 'cat "$HERE/user"',
    "sudo": """\
echo "sudo $*" >> "$HERE/calls"
[ ! -e "$HERE/refused" ] || exit 1
[ "$1" = -v ] || exec "$@" """,
    "sleep": "",
}


class Machine:
    def __init__(self, folder):
        self.folder, self.bin = folder, folder / "bin"
        for name in ("bin", "tools", "tmp"):
            (folder / name).mkdir()
        (folder / "tools" / "install-packages").symlink_to(SCRIPT)
        (folder / "tools" / "packages.txt").write_text(PACKAGES)
        for name, text in PROGRAMS.items():
            (self.bin / name).write_text(f"#!/bin/sh\n{text}\n")
            (self.bin / name).chmod(0o755)
        self.write("installed")
        self.write("available", "gcc", "meson", "old-one", "new-one")
        self.write("user", "0")

    def write(self, name, *lines):
        (self.folder / name).write_text("".join(line + "\n" for line in lines))

    def run(self, *groups):
        env = {"PATH": f"{self.bin}:{os.environ['PATH']}", "HERE": str(self.folder),
               "TMPDIR": str(self.folder / "tmp")}
        done = subprocess.run([self.folder / "tools" / "install-packages", *groups], text=True,
                              capture_output=True, env=env, timeout=60)
        assert not any((self.folder / "tmp").iterdir())
        return done

    def fail(self, *groups):
        done = self.run(*groups)
        assert done.returncode == 1, done
        return done.stderr

    def installed_by_apt(self):
        """The words of apt-get's last call that are no options."""
        words = self.calls()[-1].split()
        return [word for word in words[words.index("install"):][1:] if not word.startswith("-")]

    def calls(self):
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_nothing_is_missing(machine):
    machine.write("installed", "gcc", "meson", "new-one")
    done = machine.run("build", "test")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not machine.calls()


def test_what_is_missing_is_installed(machine):
    machine.write("installed", "gcc")
    assert machine.run().returncode == 0
    assert machine.installed_by_apt() == ["meson"]


@pytest.mark.parametrize("available, chosen", [
    (["old-one", "new-one"], "old-one"), (["new-one"], "new-one")])
def test_alternatives(machine, available, chosen):
    machine.write("available", *available)
    assert machine.run("test").returncode == 0
    assert machine.installed_by_apt() == [chosen]


def test_unknown_group(machine):
    assert "no group 'tests' in packages.txt" in machine.fail("tests")
    assert not machine.calls()


@pytest.mark.parametrize("says, remedy", [
    ("E: Failed to fetch  Temporary failure resolving 'mirror'",
     "cannot be reached: check the network"),
    ("E: You don't have enough free space in /var/cache/apt/archives/.", "free some disk space"),
    ("cannot copy extracted data: failed to write (No space left on device)",
     "free some disk space"),
    ("E: Unable to locate package gcc", "look at /etc/apt/sources.list"),
    ("E: something new", "mend what apt-get says: apt-get install gcc")])
def test_apt_fails(machine, says, remedy):
    machine.write("install", "much else", says)
    said = machine.fail("build")
    assert says in said and remedy in said.splitlines()[-1]


def test_packages_that_cannot_be_reached_but_need_not(machine):
    """A list that cannot be fetched again does not matter if the packages are in the cache."""
    machine.write("update", "E: Failed to fetch  Temporary failure resolving 'mirror'")
    assert machine.run("build").returncode == 0


def test_another_apt_is_waited_for(machine):
    machine.write("update", "E: Could not get lock /var/lib/apt/lists/lock. process 7 holds it")
    machine.write("update-once")
    done = machine.run("build")
    assert done.returncode == 0 and "another apt-get is at work; waiting for it" in done.stdout
    assert sum(" update" in call for call in machine.calls()) == 2


def test_interrupted_installation_is_brought_to_its_end(machine):
    machine.write("install", "E: dpkg was interrupted, you must manually run 'dpkg --configure -a'")
    machine.write("install-once")
    assert machine.run("build").returncode == 0
    assert machine.calls()[-2] == "dpkg --configure -a"
    assert machine.installed_by_apt() == ["gcc", "meson"]


def test_user_with_sudo(machine):
    machine.write("user", "1000")
    assert machine.run("build").returncode == 0
    assert machine.calls()[0] == "sudo -v" and machine.calls()[1].startswith("sudo env")
    assert machine.installed_by_apt() == ["gcc", "meson"]


def test_user_whom_sudo_refuses(machine):
    machine.write("user", "1000")
    machine.write("refused")
    assert "sudo does not let this user install: gcc meson" in machine.fail("build")


def test_user_without_sudo(machine):
    machine.write("user", "1000")
    (machine.bin / "sudo").unlink()
    for name in ("bash", "sed", "sort", "tr", "grep", "cat", "mktemp", "rm", "dirname", "env"):
        (machine.bin / name).symlink_to(f"/usr/bin/{name}")
    env = {"PATH": str(machine.bin), "HERE": str(machine.folder)}
    done = subprocess.run(["/bin/bash", machine.folder / "tools" / "install-packages", "build"],
                          text=True, capture_output=True, env=env)
    assert done.returncode == 1
    assert "needs root for: gcc meson" in done.stderr and "ask an administrator" in done.stderr


def test_machine_of_another_distribution(machine):
    (machine.bin / "dpkg-query").unlink()
    for name in ("bash", "sed", "dirname"):
        (machine.bin / name).symlink_to(f"/usr/bin/{name}")
    done = subprocess.run(["/bin/bash", machine.folder / "tools" / "install-packages", "build"],
                          text=True, capture_output=True, env={"PATH": str(machine.bin)})
    assert done.returncode == 1
    assert "this is not a Debian machine; it needs what Debian calls gcc meson" in done.stderr
