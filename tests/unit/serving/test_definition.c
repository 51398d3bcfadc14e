/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serving/definition.h"

#define HEAD "models:\n- name: m\n  model_path: /models\n"
#define SERVICE HEAD "  service:\n    port: 8000\n"
#define ACTIONS SERVICE "    pre_start_actions:\n"
#define HEALTH SERVICE "    health_check:\n"

static struct model_definition *parse(const char *text)
{
    struct model_definition *d = NULL;
    struct aq_error err = { 0 };
    int r = model_definition_parse(text, strlen(text), &d, &err);

    assert_string_equal(err.text, "");
    assert_int_equal(r, 0);
    return d;
}

static const char *find(const struct pair_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].key, name) == 0)
            return list->items[i].value;
    return "(none)";
}

static void every_member_is_read(void **state)
{
    AQ_CLEANUP(model_definition_freep) struct model_definition *d = parse(
        "models:\n"
        "- name: digits\n"
        "  model_path: /models/digits/\n"
        "  service:\n"
        "    pre_start_actions:\n"
        "    - {action: write_file, args: {filename: /tmp/a, body: [one, \"{model_path}\"], "
        "mode: 0640, append: yes}}\n"
        "    - {action: write_tempfile, ref: settings, args: {body: \"x = 1\\n\"}}\n"
        "    - {action: run_command, args: {command: [pip, install, 7], echo: true}}\n"
        "    - {action: mkdir, args: {path: out/logs}}\n"
        "    - {action: log, args: {message: \"see {settings}\", debug: false}}\n"
        "    start_command: python serve.py {model_path} {settings}\n"
        "    shell: /bin/zsh\n"
        "    port: 8501\n"
        "    health_check:\n"
        "      enable: true\n"
        "      path: /ready?full=1\n"
        "      interval: 0.5\n"
        "      max_retries: 3\n"
        "      max_wait_time: 7\n"
        "      expected_status_code: 204\n"
        "      initial_delay: 5400\n"
        "  metadata:\n"
        "    {author: a, title: t, version: 1, created: 2026-01-01, last_modified: b, "
        "description: \"\",\n"
        "     task: c, category: d, architecture: e, framework: [torch], label: [x, y], license: "
        "MIT,\n"
        "     min_resource: {cpu: 1, mem: 2g, cuda.shares: 0.5}}\n");
    const struct model_entry *m = model_definition_find_served(d);

    (void)state;
    assert_int_equal(d->warnings.count, 0);
    assert_string_equal(m->name, "digits");
    assert_string_equal(m->path, "/models/digits");
    assert_string_equal(m->command, "python serve.py /models/digits /tmp/aliquot-model-1.py");
    assert_string_equal(m->shell, "/bin/zsh");
    assert_int_equal(m->port, 8501);
    assert_string_equal(m->health.path, "/ready?full=1");
    assert_int_equal(m->health.interval_usec, 500000);
    assert_int_equal(m->health.retries, 3);
    assert_int_equal(m->health.timeout_usec, 7000000);
    assert_int_equal(m->health.status, 204);
    assert_int_equal(m->health.initial_delay_usec, INT64_C(5400000000));
    assert_int_equal(m->action_count, 5);
    assert_string_equal(m->actions[0].words.items[1], "/models/digits");
    assert_int_equal(m->actions[0].mode, 0640);
    assert_true(m->actions[0].appends);
    assert_int_equal(m->actions[1].mode, 0755);
    assert_string_equal(m->actions[2].words.items[2], "7");
    assert_string_equal(m->actions[3].path, "out/logs");
    assert_string_equal(m->actions[4].words.items[0], "see /tmp/aliquot-model-1.py");
    assert_non_null(m->metadata);
}

