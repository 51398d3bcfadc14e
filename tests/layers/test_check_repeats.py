# SPDX-License-Identifier: Apache-2.0
"""What ./check makes of tests that fail, in a small checkout with tests of its own."""

import pathlib
import shutil
import subprocess

import pytest

from world import ROOT

MESON = """\
project('small', 'c')
add_project_arguments(f'-DFAULTS=@0@'.format(get_option('faults').to_int()), language: 'c')
executable('aliquot', 'main.c')
cmocka = dependency('cmocka')
test('base/chance', executable('chance', 'chance.c', dependencies: cmocka), protocol: 'tap',
  suite: ['unit', 'memory'], env: {'CMOCKA_MESSAGE_OUTPUT': 'TAP'})
alias_target('test-programs', executable('helper', 'main.c'))
"""
MAIN = "int main(void) { return 0; }\n"
CHANCE = """\
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
static void test_it(void **state) { (void)state; assert_int_equal(access(getenv("SMALL_MARK"), F_OK), 0); }
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_it)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (system("touch \\"$SMALL_MARK\\""))
        return 2;
    return failed;
}
"""
TESTS = """\
import pathlib
def fails(name, times, text="by chance"):
    file = pathlib.Path(__file__).with_name(name)
    before = len(file.read_text()) if file.exists() else 0
    file.write_text("x" * (before + 1))
    assert before >= times, text
def test_good(): pass
"""


class Small:
    """A checkout with the tools of this one, one program and tests/api/test_small.py."""

    def __init__(self, folder):
        self.folder = folder
        shutil.copytree(ROOT / "tools", folder / "tools")
        (folder / "tests" / "lib").mkdir(parents=True)
        for name in ("tests/conftest.py", "tests/SKIPS", "meson_options.txt"):
            shutil.copy(ROOT / name, folder / name)
        for name in ("world.py", "containers.py"):
            shutil.copy(ROOT / "tests" / "lib" / name, folder / "tests" / "lib" / name)
        self.write("meson.build", MESON)
        self.write("main.c", MAIN)
        self.write("chance.c", CHANCE)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def check(self, *words):
        done = subprocess.run(
            ["env", f"SMALL_MARK={self.folder / 'mark'}", "/usr/bin/python3", "-B",
             "tools/run_checks.py", *words], cwd=self.folder,
            capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return done.returncode, (done.stdout + done.stderr).splitlines()

    def runs(self, name):
        return len((self.folder / "tests" / "api" / name).read_text())

    @property
    def kept(self):
        return [path.read_text() for path in
                sorted(pathlib.Path(self.folder, "check-results", "unsteady").glob("*-first-*"))]


@pytest.fixture(params=["small", "a small one"])
def small(tmp_path, request):
    return Small(tmp_path / request.param)


def test_what_fails_once_is_unsteady_and_passes(small):
    small.write("tests/api/test_small.py", TESTS + "def test_it(): fails('mark', 1)\n")
    status, said = small.check("unit", "base/chance")
    assert status == 0 and "unsteady: 1 (unit: base/chance::1 - test_it)" in said[-2], said
    status, said = small.check("api")
    assert status == 0, said
    assert said[-2] == "unsteady: 1 (api: test_small::test_it)"
    assert said[-1].startswith("2 passed, 0 failed, 0 skipped")
    assert "by chance" in small.kept[0] and small.runs("mark") == 2
    said = small.check("api")[1]
    assert not any(line.startswith("unsteady") for line in said) and not small.kept


def test_what_fails_each_time_has_failed(small):
    small.write("tests/api/test_small.py", TESTS + "def test_it(): fails('mark', 9)\n")
    status, said = small.check("api")
    assert status == 1 and small.runs("mark") == 3
    assert "to repeat it: ./check api test_small::test_it" in said
    assert said[-1].startswith("1 passed, 1 failed, 0 skipped")


def test_reports_of_sanitizers_are_no_chance(small):
    small.write("tests/api/test_small.py", TESTS + "def test_it(): "
                "fails('mark', 1, '==1==ERROR: AddressSanitizer: heap-use-after-free')\n")
    status, said = small.check("api")
    assert status == 1 and small.runs("mark") == 1
    assert not any(line.startswith("unsteady") for line in said)


def test_what_does_not_compile_runs_nothing(small):
    small.write("main.c", MAIN.replace(";", ""))
    small.write("tests/api/test_small.py", TESTS + "def test_it(): fails('mark', 0)\n")
    status, said = small.check("api")
    assert status == 1 and not (small.folder / "tests" / "api" / "mark").exists()
    assert any("compiling failed" in line for line in said)
    assert said[-1].startswith("0 passed, 1 failed, 0 skipped")
