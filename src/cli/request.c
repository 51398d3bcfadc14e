/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that commands make of their options and arguments. */
#include "cli/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/amounts.h"
#include "http/url.h"

/* ---- options ---- */

/* "enabled=yes", "order=newest", "half_life_days=3.5" into the object. */
static int request_add_setting(const char *text, json_t *object, struct aq_error *err)
{
    size_t len = strcspn(text, "=");
    AQ_CLEANUP(aq_freep) char *key = aq_strndup(text, len);
    const char *value = text + len + 1;
    json_t *number;

    if (len == 0 || !text[len] || !*value)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "KEY=VALUE is wanted, not '%.60s'", text);
    if (strcmp(value, "yes") == 0 || strcmp(value, "no") == 0)
        return json_object_set_new(object, key, json_boolean(value[0] == 'y'));
    number = json_loads(value, JSON_DECODE_ANY, NULL);
    if (json_is_number(number))
        return json_object_set_new(object, key, number);
    json_decref(number);
    return json_object_set_new(object, key, json_string(value)) < 0
               ? aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "'%.60s' is not UTF-8", text)
               : 0;
}

/* "private,host" as two; those whose argument is shown as "WORD,...". */
static int request_add_words(const char *text, json_t *array)
{
    int r = 0;

    for (; r == 0 && *text; text += *text == ',') {
        size_t len = strcspn(text, ",");

        r = json_array_append_new(array, json_stringn(text, len));
        text += len;
    }
    return r;
}

static json_t *request_list_value(const struct cli_opt *opt, const struct cli_list *list,
                                  struct aq_error *err)
{
    bool is_slots = strcmp(opt->arg, "SLOT=AMOUNT") == 0;
    bool is_settings = strcmp(opt->arg, "KEY=VALUE") == 0;
    bool is_words = strstr(opt->arg, ",...") != NULL;
    json_t *value = is_slots || is_settings ? json_object() : json_array();

    for (size_t i = 0; i < list->count; i++) {
        if (is_slots      ? cli_amounts_add(list->items[i], NULL, value, err)
            : is_settings ? request_add_setting(list->items[i], value, err)
            : is_words    ? request_add_words(list->items[i], value)
                          : json_array_append_new(value, json_string(list->items[i]))) {
            json_decref(value);
            return NULL;
        }
    }
    return value;
}

static json_t *request_choice_value(const struct cli_opt *opt, int choice)
{
    const char *word;
    size_t len = cli_choice_word(opt->arg, (size_t)choice - 1, &word);

    if (strcmp(opt->arg, "yes|no") == 0)
        return json_boolean(choice == 1);
    return json_stringn(word, len);
}

static json_t *request_seconds_value(int64_t usec)
{
    return json_integer(usec / USEC_PER_SEC + (usec % USEC_PER_SEC != 0));
}

/* Text, or what the text means where JSON is asked for. */
static json_t *request_text_value(const struct cli_opt *opt, const char *text, struct aq_error *err)
{
    json_t *value;

    if (strcmp(opt->arg, "JSON") != 0)
        return json_string(text);
    if (!(value = json_loads(text, JSON_REJECT_DUPLICATES, NULL)))
        (void)aq_fail_field(err, EINVAL, opt->name, "--%s: '%s' is not valid JSON", opt->name,
                            text);
    return value;
}

static bool request_is_given(const struct cli_opt *opt, const void *at)
{
    switch (opt->type) {
    case CLI_FLAG:
        return *(const bool *)at;
    case CLI_STR:
        return *(const char *const *)at;
    case CLI_INT:
    case CLI_DURATION:
    case CLI_LIMIT:
        return ((const struct cli_int *)at)->is_set;
    case CLI_LIST:
        return ((const struct cli_list *)at)->count;
    case CLI_CHOICE:
        return *(const int *)at;
    }
    return false;
}

/* NULL with err->code 0: it is not UTF-8. */
static json_t *request_value(const struct cli_opt *opt, const void *at, struct aq_error *err)
{
    switch (opt->type) {
    case CLI_FLAG:
        return json_true();
    case CLI_STR:
        return request_text_value(opt, *(const char *const *)at, err);
    case CLI_INT:
        return json_integer(((const struct cli_int *)at)->value);
    case CLI_DURATION:
    case CLI_LIMIT:
        return request_seconds_value(((const struct cli_int *)at)->value);
    case CLI_LIST:
        return request_list_value(opt, at, err);
    case CLI_CHOICE:
        return request_choice_value(opt, *(const int *)at);
    }
    return NULL;
}

