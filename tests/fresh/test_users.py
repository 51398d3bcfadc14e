# SPDX-License-Identifier: Apache-2.0
"""What users without root's rights are told, and what they can do."""

import pytest

from doc_blocks import ROOT, blocks, script

README = list(blocks(ROOT / "README.md"))

CONTAINER = """build/aliquot up --dev >/tmp/up.log 2>&1 &
up=$!
until grep -q ready /tmp/up.log; do sleep 0.1; done
build/aliquot login --dev >/dev/null
build/aliquot run --name contained -r cpu=1 -r mem=64m --image localhost/none:1 -- true
build/aliquot session why contained
kill -INT $up
wait
"""


@pytest.fixture(scope="module")
def machine(new_machine):
    machine = new_machine("12")
    machine.add_user("ann")
    machine.clone("ann")
    return machine


def test_packages_need_root(machine):
    done = machine.bash("tools/install-packages build", user="ann")
    assert done.returncode == 1 and "needs root for: " in done.stdout
    assert "ask an administrator" in done.stdout


def test_the_demo_needs_root(machine):
    done = machine.bash("./demo --exit", user="ann")
    assert done.returncode == 1 and "aliquot up --dev" in done.stdout
    assert len(done.stdout.splitlines()) <= 2


def test_without_a_network(machine):
    machine.clone("root")
    for command in ("tools/install-packages build", "./demo --exit"):
        done = machine.bash(command, offline=True)
        assert done.returncode == 1
        assert done.stdout.endswith("the package servers cannot be reached: check the network "
                                    "and /etc/apt/sources.list*\n"), done.stdout


@pytest.mark.only_all
@pytest.mark.timeout(1800)
def test_a_user_who_may_nothing(machine):
    assert machine.bash("cd ~ann/aliquot && tools/install-packages build").returncode == 0
    done = machine.script('export PATH="$PWD/build:$PATH"\n' + script(README), user="ann")
    assert done.returncode == 0, done.stdout
    done = machine.script(CONTAINER, user="ann")
    assert "this node runs no containers: the agent is not run by root" in done.stdout


@pytest.mark.only_all
@pytest.mark.timeout(1800)
def test_a_user_with_sudo(new_machine):
    machine = new_machine("12")
    machine.add_user("ann")
    (machine.root.folder / "root/aliquot").mkdir()
    done = machine.bash("apt-get update && apt-get install -y --no-install-recommends sudo && "
                        "echo 'ann ALL=(ALL:ALL) NOPASSWD: ALL' >/etc/sudoers.d/ann")
    assert done.returncode == 0, done.stdout
    machine.clone("ann")
    done = machine.bash("./demo --exit", user="ann", timeout=1200)
    assert done.returncode == 0 and done.stdout.splitlines()[-1].startswith("{"), done.stdout
    done = machine.script('export PATH="$PWD/build:$PATH"\n' + script(README), user="ann")
    assert done.returncode == 0, done.stdout
    assert machine.bash("find ~ann -not -user ann", user="ann").stdout == ""
