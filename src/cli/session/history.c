/* SPDX-License-Identifier: Apache-2.0 */
/* What has become of a session: its history, and between which agents was chosen. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/client.h"
#include "cli/list.h"
#include "cli/session/array.h"
#include "cli/session/session.h"
#include "cli/output/resource_usage.h"
#include "cli/verbs.h"
#include "model/status.h"

static const struct column change_columns[] = {
    { "at", "TIME", COLUMN_CLOCK, 0 },
    { "kernel", "KERNEL", COLUMN_TEXT, 0 },
    { "status", "STATUS", COLUMN_STATUS, COLUMN_IS_NAME },
    { "lasted", "LASTED", COLUMN_TEXT, 0 },
    { "reason", "REASON", COLUMN_REASON, COLUMN_MAY_SHRINK },
    COLUMN_END,
};

static const struct column element_columns[] = {
    { "name", "ELEMENT", COLUMN_TEXT, COLUMN_IS_NAME },
    { "status", "STATUS", COLUMN_STATUS, 0 },
    { "exit_code", "EXIT", COLUMN_NUMBER, 0 },
    { "created_at", "CREATED", COLUMN_CLOCK, COLUMN_IS_WIDE },
    { "started_at", "STARTED", COLUMN_CLOCK, 0 },
    { "terminated_at", "ENDED", COLUMN_CLOCK, 0 },
    { "lasted", "LASTED", COLUMN_TEXT, 0 },
    { "agents", "AGENTS", COLUMN_NAMES, COLUMN_IS_WIDE },
    { "reason", "REASON", COLUMN_REASON, COLUMN_MAY_SHRINK },
    COLUMN_END,
};

static const struct column attempt_columns[] = {
    { "first_at", "FIRST TRY", COLUMN_CLOCK, 0 },
    { "last_at", "LAST TRY", COLUMN_CLOCK, 0 },
    { "attempts", "TRIES", COLUMN_NUMBER, 0 },
    { "kind", "RESULT", COLUMN_TEXT, COLUMN_IS_NAME },
    { "detail", "DETAIL", COLUMN_TEXT, COLUMN_IS_EXTRA },
    COLUMN_END,
};

static const struct column choice_columns[] = {
    { "mark", "", COLUMN_TEXT, 0 },
    { "agent", "AGENT", COLUMN_TEXT, COLUMN_IS_NAME },
    { "equal", "EQUAL", COLUMN_NUMBER, 0 },
    { "score", "SCORE", COLUMN_TEXT, 0 },
    { "free", "FREE", COLUMN_SLOTS, 0 },
    { "bar", "", COLUMN_TEXT, 0 },
    COLUMN_END,
};

static int history_get(struct cli *cli, const char *name, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    int r;

    session_path(cli, &path, name, "/history");
    r = cli_call(cli, METHOD_GET, path.data, NULL, ret, err);
    return r < 0 ? session_wrap_error(err, name) : 0;
}

/* ---- history ---- */

/* The state that follows this one, of the same kernel or of the session; NULL = it is the last. */
static const json_t *history_next_state(const json_t *states, size_t at)
{
    const json_t *kernel = json_object_get(json_array_get(states, at), "kernel");

    for (size_t i = at + 1; i < json_array_size(states); i++) {
        const json_t *state = json_array_get(states, i);

        if (json_equal(json_object_get(state, "kernel"), kernel))
            return state;
    }
    return NULL;
}

/* How long each state lasted, up to now for the one that lasts; nothing for an end. */
static void history_add_durations(const struct output *o, const json_t *states)
{
    json_t *state;
    size_t i;

    json_array_foreach(states, i, state) {
        AQ_CLEANUP(strbuf_donep) struct strbuf lasted = STRBUF_INIT;
        const char *name = json_string_value(json_object_get(state, "status"));
        const char *at = json_string_value(json_object_get(state, "at"));
        const json_t *next = history_next_state(states, i);
        const char *until = json_string_value(json_object_get(next, "at"));
        enum session_status status = SESSION_PENDING;
        int64_t begin, end = o->now_usec;

        if (!at || clock_parse_date(at, &begin) < 0 || (until && clock_parse_date(until, &end) < 0))
            continue;
        if (!next && name && session_status_parse(name, &status) == 0
            && session_is_terminal(status))
            continue;
        cell_write_span(AQ_MAX(end - begin, INT64_C(0)), &lasted);
        (void)json_object_set_new(state, "lasted", json_string(lasted.data));
    }
}

