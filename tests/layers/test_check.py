# SPDX-License-Identifier: Apache-2.0
"""./check chooses what it was asked for, and counts what it was told."""

import os
import pathlib
import subprocess
import sys

import pytest

from cluster import wait_for
from world import ROOT, World, processes_of

sys.path.append(str(ROOT / "tools"))
import commands  # noqa: E402
import repeat  # noqa: E402
import results  # noqa: E402
import run_checks  # noqa: E402
import suites  # noqa: E402


def names(*words):
    return [task.name for task in run_checks.chosen_tasks(list(words))[1]]


def test_all_suites_or_some():
    assert {name.split("-")[0] for name in names()} == set(suites.SUITES)
    assert names("api", "fault") == ["api", "fault"]
    assert names("unit", "layers") == ["unit-layers"]
    assert "unit-tsan" in names("unit") and "unit-tsan" not in names("gate")
    assert {"unit-layers", "unit-asan", "api-gate", "system-gate"} <= set(names("gate"))
    assert names("unit", "tsan:http/client") == ["unit-tsan"]
    assert names("postgres", "system:test_restore") == ["postgres-system"]


def test_a_part_of_a_suite():
    assert suites.python_paths("system", []) == ["tests/system"]
    for name, path in (("test_exec", "tests/system/test_exec.py"),
                       ("test_exec.py", "tests/system/test_exec.py"),
                       ("test_exec::test_nothing_is_lost",
                        "tests/system/test_exec.py::test_nothing_is_lost"),
                       ("test_watchdog_is_fed",
                        "tests/system/test_units.py::test_watchdog_is_fed")):
        assert suites.python_paths("system", [name]) == [path]


@pytest.mark.parametrize("words, listed", [
    (("sistem",), "system"), (("api", "test_x"), "test_auth"), (("bench", "x"), "latency"),
    (("fuzz", "x"), "fuzz_conf"), (("gate", "x"), ""),
    (("postgres", "system:test_x"), "test_restore")])
def test_what_is_unknown_lists_what_there_is(words, listed):
    with pytest.raises(commands.Failed, match=listed):
        names(*words)


JUNIT = """<testsuites><testsuite name="a" time="7">
<testcase classname="t.test_a" name="good" time="2"/>
<testcase classname="t.test_a" name="bad[crun]" time="3"><failure>why</failure></testcase>
<testcase classname="t.test_a" name="left out"><skipped message="no"/></testcase></testsuite>
<testsuite name="b" time="5"><testcase classname="b" name="first"/></testsuite></testsuites>"""


@pytest.fixture
def cases(tmp_path, monkeypatch):
    (tmp_path / "api.xml").write_text(JUNIT)
    return results.read([suites.python_tests("api", [], {}, folder=tmp_path)])


def test_cases_are_counted(cases, capsys):
    assert [(case.name, case.state, case.seconds) for case in cases] == [
        ("good", "passed", 2), ("bad[crun]", "failed", 3), ("left out", "skipped", 0),
        ("first", "passed", 5)]
    cases[3].is_unsteady = True
    assert results.close(cases, 0) == 1
    said = capsys.readouterr().out.splitlines()
    assert said == ["unsteady: 1 (api: b::first)",
                    "skipped but not in tests/SKIPS: api:left_out",
                    "2 passed, 2 failed, 1 skipped (0 of the passed with real containers)"]


def test_what_could_not_be_fetched_is_told_apart(cases, capsys):
    cases[2].text = "/a.py:3: could not be fetched: requests: Temporary failure in name resolution"
    results.close(cases, 0)
    assert capsys.readouterr().out.splitlines() == [
        "could not be fetched: 1 (api: test_a::left out)",
        "2 passed, 1 failed, 1 skipped (0 of the passed with real containers)"]


def test_slowest_first_and_failures_with_their_output(cases, capsys):
    results.show_slowest(cases, 2)
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown] == ["5.0", "3.0"]
    results.show_failures(cases)
    assert capsys.readouterr().out == ("\nFAILED api: test_a::bad[crun]\nwhy\n"
                                       "to repeat it: ./check api 'test_a::bad[crun]'\n")


def test_a_program_that_ends_badly_has_failed(tmp_path, capsys):
    (tmp_path / "unit.xml").write_text("""<testsuites><testsuite name="a" time="1">
<testcase classname="x.x:unit / http/client" name="1 - test_it"/><system-err>
==7==ERROR: LeakSanitizer: detected memory leaks
(test program exited with status code 1)</system-err></testsuite></testsuites>""")
    cases = results.read([suites.python_tests("unit", [], {}, folder=tmp_path)])
    assert [(case.name, case.state) for case in cases] == [("1 - test_it", "passed"),
                                                           ("end", "failed")]
    assert not repeat.repeatable(cases)
    results.show_failures(cases)
    assert "LeakSanitizer" in capsys.readouterr().out


