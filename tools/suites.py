# SPDX-License-Identifier: Apache-2.0
"""The suites of ./check: what each needs, and the processes that it runs."""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import typing
import xml.etree.ElementTree as ET

import builds
import commands

ROOT = builds.ROOT
RESULTS = ROOT / "check-results"
JOBS = os.cpu_count() or 2
WORKERS = 2 * JOBS  # test processes of a suite that mostly waits
PYTHON = "/usr/bin/python3"
STUCK_SEC = 900  # a test that hangs fails then, and the others go on
UNIT_STUCK_FACTOR = 7  # the same for unit tests, whose limits assume an idle machine

SANITIZER_SPEED = ["-Dbuildtype=debug", "-Doptimization=1"]  # -O2 takes 50 % longer to compile

BUILDS = {  # in the order in which they are built
    "build-asan": ["-Dwerror=true", "-Dtests=enabled", "-Db_sanitize=address,undefined",
                   *SANITIZER_SPEED, "-Dfaults=true"],
    "build": ["-Dwerror=true", "-Dtests=enabled"],
    "build-tsan": ["-Dwerror=true", "-Dtests=enabled", "-Db_sanitize=thread",
                   *SANITIZER_SPEED],
    "build-fuzz": ["-Dwerror=true", "-Dtests=enabled", "-Db_sanitize=address,undefined",
                   "-Db_lundef=false", *SANITIZER_SPEED, "-Dfuzz=true"],
}


@dataclasses.dataclass
class Task:
    """One process or one loop of them; its files in check-results are named after it."""

    name: str  # SUITE or SUITE-PART
    builds: dict  # build folder -> function(folder) that lists the ninja targets needed
    run: typing.Callable  # run(task, log): whether all went well
    is_bare: bool = False  # builds in roots of its own, which is work for all processors
    name_of: typing.Callable = lambda case: case.name  # the NAME in ./check SUITE NAME
    is_repeated: bool = True  # may fail by chance
    folder: pathlib.Path = RESULTS

    @property
    def suite(self):
        return self.name.split("-")[0]

    def file(self, suffix):
        return self.folder / f"{self.name}.{suffix}"


# ---- builds ----

def introspect(folder, what):
    return json.loads(commands.run(["meson", "introspect", folder, f"--{what}"],
                                   "meson introspect"))


def programs(folder):
    """All but unit tests and benches."""
    return ["all", "test-programs"]


def programs_and_benches(folder):
    return [*programs(folder), "benches"]


def files_of(folder, tests):
    """Unit tests and what they start or load."""
    files = {target["id"]: target["filename"] for target in introspect(folder, "targets")}
    return sorted({os.path.relpath(file, folder) for test in tests
                   for id in test["depends"] for file in files[id]})


def tests_of(suite):
    """The unit tests of one of meson's suites: "threads" runs under the thread sanitizer,
    too."""
    def need(folder):
        return files_of(folder, [test for test in introspect(folder, "tests")
                                 if suite in " ".join(test["suite"])])
    return need


def fuzzers(folder):
    return [f"tests/fuzz/{name}" for name in fuzz_names()]


def named_tests(folder, names):
    """The unit tests that are named, or whose folder is."""
    there = {test["name"]: test for test in introspect(folder, "tests")}
    found = {name: [test for test in there.values()
                    if test["name"] == name or test["name"].startswith(f"{name}/")]
             for name in names}
    check_names("unit", [name for name in names if not found[name]], ["layers", *sorted(there)])
    return [test for tests in found.values() for test in tests]


def targets_of(names):
    return lambda folder: files_of(folder, named_tests(folder, names))


def check_names(suite, unknown, there):
    if unknown:
        raise commands.Failed(f"suite {suite} has no '{unknown[0]}'", "",
                              f"it has {', '.join(there)}")


# ---- processes ----

def run_logged(command, log, env=None):
    """The exit status; what it says goes to the log (None: to our own output)."""
    process = commands.start(command, stdin=subprocess.DEVNULL, stdout=log,
                             stderr=log and subprocess.STDOUT, cwd=ROOT,
                             env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})})
    return commands.finish(process)[1]


ON_POSTGRES = [PYTHON, "-B", "tests/lib/postgres.py"]  # and what is to run beside a server


def meson_tests(name, folder, needs, suite, names=(), prefix=(), part=""):
    """The unit tests of a build folder: of a suite, or those that are named."""
    def run(task, log):
        chosen = [test["name"] for test in named_tests(ROOT / folder, names)]
        status = run_logged([*prefix, "meson", "test", "-C", folder, "--no-rebuild",
                             "--print-errorlogs", "--logbase", task.name,
                             f"--num-processes={JOBS}", f"--timeout-multiplier={UNIT_STUCK_FACTOR}",
                             "--suite", suite, *chosen], log)
        shutil.copy(ROOT / folder / "meson-logs" / f"{task.name}.junit.xml", task.file("xml"))
        return status == 0
    return Task(name, {folder: needs}, run,
                name_of=lambda case: part + case.file)


