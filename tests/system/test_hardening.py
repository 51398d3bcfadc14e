# SPDX-License-Identifier: Apache-2.0
"""What the release build is protected by, read from each program and shared object of it."""

import functools
import json
import pathlib
import platform
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
# They run in images of any C library, and the library in the path of each launch of a GPU kernel.
PLAIN = {"libaliquot-gpu.so", "aliquot-gpu-probe"}
STATIC = {"aliquot-monitor", "aliquot-runner"}
ENDBR64 = b"\xf3\x0f\x1e\xfa"

if not (BUILD / "meson-info" / "intro-targets.json").exists():
    pytest.skip("there is no release build: ./check system builds it", allow_module_level=True)


def installed(kind):
    targets = json.loads((BUILD / "meson-info" / "intro-targets.json").read_text())
    return {pathlib.Path(file).name: pathlib.Path(file) for target in targets
            if target["type"] == kind and target["installed"] for file in target["filename"]}


PROGRAMS = installed("executable")
FILES = {**PROGRAMS, **installed("shared module"), **installed("shared library")}


@functools.cache
def read(*options):
    return subprocess.run(["readelf", "-W", *options], capture_output=True, text=True,
                          check=True).stdout


def symbols(name):
    return set(re.findall(r"\b(__\w+)(?:@\S+)?$", read("-s", FILES[name]), re.M))


@pytest.mark.parametrize("name", FILES)
def test_addresses_are_random_and_tables_read_only(name):
    dynamic, headers = read("-d", FILES[name]), read("-lh", FILES[name])
    assert "Type:" in headers and re.search(r"Type:\s+DYN ", headers)
    assert re.search(r"\(FLAGS\).*BIND_NOW", dynamic) and "GNU_RELRO" in headers
    assert re.search(r"GNU_STACK.* RW +0x", headers), "the stack is executable"
    assert "TEXTREL" not in dynamic
    assert not re.search(r"LOAD.* RWE ", headers)
    assert ("(FLAGS_1)" in dynamic and " PIE" in dynamic) == (name in PROGRAMS)
    assert ("INTERP" in headers) == (name in PROGRAMS and name not in STATIC)


@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - PLAIN))
def test_overflows_end_the_program(name):
    found = symbols(name)
    assert "__stack_chk_fail" in found
    assert [symbol for symbol in found if symbol.endswith("_chk")], "no call is fortified"


def test_what_runs_in_any_image_has_no_such_calls():
    for name in PLAIN:
        assert not [symbol for symbol in symbols(name) if re.search("_chk(_fail)?$", symbol)], name


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86 has ENDBR64")
@pytest.mark.parametrize("name", FILES)
def test_jumps_land_where_they_may(name):
    """Ours are marked; the file as a whole is if the start files of the C library are."""
    assert FILES[name].read_bytes().count(ENDBR64) > 5
    start = subprocess.run(["cc", "-print-file-name=crti.o"], capture_output=True, text=True,
                           check=True).stdout.strip()
    if "IBT" in read("-n", start) and name not in STATIC:
        assert "IBT, SHSTK" in read("-n", FILES[name])