static void what_is_not_said_has_a_default(void **state)
{
    static const struct {
        const char *text, *shell, *command, *health;
    } rows[] = {
        { SERVICE, "", NULL, NULL },
        { SERVICE "    start_command: null\n    shell:\n", NULL, NULL, NULL },
        { SERVICE "    start_command: [python, \"a b\"]\n", "", "'python' 'a b'", NULL },
        { SERVICE "    start_command: >-\n      serve --x '{\"a\": 1}'\n", "",
          "serve --x '{\"a\": 1}'", NULL },
        { HEALTH "      interval: 5\n", "", NULL, "/health" },
        { HEALTH "      enable: false\n      path: /x\n", "", NULL, NULL },
        { SERVICE "    health_check: null\n", "", NULL, NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(model_definition_freep) struct model_definition *d = parse(rows[i].text);
        const struct model_entry *m = model_definition_find_served(d);
        const char *got[] = { m->shell, m->command, m->health.path };
        const char *expected[] = { rows[i].shell, rows[i].command, rows[i].health };

        for (size_t k = 0; k < 3; k++)
            if ((got[k] && expected[k]) ? strcmp(got[k], expected[k]) != 0 : got[k] != expected[k])
                fail_msg("row %zu: expected %s, got %s", i, expected[k], got[k]);
    }
}

static void errors_name_the_member(void **state)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        { "", "empty" },
        { "- a\n", "models: expected a mapping" },
        { "model: []\n", "models: expected a list of one model or more" },
        { "models: []\n", "models: expected a list" },
        { "models: {}\n", "models: expected a list" },
        { "models: [a]\n", "models[0]: expected a mapping (line 1)" },
        { "models: &a [*a]\n", "anchor" },
        { "models:\n- model_path: /m\n", "models[0].name: is missing" },
        { "models:\n- name: {}\n", "models[0].name: expected a text, got a mapping (line 2)" },
        { "models:\n- name: \"a\\x07\"\n", "models[0].name: a name must not contain control" },
        { "models:\n- name: \"\"\n", "models[0].name: expected 1 to 128 bytes, got 0" },
        { "models:\n- name: a\n", "models[0].model_path: is missing; expected a path such as" },
        { "models:\n- {name: a, model_path: m}\n",
          "models[0].model_path: expected an absolute path such as /models, got 'm' (line 2)" },
        { "models:\n- {name: a, model_path: /m/../n}\n",
          "models[0].model_path: must not contain '..'" },
        { "models:\n- {name: a, model_path: \"/a b\"}\n",
          "models[0].model_path: '/a b' must not contain blanks" },
        { "models:\n- {name: a, model_path: \"/a\\n\"}\n",
          "models[0].model_path: a path must not contain control" },
        { HEAD "  service: 1\n", "models[0].service: expected a mapping (line 4)" },
        { HEAD "  service: {}\n",
          "models[0].service.port: is missing; expected a port from 2 to 65535" },
        { HEAD "  service: {port: 1}\n",
          "models[0].service.port: expected an integer from 2 to 65535, got '1' (line 4)" },
        { HEAD "  service: {port: 65536}\n", "got '65536'" },
        { HEAD "  service: {port: -3}\n", "got '-3'" },
        { HEAD "  service: {port: 80a}\n", "got '80a'" },
        { HEAD "  service: {port: [1]}\n", "got a list" },
        { SERVICE "    start_command: \"\"\n",
          "models[0].service.start_command: is empty; leave it out" },
        { SERVICE "    start_command: []\n", "models[0].service.start_command: is empty" },
        { SERVICE "    start_command: {a: 1}\n",
          "models[0].service.start_command: expected a list of texts, got a mapping" },
        { SERVICE "    start_command: [a, [b]]\n",
          "models[0].service.start_command[1]: expected a text, got a list" },
        { SERVICE "    start_command: a && b\n    shell: null\n",
          "models[0].service.start_command: the command needs a shell, but 'shell' is null" },
        { SERVICE "    start_command: \" \"\n    shell: null\n",
          "models[0].service.start_command: a command without a shell needs a program" },
        { SERVICE "    shell: [x]\n", "models[0].service.shell: expected a text, got a list" },
        { SERVICE "    shell: \"\\t\"\n", "models[0].service.shell: a path must not contain" },
        { SERVICE "    pre_start_actions: 1\n",
          "models[0].service.pre_start_actions: expected a list of actions (line 6)" },
        { ACTIONS "    - a\n", "models[0].service.pre_start_actions[0]: expected a mapping" },
        { ACTIONS "    - {args: {}}\n",
          "models[0].service.pre_start_actions[0].action: expected write_file, write_tempfile, "
          "run_command, mkdir or log, got ''" },
        { ACTIONS "    - {action: rm, args: {}}\n", "got 'rm'" },
        { ACTIONS "    - {action: log}\n",
          "models[0].service.pre_start_actions[0].args: is missing" },
        { ACTIONS "    - {action: log, args: 1}\n",
          "models[0].service.pre_start_actions[0].args: expected a mapping" },
        { ACTIONS "    - {action: log, args: {}}\n", ".args.message: is missing" },
        { ACTIONS "    - {action: log, args: {message: a, debug: 3}}\n",
          ".args.debug: expected true or false, got '3'" },
        { ACTIONS "    - {action: mkdir, args: {}}\n", ".args.path: is missing" },
        { ACTIONS "    - {action: mkdir, args: {path: \"a\\rb\"}}\n",
          ".args.path: a path must not contain control characters" },
        { ACTIONS "    - {action: run_command, args: {}}\n", ".args.command: is missing" },
        { ACTIONS "    - {action: run_command, args: {command: ls}}\n",
          ".args.command: expected a list of a program and its arguments" },
        { ACTIONS "    - {action: run_command, args: {command: []}}\n",
          ".args.command: expected a list of a program" },
        { ACTIONS "    - {action: run_command, args: {command: [a], echo: maybe}}\n",
          ".args.echo: expected true or false, got 'maybe'" },
        { ACTIONS "    - {action: write_file, args: {body: a}}\n", ".args.filename: is missing" },
        { ACTIONS "    - {action: write_file, args: {filename: a/, body: a}}\n",
          ".args.filename: expected a file, got the folder 'a/'" },
        { ACTIONS "    - {action: write_file, args: {filename: a}}\n", ".args.body: is missing" },
        { ACTIONS "    - {action: write_file, args: {filename: a, body: a, append: x}}\n",
          ".args.append: expected true or false" },
        { ACTIONS "    - {action: write_file, args: {filename: a, body: a, mode: 888}}\n",
          ".args.mode: expected octal digits such as \"644\", got '888'" },
        { ACTIONS "    - {action: write_file, args: {filename: a, body: a, mode: \"77777\"}}\n",
          "got '77777'" },
        { ACTIONS "    - {action: mkdir, ref: a, args: {path: a}}\n",
          ".ref: only the file of write_tempfile can be referred to" },
        { ACTIONS "    - {action: write_tempfile, ref: \"a b\", args: {body: a}}\n",
          ".ref: expected a name of letters, digits and '_', got 'a b'" },
        { SERVICE "    health_check: yes\n", "models[0].service.health_check: expected a mapping" },
        { HEALTH "      enable: 2\n", ".health_check.enable: expected true or false, got '2'" },
        { HEALTH "      path: health\n",
          ".health_check.path: expected a path that begins with '/', got 'health'" },
        { HEALTH "      path: \"/a b\"\n", ".health_check.path: a path of a URL must be" },
        { HEALTH "      interval: soon\n",
          ".health_check.interval: expected seconds from 0 to 604800, got 'soon'" },
        { HEALTH "      max_wait_time: -1\n", ".health_check.max_wait_time: expected seconds" },
        { HEALTH "      initial_delay: 9999999\n", ".health_check.initial_delay: expected sec" },
        { HEALTH "      max_retries: 0\n",
          ".health_check.max_retries: expected an integer from 1 to 1000, got '0'" },
        { HEALTH "      expected_status_code: 100\n",
          ".health_check.expected_status_code: expected an integer from 101 to 599, got '100'" },
        { HEAD "  metadata: 1\n", "models[0].metadata: expected a mapping" },
        { HEAD "  metadata: {title: [a]}\n", "models[0].metadata.title: expected a text" },
        { HEAD "  metadata: {label: {}}\n",
          "models[0].metadata.label: expected a list of texts, got a mapping" },
        { HEAD "  metadata: {min_resource: 1}\n",
          "models[0].metadata.min_resource: expected a mapping of slots" },
        { HEAD "  metadata: {min_resource: {cpu: []}}\n",
          "models[0].metadata.min_resource.cpu: expected a text, got a list" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct model_definition *d = NULL;
        struct aq_error err = { 0 };

        if (model_definition_parse(rows[i].text, strlen(rows[i].text), &d, &err) != -EINVAL)
            fail_msg("accepted: %s", rows[i].text);
        if (!strstr(err.text, rows[i].expected))
            fail_msg("expected '%s' in: %s", rows[i].expected, err.text);
        assert_null(d);
    }
}

