# SPDX-License-Identifier: Apache-2.0
"""The suites of ./check: what each needs, and the processes that it runs."""

import dataclasses
import json
import os
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

BUILDS = {  # in the order in which they are built
    "build-asan": ["-Dwerror=true", "-Dtests=enabled", "-Db_sanitize=address,undefined",
                   "-Dbuildtype=debugoptimized", "-Dfaults=true"],
    "build": ["-Dwerror=true", "-Dtests=enabled"],
    "build-tsan": ["-Dwerror=true", "-Dtests=enabled", "-Db_sanitize=thread",
                   "-Dbuildtype=debugoptimized"],
    "build-fuzz": ["-Dwerror=true", "-Dtests=enabled", "-Db_sanitize=address,undefined",
                   "-Db_lundef=false", "-Dbuildtype=debugoptimized", "-Dfuzz=true"],
}


@dataclasses.dataclass
class Task:
    """One process or one loop of them; its files in check-results are named after it."""

    name: str  # SUITE or SUITE-PART
    builds: dict  # build folder -> function(folder) that lists the ninja targets needed; None: all
    run: typing.Callable  # run(log): whether all went well
    is_bare: bool = False  # builds in roots of its own, which is work for all processors

    @property
    def suite(self):
        return self.name.split("-")[0]

    def file(self, suffix):
        return RESULTS / f"{self.name}.{suffix}"


# ---- builds ----

def introspect(folder, what):
    return json.loads(commands.run(["meson", "introspect", folder, f"--{what}"],
                                   "meson introspect"))


def programs(folder):
    """All but the unit tests and what only they load."""
    tests = {test["cmd"][0] for test in introspect(folder, "tests")}
    files = [file for target in introspect(folder, "targets") if target["build_by_default"]
             for file in target["filename"]]
    return [os.path.relpath(file, folder) for file in files
            if file not in tests and f"{folder}/tests/unit/" not in file]


def tests_of(suite):
    """The unit tests of one of meson's suites: "threads" runs under the thread sanitizer, too,
    "memory" without any."""
    def need(folder):
        return [os.path.relpath(test["cmd"][0], folder) for test in introspect(folder, "tests")
                if suite in " ".join(test["suite"])]
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
    """The named tests and the programs that they start."""
    def targets(folder):
        files = {target["id"]: target["filename"] for target in introspect(folder, "targets")}
        return sorted({os.path.relpath(file, folder) for test in named_tests(folder, names)
                       for id in test["depends"] for file in files[id]})
    return targets


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


def meson_tests(name, folder, needs, suite, names=(), prefix=()):
    """The unit tests of a build folder: of a suite, or those that are named."""
    def run(log):
        chosen = [test["name"] for test in named_tests(ROOT / folder, names)]
        status = run_logged([*prefix, "meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs",
                             "--logbase", name, f"--num-processes={JOBS}", "--suite", suite,
                             *chosen], log)
        shutil.copy(ROOT / folder / "meson-logs" / f"{name}.junit.xml", RESULTS / f"{name}.xml")
        return status == 0
    return Task(name, {folder: needs}, run)


