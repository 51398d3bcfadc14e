"""The rules about the sources that a compiler does not check."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SRC = ROOT / "src"


def layer_table():
    """The rows of the table under "## Layers" in docs/architecture.md."""
    text = (ROOT / "docs" / "architecture.md").read_text().split("## Layers")[1].split("\n## ")[0]
    table = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[0] not in ("folder", "---"):
            table[cells[0]] = set(cells[2].split()) - {"libc"}
    return table


def sources():
    return [path for path in SRC.rglob("*") if path.suffix in (".c", ".h", ".cc")]


def test_every_folder_has_a_row():
    folders = {path.name for path in SRC.iterdir() if path.is_dir()}
    assert folders == set(layer_table())


def test_rows_name_only_lower_rows():
    """No cycles: a row may only name folders whose rows do not lead back to it."""
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
        for name in re.findall(r'#\s*include\s+"([^"]+)"', path.read_text()):
            other = name.split("/")[0]
            if "/" not in name or other in ("aliquot", own):
                continue
            if other not in table[own]:
                wrong.append(f"{path.relative_to(ROOT)} includes {name}")
    assert not wrong, "\n".join(wrong)


def untrusted_functions():
    """Names of the functions that a header marks AQ_UNTRUSTED."""
    names = set()
    for path in SRC.rglob("*.h"):
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