static void files_have_limits(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf many = STRBUF_INIT, actions = STRBUF_INIT,
                                           deep = STRBUF_INIT, items = STRBUF_INIT;
    struct model_definition *d = NULL;
    struct aq_error err = { 0 };
    char *large = calloc(1, MODEL_DEFINITION_BYTES_MAX + 1);

    (void)state;
    memset(large, '#', MODEL_DEFINITION_BYTES_MAX + 1);
    assert_int_equal(model_definition_parse(large, MODEL_DEFINITION_BYTES_MAX + 1, &d, &err),
                     -E2BIG);
    free(large);
    strbuf_adds(&many, "models:\n");
    for (int i = 0; i <= MODEL_DEFINITION_MODELS_MAX; i++)
        strbuf_adds(&many, "- {name: a, model_path: /m}\n");
    assert_int_equal(model_definition_parse(many.data, many.len, &d, &err), -EINVAL);
    assert_non_null(strstr(err.text, "models: expected at most 16 models, got 17"));
    strbuf_adds(&actions, ACTIONS);
    for (int i = 0; i <= MODEL_DEFINITION_ACTIONS_MAX; i++)
        strbuf_adds(&actions, "    - {action: log, args: {message: a}}\n");
    assert_int_equal(model_definition_parse(actions.data, actions.len, &d, &err), -EINVAL);
    assert_non_null(strstr(err.text, "expected at most 64 actions, got 65"));
    strbuf_adds(&items, SERVICE "    start_command: [a");
    for (int i = 0; i < MODEL_DEFINITION_ITEMS_MAX; i++)
        strbuf_adds(&items, ",a");
    strbuf_adds(&items, "]\n");
    assert_int_equal(model_definition_parse(items.data, items.len, &d, &err), -EINVAL);
    assert_non_null(strstr(err.text, "expected at most 4096 items, got 4097"));
    for (int i = 0; i < 40; i++)
        strbuf_adds(&deep, "[");
    assert_int_equal(model_definition_parse(deep.data, deep.len, &d, &err), -EINVAL);
    assert_non_null(strstr(err.text, "nested too deeply"));
}

