# SPDX-License-Identifier: Apache-2.0
"""The rules about the sources that a compiler does not check."""

import re
import subprocess

from c_source import ROOT, SRC, includes, sources

# Subdirectories that form a circle with others, as the "*" of the table says: none may be added.
CIRCLES = 6


def read_table(heading):
    """Rows of the table under a heading of docs/architecture.md: what each may include."""
    text = (ROOT / "docs" / "architecture.md").read_text().split(f"\n## {heading}\n")[1]
    table = {}
    for line in text.split("\n## ")[0].splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if len(cells) == 3 and not cells[0].startswith(("directory", "---")):
            assert cells[0] not in table, f"two rows for {cells[0]}"
            table[cells[0]] = set(cells[2].split()) - {"libc", "-"}
    return table


def layer_table():
    return read_table("Layers")


def test_every_directory_has_a_row():
    folders = {path.name for path in SRC.iterdir() if path.is_dir()}
    assert folders == set(layer_table())


def test_rows_name_only_lower_rows():
    """No cycles: a row may only name directories whose rows do not lead back to it."""
    table = layer_table()

    def reachable(folder, seen):
        for other in table[folder]:
            if other not in seen:
                seen.add(other)
                reachable(other, seen)
        return seen

    for folder in table:
        assert folder not in reachable(folder, set()), folder


def test_includes_follow_the_table():
    table = layer_table()
    wrong = []
    for path in sources():
        own = path.relative_to(SRC).parts[0]
        for name in includes(path):
            other = name.split("/")[0]
            if "/" not in name or other in ("aliquot", own):
                continue
            if other not in table[own]:
                wrong.append(f"{path.relative_to(ROOT)} includes {name}")
    assert not wrong, "\n".join(wrong)


# ---- subdirectories: those below the directories of the first table ----


def subdirs():
    """Every directory at the second level and below that holds sources, as "agent/net"."""
    return {str(folder.relative_to(SRC)) for folder in SRC.glob("*/**")
            if folder.parent != SRC and any(path.suffix in (".c", ".h") for path in folder.iterdir())}


def subdir_table():
    return {subdir: {name.rstrip("*") for name in names}
            for subdir, names in read_table("Subdirectories").items()}


def step(path, name):
    """Where an include leads from one subdir to another: the directory that has both, and the subdirs.

    Files directly in that directory are in its subdir "top". None within a subdir, and between
    directories of the first table.
    """
    own, other = path.relative_to(SRC).parts[:-1], tuple(name.split("/")[:-1])
    level = next((i for i, (a, b) in enumerate(zip(own, other)) if a != b),
                 min(len(own), len(other)))
    if level == 0 or own == other:
        return None
    return "/".join(own[:level]), *(there[level] if len(there) > level else "top"
                                    for there in (own, other))


def steps():
    """All such steps of the sources: (folder, from, to) -> "FILE includes FILE" of each."""
    found = {}
    for path in sources():
        for name in includes(path):
            if "/" in name and (key := step(path, name)):
                found.setdefault(key, []).append(f"{path.relative_to(ROOT)} includes {name}")
    return found


def circles():
    """Where includes lead through others back to a subdirectory: (folder, subdir) -> those."""
    leads = {}
    for folder, own, other in steps():
        leads.setdefault((folder, own), set()).add(other)
    found = {}
    for (folder, own), direct in leads.items():
        reached = {}
        for first in direct:
            seen, todo = set(), [first]
            while todo:
                if (subdir := todo.pop()) not in seen:
                    seen.add(subdir)
                    todo += leads.get((folder, subdir), ())
            reached[first] = seen
        found[folder, own] = {first for first in direct if own in reached[first]}
    return found


def test_every_subdirectory_has_a_row():
    assert subdirs() == set(read_table("Subdirectories"))


def test_subdirectories_name_their_siblings():
    table = subdir_table()
    for subdir, names in table.items():
        folder = subdir.rpartition("/")[0]
        beside = {other.rpartition("/")[2] for other in table if other.rpartition("/")[0] == folder}
        assert names <= (beside | {"top"}) - {subdir.rpartition("/")[2]}, subdir


def test_includes_follow_the_subdirectories():
    table = subdir_table()
    wrong = [line for (folder, own, other), lines in steps().items()
             if own != "top" and other not in table[f"{folder}/{own}"] for line in lines]
    assert not wrong, "\n".join(wrong)