def test_an_error_is_shown_before_the_logs_that_follow_it():
    logs = [f"E   log {i}" for i in range(100)]
    shown = results.excerpt("\n".join(["def test():", ">   assert x", "E   x is not", *logs]))
    assert shown[0] == "E   x is not" and shown[-1] == "E   log 99" and len(shown) < 60
    assert results.excerpt("one\ntwo\n") == ["one", "two"]


def test_nothing_passed_is_a_failure(capsys):
    assert results.close([], 0) == 1


def test_without_words_everything_is_run(tmp_path, monkeypatch, capsys):
    def run(task, log):
        task.file("xml").write_text('<testsuite><testcase classname="a" name="good"/></testsuite>')
        return True

    task = suites.Task("api", {}, run, folder=tmp_path)
    monkeypatch.setattr(run_checks, "SUITES", {"api": lambda names: [task]})
    monkeypatch.setattr(run_checks, "GROUPS", {})
    monkeypatch.setattr(run_checks, "RESULTS", tmp_path)
    monkeypatch.setattr(repeat, "FOLDER", tmp_path / "unsteady")
    with pytest.raises(SystemExit) as ended:
        run_checks.check([])
    said = capsys.readouterr().out.splitlines()
    assert ended.value.code == 0 and said[-2] == "everything: 0 s", said


def test_a_suite_is_run_once_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(run_checks, "RESULTS", tmp_path)
    first = run_checks.hold([suites.Task("unit-asan", {}, None)])
    assert run_checks.hold([suites.Task("api", {}, None)])
    with pytest.raises(commands.Failed, match="another ./check runs suite unit"):
        run_checks.hold([suites.Task("unit-layers", {}, None)])
    first[0].close()
    assert run_checks.hold([suites.Task("unit-layers", {}, None)])


# ---- the world of a test ----

def test_settings_of_the_machine_stay_outside(monkeypatch):
    monkeypatch.setenv("ALIQUOT_NETWORK_POOL", "10.0.0.0/8")
    monkeypatch.setenv("XDG_STATE_HOME", "/nonexistent")
    with World(ALIQUOT_ID="mine") as world:
        assert world.env["ALIQUOT_ID"] == "mine" and "ALIQUOT_NETWORK_POOL" not in world.env
        for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "ALIQUOT_RUNTIME_FOLDER"):
            assert world.env[name].startswith(str(world.folder))
        other = World()
        shared = {value for value in world.env.values() if str(world.folder) in value}
        assert not shared & set(other.env.values())
        other.end()
    assert not world.folder.exists() and not other.folder.exists()


def test_a_world_goes_with_a_test_that_is_killed():
    text = ("import subprocess, time; from world import World; world = World(); "
            "subprocess.Popen(['sleep', '1000'], env=world.env); "
            "print(world.folder, flush=True); time.sleep(1000)")
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "tests" / "lib")}) as test:
        folder = pathlib.Path(test.stdout.readline().strip())
        wait_for(lambda: len(processes_of(folder)) == 1, 60, "the program")
        test.kill()
    wait_for(lambda: not folder.exists(), 60, "the folder to go")
    assert not processes_of(folder)


def test_a_command_ends_with_the_tool_that_is_killed():
    text = ("import commands, subprocess, time; print(subprocess.Popen(commands.ended_with_us("
            "['sleep', '1000'])).pid, flush=True); time.sleep(1000)")
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "tools")}) as tool:
        command = pathlib.Path("/proc", tool.stdout.readline().strip(), "cmdline")
        wait_for(lambda: command.read_bytes().startswith(b"sleep"), 60, "setpriv")
        tool.kill()
    wait_for(lambda: not command.exists(), 60, "the command to end")


def test_a_command_whose_tool_has_ended_before_does_not_begin():
    text = ("import commands, shlex; print('; '.join([shlex.join(commands.ended_with_us("
            "['echo', 'begun'])), 'true']))")
    command = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True,
                             env={**os.environ, "PYTHONPATH": str(ROOT / "tools")}, check=True)
    done = subprocess.run(["sh", "-c", command.stdout], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_where_nothing_is_built_pytest_says_so():
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/api"],
                          cwd=ROOT, env={**os.environ, "ALIQUOT_BUILD": "nothing-here"},
                          capture_output=True, text=True)
    assert done.returncode == 4 and "Traceback" not in done.stderr
    assert done.stderr.startswith(f"ERROR: there are no programs in {ROOT}/nothing-here: run ")
