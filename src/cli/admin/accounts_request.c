/* SPDX-License-Identifier: Apache-2.0 */
/* Options into the body of a request. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/client.h"
#include "cli/admin/accounts.h"
#include "cli/session/session_spec.h"

/* "enabled=yes", "order=newest", "half_life_days=3.5" into the object. */
static int accounts_add_setting(const char *text, json_t *object, struct aq_error *err)
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

static json_t *accounts_list_value(const struct cli_opt *opt, const struct cli_list *list,
                                   struct aq_error *err)
{
    bool is_slots = strcmp(opt->arg, "SLOT=AMOUNT") == 0;
    bool is_settings = strcmp(opt->arg, "KEY=VALUE") == 0;
    json_t *value = is_slots || is_settings ? json_object() : json_array();

    for (size_t i = 0; i < list->count; i++) {
        if (is_slots      ? spec_add_resources(list->items[i], value, err)
            : is_settings ? accounts_add_setting(list->items[i], value, err)
                          : json_array_append_new(value, json_string(list->items[i]))) {
            json_decref(value);
            return NULL;
        }
    }
    return value;
}

static json_t *accounts_choice_value(const struct cli_opt *opt, int choice)
{
    const char *word;
    size_t len = cli_choice_word(opt->arg, (size_t)choice - 1, &word);

    if (strcmp(opt->arg, "yes|no") == 0)
        return json_boolean(choice == 1);
    return json_stringn(word, len);
}

/* Text, or what the text means where JSON is asked for. */
static json_t *accounts_text_value(const struct cli_opt *opt, const char *text,
                                   struct aq_error *err)
{
    json_t *value;

    if (!text || strcmp(opt->arg, "JSON") != 0)
        return text ? json_string(text) : NULL;
    if (!(value = json_loads(text, JSON_REJECT_DUPLICATES, NULL)))
        (void)aq_fail_field(err, EINVAL, opt->name, "'%s' is no JSON", text);
    return value;
}

/* NULL with err->code 0: not given. */
static json_t *accounts_option_value(const struct cli_opt *opt, const void *target,
                                     struct aq_error *err)
{
    const void *at = (const char *)target + opt->offset;
    const struct cli_int *number = at;
    const struct cli_list *list = at;

    switch (opt->type) {
    case CLI_STR:
        return accounts_text_value(opt, *(const char *const *)at, err);
    case CLI_INT:
        return number->is_set ? json_integer(number->value) : NULL;
    case CLI_DURATION:
        /* rounded up, as 0 stands for no limit */
        return number->is_set ? json_integer(number->value / USEC_PER_SEC
                                             + (number->value % USEC_PER_SEC != 0))
                              : NULL;
    case CLI_LIST:
        return list->count ? accounts_list_value(opt, list, err) : NULL;
    case CLI_CHOICE:
        return *(const int *)at ? accounts_choice_value(opt, *(const int *)at) : NULL;
    case CLI_FLAG:
        return NULL;
    }
    return NULL;
}

int accounts_request_body(const struct cli_opt *opts, const void *target, json_t **ret,
                          struct aq_error *err)
{
    json_t *body = json_object();

    for (; opts->name; opts++) {
        struct aq_error failed = { 0 };
        json_t *value = accounts_option_value(opts, target, &failed);
        char key[40];

        (void)snprintf(key, sizeof(key), "%s", opts->name);
        for (char *c = key; *c; c++)
            if (*c == '-')
                *c = '_';
        if (failed.code) {
            json_decref(body);
            if (err)
                *err = failed;
            return -failed.code;
        }
        if (value)
            (void)json_object_set_new(body, key, value);
    }
    *ret = body;
    return 0;
}
