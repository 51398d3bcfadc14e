# SPDX-License-Identifier: Apache-2.0
"""Run the libFuzzer targets of tests/fuzz/TARGETS.

--total N shares N seconds among the targets (a minimum of 2 each); --each N
gives every target N seconds; names select targets. The kept corpus is read,
never written: what is found goes to build-fuzz/corpus/TARGET, a crashing
input to build-fuzz/TARGET-crash-*.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import commands

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-fuzz"


def targets():
    lines = (ROOT / "tests" / "fuzz" / "TARGETS").read_text().splitlines()
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def fuzz(name, seconds):
    """Returns (name, exit code, executions, tail of the log)."""
    found = BUILD / "corpus" / name
    found.mkdir(parents=True, exist_ok=True)
    kept = ROOT / "tests" / "fuzz" / "corpus" / name
    command = [BUILD / "tests" / "fuzz" / name, f"-max_total_time={seconds}", "-timeout=10",
               "-rss_limit_mb=3000", "-print_final_stats=1", f"-artifact_prefix={BUILD}/{name}-",
               found, *([kept] if kept.is_dir() else [])]
    env = dict(os.environ, ASAN_OPTIONS="allocator_may_return_null=1:detect_leaks=1",
               UBSAN_OPTIONS="print_stacktrace=1")
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=env)
    runs = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    return name, done.returncode, int(runs.group(1)) if runs else 0, done.stderr[-6000:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--total", type=int, default=0)
    parser.add_argument("--each", type=int, default=0)
    parser.add_argument("--junit")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    names = args.names or targets()
    missing = [name for name in names if not (BUILD / "tests" / "fuzz" / name).exists()]
    if missing:
        raise commands.Failed(f"there is no {missing[0]} in {BUILD}", "",
                              "'./check fuzz' builds what tests/fuzz/TARGETS lists")
    jobs = os.cpu_count() or 2
    seconds = args.each or max(2, args.total * jobs // len(names))
    root, bad = ET.Element("testsuite", name="fuzz"), 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for name, code, runs, log in pool.map(lambda n: fuzz(n, seconds), names):
            case = ET.SubElement(root, "testcase", name=name)
            print(f"{name}: {runs} inputs in {seconds} s, {'ok' if code == 0 else 'FAILED'}",
                  flush=True)
            if code or not runs:
                bad += 1
                ET.SubElement(case, "failure").text = "".join(c for c in log if c.isprintable() or c == "\n")
                print(log, flush=True)
    if args.junit:
        ET.ElementTree(root).write(args.junit)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    commands.main("fuzz", main)
