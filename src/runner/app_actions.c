/* SPDX-License-Identifier: Apache-2.0 */
/* What is done before an app starts. */
#include "runner/app_actions.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/utf8.h"
#include "runner/app_definition.h"
#include "runner/app_text.h"

#define OUTPUT_MAX (64 << 10) /* bytes of a command's output that are kept */

static int app_actions_expand(const json_t *args, const char *name, const json_t *variables,
                              struct strbuf *out, struct aq_error *err)
{
    return app_text_expand(json_string_value(json_object_get(args, name)), variables, out, err);
}

/* ---- files ---- */

/* The lines of "body", each with one end. */
static int app_actions_write_body(int fd, const json_t *args, const json_t *variables,
                                  struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const json_t *line;
    size_t i;
    int r = 0;

    json_array_foreach(json_object_get(args, "body"), i, line) {
        if (r == 0)
            r = app_text_expand(json_string_value(line), variables, &text, err);
        if (!text.len || text.data[text.len - 1] != '\n')
            strbuf_addc(&text, '\n');
    }
    if (r == 0 && !strbuf_ok(&text))
        r = aq_fail_oom(err);
    return r == 0 && text.len && fs_write_all(fd, text.data, text.len) < 0
               ? aq_fail_errno(err, "write")
               : r;
}

static int app_actions_set_mode(int fd, const json_t *args, struct aq_error *err)
{
    const char *mode = json_string_value(json_object_get(args, "mode"));

    return fchmod(fd, (mode_t)strtoul(mode ? mode : "644", NULL, 8)) < 0
               ? aq_fail_errno(err, "chmod")
               : 0;
}

static int app_actions_write_file(const json_t *args, const json_t *variables, json_t **ret,
                                  struct aq_error *err)
{
    bool is_more = json_is_true(json_object_get(args, "append"));
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    AQ_CLEANUP(aq_closep) int fd = -1;
    int r = app_actions_expand(args, "filename", variables, &path, err);

    (void)ret;
    if (r < 0)
        return r;
    fd = open(path.len ? path.data : "",
              O_WRONLY | O_CREAT | O_CLOEXEC | (is_more ? O_APPEND : O_TRUNC), 0644);
    if (fd < 0)
        return aq_fail_errno(err, "'%s'", path.len ? path.data : "");
    r = app_actions_write_body(fd, args, variables, err);
    return r < 0 ? r : app_actions_set_mode(fd, args, err);
}

/* Its path. Python reads files of settings only if they have this ending. */
static int app_actions_write_tempfile(const json_t *args, const json_t *variables, json_t **ret,
                                      struct aq_error *err)
{
    char path[] = "/tmp/aliquot-app-XXXXXX.py";
    AQ_CLEANUP(aq_closep) int fd = mkostemps(path, 3, O_CLOEXEC);
    int r;

    if (fd < 0)
        return aq_fail_errno(err, "a file in /tmp");
    r = app_actions_write_body(fd, args, variables, err);
    if (r == 0)
        r = app_actions_set_mode(fd, args, err);
    if (r == 0 && !(*ret = json_string(path)))
        r = aq_fail_oom(err);
    return r;
}

static int app_actions_mkdir(const json_t *args, const json_t *variables, json_t **ret,
                             struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    int r = app_actions_expand(args, "path", variables, &path, err);

    (void)ret;
    return r < 0 ? r : fs_mkdirs(path.len ? path.data : "", 0755, err);
}

/* ---- commands ---- */

__attribute__((noreturn)) static void app_actions_become(char *const argv[], const int out[2],
                                                         const int errors[2])
{
    if (dup2(out[1], STDOUT_FILENO) >= 0 && dup2(errors[1], STDERR_FILENO) >= 0) {
        (void)execvp(argv[0], argv);
        (void)dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
    }
    _exit(127);
}

/* False at its end. */
static bool app_actions_read(int fd, struct strbuf *out)
{
    char bytes[4096];
    ssize_t got = read(fd, bytes, sizeof(bytes));

    if (got > 0 && out->len < OUTPUT_MAX)
        strbuf_add(out, bytes, AQ_MIN((size_t)got, OUTPUT_MAX - out->len));
    return got > 0 || (got < 0 && errno == EINTR);
}

static void app_actions_collect(int out, int errors, struct strbuf texts[2])
{
    struct pollfd ready[] = { { out, POLLIN, 0 }, { errors, POLLIN, 0 } };

    while (ready[0].fd >= 0 || ready[1].fd >= 0) {
        if (poll(ready, 2, -1) < 0 && errno != EINTR)
            return;
        for (int i = 0; i < 2; i++)
            if (ready[i].fd >= 0 && ready[i].revents && !app_actions_read(ready[i].fd, &texts[i]))
                ready[i].fd = -1;
    }
}

