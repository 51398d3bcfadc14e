# SPDX-License-Identifier: Apache-2.0
"""Every file, command, option and setting that documents and comments name exists."""

import functools
import pathlib
import re
import subprocess

import pytest

import growing

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAN = ROOT / "docs" / "man"
# Where a file that is named without its folder may be; includes name files relative to src/.
FOLDERS = ("", "src", "include", "docs", "tests", "tests/lib", "tests/system", "tools", "packaging",
           "src/agent", "src/manager")
SUFFIXES = r"\.(?:c|h|cc|def|py|md|graphql|build)"
PATH = re.compile(rf"^[A-Za-z_][\w./-]*(?:{SUFFIXES}|/)$")
C_PATH = re.compile(rf"(?<![\w./<$-])((?:[a-z_]\w*/)*[a-z_][\w-]*\.(?:c|h|cc|def))\b(?![\w(]|-)")
# Made by a build or a program, or another project's.
MADE = {"build/", "ca/", "build-packages/", "check-results/", "work/", "config/", "run/N/",
        "linux/rtnetlink.h", "include/uapi/linux/bpf.h", "openssl/crypto.h", "cmocka.h",
        "things.c", "things.h", "hooks.h",
        *(name for example in growing.examples() for name in example.added)}


def tracked():
    """The tree, as git has it, and what is new in it."""
    said = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                          capture_output=True, text=True)
    if said.returncode == 0:
        return [name for name in said.stdout.splitlines() if (ROOT / name).exists()]
    return [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]


FILES = tracked()
NAMES = {pathlib.PurePath(name).name for name in FILES}
DOCUMENTS = [ROOT / name for name in FILES if name.endswith(".md")]
PAGES = sorted(MAN.glob("*.[0-9]"))
SOURCES = [ROOT / name for name in FILES if re.search(r"\.(c|h|cc|def)$", name)]


def relative(path):
    return str(path.relative_to(ROOT))


@functools.cache
def endings():
    """Every file and folder by each of its endings: src/a/b.c as src/a/b.c, a/b.c and b.c."""
    found = set()
    for name in FILES:
        parts = name.split("/")
        for first in range(len(parts)):
            for last in range(first + 1, len(parts) + 1):
                found.add("/".join(parts[first:last]))
    return found


def is_there(name):
    return name.rstrip("/") in endings() or name in MADE


def prose(text):
    """A document without fenced blocks."""
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def code_spans(text):
    return re.findall(r"`([^`\n]+)`", prose(text))


def described_by_text(path):
    """Words and lines in which a document shows commands."""
    text = path.read_text()
    if path.suffix != ".md":
        text = re.sub(r"^\.\\\".*$", "", text, flags=re.M)
        return [line for line in text.splitlines() if not line.startswith(".")]
    fenced = re.findall(r"^```(?!diff)[^\n]*\n(.*?)^```", text, re.M | re.S)
    return [*code_spans(text), *"\n".join(fenced).splitlines(),
            *re.findall(r"^    (.*)$", prose(text), re.M)]


# ---- files ----

@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_files_of_documents_exist(path):
    named = {span for span in code_spans(path.read_text()) if PATH.match(span)}
    assert not [span for span in sorted(named) if not is_there(span)]


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_links_of_documents_lead_somewhere(path):
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path.read_text())):
        file, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        page = (path.parent / file) if file else path
        if not page.exists() or anchor and anchor not in anchors(page):
            wrong.append(target)
    assert not wrong


@functools.cache
def anchors(page):
    """Anchors of a document: of its headings, as GitHub makes them, and those that it sets."""
    text = prose(page.read_text())
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads} | set(
        re.findall(r'<a id="([^"]+)">', text))


def comments(text):
    return re.findall(r"/\*.*?\*/|(?<![:\"])//[^\n]*", text, re.S)


def test_files_of_comments_exist():
    wrong = []
    for path in SOURCES:
        for comment in comments(path.read_text(errors="replace")):
            wrong += [f"{relative(path)}: {name}" for name in C_PATH.findall(comment)
                      if not is_there(name)]
    assert not wrong, "\n".join(sorted(set(wrong)))


def test_decisions_of_comments_and_documents_exist():
    text = "\n".join(page.read_text() for page in (ROOT / "docs" / "decisions").glob("*.md"))
    numbers = set(re.findall(r'<a id="(\d+)">', text))
    for path in [*DOCUMENTS, *SOURCES]:
        named = set(re.findall(r"\bdecisions? (\d+)\b", path.read_text(errors="replace")))
        assert not named - numbers, path
    assert len(numbers) > 200


