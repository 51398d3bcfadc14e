#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The calls of src/ that allocate and that no scenario of the oom tests reaches

    meson setup build-sites -Dtests=enabled -Doptimization=2 \\
        -Dc_args='-fno-inline -fno-optimize-sibling-calls -fno-ipa-sra -fno-ipa-cp-clone'
    tests/unit/oom/unreached.py build-sites [DIRECTORY...]

Each such call with its line, and the sums on standard error. No function may be inlined
or jumped to in that build: such a call leaves no return address of its own. What the
compiler made of one call counts once. Directories are those below src/; manager/core,
link, sched and store if none is named.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

NAMES = [p.stem.removeprefix("test_oom_")
         for p in sorted(pathlib.Path(__file__).parent.glob("test_oom_*.c"))]
ALLOCATES = re.compile(
    r"(malloc|calloc|realloc|strdup|strndup|arena_(alloc|array|strdup|strndup)|slot_name_intern"
    r"|json_(object|array|stringn?|integer|real|s?v?pack\w*|load\w+|dumps|copy|deep_copy"
    r"|object_(set|update)\w*|array_(append|insert)\w*))$")


def run(*args, **kwargs):
    return subprocess.run(args, check=True, text=True, stdout=subprocess.PIPE, **kwargs).stdout


def lines_of(binary, addresses, section=()):
    """Where each call is that returns to one of 'addresses'."""
    text = "".join(f"{a - 1:#x}\n" for a in addresses)
    out = run("addr2line", *section, "-e", binary, input=text)
    return [os.path.normpath(os.path.join(os.path.dirname(binary), line.split(" ")[0]))
            for line in out.splitlines()]


def calls_of(obj):
    """(symbol, return address in the object) of each call that allocates."""
    function = None
    for line in run("objdump", "-dr", "--no-show-raw-insn", "-j", ".text", obj).splitlines():
        if m := re.match(r"([0-9a-f]+) <([^>]+)>:", line):
            start, function = int(m[1], 16), m[2]
        elif ((m := re.search(r"([0-9a-f]+): R_X86_64_PLT32\s+([\w.]+)-0x4", line))
              and ALLOCATES.match(m[2])):
            address = int(m[1], 16) + 4
            yield function, address - start, address, m[2]


def all_calls(build, directories):
    """{(file, line, function, offset): what is called}"""
    calls = {}
    for directory, _, names in os.walk(os.path.join(build, "src")):
        for name in sorted(n for n in names if n.endswith(".c.o")):
            obj = os.path.join(directory, name)
            found = list(calls_of(obj)) if any(
                os.path.relpath(directory, build).startswith(f"src/{d.split('/')[0]}")
                for d in directories) else []
            lines = lines_of(obj, [a for _, _, a, _ in found], ["-j", ".text"]) if found else []
            for (function, offset, _, called), line in zip(found, lines):
                m = re.search(r"/src/((?:" + "|".join(directories) + r")/.*):(\d+)$", line)
                if m:
                    calls[m[1], int(m[2]), function, offset] = called
    return calls


def reached_by(binary, scratch):
    """{(function, offset)} of the calls that its scenarios reach."""
    path = os.path.join(scratch, "sites")
    env = dict(os.environ, AQ_OOM_SITES=path)
    subprocess.run([binary], check=True, stdout=subprocess.DEVNULL, env=env)
    with open(path, encoding="ascii") as file:
        addresses = sorted({int(line) for line in file})
    symbols = []
    for line in run("nm", "-n", "--defined-only", binary).splitlines():
        address, kind, name = line.split()
        if kind in "tT":
            symbols.append((int(address, 16), name))
    reached = collections.defaultdict(set)
    i = 0
    for address in addresses:
        while i + 1 < len(symbols) and symbols[i + 1][0] < address:
            i += 1
        if symbols[i][0] < address:
            reached[address] = (symbols[i][1], address - symbols[i][0])
    lines = lines_of(binary, addresses)
    return {(re.sub(r".*/src/", "", line.rsplit(":", 1)[0]), *reached[a])
            for a, line in zip(addresses, lines) if a in reached}


def main():
    build = os.path.abspath(sys.argv[1])
    directories = sys.argv[2:] or ["manager/core", "link", "sched", "store"]
    programs = [f"tests/oom_{name}" for name in NAMES]
    subprocess.run(["ninja", "-C", build, *programs, "plugins/shortest.so"], check=True, stdout=subprocess.DEVNULL)
    plugin = os.path.join(build, "plugins/shortest.so")
    os.environ.setdefault("ALIQUOT_SCHEDULER_PLUGIN", plugin)
    calls = all_calls(build, directories)
    reached = set()
    with tempfile.TemporaryDirectory() as scratch:
        for program in programs:
            reached |= reached_by(os.path.join(build, program), scratch)
    every = {(file, line, called) for (file, line, _, _), called in calls.items()}
    left = every - {(file, line, called) for (file, line, function, offset), called
                    in calls.items() if (file, function, offset) in reached}
    for file, line, called in sorted(left):
        print(f"src/{file}:{line} {called}")
    print(f"{len(every)} calls, {len(every) - len(left)} reached", file=sys.stderr)


if __name__ == "__main__":
    main()