def test_circles_of_subdirectories_are_the_ones_of_the_table():
    """A "*" is where an include leads to a subdir that leads back."""
    found = circles()
    starred = {subdir: {name[:-1] for name in names if name.endswith("*")}
               for subdir, names in read_table("Subdirectories").items()}
    for subdir, names in starred.items():
        folder, _, own = subdir.rpartition("/")
        assert names == found.get((folder, own), set()), subdir
    assert sum(len(names) for names in starred.values()) <= CIRCLES


# Directories of src/manager that are no features.
NO_FEATURES = {"call", "core", "rules", "backup", "forward"}


def feature_of(name):
    """The feature of the manager whose file this is, as "manager/folder/x.h"; else None."""
    parts = name.split("/")
    return parts[1] if parts[0] == "manager" and len(parts) > 2 and parts[1] not in NO_FEATURES \
        else None


def test_features_include_of_another_its_one_header():
    wrong = []
    for path in sources(below=(SRC / "manager",)):
        own = path.relative_to(SRC).parts[1]
        for name in includes(path):
            other = feature_of(name)
            if other in (None, own) or path.parent == SRC / "manager":
                continue
            if own in NO_FEATURES or name != f"manager/{other}/{other}.h":
                wrong.append(f"{path.relative_to(ROOT)} includes {name}")
    assert not wrong, "\n".join(wrong)


def test_every_feature_is_registered():
    listed = (SRC / "manager" / "feature_list.c").read_text()
    features = {folder.name for folder in (SRC / "manager").iterdir()
                if folder.is_dir()} - NO_FEATURES
    assert features
    for feature in features:
        assert f"&{feature}_feature" in listed, feature


def untrusted_functions():
    """Names of the functions that a header marks AQ_UNTRUSTED."""
    names = set()
    for path in sources(".h"):
        text = re.sub(r"/\*.*?\*/|^AQ_DEFINE_CLEANUP.*?$|^#.*?$", "", path.read_text(),
                      flags=re.S | re.M)
        for declaration in re.findall(r"[^;{}]*\bAQ_UNTRUSTED\b[^;{}]*;", text):
            found = re.search(r"(\w+)\s*\(", declaration)
            if found and not declaration.lstrip().startswith("#define"):
                names.add(found.group(1))
    return names


def fuzz_table():
    table = {}
    for line in (ROOT / "tests" / "fuzz" / "TARGETS").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            target, *functions = line.split()
            table[target] = set(functions)
    return table


def test_strangers_bytes_are_fuzzed():
    covered = set().union(*fuzz_table().values())
    assert not untrusted_functions() - covered
    assert not covered - untrusted_functions(), "in TARGETS but not marked AQ_UNTRUSTED"


def test_fuzz_targets_exist_and_call_what_they_claim():
    for target, functions in fuzz_table().items():
        found = list((ROOT / "tests" / "fuzz").rglob(f"{target}.c"))
        assert len(found) == 1, target
        text = found[0].read_text()
        assert any(function in text for function in functions), target


def test_fault_points_are_unique_and_enough():
    names = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                           check=True).stdout.split()
    assert len(names) == len(set(names))
    assert len(names) >= 60


def test_no_unfinished_marks():
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    found = [str(path.relative_to(ROOT)) for path in sources() if marks.search(path.read_text())]
    assert not found


def test_only_one_file_includes_http_parser():
    found = [path.name for path in sources() if "<http_parser.h>" in path.read_text()]
    assert len(found) == 1


def test_the_store_has_no_words_of_the_api():
    """Which problem an error is for a client is said by the manager: its slug, and who may what."""
    slugs = re.findall(r'^    \{ "([a-z0-9-]+)", [0-9]{3},',
                       (SRC / "http" / "problem.c").read_text(), re.M)
    assert len(slugs) > 40
    word = re.compile(r'\b(?:aq_fail_kind|aq_fail_as)\(|\berr(?:->|\.)kind\b|"(?:%s)"|(?<![\w-])(?:%s)(?![\w-])'
                      % ("|".join(slugs), "|".join(slug for slug in slugs if "-" in slug)))
    found = [f"{path.relative_to(ROOT)}: {match.group(0)}" for path in sources()
             if path.relative_to(SRC).parts[0] == "store"
             for match in [word.search(path.read_text())] if match]
    assert not found, "\n".join(found)