def python_tests(name, paths, needs, workers=0, dist="loadfile", prefix=(), marks=(), part="",
                 **more):
    """Python tests, spread over so many processes; 0: none besides."""
    more = {"name_of": lambda case: f"{part}{case.file}::{case.name}", **more}
    present = [path for path in paths if (ROOT / path.split("::")[0]).exists()]
    spread = ["-n", workers, "--dist", dist] if workers else []

    def run(task, log):
        if not present:
            return True
        return run_logged([*prefix, PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs",
                           f"--timeout={STUCK_SEC}", f"--junitxml={task.file('xml')}",
                           *spread, *marks, *present], log,
                          {"PYTHONDONTWRITEBYTECODE": "1"}) in (0, 5)
    return Task(name, needs, run, **more)


def python_paths(suite, names):
    """A name is a file's, a test's, or FILE::TEST."""
    folder = ROOT / "tests" / suite
    files = sorted(path.stem for path in folder.glob("test_*.py"))

    def find(name):
        stem, _, test = name.removesuffix(".py").partition("::")
        if stem in files:
            return f"tests/{suite}/{stem}.py" + (f"::{test}" if test else "")
        holders = [file for file in files
                   if re.search(rf"^def {re.escape(stem.split('[')[0])}\(",
                                (folder / f"{file}.py").read_text(), re.M)]
        check_names(suite, [] if holders else [name], files)
        return f"tests/{suite}/{holders[0]}.py::{name}"
    return [find(name) for name in names] or [f"tests/{suite}"]


def python_suite(suite, needs, dist="loadfile", workers=WORKERS):
    """What makes the tasks of tests/SUITE."""
    def make(names):
        return [python_tests(suite, python_paths(suite, names), needs,
                             0 if names else workers, dist)]
    return make


# ---- suites ----

LAYERS = python_tests("unit-layers", ["tests/layers"], {}, name_of=lambda case: "layers",
                      is_repeated=False)


def split_part(names, parts):
    """["tsan:http/client"] is ("tsan", ["http/client"]); the names are of one part, or of none."""
    part = next((part for part in parts if names
                 and all(name.startswith(f"{part}:") for name in names)), "")
    return part, [name.removeprefix(f"{part}:") for name in names]


def unit_part(part, names):
    """Unit tests of a build: all of them, or those that are named."""
    folder, suite = UNIT_PARTS[part]
    return meson_tests(f"unit-{part}", folder, targets_of(names) if names else tests_of(suite),
                       suite, names, part="" if part == "asan" else f"{part}:")


UNIT_PARTS = {"asan": ("build-asan", "unit"), "tsan": ("build-tsan", "threads")}


def unit(names):
    if not names:
        return [LAYERS, *(unit_part(part, []) for part in UNIT_PARTS)]
    part, names = split_part(names, UNIT_PARTS)
    tests = [name for name in names if name != "layers"]
    return ([LAYERS] if "layers" in names else []) + (
        [unit_part(part or "asan", tests)] if tests else [])


def fuzz_names():
    lines = (ROOT / "tests" / "fuzz" / "TARGETS").read_text().splitlines()
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def fuzz(names):
    check_names("fuzz", [name for name in names if name not in fuzz_names()], fuzz_names())

    def run(task, log):
        return run_logged([PYTHON, "tools/fuzz.py", "--total",
                           os.environ.get("ALIQUOT_FUZZ_SECONDS", "66"), "--junit",
                           task.file("xml"), *names], log) == 0
    return [Task("fuzz", {"build-fuzz": lambda folder: [f"tests/fuzz/{n}" for n in names]
                          or fuzzers(folder)}, run, is_repeated=False)]


def run_bench(path, log):
    """Once and small: why it failed, or ""; its last line must be a JSON object."""
    done = subprocess.run([path, "--smoke"], capture_output=True, text=True, cwd=ROOT)
    print(f"{path.name}: {done.stdout}{done.stderr}", file=log, flush=True)
    lines = done.stdout.strip().splitlines()
    try:
        is_good = isinstance(json.loads(lines[-1]), dict) and done.returncode == 0
    except (IndexError, ValueError):
        is_good = False
    return "" if is_good else done.stdout[-2000:] + done.stderr[-2000:] or "it said nothing"


