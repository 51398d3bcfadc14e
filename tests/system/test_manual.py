# SPDX-License-Identifier: Apache-2.0
"""The manual says what the program says: every command and option, nothing that
is not there, and mandoc finds nothing to warn about."""

import os
import re
import shutil
import subprocess

import pytest

from world import BUILD, ROOT

pytestmark = pytest.mark.gate

MAN = ROOT / "docs" / "man"
ALIQUOT = BUILD / "aliquot"
PAGES = sorted(MAN.glob("*.[0-9]"))


def aliquot(*words):
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    return subprocess.run([ALIQUOT, *words], capture_output=True, text=True, env=env)


def candidates(*words):
    lines = aliquot("completion", "words", "--", *words).stdout.splitlines()
    return dict(line.split("\t") for line in lines)


def commands(prefix=()):
    """Every command as a tuple of words, found as the shell would find them."""
    for word, meaning in candidates(*prefix, "").items():
        if meaning == "commands":
            yield from commands((*prefix, word))
        else:
            yield (*prefix, word)


GLOBALS = set(candidates("version", "--"))
COMMANDS = list(commands())


def options(command):
    return set(candidates(*command, "--")) - GLOBALS


def page_of(command):
    own = MAN / f"aliquot-{command[0]}.1"
    return own if own.exists() else MAN / "aliquot.1"


def section(command):
    """The text of the command's own section, "" if there is none."""
    head = re.escape(" ".join(command))
    found = re.search(rf"^\.Ss aliquot {head}(?: [^\n]*)?$(.*?)(?=^\.S[sh] |\Z)",
                      page_of(command).read_text(), re.M | re.S)
    return found.group(1) if found else ""


def described(text):
    return {"-" + name for name in re.findall(r"^\.It .*?Fl (-[a-z][a-z-]*)", text, re.M)}


def test_there_are_commands():
    assert len(COMMANDS) > 40 and ("session", "ls") in COMMANDS


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_command_is_in_its_page(command):
    text = section(command)
    assert text, f"{page_of(command).name} has no section for it"
    assert described(text) == options(command)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help(command):
    done = aliquot(*command, "--help")
    assert done.returncode == 0 and not done.stderr
    assert done.stdout.startswith(f"Usage: aliquot {' '.join(command)}")
    for option in options(command):
        assert re.search(rf"^ +(-\w, )?{option}\b", done.stdout, re.M)
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_global_options_are_in_the_first_page():
    text = (MAN / "aliquot.1").read_text()
    assert described(text.split(".Sh OPTIONS")[1].split("\n.Sh")[0]) == GLOBALS


def test_environment_is_in_the_first_page():
    said = aliquot("help", "environment").stdout
    text = (MAN / "aliquot.1").read_text()
    for name in re.findall(r"^ +((?:ALIQUOT|BACKEND)_\w+|NO_COLOR)$", said, re.M):
        assert re.search(rf"\b{name}\b", text), name


def test_exit_statuses_are_in_the_first_page():
    text = (MAN / "aliquot.1").read_text().split(".Sh EXIT STATUS")[1]
    said = re.findall(r"^ +(\d+)  ", aliquot("help", "exit-codes").stdout, re.M)
    assert re.findall(r"^\.It (\d+)$", text, re.M) == said and len(said) > 8


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lint(page):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True,
                          text=True)
    assert done.stdout == "" and done.returncode == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_references_exist(page):
    names = {path.name for path in PAGES}
    for name, number in re.findall(r"^\.(?:It )?Xr (aliquot\S*) (\d)", page.read_text(), re.M):
        assert f"{name}.{number}" in names, f"{name}({number})"


@pytest.mark.parametrize("page, command", [
    ("aliquot-manager.toml.5", ["aliquot-manager", "sample"]),
    ("aliquot-agent.toml.5", ["aliquot-agent", "--print-config"]),
    ("aliquot-proxy.toml.5", ["aliquot-proxy", "--print-config"]),
    ("aliquot-k8s.toml.5", ["aliquot-k8s", "--print-config"]),
    ("aliquot-storage.toml.5", ["aliquot-storage", "--print-config"]),
    ("aliquot-web.toml.5", ["aliquot-web", "--print-config"]),
])
def test_settings_are_in_their_page(page, command):
    """Every section and key of the sample file, in its range, and nothing else."""
    sample = subprocess.run([ALIQUOT.parent / command[0], *command[1:]], capture_output=True,
                            text=True, check=True).stdout
    text = (MAN / page).read_text().split(".Sh EXAMPLES")[0]
    assert re.findall(r"^(?:#([a-z-]+) = |\[(.+)\])", sample, re.M) == re.findall(
        r"^(?:\.It Cm ([a-z-]+)|\.Ss \[(.+)\])$", text, re.M)
    items = iter(re.split(r"^(?:\.It Cm|\.Ss \[)", text, flags=re.M)[1:])
    for limits, key in re.findall(r"^(?:# .*?(?: \(([^()]*)\))?\n)?(?:#([a-z-]+) = |\[.+\])", sample,
                                  re.M):
        item = " ".join(next(items).split())
        if key and re.match(r"\S+ to \d", limits):
            assert f"From {limits}." in item or f", {limits}." in item, f"{key}: {item}"
        elif key and limits.endswith(" or more"):
            assert f"At least {limits.split()[0]}." in item, f"{key}: {item}"


@pytest.mark.parametrize("daemon", ["aliquot-manager", "aliquot-agent"])
def test_options_of_daemons(daemon):
    said = subprocess.run([ALIQUOT.parent / daemon, "--help"], capture_output=True, text=True,
                          check=True).stdout
    text = (MAN / f"{daemon}.8").read_text()
    for option in set(re.findall(r"--([a-z][a-z-]+)", said)) - {"help", "version"}:
        assert re.search(rf"Fl -{option}\b", text), option