static void unknown_members_are_warned_of(void **state)
{
    AQ_CLEANUP(model_definition_freep) struct model_definition *d = parse(
        "version: 2\nmodels:\n- {name: a, model_path: /m, service: {prot: 1, port: 80}}\n"
        "- {name: b, model_path: /m, service: {port: 80}}\n");
    AQ_CLEANUP(strbuf_donep) struct strbuf many = STRBUF_INIT;
    AQ_CLEANUP(model_definition_freep) struct model_definition *other = NULL;

    (void)state;
    assert_int_equal(d->warnings.count, 3);
    assert_string_equal(d->warnings.items[0], "version: unknown member");
    assert_string_equal(d->warnings.items[1],
                        "models[0].service.prot: unknown member; did you mean 'port'?");
    assert_string_equal(d->warnings.items[2],
                        "models[1]: is not served: a service serves the first model, 'a'");
    strbuf_adds(&many, SERVICE);
    for (int i = 0; i < 100; i++)
        strbuf_addf(&many, "    x%d: 1\n", i);
    other = parse(many.data);
    assert_int_equal(other->warnings.count, MODEL_DEFINITION_WARNINGS_MAX);
    assert_string_equal(other->warnings.items[31], "further warnings are not listed");
}

static void a_spec_is_completed(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(model_definition_freep) struct model_definition *d = parse(
        HEALTH "      {path: /up, interval: 2, initial_delay: 5}\n"
               "    start_command: serve {model_path}\n");
    struct model_service_spec spec = { .model = "id" };
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(model_definition_apply(d, &spec, &arena, NULL, &err), 0);
    assert_string_equal(spec.session.command,
                        "cd -- '/models' || exit; s=/bin/bash; [ -x $s ] || s=/bin/sh; "
                        "exec $s -c 'serve /models'");
    assert_null(spec.session.bootstrap);
    assert_int_equal(spec.port, 8000);
    assert_string_equal(spec.health_path, "/up");
    assert_int_equal(spec.health_interval_usec, 2000000);
    assert_int_equal(spec.ready_usec, 0); /* 5 s are not a reason to end a replica that loads */
    assert_string_equal(find(&spec.session.environ, "BACKEND_MODEL_NAME"), "m");
    assert_string_equal(find(&spec.session.environ, "BACKEND_MODEL_PATH"), "/models");

    spec = (struct model_service_spec){ .session = { .command = "mine {model_path}" },
                                        .port = 90,
                                        .health_path = "/mine",
                                        .ready_usec = 1 };
    assert_int_equal(model_definition_apply(d, &spec, &arena, NULL, &err), 0);
    assert_non_null(strstr(spec.session.command, "-c 'mine /models'"));
    assert_int_equal(spec.port, 90);
    assert_string_equal(spec.health_path, "/mine");
    assert_int_equal(spec.health_status, 0);
    assert_int_equal(spec.ready_usec, 1);
}