def bench(names):
    there = sorted(path.name for path in (ROOT / "bench").iterdir()
                   if os.access(path, os.X_OK) and path.is_file())
    check_names("bench", [name for name in names if name not in there], there)

    def run(task, log):
        root = ET.Element("testsuite", name="bench")
        for name in names or there:
            case = ET.SubElement(root, "testcase", name=name)
            if why := run_bench(ROOT / "bench" / name, log):
                ET.SubElement(case, "failure").text = why
        ET.ElementTree(root).write(task.file("xml"))
        return root.find(".//failure") is None
    return [Task("bench", {"build": programs_and_benches}, run)]


def fresh(names):
    """In bare roots, which build for themselves; with the name 'all' all that is to be tried."""
    if "all" in names:
        os.environ["ALIQUOT_FRESH_ALL"] = "1"
    names = [name for name in names if name != "all"]
    return [python_tests("fresh", python_paths("fresh", names), {}, is_bare=True)]


def packages(names):
    """In bare roots, too; the tarball's gpu step runs our build's simulated driver."""
    return [python_tests("packages", python_paths("packages", names), {"build": programs},
                         is_bare=True)]


def postgres_part(part, names):
    """Tests of another suite, beside a server."""
    name = f"postgres-{part}"
    if part == "unit":
        return meson_tests(name, "build-asan",
                           targets_of(names) if names else tests_of("database"), "database",
                           names, prefix=ON_POSTGRES, part="unit:")
    paths = (python_paths(part, names) if names or part not in ON_BOTH_ENGINES
             else [f"tests/{part}/{file}" for file in ON_BOTH_ENGINES[part]])
    marks = ["-m", "engines and not file_database"] if part == "system" and not names else []
    return python_tests(name, paths, BOTH, 0 if names else WORKERS,
                        "load" if part == "fault" else "loadfile", prefix=ON_POSTGRES,
                        marks=marks, part=f"{part}:")


ON_BOTH_ENGINES = {"fault": ["test_fault.py", "test_database_fault.py",
                             "test_retention_fault.py", "test_repeat_fault.py"]}


def postgres(names):
    """What is about the store, on the other engine; and what is about that engine."""
    parts = ["unit", "api", "system", "fault"]
    part, names = split_part(names, parts)
    if part:
        return [postgres_part(part, names)]
    own = python_tests("postgres", python_paths("postgres", names), BOTH, 0 if names else JOBS)
    return [own] if names else [*(postgres_part(part, []) for part in parts), own]


def gate_tests(suite, needs, mark="gate"):
    """The tests of a suite that are marked as part of the gate."""
    return python_tests(f"{suite}-gate", [f"tests/{suite}"], needs, WORKERS,
                        "load" if suite == "fault" else "loadfile", marks=["-m", mark])


def gate(names):
    """What decides whether a change lands: with memory sanitizers, each feature's main path."""
    check_names("gate", names, ["no parts"])
    return [LAYERS, unit_part("asan", []), gate_tests("api", SANITIZED, "not exhaustive"),
            *(gate_tests(suite, needs) for suite, needs in GATE_SUITES.items())]


BOTH = {"build-asan": programs, "build": programs}
SANITIZED = {"build-asan": programs}
GATE_SUITES = {"system": BOTH, "security": BOTH, "fault": SANITIZED, "postgres": SANITIZED,
               "web": SANITIZED}
SUITES = {"unit": unit, "api": python_suite("api", SANITIZED), "system": python_suite("system", BOTH),
          "fault": python_suite("fault", SANITIZED, "load"),
          "postgres": postgres,
          "ha": python_suite("ha", SANITIZED, workers=0),  # each test has a database and managers
          "security": python_suite("security", BOTH),
          "compat": python_suite("compat", BOTH),
          "web": python_suite("web", SANITIZED),
          "cluster": python_suite("cluster", SANITIZED),
          "kube": python_suite("kube", SANITIZED, workers=0),  # all on one Kubernetes
          "fuzz": fuzz, "bench": bench,
          "fresh": fresh, "packages": packages}
NODE = [] if shutil.which("npm") else ["node"]  # it often is not Debian's
GROUPS = {"system": ["containers", "system", *NODE], "fault": ["containers", "system"],
          "postgres": ["containers", "system", "postgres"],
          "ha": ["containers", "system", "postgres", "ha"],
          "security": ["containers", "system"],
          "gate": ["containers", "system", "postgres", "demo"], "fuzz": ["fuzz"],
          "bench": ["containers", "bench", "postgres", *NODE],
          "compat": ["containers", "demo", *NODE],
          "web": ["containers", "system", *NODE],
          "cluster": ["containers", "system", "cluster"],
          "kube": ["containers", "system", "kube", *NODE]}  # of packages.txt, besides build and test
