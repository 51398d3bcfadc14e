"""Run the suites of ./check and count.

Every suite leaves JUnit files in check-results/; the closing line counts the
test cases in them. A skipped case must match a line of tests/SKIPS
("PATTERN  reason", shell patterns on "suite: name"), else the run fails.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "check-results"
JOBS = os.cpu_count() or 2
PYTHON = "/usr/bin/python3"
STUCK_SEC = 900  # a test that hangs fails then, and the others go on

BUILDS = {
    "build": ["-Dwerror=true"],
    "build-asan": ["-Dwerror=true", "-Db_sanitize=address,undefined",
                   "-Dbuildtype=debugoptimized", "-Dfaults=true"],
    "build-tsan": ["-Dwerror=true", "-Db_sanitize=thread", "-Dbuildtype=debugoptimized"],
    "build-fuzz": ["-Dwerror=true", "-Db_sanitize=address,undefined", "-Db_lundef=false",
                   "-Dbuildtype=debugoptimized", "-Dfuzz=true"],
}


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def run(command, **kwargs):
    return subprocess.run([str(part) for part in command], cwd=ROOT, **kwargs)


def threaded_tests():
    """Ninja targets of the unit tests that run under the thread sanitizer."""
    listed = run(["meson", "introspect", "build-tsan", "--tests"], capture_output=True, text=True)
    return [os.path.relpath(test["cmd"][0], ROOT / "build-tsan")
            for test in json.loads(listed.stdout) if "threads" in " ".join(test["suite"])]


def fuzz_targets():
    """Ninja targets of the fuzzers: nothing else is needed of their tree."""
    lines = (ROOT / "tests" / "fuzz" / "TARGETS").read_text().splitlines()
    return [f"tests/fuzz/{line.split()[0]}" for line in lines
            if line.strip() and not line.startswith("#")]


def build(name, targets=None):
    """Set up and compile one build folder, or what targets() names; ends the run on failure."""
    env = dict(os.environ)
    if name == "build-fuzz":
        env.update(CC="clang", CXX="clang++")
    folder = ROOT / name
    started = time.monotonic()
    if not (folder / "build.ninja").exists():
        shutil.rmtree(folder, ignore_errors=True)
        done = run(["meson", "setup", name, *BUILDS[name]], env=env, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"meson setup {name} failed:\n{done.stdout[-4000:]}{done.stderr}")
    done = run(["ninja", "-C", name, f"-j{JOBS}", *(targets() if targets else [])],
               capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"building {name} failed:\n{done.stdout[-8000:]}")
    say(f"{name} built in {time.monotonic() - started:.0f} s")


def meson_tests(folder, junit, *arguments):
    """Run the unit tests of a build folder; print what failed."""
    done = run(["meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs",
                f"--num-processes={JOBS}", *arguments],
               capture_output=True, text=True)
    log = ROOT / folder / "meson-logs" / "testlog.junit.xml"
    shutil.copy(log, RESULTS / junit)
    if done.returncode:
        print(done.stdout[-12000:], flush=True)
    return done.returncode == 0


def pytest(suite, *paths):
    """Run Python tests; their own output is the log."""
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1",
               PYTHONPATH=str(ROOT / "tests" / "lib"))
    env.setdefault("ALIQUOT_BUILD", str(ROOT / "build-asan"))
    present = [path for path in paths if (ROOT / path).exists()]
    if not present:
        return True
    done = run([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs",
                f"--timeout={STUCK_SEC}",
                f"--junitxml={RESULTS / (suite + '-' + pathlib.Path(present[0]).name + '.xml')}",
                *present], env=env)
    return done.returncode in (0, 5)


def suite_unit():
    build("build-asan")
    build("build-tsan", threaded_tests)
    good = meson_tests("build-asan", "unit-asan.xml", "--suite", "unit")
    good &= meson_tests("build-tsan", "unit-tsan.xml", "--suite", "threads")
    return pytest("unit", "tests/layers") and good


def suite_api():
    build("build-asan")
    return pytest("api", "tests/api")


def suite_system():
    build("build")
    build("build-asan")
    return pytest("system", "tests/system")


def suite_fault():
    build("build-asan")
    return pytest("fault", "tests/fault")


def suite_compat():
    build("build")
    build("build-asan")
    return pytest("compat", "tests/compat")


def suite_fuzz():
    build("build-fuzz", fuzz_targets)
    return run([PYTHON, "tools/fuzz.py", "--total", os.environ.get("ALIQUOT_FUZZ_SECONDS", "66"),
                "--junit", RESULTS / "fuzz.xml"]).returncode == 0


def suite_bench():
    """Every bench runs once, small, and must end in a JSON object."""
    build("build")
    root = ET.Element("testsuite", name="bench")
    good = True
    for bench in sorted(path for path in (ROOT / "bench").iterdir()
                        if os.access(path, os.X_OK) and path.is_file()):
        case = ET.SubElement(root, "testcase", name=bench.name)
        done = run([bench, "--smoke"], capture_output=True, text=True)
        lines = done.stdout.strip().splitlines()
        try:
            figures = json.loads(lines[-1])
            say(f"bench/{bench.name} {json.dumps(figures)}")
        except (IndexError, ValueError):
            figures = None
        if done.returncode or not isinstance(figures, dict):
            good = False
            ET.SubElement(case, "failure").text = done.stdout[-2000:] + done.stderr[-2000:]
            say(f"bench/{bench.name} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    ET.ElementTree(root).write(RESULTS / "bench.xml")
    return good


SUITES = {"unit": suite_unit, "api": suite_api, "system": suite_system, "fault": suite_fault,
          "compat": suite_compat, "fuzz": suite_fuzz, "bench": suite_bench}


def allowed_skips():
    lines = (ROOT / "tests" / "SKIPS").read_text().splitlines()
    return [line.split(None, 1)[0] for line in lines if line.strip() and not line.startswith("#")]


def is_contained(case):
    """Does the case run real containers?"""
    return (".test_container" in "." + case.get("classname", "")
            or re.search(r"[\[-](crun|runc)\b", case.get("name", "")) is not None)


def count():
    """Count the cases of all JUnit files; returns passed, failed, skipped, unlisted skips
    and how many of the passed ones run real containers."""
    passed = failed = skipped = contained = 0
    unlisted, allowed = [], allowed_skips()
    for path in sorted(RESULTS.glob("*.xml")):
        suite = path.stem.split("-")[0]
        for case in ET.parse(path).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
                say(f"FAILED {suite}: {case.get('name')}")
            elif case.find("skipped") is not None:
                skipped += 1
                name = f"{suite}:{case.get('name')}".replace(" ", "_")
                if not any(fnmatch.fnmatch(name, pattern) for pattern in allowed):
                    unlisted.append(name)
            else:
                passed += 1
                contained += is_contained(case)
    return passed, failed, skipped, unlisted, contained


def main():
    parser = argparse.ArgumentParser(prog="./check", description=__doc__.splitlines()[0])
    parser.add_argument("suite", nargs="*", choices=[*SUITES, []], help="default: all")
    wanted = parser.parse_args().suite or list(SUITES)
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir()
    good = True
    for name in wanted:
        started = time.monotonic()
        say(f"suite {name}")
        if not SUITES[name]():
            good = False
            say(f"suite {name} FAILED")
        say(f"suite {name} took {time.monotonic() - started:.0f} s")
    passed, failed, skipped, unlisted, contained = count()
    for name in unlisted:
        say(f"skipped but not in tests/SKIPS: {name}")
    if not good and not failed:
        failed = 1
    print(f"{passed} passed, {failed + len(unlisted)} failed, {skipped} skipped"
          f" ({contained} of the passed with real containers)", flush=True)
    sys.exit(1 if failed or unlisted or not passed else 0)


if __name__ == "__main__":
    main()
