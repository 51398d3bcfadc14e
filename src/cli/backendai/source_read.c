/* SPDX-License-Identifier: Apache-2.0 */
/* source_read.c - where rows come from: a dump, a server, a fixture */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/memory.h"
#include "cli/backendai/source.h"
#include "cli/backendai/sql_dump.h"
#include "cli/cli.h"

#define CHUNK_BYTES (256u << 10)
#define FIXTURE_MAX (16u << 20)

/* ---- the dump's rows ---- */

static int source_on_begin(void *data, const char *table, const char *const *columns, size_t count,
                           size_t line, struct aq_error *err)
{
    struct source *source = data;
    int r = source_begin_table(source, table, err);

    if (r <= 0 || !columns)
        return r;
    if (count == 0)
        return aq_fail(
            err, EINVAL,
            "line %zu: the columns of '%s' are not known: dump it with --column-inserts, "
            "or with COPY",
            line, table);
    r = source_set_columns(source, columns, count, line, err);
    return r < 0 ? r : 1;
}

static int source_on_row(void *data, const char *const *values, size_t count, size_t line,
                         struct aq_error *err)
{
    const json_t *made[SOURCE_COLUMNS_MAX] = { NULL };
    struct source *source = data;
    int r = 0;

    for (size_t i = 0; i < count; i++) {
        made[i] = values[i] && source->columns[i] ? json_string(values[i]) : json_null();
        if (made[i])
            continue;
        r = aq_fail(err, EINVAL, "table '%s', line %zu: column '%s' is not UTF-8",
                    source->table_name, line, source->columns[i]->name);
        made[i] = json_null();
    }
    if (r == 0)
        r = source_add_row(source, made, count, line, err);
    for (size_t i = 0; i < count; i++)
        json_decref((json_t *)(uintptr_t)made[i]);
    return r;
}

static void source_on_skipped(void *data)
{
    (void)source_skip_row(data);
}

const struct sql_dump_ops source_dump_ops = { source_on_begin, source_on_row, source_on_skipped };

/* ---- bytes ---- */

/* What pg_dump and people make of a dump that is no plain SQL. */
static int source_check_kind(const char *bytes, size_t len, struct aq_error *err)
{
    static const struct {
        const char *magic, *what, *cure;
    } kinds[] = {
        { "PGDMP", "pg_dump's custom format", "pg_restore -f dump.sql FILE" },
        { "\x1f\x8b", "compressed", "gunzip FILE" },
        { "\x28\xb5\x2f\xfd", "compressed", "zstd -d FILE" },
        { "\xfd"
          "7zXZ",
          "compressed", "unxz FILE" },
    };

    for (size_t i = 0; i < AQ_COUNT(kinds); i++)
        if (len >= strlen(kinds[i].magic)
            && memcmp(bytes, kinds[i].magic, strlen(kinds[i].magic)) == 0)
            return aq_fail(err, EINVAL, "it is %s; make plain SQL of it: %s", kinds[i].what,
                           kinds[i].cure);
    return 0;
}

static int source_read_fd(struct source *source, int fd, struct aq_error *err)
{
    AQ_CLEANUP(sql_dump_freep) struct sql_dump *dump = sql_dump_new(&source_dump_ops, source);
    AQ_CLEANUP(aq_freep) char *chunk = aq_alloc(CHUNK_BYTES);
    bool is_first = true;
    ssize_t n;
    int r = 0;

    while (r == 0 && ((n = read(fd, chunk, CHUNK_BYTES)) > 0 || (n < 0 && errno == EINTR))) {
        if (n < 0)
            continue;
        if (is_first)
            r = source_check_kind(chunk, (size_t)n, err);
        is_first = false;
        if (r == 0)
            r = sql_dump_feed(dump, chunk, (size_t)n, err);
    }
    if (r == 0 && n < 0)
        r = aq_fail_errno(err, "read");
    if (r == 0)
        r = sql_dump_end(dump, err);
    explicit_bzero(chunk, CHUNK_BYTES);
    return r;
}

int source_read_dump(struct source *source, const char *path, struct aq_error *err)
{
    bool is_input = strcmp(path, "-") == 0;
    AQ_CLEANUP(aq_closep) int fd = is_input ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    int r;

    if (fd < 0)
        return aq_fail_errno(err, "'%s' cannot be read", path);
    if ((r = source_read_fd(source, fd, err)) == 0)
        r = source_finish(source, true, err);
    return r < 0 ? aq_error_wrap(err, "%s", is_input ? "standard input" : path) : 0;
}

/* ---- a server ---- */

