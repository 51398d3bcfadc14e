# SPDX-License-Identifier: Apache-2.0
"""Code in sessions of images that say by labels how it is run."""

import pytest

from cluster import Cluster, running
from images import Layout, archive, folder, programs
from runtimes import settings_of

pytestmark = pytest.mark.gate

PERL = """LC_ALL=C exec perl -e 'open $io, "+<&=3"; $| = 1; while ($f = <$io>) { chomp $f; do $f;
print STDERR $@; syswrite $io, ($@ ? 1 : 0) . qq(\\n) }'"""
ONCE = "while read -r file <&3; do cat $file; echo $? >&3; done"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host oci:/") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    made = Layout(tmp_path_factory.mktemp("images") / "layout")
    layer = archive([*programs("perl", "sh", "cat"), folder("tmp", mode=0o1777)])
    made.image("perl", [layer], Labels={
        "ai.backend.runtime-type": "perl", "aliquot.interpreter.perl": PERL,
        "aliquot.interpreter.text": ONCE, "aliquot.interpreter.not-a-name": "true",
        "aliquot.interpreter.gone": "exec no-such-program"})
    made.image("cobol", [layer], Labels={"ai.backend.runtime-type": "cobol"})
    made.image("app", [layer], Labels={"ai.backend.runtime-type": "app"})
    made.image("elsewhere", [layer], Labels={"ai.backend.runtime-type": "python",
                                             "ai.backend.runtime-path": "/opt/none/python"})
    return made


def ask(cluster, box, code, language=None):
    """(output, exit code), or why it is refused."""
    reply = cluster.client().post(f"/session/{box}", {
        "mode": "query", "code": code, "options": {"language": language} if language else {}})
    if reply.status != 200:
        assert reply.status == 400, reply
        return reply.json["msg"]
    result, console = reply.json["result"], []
    while True:
        console += result["console"]
        if result["status"] == "finished":
            return "".join(text for _, text in console), result["exitCode"]
        result = cluster.client().post(f"/session/{box}", {
            "mode": "continue", "runId": result["runId"]}).json["result"]


def test_a_command_that_keeps_its_state(cluster, layout):
    with running(cluster.client(), "perl", image=layout.reference("perl")):
        assert ask(cluster, "perl", "$x = 41; print 'set'") == ("set", 0)
        assert ask(cluster, "perl", "print $x + 1") == ("42", 0)
        text, code = ask(cluster, "perl", "die 'enough'")
        assert code == 1 and "enough at" in text
        assert ask(cluster, "perl", "echo $0", "shell") == ("sh\n", 0)
        assert ask(cluster, "perl", "as it is", "text") == ("as it is", 0)


def test_what_ends_is_started_again(cluster, layout):
    with running(cluster.client(), "perl", image=layout.reference("perl")):
        text, code = ask(cluster, "perl", "print 'last words'; exit 7")
        assert code == 7 and text.startswith("last words") and "the next run starts" in text
        assert ask(cluster, "perl", "print 'again'") == ("again", 0)
        text, code = ask(cluster, "perl", "1", "gone")
        assert code == 127 and "no-such-program" in text


def test_refusals(cluster, layout):
    with running(cluster.client(), "cobol", image=layout.reference("cobol")):
        said = ask(cluster, "cobol", "DISPLAY 1")
        assert "runtime-type says 'cobol'" in said and "python, shell, c" in said
        said = ask(cluster, "cobol", "1", "perl")
        assert said.startswith("the language 'perl' is none of this session's")
        assert ask(cluster, "cobol", "echo yes", "shell") == ("yes\n", 0)
        text, code = ask(cluster, "cobol", "1", "python")
        assert code == 127 and "this image has no such program" in text


def test_images_for_apps(cluster, layout):
    """Python if it is there, else the shell; a variable of the session adds to the labels."""
    with running(cluster.client(), "app", image=layout.reference("app"), config={
            "resources": {"cpu": "1", "mem": "64m"},
            "environ": {"ALIQUOT_INTERPRETER_mine": ONCE}}):
        assert ask(cluster, "app", "echo $0") == ("sh\n", 0)
        assert ask(cluster, "app", "mine", "mine") == ("mine", 0)


def test_the_program_of_python(cluster, layout):
    with running(cluster.client(), "elsewhere", image=layout.reference("elsewhere")):
        text, code = ask(cluster, "elsewhere", "1 + 1")
        assert code == 127 and text.startswith("/opt/none/python: ")
