/* SPDX-License-Identifier: Apache-2.0 */
/* Command-line options as tables. */
#include "cli/opt.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "base/suggest.h"

size_t cli_choice_word(const char *choices, size_t index, const char **ret_word)
{
    for (;; index--) {
        size_t len = strcspn(choices, "|");

        if (index == 0) {
            *ret_word = choices;
            return len;
        }
        if (choices[len] == '\0')
            return 0;
        choices += len + 1;
    }
}

const struct cli_opt *cli_opt_find(const struct cli_opt *opts, const char *name, size_t len)
{
    for (; opts && opts->name; opts++)
        if (strlen(opts->name) == len && memcmp(opts->name, name, len) == 0)
            return opts;
    return NULL;
}

static int opt_usage_error(struct aq_error *err, const char *field, const char *text)
{
    aq_fail_field(err, EINVAL, field, "%s", text);
    if (err)
        err->kind = CLI_KIND_USAGE;
    return -EINVAL;
}

static int opt_unknown_option(const struct cli_opt_set *sets, size_t set_count, const char *name,
                              size_t len, struct aq_error *err)
{
    struct suggest suggest = suggest_for(name, len);
    char field[64], text[200];

    for (size_t i = 0; i < set_count; i++)
        for (const struct cli_opt *o = sets[i].opts; o && o->name; o++)
            suggest_offer(&suggest, o->name);
    (void)snprintf(field, sizeof(field), "--%.*s", (int)AQ_MIN(len, (size_t)50), name);
    if (suggest.best)
        (void)snprintf(text, sizeof(text), "unknown option '%s'; did you mean '--%s'?", field,
                       suggest.best);
    else
        (void)snprintf(text, sizeof(text), "unknown option '%s'", field);
    return opt_usage_error(err, field, text);
}

static int opt_unknown_letter(char letter, struct aq_error *err)
{
    const char field[] = { '-', isprint((unsigned char)letter) ? letter : '?', '\0' };

    return aq_fail_as(err, EINVAL, CLI_KIND_USAGE, field, "unknown option '%s'", field);
}

static int opt_store_choice(const struct cli_opt *opt, const char *value, int *target,
                            struct aq_error *err)
{
    const char *word;
    size_t len;

    for (size_t i = 0; (len = cli_choice_word(opt->arg, i, &word)) > 0; i++) {
        if (strlen(value) == len && memcmp(value, word, len) == 0) {
            *target = (int)i + 1;
            return 0;
        }
    }
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--%s is one of %s, not '%.60s'", opt->name,
                        opt->arg, value);
}

static int opt_store_number(const struct cli_opt *opt, const char *value, struct cli_int *target,
                            struct aq_error *err)
{
    char *end, field[64];

    (void)snprintf(field, sizeof(field), "--%s", opt->name);
    if (opt->type == CLI_LIMIT && strcmp(value, "none") == 0) {
        target->value = 0;
    } else if (opt->type == CLI_LIMIT && strcmp(value, "-1") == 0) {
        target->value = -USEC_PER_SEC;
    } else if (opt->type != CLI_INT) {
        if (clock_parse_duration(value, &target->value) < 0)
            return aq_fail_as(err, EINVAL, CLI_KIND_USAGE, field,
                              "%s takes a duration: seconds, or numbers with s, m, h, d or w, such "
                              "as 90s, 1h30m or 1.5h%s; not '%.60s'",
                              field, opt->type == CLI_LIMIT ? "; or none" : "", value);
    } else {
        errno = 0;
        target->value = strtoll(value, &end, 10);
        if (errno || !isdigit((unsigned char)value[0]) || *end)
            return aq_fail_as(err, EINVAL, CLI_KIND_USAGE, field,
                              "%s takes a whole number, not '%.60s'", field, value);
    }
    target->is_set = true;
    return 0;
}