static void a_long_initial_delay_lengthens_the_time_until_ready(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(model_definition_freep) struct model_definition *d = parse(
        HEALTH "      {enable: false, initial_delay: 3600}\n");
    struct model_service_spec spec = { 0 };
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(model_definition_apply(d, &spec, &arena, NULL, &err), 0);
    assert_int_equal(spec.ready_usec, INT64_C(3600000000));
    assert_null(spec.health_path);
    assert_null(spec.session.command);
}

static void what_cannot_be_applied_is_refused(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(model_definition_freep) struct model_definition *unserved = parse(HEAD);
    AQ_CLEANUP(model_definition_freep) struct model_definition *direct = parse(SERVICE
                                                                               "    shell: null\n");
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct model_definition *large;
    struct model_service_spec spec = { 0 };
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(model_definition_apply(unserved, &spec, &arena, NULL, &err), -EINVAL);
    assert_non_null(strstr(err.text, "models[0].service: is missing"));
    spec.session.command = "a | b";
    assert_int_equal(model_definition_apply(direct, &spec, &arena, NULL, &err), -EINVAL);
    assert_string_equal(err.field, "command");
    assert_non_null(strstr(err.text, "command: the command needs a shell"));

    strbuf_adds(&text, ACTIONS "    - {action: write_file, args: {filename: a, body: [");
    for (int i = 0; i < 40; i++)
        strbuf_addf(&text, "\"%02000d\",", i);
    strbuf_adds(&text, "]}}\n");
    large = parse(text.data);
    spec = (struct model_service_spec){ 0 };
    assert_int_equal(model_definition_apply(large, &spec, &arena, NULL, &err), -E2BIG);
    assert_string_equal(err.field, "pre_start_actions");
    model_definition_free(large);
}

static void writing_to_the_model_folder_is_warned_of(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(model_definition_freep) struct model_definition *d = parse(
        ACTIONS "    - {action: mkdir, args: {path: cache}}\n"
                "    - {action: mkdir, args: {path: /tmp/cache}}\n"
                "    - {action: mkdir, args: {path: /models/x}}\n"
                "    - {action: mkdir, args: {path: /models2}}\n");
    struct model_service_spec spec = { .model = "id" };
    struct str_list warnings = { 0 };
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(model_definition_apply(d, &spec, &arena, &warnings, &err), 0);
    assert_int_equal(warnings.count, 2);
    assert_non_null(strstr(warnings.items[0], "pre_start_actions[0]: 'cache' is in the model"));
    assert_non_null(strstr(warnings.items[1], "pre_start_actions[2]: '/models/x'"));
}

/* ---- the script, by a real shell ---- */

static int run_script(const char *script, char *out, size_t size)
{
    FILE *pipe;
    size_t got;
    int status;

    assert_int_equal(setenv("SCRIPT", script, 1), 0);
    pipe = popen("/bin/sh -c \"$SCRIPT\" </dev/null 2>&1", "r");
    assert_non_null(pipe);
    got = fread(out, 1, size - 1, pipe);
    out[got] = '\0';
    status = pclose(pipe);
    return WEXITSTATUS(status);
}

