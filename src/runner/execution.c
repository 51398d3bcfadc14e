/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of code: the requests for them, and what they have written. */
#include "runner/execution.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"

const char *const execution_status_names[] = { "continued",      "waiting-input", "clean-finished",
                                               "build-finished", "finished",      "exec-timeout" };

_Static_assert(6 * EXECUTION_REPLY_MAX + 65536 <= EXECUTION_LINE_MAX
                   && EXECUTION_MEDIA_MAX + 65536 <= EXECUTION_LINE_MAX,
               "a reply fits, whatever its text takes in JSON");

#define RECORD_COST 64 /* bytes, so that a reply has a limit of records, too */

static const char *const execution_kind_names[] = { "stdout", "stderr", "media", "html", "log" };

static const char *const execution_verbs[] = { "run",   "batch",     "continue",
                                               "input", "interrupt", "complete",
                                               "apps",  "app",       "end-app" };

/* ---- requests ---- */

static bool execution_parse_number(const char *text, int64_t max, int64_t *ret)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    *ret = value;
    return !errno && end != text && !*end && value >= 0 && value <= max;
}

bool execution_parse(char *line, struct execution_request *ret)
{
    char *save = NULL, *words[5];
    const char *limit;
    int64_t len = 0;

    *ret = (struct execution_request){ .verb = AQ_COUNT(execution_verbs) };
    for (size_t i = 0; i < AQ_COUNT(words); i++)
        if (!(words[i] = strtok_r(i ? NULL : line, " ", &save)))
            return false;
    for (size_t i = 0; i < AQ_COUNT(execution_verbs); i++)
        if (strcmp(words[0], execution_verbs[i]) == 0)
            ret->verb = (enum execution_verb)i;
    if (ret->verb == AQ_COUNT(execution_verbs) || strlen(words[1]) > EXECUTION_ID_MAX
        || strlen(words[3]) > EXECUTION_LANGUAGE_MAX
        || !execution_parse_number(words[2], 600000, &ret->wait_msec)
        || !execution_parse_number(words[4], EXECUTION_CODE_MAX, &len)
        || ((limit = strtok_r(NULL, " ", &save))
            && !execution_parse_number(limit, EXECUTION_LIMIT_MAX, &ret->limit_msec)))
        return false;
    memcpy(ret->id, words[1], strlen(words[1]) + 1);
    memcpy(ret->language, words[3], strlen(words[3]) + 1);
    ret->len = (size_t)len;
    return true;
}

/* ---- records ---- */

static void execution_record_free(struct execution *run, struct execution_record *record)
{
    list_remove(&record->link);
    run->kept -= record->text.len;
    strbuf_done(&record->text);
    free(record);
}

struct execution *execution_new(const struct execution_request *request, const char *bytes,
                                int64_t now_msec)
{
    struct execution *run = calloc(1, sizeof(*run));

    if (!run)
        return NULL;
    list_init(&run->link);
    list_init(&run->records);
    strbuf_init(&run->code);
    memcpy(run->id, request->id, sizeof(run->id));
    run->is_batch = request->verb == EXECUTION_BATCH;
    run->asked_msec = now_msec;
    run->limit_msec = request->limit_msec;
    strbuf_add(&run->code, bytes, request->len);
    if (strbuf_ok(&run->code))
        return run;
    execution_free(run);
    return NULL;
}

void execution_free(struct execution *run)
{
    if (!run)
        return;
    while (!list_is_empty(&run->records))
        execution_record_free(run, LIST_ENTRY(run->records.next, struct execution_record, link));
    strbuf_done(&run->code);
    list_remove(&run->link);
    free(run);
}

static struct execution_record *execution_last(const struct execution *run)
{
    return list_is_empty(&run->records)
               ? NULL
               : LIST_ENTRY(run->records.prev, struct execution_record, link);
}

static struct execution_record *execution_add_record(struct execution *run,
                                                     enum execution_kind kind)
{
    struct execution_record *record = calloc(1, sizeof(*record));

    if (!record)
        return NULL;
    record->kind = kind;
    strbuf_init(&record->text);
    list_add(&run->records, &record->link);
    return record;
}

static void execution_append(struct execution *run, enum execution_kind kind, const char *bytes,
                             size_t len)
{
    struct execution_record *record = execution_last(run);
    bool joins = record && record->kind == kind
                 && (kind == EXECUTION_STDOUT || kind == EXECUTION_STDERR);

    if (!joins)
        record = execution_add_record(run, kind);
    if (!record || !strbuf_reserve(&record->text, len))
        return;
    strbuf_add(&record->text, bytes, len);
    run->kept += len;
}

void execution_add(struct execution *run, enum execution_kind kind, const char *bytes, size_t len)
{
    static const char told[] = "what was written while nobody asked for it was dropped";

    if (run->is_over || !len)
        return;
    if (run->kept < EXECUTION_OUTPUT_MAX) {
        run->is_dropping = false;
        execution_append(run, kind, bytes, len);
    } else if (!run->is_dropping) {
        run->is_dropping = true;
        execution_append(run, EXECUTION_LOG, told, sizeof(told) - 1);
    }
}

