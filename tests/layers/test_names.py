# SPDX-License-Identifier: Apache-2.0
"""Names and shape of the sources: what a grep or a backtrace leads to."""

import collections
import re
import shutil
import subprocess

import pytest
from c_source import ROOT, SRC, code, functions, includes, sources, statics, tags

FORMAT = "clang-format-14"
SHARED_MAX = 0.06  # of all definitions


def test_few_functions_share_a_name_with_two_other_files():
    files = collections.defaultdict(set)
    for path in sources(".c", below=(SRC, ROOT / "plugins", ROOT / "simgpu")):
        for name in functions(path):
            files[name].add(path)
    total = sum(map(len, files.values()))
    shared = {name: len(paths) for name, paths in files.items() if len(paths) > 2}
    assert total > 5000, "the pattern for functions no longer finds them"
    assert sum(shared.values()) <= SHARED_MAX * total, shared


def words_of(path):
    """What names in a file may begin with: parts of its own name, its directory's, a struct's."""
    parts = path.stem.split("_")
    own = {"_".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1)}
    own |= set(path.parent.relative_to(ROOT).parts)
    own |= {word[:-1] for word in own if word.endswith("s")}
    return own | set(re.findall(r"\b(?:struct|union|enum) (\w+)", code(path)))


def test_statics_carry_the_name_of_their_module():
    wrong, total = [], 0
    for path in sources(".c"):
        words = words_of(path)
        for name in statics(path):
            total += 1
            if not any(name == word or name.startswith(word + "_") for word in words):
                wrong.append(f"{path.relative_to(ROOT)}: {name}")
    assert total > 4000, "the pattern for functions no longer finds them"
    assert not wrong, "\n".join(sorted(wrong))


def programs():
    """For each folder with a main.c the files of its program: those of the folder and, for every
    header that one of them includes, the header, the file that it declares and the files beside
    it that have no header of their own and include it.
    """
    every = sources()
    used = {path: {SRC / name for name in includes(path)} for path in every}
    parts = {path: {other for other in every if other.parent == path.parent
                    and other.suffix == ".c" and path in used[other]
                    and (other.stem == path.stem or other.with_suffix(".h") not in used)}
             for path in every if path.suffix == ".h"}
    for main in sorted(SRC.glob("*/main.c")):
        inside, todo = set(), [path for path in every if main.parent in path.parents]
        while todo:
            if (path := todo.pop()) in used and path not in inside:
                inside.add(path)
                todo += used[path] | parts.get(path, set())
        yield main.parent.name, inside


def test_tags_are_unique_in_a_program():
    wrong = set()
    for program, files in programs():
        found = collections.defaultdict(list)
        for path in sorted(files):
            for tag in tags(path):
                found[tag].append(str(path.relative_to(SRC)))
        assert len(files) > 10, program
        wrong |= {f"{tag}: {' '.join(paths)}" for tag, paths in found.items() if len(paths) > 1}
    assert not wrong, "\n".join(sorted(wrong))


def test_every_file_begins_with_its_purpose():
    """A comment of a few words before anything else but the licence."""
    wrong = []
    for path in sources(".c"):
        text = re.sub(r"\A(/\* SPDX.*?\*/|// SPDX[^\n]*)\s*", "", path.read_text(), flags=re.S)
        comment = re.match(r"/\*(.*?)\*/", text, re.S)
        if not comment or len(re.findall(r"[A-Za-z]{2,}", comment[1])) < 3:
            wrong.append(str(path.relative_to(ROOT)))
    assert not wrong, "\n".join(wrong)


def test_sources_have_the_one_format():
    if not shutil.which(FORMAT):
        pytest.skip(f"{FORMAT} is not installed")
    files = subprocess.run(["git", "ls-files", "--", "*.[ch]"], cwd=ROOT, capture_output=True,
                           text=True, check=True).stdout.split()
    done = subprocess.run([FORMAT, "--dry-run", "-Werror", *files], cwd=ROOT,
                          capture_output=True, text=True)
    assert done.returncode == 0, "\n".join(
        sorted({line.split(":")[0] for line in done.stderr.splitlines() if ": error:" in line}))