int cli_option_add(const struct cli_opt *opt, const void *target, const char *member, json_t *body,
                   struct aq_error *err)
{
    const void *at = (const char *)target + opt->offset;
    struct aq_error why = { 0 };
    json_t *value;

    if (!request_is_given(opt, at))
        return 0;
    value = request_value(opt, at, &why);
    if (value)
        return json_object_set_new(body, member, value);
    if (!why.code)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--%s is not UTF-8", opt->name);
    if (err)
        *err = why;
    return -why.code;
}

int cli_options_add(const struct cli_opt *opts, const void *target, json_t *body,
                    struct aq_error *err)
{
    int r = 0;

    for (; r == 0 && opts && opts->name; opts++)
        if (opts->member)
            r = cli_option_add(opts, target, opts->member, body, err);
    return r;
}

void cli_path_options(struct strbuf *path, const struct cli_opt *opts, const void *target)
{
    for (; opts->name; opts++) {
        const void *at = (const char *)target + opts->offset;
        char number[24];

        if (!opts->member || !request_is_given(opts, at))
            continue;
        if (opts->type == CLI_INT)
            (void)snprintf(number, sizeof(number), "%" PRId64, ((const struct cli_int *)at)->value);
        cli_path_query(path, opts->member,
                       opts->type == CLI_STR   ? *(const char *const *)at
                       : opts->type == CLI_INT ? number
                                               : "true");
    }
}

/* ---- requests ---- */

int cli_send(struct cli *cli, enum method method, const char *path, json_t *body, const char *why,
             json_t **ret, struct aq_error *err)
{
    int r = body ? cli_call(cli, method, path, body, ret, err)
                 : aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "%s", why);

    json_decref(body);
    return r;
}

static void request_show_errors(const struct client_reply *reply, cli_describe_fn *describe,
                                const void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_auto_t *problem = json_loadb(reply->body.data, reply->body.len, 0, NULL);
    const json_t *about = json_object_get(problem, "data"), *error;
    json_int_t more = json_integer_value(json_object_get(about, "more"));
    size_t i;

    json_array_foreach(json_object_get(about, "errors"), i, error) {
        describe(data, error, &out);
        strbuf_addc(&out, '\n');
    }
    if (more > 0)
        strbuf_addf(&out, "and %lld more\n", (long long)more);
    fputs(out.data, stderr);
}

int cli_send_rows(struct cli *cli, const char *path, const json_t *body, cli_describe_fn *describe,
                  const void *data, int *ret_status, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = json_dumps(body, JSON_COMPACT);
    struct client_reply reply = CLIENT_REPLY_INIT;
    int r = cli_fetch(cli, METHOD_POST, path, text, &reply, err);

    *ret_status = r < 0 ? 0 : reply.status;
    if (r == 0 && reply.status != 200) {
        request_show_errors(&reply, describe, data);
        r = cli_fail_status(cli, reply.status, reply.body.data, reply.body.len, err);
    } else if (r == 0 && !(*ret = json_loadb(reply.body.data, reply.body.len, 0, NULL))) {
        r = cli_fail_answer(cli, "it was cut short", err);
    }
    explicit_bzero(text, strlen(text));
    client_reply_done(&reply);
    return r;
}

void cli_thing_path(const struct cli_things *things, const char *key, const char *rest,
                    struct strbuf *path)
{
    strbuf_adds(path, things->path);
    url_encode(path, key);
    strbuf_adds(path, rest);
}

int cli_thing_call(struct cli *cli, enum method method, const struct cli_things *things,
                   const char *key, const char *rest, const json_t *body, json_t **ret,
                   struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    int r;

    cli_thing_path(things, key, rest, &path);
    r = cli_call(cli, method, path.data, body, ret, err);
    return r < 0 && things->noun ? aq_error_wrap(err, "%s '%s'", things->noun, key) : r;
}

int cli_thing_call_once(struct cli *cli, const struct cli_things *things, const char *key,
                        const char *rest, const json_t *body, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    int r;

    cli_thing_path(things, key, rest, &path);
    r = cli_call_once(cli, path.data, body, ret, err);
    return r < 0 && things->noun ? aq_error_wrap(err, "%s '%s'", things->noun, key) : r;
}

int cli_things_call(struct cli *cli, enum method method, const struct cli_things *things,
                    const char *rest, const json_t *body, int argc, char **argv,
                    struct aq_error *err)
{
    int r = 0;

    for (int i = 0; r == 0 && i < argc; i++)
        r = cli_thing_call(cli, method, things, argv[i], rest, body, NULL, err);
    return r;
}