static int app_actions_fork(char *const argv[], struct strbuf texts[2], struct aq_error *err)
{
    int out[2] = { -1, -1 }, errors[2] = { -1, -1 };
    pid_t pid = -1;

    if (pipe2(out, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0 && (pid = fork()) == 0)
        app_actions_become(argv, out, errors);
    aq_closep(&out[1]);
    aq_closep(&errors[1]);
    if (pid > 0) {
        app_actions_collect(out[0], errors[0], texts);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    aq_closep(&out[0]);
    aq_closep(&errors[0]);
    return pid < 0 ? aq_fail_errno(err, "start '%s'", argv[0]) : 0;
}

static int app_actions_expand_all(const json_t *list, const json_t *variables, char **argv,
                                  struct aq_error *err)
{
    const json_t *word;
    size_t i;
    int r = 0;

    json_array_foreach(list, i, word) {
        struct strbuf text = STRBUF_INIT;

        if (r == 0)
            r = app_text_expand(json_string_value(word), variables, &text, err);
        if (r == 0 && !(argv[i] = text.len ? strbuf_steal(&text) : strdup("")))
            r = aq_fail_oom(err);
        strbuf_done(&text);
    }
    return r;
}

/* {"out", "err"} of what it has written. */
static int app_actions_run_command(const json_t *args, const json_t *variables, json_t **ret,
                                   struct aq_error *err)
{
    struct strbuf texts[2] = { STRBUF_INIT, STRBUF_INIT }, said[2] = { STRBUF_INIT, STRBUF_INIT };
    const json_t *command = json_object_get(args, "command");
    char *argv[APP_DEFINITION_ITEMS_MAX + 1] = { NULL };
    int r = app_actions_expand_all(command, variables, argv, err);

    if (r == 0 && !argv[0])
        r = aq_fail_field(err, EINVAL, "command", "a command is empty");
    if (r == 0)
        r = app_actions_fork(argv, texts, err);
    if (r == 0 && json_is_true(json_object_get(args, "echo")))
        for (int i = 0; i < 2; i++)
            if (texts[i].len)
                (void)fs_write_all(STDOUT_FILENO, texts[i].data, texts[i].len);
    for (int i = 0; i < 2; i++) {
        utf8_write_text(texts[i].data, texts[i].len, &said[i]);
        strbuf_done(&texts[i]);
    }
    if (r == 0)
        *ret = json_pack("{s:s,s:s}", "out", said[0].data, "err", said[1].data);
    strbuf_done(&said[0]);
    strbuf_done(&said[1]);
    for (size_t i = 0; argv[i]; i++)
        free(argv[i]);
    return r;
}

static int app_actions_log(const json_t *args, const json_t *variables, json_t **ret,
                           struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = app_actions_expand(args, "message", variables, &text, err);

    (void)ret;
    if (r == 0)
        (void)dprintf(STDOUT_FILENO, "%s\n", text.len ? text.data : "");
    return r;
}

static const struct {
    const char *name;
    int (*run)(const json_t *args, const json_t *variables, json_t **ret, struct aq_error *err);
} app_actions[] = {
    { "write_file", app_actions_write_file },
    { "write_tempfile", app_actions_write_tempfile },
    { "mkdir", app_actions_mkdir },
    { "run_command", app_actions_run_command },
    { "log", app_actions_log },
};

static int app_actions_run_one(const json_t *action, json_t *variables, struct aq_error *err)
{
    const char *name = json_string_value(json_object_get(action, "action"));
    const char *ref = json_string_value(json_object_get(action, "ref"));
    json_t *result = NULL;
    int r = 0;

    for (size_t i = 0; i < AQ_COUNT(app_actions); i++)
        if (strcmp(name, app_actions[i].name) == 0)
            r = app_actions[i].run(json_object_get(action, "args"), variables, &result, err);
    if (r == 0 && ref && result && json_object_set(variables, ref, result) < 0)
        r = aq_fail_oom(err);
    json_decref(result);
    return r < 0 ? aq_error_wrap(err, "%s", name) : 0;
}

int app_actions_run(const json_t *list, json_t *variables, struct aq_error *err)
{
    const json_t *action;
    size_t i;
    int r = 0;

    json_array_foreach(list, i, action)
        if (r == 0)
            r = app_actions_run_one(action, variables, err);
    return r;
}
