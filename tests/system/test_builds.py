# SPDX-License-Identifier: Apache-2.0
"""tools/builds.py on a project of one file: folders that an interrupted meson, another compiler or
another checkout has left are mended; mistakes in sources are only shown."""

import pathlib
import re
import shutil
import subprocess
import sys
import threading

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.append(str(TOOLS))
import builds  # noqa: E402
import commands  # noqa: E402

PROJECT = """\
project('tiny', 'c', default_options: 'buildtype=plain')
executable('tiny', 'tiny.c')
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A checkout whose folder 'build' is complete."""
    checkout = tmp_path_factory.mktemp("built") / "checkout"
    checkout.mkdir()
    (checkout / "meson.build").write_text(PROJECT)
    (checkout / "tiny.c").write_text("int main(void) { return 0; }\n")
    commands.run(["meson", "setup", checkout / "build", checkout, "-Ddebug=true"], "meson setup")
    return checkout


@pytest.fixture
def checkout(built, tmp_path, monkeypatch):
    """A copy at the same path, so that it counts as the same."""
    shutil.copytree(built, tmp_path / "kept", symlinks=True)
    monkeypatch.setattr(builds, "ROOT", built)
    yield built
    shutil.rmtree(built)
    shutil.copytree(tmp_path / "kept", built, symlinks=True)


def build(checkout):
    builds.set_up(checkout / "build")
    builds.compile_targets(checkout / "build")
    return (checkout / "build" / "tiny").exists()


def replace(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.mark.gate
def test_steps_are_told(checkout):
    steps = []
    builds.set_up(checkout / "build")
    builds.compile_targets(checkout / "build", on_step=lambda *step: steps.append(step))
    assert steps == [(1, 2), (2, 2)]


@pytest.mark.gate
def test_set_up_that_was_interrupted(checkout):
    (checkout / "build" / "build.ninja").unlink()
    assert build(checkout)


def test_folder_that_was_half_written(checkout):
    file = checkout / "build" / "build.ninja"
    file.write_text(file.read_text()[:file.stat().st_size // 2])
    (checkout / "build" / "meson-info" / "meson-info.json").write_text("")
    assert build(checkout)


def test_damaged_ninja_file_keeps_the_options(checkout):
    (checkout / "build" / "build.ninja").write_text("damaged\n")
    assert build(checkout)
    assert "debug = true" in (checkout / "build" / "meson-private" / "cmd_line.txt").read_text()


def test_compiler_that_has_gone(checkout):
    replace(checkout / "build" / "build.ninja", " command = ", " command = /opt/gone/")
    assert build(checkout)


def test_folder_of_another_checkout(checkout, monkeypatch, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(checkout, copy)
    monkeypatch.setattr(builds, "ROOT", copy)
    assert build(copy)
    assert not (checkout / "build" / "tiny").exists()


def test_options_that_another_run_needs(checkout):
    """What a user has set up is set up once more for tests, and then stays so."""
    builds.set_up(checkout / "build", ["-Dwerror=true", "-Ddebug=true"])
    assert builds.has_options(checkout / "build", ["-Dwerror=true", "-Ddebug=true"])
    assert not builds.has_options(checkout / "build", ["-Dwerror=false"])
    assert build(checkout)
    assert builds.has_options(checkout / "build", ["-Dwerror=true"])


@pytest.mark.skipif(not shutil.which("ccache"), reason="ccache is not installed")
def test_a_clone_elsewhere_compiles_nothing_again(built, tmp_path, monkeypatch):
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "cache"))
    for name in ("one", "the other"):
        clone = tmp_path / name
        clone.mkdir()
        for file in ("meson.build", "tiny.c"):
            shutil.copy(built / file, clone / file)
        monkeypatch.setattr(builds, "ROOT", clone)
        builds.set_up(clone / "build", ["-Ddebug=true"])
        subprocess.run(["ccache", "--zero-stats"], check=True, stdout=subprocess.DEVNULL)
        assert build(clone)
    said = subprocess.run(["ccache", "--print-stats"], check=True, capture_output=True, text=True)
    counts = dict(line.split() for line in said.stdout.splitlines())
    hits = int(counts["direct_cache_hit"]) + int(counts["preprocessed_cache_hit"])
    assert (hits, int(counts["cache_miss"])) == (1, 0), counts


def test_mistake_in_a_source(checkout):
    (checkout / "tiny.c").write_text("int main(void) { return nothing; }\n")
    before = (checkout / "build" / "build.ninja").stat().st_ino
    with pytest.raises(commands.Failed, match="compiling failed") as failed:
        build(checkout)
    assert any("nothing" in line for line in failed.value.last_lines)
    assert (checkout / "build" / "build.ninja").stat().st_ino == before


def test_mistake_in_a_build_file(checkout):
    (checkout / "meson.build").write_text(PROJECT + "dependency('no-such-library')\n")
    with pytest.raises(commands.Failed, match="tools/install-packages build") as failed:
        build(checkout)
    assert any("no-such-library" in line for line in failed.value.last_lines)


def test_folder_that_is_somebody_elses(checkout, tmp_path):
    (folder := tmp_path / "mine").mkdir()
    (folder / "thesis").touch()
    with pytest.raises(commands.Failed, match="no build folder"):
        builds.set_up(folder)
    assert (folder / "thesis").exists()


def test_one_at_a_time(checkout):
    waiting, entered = threading.Event(), threading.Event()

    def second():
        with builds.locked(waiting.set):
            entered.set()
    with builds.locked(lambda: pytest.fail("nobody else builds")):
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(60) and not entered.is_set()
    thread.join(60)
    assert entered.is_set()


def test_program_that_is_missing():
    with pytest.raises(commands.Failed, match="the program no-such-program is missing: tools/inst"):
        commands.run(["no-such-program"], "it")


def test_last_lines_and_a_remedy():
    with pytest.raises(commands.Failed, match="counting failed: count better") as failed:
        commands.run(["sh", "-c", "seq 100; exit 3"], "counting", "count better")
    assert failed.value.last_lines == [str(n) for n in range(86, 101)]


def test_fuzzer_that_is_not_built():
    done = subprocess.run([sys.executable, TOOLS / "fuzz.py", "--each", "1", "no-such-fuzzer"],
                          text=True, capture_output=True)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "there is no no-such-fuzzer in" in done.stderr and "'./check fuzz' builds" in done.stderr


def test_programs_alone_are_built_unless_tests_are_asked_for(tmp_path):
    """A newcomer's 'meson setup build && ninja -C build'; both only say what they would build."""
    steps = {}
    for option in ("", "-Dtests=enabled"):
        build = tmp_path / f"build{option}"
        words = filter(None, ["-Dconsole=disabled", option])
        commands.run(["meson", "setup", build, TOOLS.parent, *words], "meson setup")
        steps[option] = commands.run(["ninja", "-C", build, "-n", "-v"], "ninja -n")
        done = subprocess.run(["ninja", "-C", build, "-t", "query", "tests/http_server"],
                              capture_output=True, text=True)
        assert (done.returncode == 0) == bool(option), done
    theirs = re.findall(r"-o ((?:tests|bench)/\S+|oom_\S+)", steps[""])
    assert not theirs and re.search(r"-o aliquot-manager ", steps[""]), theirs