/* What aliquot-manager reads: short enough for a pipe to hold. */
static int source_write_wishes(int fd, const char *uri, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r;

    strbuf_addf(&text, "%s\n", uri);
    for (const struct source_table *table = source_tables; table->name; table++)
        if (table->use != SOURCE_COUNTED)
            strbuf_addf(&text, "%s\n", table->name);
    r = fs_write_all(fd, text.data, text.len);
    if (text.len)
        explicit_bzero(text.data, text.len);
    return r < 0 ? aq_fail(err, -r, "aliquot-manager does not read") : 0;
}

static _Noreturn void source_run_child(const char *program, int in, int out)
{
    char name[] = "aliquot-manager", verb[] = "backendai-dump";

    (void)signal(SIGPIPE, SIG_DFL);
    if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
        (void)execv(program, (char *[]){ name, verb, NULL });
    _exit(127);
}

/* Reads what the child writes. */
static int source_read_child(struct source *source, const char *uri, pid_t pid, int in, int out,
                             struct aq_error *err)
{
    int status = 0, r = source_write_wishes(in, uri, err);

    (void)close(in);
    if (r == 0)
        r = source_read_fd(source, out, err);
    (void)close(out); /* it ends if we do not read on */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0 && (r == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 1)))
        return aq_fail(err, EIO, "the database could not be read; see above");
    return r;
}

int source_read_server(struct source *source, const char *uri, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *program = cli_find_program("aliquot-manager", err);
    int in[2], out[2];
    pid_t pid;
    int r;

    if (!program)
        return -ENOENT;
    if (strchr(uri, '\n') || strlen(uri) > 4000)
        return aq_fail(err, EINVAL, "the database is named by a line of at most 4000 bytes");
    (void)signal(SIGPIPE, SIG_IGN);
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        return aq_fail_errno(err, "a pipe");
    if ((pid = fork()) < 0)
        return aq_fail_errno(err, "start '%s'", program);
    if (pid == 0)
        source_run_child(program, in[0], out[1]);
    (void)close(in[0]);
    (void)close(out[1]);
    source->is_rows = true;
    r = source_read_child(source, uri, pid, in[1], out[0], err);
    return r < 0 ? r : source_finish(source, true, err);
}

/* ---- a fixture ---- */

static int source_add_object(struct source *source, json_t *object, size_t line,
                             struct aq_error *err)
{
    const char *names[SOURCE_COLUMNS_MAX];
    const json_t *values[SOURCE_COLUMNS_MAX];
    size_t count = 0;
    const char *key;
    json_t *value;
    int r;

    if (!json_is_object(object))
        return aq_fail(err, EINVAL, "table '%s', row %zu is no object", source->table_name, line);
    json_object_foreach(object, key, value) {
        if (count == SOURCE_COLUMNS_MAX)
            return aq_fail(err, EINVAL, "table '%s', row %zu has more than %d columns",
                           source->table_name, line, SOURCE_COLUMNS_MAX);
        names[count] = key;
        values[count++] = value;
    }
    if ((r = source_set_columns(source, names, count, line, err)) < 0)
        return aq_error_wrap(err, "row %zu", line);
    return source_add_row(source, values, count, line, err);
}

static int source_add_list(struct source *source, const char *table, json_t *list,
                           struct aq_error *err)
{
    int wanted = source_begin_table(source, table, err), r = AQ_MIN(wanted, 0);
    json_t *row;
    size_t i;

    if (r == 0 && !json_is_array(list))
        r = aq_fail(err, EINVAL, "table '%.64s' is no list of rows", table);
    for (i = 0; r == 0 && i < json_array_size(list); i++) {
        row = json_array_get(list, i);
        if (wanted)
            r = source_add_object(source, row, i + 1, err);
        else
            (void)source_skip_row(source);
    }
    return r;
}

static int source_add_fixture(struct source *source, json_t *fixture, struct aq_error *err)
{
    const char *table;
    json_t *list;
    int r = 0;

    source->is_rows = true;
    json_object_foreach(fixture, table, list)
        if (strncmp(table, "__", 2) != 0 && (r = source_add_list(source, table, list, err)) < 0)
            return r; /* "__mode" says how Backend.AI inserts */
    return source_finish(source, false, err);
}

int source_read_fixture(struct source *source, const char *path, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    bool is_input = strcmp(path, "-") == 0;
    json_auto_t *fixture = NULL;
    json_error_t where;
    int r = cli_read_file(path, FIXTURE_MAX, &text, err);

    if (r < 0)
        return r;
    fixture = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &where);
    if (text.len)
        explicit_bzero(text.data, text.len);
    if (!fixture)
        return aq_fail(err, EINVAL, "%s is not JSON: line %d: %s", path, where.line, where.text);
    r = json_is_object(fixture) ? source_add_fixture(source, fixture, err)
                                : aq_fail(err, EINVAL, "it is no object of tables");
    return r < 0 ? aq_error_wrap(err, "%s", is_input ? "standard input" : path) : 0;
}