void execution_add_status(struct execution *run, enum execution_status status, int exit_code)
{
    struct execution_record *record = execution_add_record(run, EXECUTION_STATUS);

    run->is_over = status >= EXECUTION_FINISHED;
    run->is_waiting = false;
    if (!record)
        return; /* execution_take() says it all the same */
    record->status = status;
    record->exit_code = exit_code;
}

bool execution_is_full(const struct execution *run)
{
    return run->kept >= EXECUTION_OUTPUT_MAX;
}

bool execution_has_status(const struct execution *run)
{
    if (run->is_over || run->is_waiting || run->kept >= EXECUTION_REPLY_MAX)
        return true;
    LIST_FOREACH(it, &run->records)
        if (LIST_ENTRY(it, struct execution_record, link)->kind == EXECUTION_STATUS)
            return true;
    return false;
}

/* ---- replies ---- */

/* Bytes at the end of the text that begin a character of UTF-8 whose rest has not come. */
static size_t execution_cut_off(const char *text, size_t len)
{
    for (size_t back = 1; back <= AQ_MIN(len, (size_t)3); back++) {
        unsigned char c = (unsigned char)text[len - back];
        size_t whole = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

        if (c >= 0xc0 || c < 0x80)
            return whole > back ? back : 0;
    }
    return 0;
}

static void execution_write_record(struct jsonw *w, enum execution_kind kind, const char *text,
                                   size_t len)
{
    size_t mime = kind == EXECUTION_MEDIA ? strnlen(text, len) : 0;

    jsonw_array_begin(w);
    jsonw_str(w, execution_kind_names[kind]);
    if (kind == EXECUTION_MEDIA && mime < len) {
        jsonw_array_begin(w);
        jsonw_strn(w, text, mime);
        jsonw_strn(w, text + mime + 1, len - mime - 1);
        jsonw_array_end(w);
    } else {
        jsonw_strn(w, text, len);
    }
    jsonw_array_end(w);
}

/* The first record, or as much of it as goes into a reply. False if some of it is left. */
static bool execution_take_record(struct execution *run, struct jsonw *w, size_t *room)
{
    struct execution_record *record = LIST_ENTRY(run->records.next, struct execution_record, link);
    bool may_split = record->kind == EXECUTION_STDOUT || record->kind == EXECUTION_STDERR;
    bool is_last = record->link.next == &run->records;
    size_t len = record->text.len;

    if (!*room || (!may_split && len > *room && *room < EXECUTION_REPLY_MAX))
        return false; /* one that is larger goes alone */
    if (may_split && len > *room)
        len = *room;
    if (may_split && (len < record->text.len || (is_last && !run->is_over)))
        len -= execution_cut_off(record->text.data, len);
    if (len)
        execution_write_record(w, record->kind, record->text.data, len);
    *room -= AQ_MIN(len + RECORD_COST, *room);
    if (len < record->text.len) {
        strbuf_consume(&record->text, len);
        run->kept -= len;
        return false;
    }
    execution_record_free(run, record);
    return true;
}

static void execution_write_end(struct jsonw *w, enum execution_status status, const int *exit_code,
                                bool is_password)
{
    jsonw_member_str(w, "status", execution_status_names[status]);
    if (exit_code)
        jsonw_member_int(w, "exit_code", *exit_code);
    else
        jsonw_member_null(w, "exit_code");
    jsonw_member_bool(w, "is_password", status == EXECUTION_WAITING_INPUT && is_password);
}

bool execution_take(struct execution *run, struct strbuf *out)
{
    enum execution_status status = EXECUTION_CONTINUED;
    struct jsonw w = jsonw_make(out);
    size_t room = EXECUTION_REPLY_MAX;
    bool is_whole = true, has_code = false;
    int exit_code = -1;

    jsonw_object_begin(&w);
    jsonw_key(&w, "console");
    jsonw_array_begin(&w);
    while (is_whole && !has_code && !list_is_empty(&run->records)) {
        struct execution_record *record = LIST_ENTRY(run->records.next, struct execution_record,
                                                     link);

        if (record->kind != EXECUTION_STATUS) {
            is_whole = execution_take_record(run, &w, &room);
            continue;
        }
        status = record->status;
        exit_code = record->exit_code;
        has_code = true;
        execution_record_free(run, record);
    }
    jsonw_array_end(&w);
    if (is_whole && !has_code && run->is_over) {
        status = EXECUTION_FINISHED; /* there was no memory to say how */
        has_code = true;
    } else if (is_whole && !has_code && run->is_waiting) {
        status = EXECUTION_WAITING_INPUT;
    }
    has_code &= status != EXECUTION_TIMEOUT;
    execution_write_end(&w, status, has_code ? &exit_code : NULL, run->is_password);
    jsonw_object_end(&w);
    return status >= EXECUTION_FINISHED;
}