def python_tests(name, paths, needs, workers=0, dist="loadfile", prefix=(), marks=(), **more):
    """Python tests, spread over so many processes; 0: none besides."""
    present = [path for path in paths if (ROOT / path.split("::")[0]).exists()]
    spread = ["-n", workers, "--dist", dist] if workers else []

    def run(log):
        if not present:
            return True
        return run_logged([*prefix, PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs",
                           f"--timeout={STUCK_SEC}", f"--junitxml={RESULTS / name}.xml",
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


def python_suite(suite, needs, dist="loadfile"):
    """What makes the tasks of tests/SUITE."""
    def make(names):
        return [python_tests(suite, python_paths(suite, names), needs,
                             0 if names else WORKERS, dist)]
    return make


# ---- suites ----

LAYERS = python_tests("unit-layers", ["tests/layers"], {})


def unit(names):
    if not names:
        return [LAYERS, meson_tests("unit-asan", "build-asan", None, "unit"),
                meson_tests("unit-tsan", "build-tsan", tests_of("threads"), "threads"),
                meson_tests("unit-memory", "build", tests_of("memory"), "memory")]
    tests = [name for name in names if name != "layers"]
    return ([LAYERS] if "layers" in names else []) + (
        [meson_tests("unit-asan", "build-asan", targets_of(tests), "unit", tests)]
        if tests else [])


def fuzz_names():
    lines = (ROOT / "tests" / "fuzz" / "TARGETS").read_text().splitlines()
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def fuzz(names):
    check_names("fuzz", [name for name in names if name not in fuzz_names()], fuzz_names())

    def run(log):
        return run_logged([PYTHON, "tools/fuzz.py", "--total",
                           os.environ.get("ALIQUOT_FUZZ_SECONDS", "66"), "--junit",
                           RESULTS / "fuzz.xml", *names], log) == 0
    return [Task("fuzz", {"build-fuzz": lambda folder: [f"tests/fuzz/{n}" for n in names]
                          or fuzzers(folder)}, run)]


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

    def run(log):
        root = ET.Element("testsuite", name="bench")
        for name in names or there:
            case = ET.SubElement(root, "testcase", name=name)
            if why := run_bench(ROOT / "bench" / name, log):
                ET.SubElement(case, "failure").text = why
        ET.ElementTree(root).write(RESULTS / "bench.xml")
        return root.find(".//failure") is None
    return [Task("bench", {"build": None}, run)]


def fresh(names):
    """In bare roots, which build for themselves; with the name 'all' all that is to be tried."""
    if "all" in names:
        os.environ["ALIQUOT_FRESH_ALL"] = "1"
    names = [name for name in names if name != "all"]
    return [python_tests("fresh", python_paths("fresh", names), {}, is_bare=True)]


def packages(names):
    """In bare roots, too; the tarball's gpu step runs our build's simulated driver."""
    return [python_tests("packages", python_paths("packages", names), {"build": None},
                         is_bare=True)]


def postgres(names):
    """What is about the store, on the other engine; and what is about that engine."""
    own = python_paths("postgres", names)
    if names:
        return [python_tests("postgres", own, BOTH)]
    marks = ["-m", "engines and not file_database"]
    return [meson_tests("postgres-unit", "build-asan", None, "database", prefix=ON_POSTGRES),
            python_tests("postgres-api", ["tests/api"], BOTH, WORKERS, prefix=ON_POSTGRES),
            python_tests("postgres-system", ["tests/system"], BOTH, WORKERS,
                         prefix=ON_POSTGRES, marks=marks),
            python_tests("postgres-fault", ["tests/fault/test_fault.py",
                                            "tests/fault/test_database_fault.py",
                                            "tests/fault/test_retention_fault.py",
                                            "tests/fault/test_repeat_fault.py"], BOTH, WORKERS,
                         "load", prefix=ON_POSTGRES),
            python_tests("postgres", own, BOTH, JOBS)]


def quick(names):
    """What to run between two edits: with sanitizers, but those of threads; and the demo's core."""
    check_names("quick", names, ["no parts"])
    return [LAYERS, *api([]), meson_tests("unit-asan", "build-asan", None, "unit"),
            python_tests("system-demo", ["tests/system/test_demo.py"], {"build": None})]


BOTH = {"build-asan": programs, "build": None}
api = python_suite("api", {"build-asan": programs})
SUITES = {"unit": unit, "api": api, "system": python_suite("system", BOTH),
          "fault": python_suite("fault", {"build-asan": programs}, "load"),
          "postgres": postgres,
          "security": python_suite("security", BOTH),
          "compat": python_suite("compat", BOTH), "fuzz": fuzz, "bench": bench,
          "fresh": fresh, "packages": packages}
NODE = [] if shutil.which("npm") else ["node"]  # it often is not Debian's
GROUPS = {"system": ["containers", "system"], "fault": ["containers", "system"],
          "postgres": ["containers", "system", "postgres"],
          "security": ["containers", "system"],
          "quick": ["containers", "system"], "fuzz": ["fuzz"],
          "bench": ["containers", "bench", *NODE],
          "compat": ["containers", "demo", *NODE]}  # of packages.txt, besides build and test