void cli_list_add(struct cli_list *list, const char *item)
{
    vec_grow(&list->items, &list->cap, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = item;
}

static int opt_store(const struct cli_opt *opt, void *base, const char *value, struct aq_error *err)
{
    void *target = (char *)base + opt->offset;

    switch (opt->type) {
    case CLI_FLAG:
        *(bool *)target = true;
        return 0;
    case CLI_STR:
        *(const char **)target = value;
        return 0;
    case CLI_CHOICE:
        return opt_store_choice(opt, value, target, err);
    case CLI_INT:
    case CLI_DURATION:
    case CLI_LIMIT:
        return opt_store_number(opt, value, target, err);
    case CLI_LIST:
        cli_list_add(target, value);
        return 0;
    }
    return 0;
}

/* What is left to read. */
struct opt_parser {
    const struct cli_opt_set *sets;
    size_t set_count;
    int argc, at;
    char **argv;
};

/* 'attached' is a value in the same word, or NULL: then the next word is it. */
static int opt_take_value(struct opt_parser *p, const struct cli_opt *opt, void *target,
                          const char *attached, struct aq_error *err)
{
    if (!attached && p->at >= p->argc)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--%s needs a value: --%s %s", opt->name,
                            opt->name, opt->arg);
    return opt_store(opt, target, attached ? attached : p->argv[p->at++], err);
}

static int opt_parse_long(struct opt_parser *p, const char *word, struct aq_error *err)
{
    size_t len = strcspn(word, "=");
    const char *attached = word[len] ? word + len + 1 : NULL;

    for (size_t i = 0; i < p->set_count; i++) {
        const struct cli_opt *opt = cli_opt_find(p->sets[i].opts, word, len);

        if (!opt)
            continue;
        if (opt->type == CLI_FLAG && attached)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--%s takes no value", opt->name);
        if (opt->type == CLI_FLAG)
            return opt_store(opt, p->sets[i].target, NULL, err);
        return opt_take_value(p, opt, p->sets[i].target, attached, err);
    }
    return opt_unknown_option(p->sets, p->set_count, word, len, err);
}

static const struct cli_opt *opt_find_letter(const struct opt_parser *p, char letter,
                                             void **ret_target)
{
    for (size_t i = 0; i < p->set_count; i++) {
        for (const struct cli_opt *o = p->sets[i].opts; o && o->name; o++) {
            if (o->letter == letter) {
                *ret_target = p->sets[i].target;
                return o;
            }
        }
    }
    return NULL;
}

static int opt_parse_letters(struct opt_parser *p, const char *letters, struct aq_error *err)
{
    for (; *letters; letters++) {
        void *target;
        const struct cli_opt *opt = opt_find_letter(p, *letters, &target);
        int r;

        if (!opt)
            return opt_unknown_letter(*letters, err);
        if (opt->type != CLI_FLAG)
            return opt_take_value(p, opt, target, letters[1] ? letters + 1 : NULL, err);
        r = opt_store(opt, target, NULL, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int cli_opts_parse(const struct cli_opt_set *sets, size_t set_count, bool stop_at_first, int argc,
                   char **argv, int *ret_count, struct aq_error *err)
{
    struct opt_parser p = { sets, set_count, argc, 0, argv };
    int count = 0, r = 0;

    while (r == 0 && p.at < argc) {
        char *word = argv[p.at++];

        if (strcmp(word, "--") == 0)
            break;
        if (word[0] == '-' && word[1] == '-')
            r = opt_parse_long(&p, word + 2, err);
        else if (word[0] == '-' && word[1] != '\0')
            r = opt_parse_letters(&p, word + 1, err);
        else
            argv[count++] = word;
        if (stop_at_first && count)
            break;
    }
    if (r < 0)
        return r;
    while (p.at < argc)
        argv[count++] = argv[p.at++];
    *ret_count = count;
    return 0;
}

void cli_opts_done(const struct cli_opt *opts, void *target)
{
    for (; opts && opts->name; opts++) {
        struct cli_list *list = (void *)((char *)target + opts->offset);

        if (opts->type != CLI_LIST)
            continue;
        free(list->items);
        *list = (struct cli_list){ .items = NULL };
    }
}