static int history_print(struct cli *cli, const json_t *past, struct aq_error *err)
{
    const json_t *attempts = json_object_get(past, "scheduling");
    AQ_CLEANUP(strbuf_donep) struct strbuf gap = STRBUF_INIT;
    int r;

    if (!output_is_human(&cli->output))
        return record_print(
            cli,
            (const struct column[]){ { "items", "STATES", COLUMN_TEXT, COLUMN_IS_NESTED },
                                     { "scheduling", "SCHEDULING", COLUMN_TEXT, COLUMN_IS_NESTED },
                                     COLUMN_END },
            past, err);
    history_add_durations(&cli->output, json_object_get(past, "items"));
    r = list_print(cli, change_columns, json_object_get(past, "items"), err);
    if (r < 0 || json_array_size(attempts) == 0)
        return r;
    strbuf_addc(&gap, '\n');
    r = cli_print(&gap, err);
    return r < 0 ? r : list_print(cli, attempt_columns, attempts, err);
}

/* How long an element has run. */
static void history_add_element_duration(const struct output *o, json_t *element)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf lasted = STRBUF_INIT;
    const char *from = json_string_value(json_object_get(element, "started_at"));
    const char *to = json_string_value(json_object_get(element, "terminated_at"));
    int64_t begin, end = o->now_usec;

    if (!from || clock_parse_date(from, &begin) < 0 || (to && clock_parse_date(to, &end) < 0))
        return;
    cell_write_span(AQ_MAX(end - begin, INT64_C(0)), &lasted);
    (void)json_object_set_new(element, "lasted", json_string(lasted.data));
}

/* A line for each element of the array that has a session, in the order of their indices. */
static int history_print_array(struct cli *cli, const json_t *array, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *elements = NULL, *element;
    size_t i;
    int r;

    strbuf_adds(&path, "/aliquot/v1/sessions?order=array_index&fields=name,status,exit_code,"
                       "created_at,started_at,terminated_at,agents,reason");
    cli_path_query(&path, "array", json_string_value(json_object_get(array, "id")));
    cli_path_query(&path, "owner_access_key", cli->globals.owner);
    r = cli_call_list(cli, path.data, CLI_PAGE_OF_SHORT_ROWS, 0, &elements, NULL, err);
    if (r < 0)
        return r;
    json_array_foreach(elements, i, element)
        history_add_element_duration(&cli->output, element);
    r = list_print(cli, element_columns, elements, err);
    json_decref(elements);
    return r;
}

static int history_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_t *past = NULL, *array = NULL;
    int r = history_get(cli, argv[0], &past, err);

    (void)data;
    (void)argc;
    if (r == -ENOENT && array_get(cli, argv[0], &array, NULL) == 0)
        r = history_print_array(cli, array, err);
    else if (r == 0)
        r = history_print(cli, past, err);
    json_decref(array);
    json_decref(past);
    return r;
}

const struct cli_verb verb_session_history = {
    .name = "session history",
    .args = "SESSION",
    .summary = "Show every state of a session, and what the scheduler made of it",
    .details = "When each state began, by the clock of this machine, and how long it lasted. The\n"
               "second table has a line for each run of the scheduler's tries with the same\n"
               "result. The name of an array lists when its elements started and ended.",
    .examples = "aliquot session history train-3fa2b1\n"
                "aliquot session history train-3fa2b1 -o json",
    .min_args = 1,
    .max_args = 1,
    .run = history_run,
};

/* ---- candidates ---- */

/* What a candidate is compared by: its score, else the first amount. */
static double history_choices_measure(const json_t *candidate)
{
    const json_t *score = json_object_get(candidate, "score");
    json_t *free = json_object_get(candidate, "free");
    void *first = json_object_iter(free);

    if (json_is_number(score))
        return json_number_value(score);
    return first ? atof(json_string_value(json_object_iter_value(first))) : 0;
}