# ---- commands and options ----

@functools.cache
def verbs():
    """All commands, as the table of the command line has them: session_ls of "session ls"."""
    table = ROOT / "src" / "cli" / "verbs.def"
    found = set(re.findall(r"^VERB\((\w+)\)", table.read_text(), re.M))
    assert len(found) > 60
    return found


@functools.cache
def options():
    """Every option of any program of ours: as a literal, in a table of options, or of members."""
    found = set()
    for name in FILES:
        is_tool = name.startswith(("tools/", "bench/", "check", "demo", "tests/fresh/"))
        if name.endswith((".c", ".h")) or is_tool:
            text = (ROOT / name).read_text(errors="replace")
            found |= set(re.findall(r"--([a-z][a-z0-9-]+)", text))
            for call in re.findall(r"arguments\((.*?)\)\n {0,4}\S", text, re.S):  # bench/benchlib.py
                found |= set(re.findall(r"\b(\w+)=", call))
            if name.startswith(("src/", "simgpu/")):
                found |= set(re.findall(r"\"([a-z][a-z0-9-]+)\"", text))
            if name.startswith("src/model/"):
                members = re.findall(r"\{ (?:MEMBER|LIMIT|OPTION)\w*\(\w+,\s+(?:\w+,\s+\")?(\w+)"
                                     r"[^{}]*\.help = ", text)
                members += re.findall(r"^#define \w+ \"(\w+)\"$", text, re.M)
                found |= {member.replace("_", "-") for member in members}
    return found


def identifier(words):
    return "_".join(words).replace("-", "_")


def is_beginning(words):
    start = identifier(words)
    return any(verb == start or verb.startswith(start + "_") for verb in verbs())


def wrong_command(words):
    """Of "aliquot WORDS" the words that are no command, or ""."""
    names = []
    for word in words:
        if not re.fullmatch(r"[a-z][a-z-]*", word):
            break
        names.append(word)
    known = 0
    while known < len(names) and is_beginning(names[:known + 1]):
        known += 1
    is_whole = identifier(names[:known]) in verbs()
    return "" if is_whole or known == len(names) else " ".join(names)


@pytest.mark.parametrize("path", [*DOCUMENTS, *PAGES], ids=relative)
def test_commands_exist(path):
    wrong = []
    for line in described_by_text(path):
        for said in re.findall(r"(?:^|[\s;|(])aliquot ([a-z][^|;)\n]*)", line):
            wrong.append(wrong_command(said.split()))
    assert not [words for words in wrong if words]


OTHERS = re.compile(r"\b(meson|ninja|apt|apt-get|systemctl|journalctl|curl|docker|git|clang-format"
                    r"|squeue|kubectl|backend\.ai|pip|podman|crun|runc|gcc|cc|mount|nsenter|unshare"
                    r"|helm|npm|pytest|gdb|perf|valgrind)\b")


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_options_exist(path):
    wrong = set()
    for line in described_by_text(path):
        if not OTHERS.search(line):
            wrong |= set(re.findall(r"(?:^|[\s\[(])--([a-z][a-z0-9-]+)", line)) - options()
    assert not wrong


# ---- settings ----

@functools.cache
def settings():
    """{section: keys} of all tables of settings."""
    found = {}
    for path in SOURCES:
        for section, key in re.findall(r"\{ \"([a-z-]*)\", \"([a-z-]+)\",\s+CONF_[A-Z]+",
                                       path.read_text(errors="replace")):
            found.setdefault(section, set()).add(key)
    assert {"manager", "network", "resource"} <= set(found)
    return found


@pytest.mark.parametrize("path", [*DOCUMENTS, *PAGES], ids=relative)
def test_settings_exist(path):
    """What is written [section] key in code."""
    wrong = [f"[{section}] {key}"
             for section, key in re.findall(r"`\[([a-z-]+)\] ([a-z-]+)", path.read_text())
             if key not in settings().get(section, ())]
    assert not wrong


# ---- the test itself ----

def test_what_is_not_there_is_found():
    assert not is_there("src/agent/no_such_file.c") and is_there("src/model/status.c")
    assert wrong_command(["session", "frobnicate"]) and not wrong_command(["session", "ls"])
    assert wrong_command(["frobnicate"]) and not wrong_command(["run", "-r"])
    assert "no-such-option" + "-at-all" not in options() and "detach" in options()
    assert "no-such-key" not in settings()["network"]
    assert C_PATH.findall("/* see core/no_such.c, libcuda.so.1 */") == ["core/no_such.c"]