static void assert_file(const char *folder, const char *name, const char *contents, unsigned mode)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", folder, name);
    char bytes[4096];
    struct stat st;
    FILE *file = fopen(path, "r");
    size_t got;

    assert_non_null(file);
    got = fread(bytes, 1, sizeof(bytes) - 1, file);
    bytes[got] = '\0';
    (void)fclose(file);
    assert_string_equal(bytes, contents);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, mode);
}

static void actions_are_done_by_a_shell(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct model_service_spec spec = { .session = { .bootstrap = "echo mine; exit 3" } };
    struct aq_error err = { 0 };
    char folder[] = "/tmp/aliquot-definition-XXXXXX", out[4096];
    struct model_definition *d;

    (void)state;
    assert_non_null(mkdtemp(folder));
    strbuf_addf(&text, "models:\n- name: m\n  model_path: %s\n  service:\n    port: 80\n", folder);
    strbuf_adds(&text, "    pre_start_actions:\n"
                       "    - {action: mkdir, args: {path: a/b}}\n"
                       "    - {action: write_file, args: {filename: a/b/x, mode: 600, body: "
                       "[\"it's $HOME\", \"EOF\", \"'; exit 9; '\", \"%s \\\\n\", \"end\\n\"]}}\n"
                       "    - {action: write_file, args: {filename: a/b/x, append: true, mode: "
                       "\"0640\", body: more}}\n"
                       "    - {action: write_file, args: {filename: -e, body: []}}\n"
                       "    - {action: run_command, args: {command: [sh, -c, \"echo ran; exit "
                       "4\"]}}\n"
                       "    - {action: log, args: {message: \"two\\nlines 'x'\"}}\n");
    d = parse(text.data);
    assert_int_equal(model_definition_apply(d, &spec, &arena, NULL, &err), 0);
    assert_int_equal(run_script(spec.session.bootstrap, out, sizeof(out)), 3);
    assert_string_equal(out, "ran\naliquot: a pre-start command failed with exit status 4\n"
                             "two lines 'x'\nmine\n");
    assert_file(folder, "a/b/x", "it's $HOME\nEOF\n'; exit 9; '\n%s \\n\nend\nmore\n", 0640);
    assert_file(folder, "-e", "", 0755);
    model_definition_free(d);
    AQ_CLEANUP(aq_freep) char *clean = aq_format("rm -r %s", folder);
    assert_int_equal(system(clean), 0);
}

static void an_action_that_fails_stops_the_replica(void **state)
{
    static const char *const actions[] = {
        "{action: run_command, args: {command: [/no/such/program]}}",
        "{action: mkdir, args: {path: /dev/null/x}}",
        "{action: write_file, args: {filename: /dev/null/x, body: a}}",
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(actions); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        AQ_CLEANUP(aq_freep) char *text = aq_format(
            "models:\n- name: m\n  model_path: /\n  service:\n    port: 80\n"
            "    pre_start_actions:\n    - %s\n    - {action: log, args: {message: after}}\n",
            actions[i]);
        struct model_service_spec spec = { .session = { .bootstrap = "echo mine" } };
        struct model_definition *d = parse(text);
        struct aq_error err = { 0 };
        char out[4096];

        assert_int_equal(model_definition_apply(d, &spec, &arena, NULL, &err), 0);
        assert_int_not_equal(run_script(spec.session.bootstrap, out, sizeof(out)), 0);
        assert_null(strstr(out, "after"));
        assert_null(strstr(out, "mine"));
        model_definition_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_is_read),
        cmocka_unit_test(what_is_not_said_has_a_default),
        cmocka_unit_test(errors_name_the_member),
        cmocka_unit_test(files_have_limits),
        cmocka_unit_test(unknown_members_are_warned_of),
        cmocka_unit_test(a_spec_is_completed),
        cmocka_unit_test(a_long_initial_delay_lengthens_the_time_until_ready),
        cmocka_unit_test(what_cannot_be_applied_is_refused),
        cmocka_unit_test(writing_to_the_model_folder_is_warned_of),
        cmocka_unit_test(actions_are_done_by_a_shell),
        cmocka_unit_test(an_action_that_fails_stops_the_replica),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