static void history_choices_add_bar(json_t *candidate, double low, double high)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf bar = STRBUF_INIT;

    usage_bar(high > low ? (history_choices_measure(candidate) - low) / (high - low) : 1,
              USAGE_BAR_WIDTH, &bar);
    json_object_set_new(candidate, "bar", json_string(bar.data));
}

static void history_choices_draw(json_t *best)
{
    double low = 0, high = 0;
    json_t *candidate;
    size_t i;

    json_array_foreach(best, i, candidate) {
        low = AQ_MIN(low, history_choices_measure(candidate));
        high = AQ_MAX(high, history_choices_measure(candidate));
    }
    json_array_foreach(best, i, candidate) {
        bool is_chosen = json_is_true(json_object_get(candidate, "chosen"));
        char score[32] = "";

        if (json_is_number(json_object_get(candidate, "score")))
            (void)snprintf(score, sizeof(score), "%.4g", history_choices_measure(candidate));
        history_choices_add_bar(candidate, low, high);
        json_object_set_new(candidate, "score", json_string(score));
        json_object_set_new(candidate, "mark", json_string(is_chosen ? "*" : ""));
    }
}

static int history_choices_print_one(struct cli *cli, const json_t *choice, size_t number,
                                     struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf head = STRBUF_INIT;
    const char *selection = json_string_value(json_object_get(choice, "selection"));
    json_int_t with = json_integer_value(json_object_get(choice, "with_room"));
    json_int_t without = json_integer_value(json_object_get(choice, "without_room"));
    json_t *best = json_object_get(choice, "best");
    int r;

    strbuf_addf(&head, "%sRequirement #%zu: of %lld agents %lld had room; selection %.32s%s\n",
                number ? "\n" : "", number + 1, (long long)(with + without), (long long)with,
                selection ? selection : "?",
                json_is_false(json_object_get(choice, "ranked"))
                    ? " (no ranking: the chosen one, others by name)"
                    : "");
    r = cli_print(&head, err);
    history_choices_draw(best);
    return r < 0 ? r : list_print(cli, choice_columns, best, err);
}

/* The last placement among the attempts; NULL = none is known. */
static json_t *history_choices_find(const json_t *past)
{
    json_t *attempts = json_object_get(past, "scheduling"), *found = NULL, *attempt;
    size_t i;

    json_array_foreach(attempts, i, attempt) {
        const char *kind = json_string_value(json_object_get(attempt, "kind"));

        if (kind && strcmp(kind, "placed") == 0)
            found = json_object_get(attempt, "detail");
    }
    return json_is_array(found) ? found : NULL;
}

static int history_choices_print(struct cli *cli, json_t *choices, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_t *choice;
    size_t i;
    int r = 0;

    if (!output_is_human(&cli->output)) {
        r = output_list(
            &cli->output,
            (const struct column[]){ { "selection", "SELECTION", COLUMN_TEXT, COLUMN_IS_NAME },
                                     { "with_room", "WITH-ROOM", COLUMN_NUMBER, 0 },
                                     { "without_room", "WITHOUT", COLUMN_NUMBER, 0 },
                                     { "ranked", "RANKED", COLUMN_BOOL, 0 },
                                     { "best", "BEST", COLUMN_TEXT, COLUMN_IS_NESTED },
                                     COLUMN_END },
            choices, &out, err);
        return r < 0 ? r : cli_print(&out, err);
    }
    json_array_foreach(choices, i, choice)
        if (r == 0)
            r = history_choices_print_one(cli, choice, i, err);
    return r;
}

int choices_show(struct cli *cli, const char *name, struct aq_error *err)
{
    json_t *past = NULL, *choices = NULL;
    int r = history_get(cli, name, &past, err);

    if (r == 0 && !(choices = history_choices_find(past)))
        r = aq_fail(err, ENOENT,
                    "session '%s': no placement is known; it has not started, or "
                    "that is too long ago",
                    name);
    if (r == 0)
        r = history_choices_print(cli, choices, err);
    json_decref(past);
    return r;
}
