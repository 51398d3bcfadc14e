/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - one value of a setting: read, checked and written */
#include "conf/value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "conf/conf.h"
#include "conf/tables.h"

static void *conf_value_member(const struct conf_item *item, void *target)
{
    return (char *)target + item->offset;
}

void conf_item_name(const struct conf_item *item, char *buf, size_t size)
{
    (void)snprintf(buf, size, "%s%s%s", item->section, item->section[0] ? "." : "", item->key);
}

const char *conf_type_hint(enum conf_type type)
{
    static const char *const hints[] = {
        [CONF_STR] = "text in quotes",
        [CONF_PATH] = "an absolute path in quotes",
        [CONF_INT] = "a whole number",
        [CONF_BOOL] = "true or false",
        [CONF_DURATION] = "a duration like \"30s\" or a number of seconds",
        [CONF_SIZE] = "a size like \"16m\" or a number of bytes",
        [CONF_LISTEN] = "an address like \"127.0.0.1:8081\"",
        [CONF_MICRO] = "a number with at most six decimals",
        [CONF_LIST] = "a list of texts",
        [CONF_PAIRS] = "a table of texts and numbers",
        [CONF_TABLES] = "tables",
    };

    return hints[type];
}

/* Whole decimal number with an optional sign; false on anything else. */
static bool value_parse_integer(const char *text, int64_t *ret)
{
    char *end;
    long long value;

    if (text[0] != '-' && (text[0] < '0' || text[0] > '9'))
        return false;
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || end == text)
        return false;
    *ret = value;
    return true;
}

static bool value_parse_bool(const char *text, bool *ret)
{
    static const struct {
        const char *text;
        bool value;
    } words[] = { { "true", true },   { "1", true },  { "yes", true }, { "on", true },
                  { "false", false }, { "0", false }, { "no", false }, { "off", false } };

    for (size_t i = 0; i < AQ_COUNT(words); i++) {
        if (strcasecmp(text, words[i].text) == 0) {
            *ret = words[i].value;
            return true;
        }
    }
    return false;
}

/* "16", "16k", "16 MiB", "1gb": powers of 1024. */
static bool value_parse_size(const char *text, int64_t *ret)
{
    static const char scales[] = "kmgtpe";
    char *end;
    unsigned long long value;
    const char *scale;
    unsigned shift = 0;

    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || value > INT64_MAX)
        return false;
    while (*end == ' ')
        end++;
    if (*end && (scale = strchr(scales, *end | 0x20))) {
        shift = 10 * (unsigned)(scale - scales + 1);
        end++;
        if (strcasecmp(end, "ib") == 0)
            end += 2;
    }
    if (*end == 'b' || *end == 'B')
        end++;
    if (*end != '\0' || value > (unsigned long long)INT64_MAX >> shift)
        return false;
    *ret = (int64_t)(value << shift);
    return true;
}

/* "12", "0.25": exact, at most six decimals. */
static bool value_parse_micro(const char *text, int64_t *ret)
{
    const char *point = strchr(text, '.');
    size_t decimals = point ? strlen(point + 1) : 0;
    char digits[32];
    int64_t value;

    if (decimals > 6 || (point && (decimals == 0 || point == text)) || strlen(text) > 20)
        return false;
    (void)snprintf(digits, sizeof(digits), "%.*s%s%.*s", point ? (int)(point - text) : 20, text,
                   point ? point + 1 : "", (int)(6 - decimals), "000000");
    if (digits[0] == '-' || digits[strspn(digits, "0123456789")]
        || !value_parse_integer(digits, &value))
        return false;
    *ret = value;
    return true;
}

static bool conf_value_parse_number(const struct conf_item *item, const char *text, int64_t *ret)
{
    enum conf_type type = item->type;

    if (item->flags & CONF_OR_FOREVER && strcmp(text, "forever") == 0) {
        *ret = 0;
        return true;
    }
    if (type == CONF_INT)
        return value_parse_integer(text, ret);
    if (type == CONF_SIZE)
        return value_parse_size(text, ret);
    if (type == CONF_MICRO)
        return value_parse_micro(text, ret);
    return clock_parse_duration(text, ret) == 0;
}

static int conf_value_set_number(const struct conf_item *item, const char *text, void *target,
                                 struct aq_error *err, const char *name)
{
    const char *or_forever = item->flags & CONF_OR_FOREVER ? " or \"forever\"" : "";
    int64_t low = item->min, high = item->max, value;

    if (low == 0 && high == 0)
        high = INT64_MAX;
    if (!conf_value_parse_number(item, text, &value))
        return aq_fail_field(err, EINVAL, name, "%s: '%s' is not %s%s", name,
                             item->flags & CONF_SECRET ? "..." : text, conf_type_hint(item->type),
                             or_forever);
    if (item->flags & CONF_OR_FOREVER && value == 0)
        low = 0;
    if (value < low || value > high) {
        int64_t unit = item->type == CONF_DURATION || item->type == CONF_MICRO ? USEC_PER_SEC : 1;

        if (item->type == CONF_MICRO)
            return aq_fail_field(err, EINVAL, name, "%s: %s is outside %g..%g", name, text,
                                 (double)low / unit, (double)high / unit);
        return aq_fail_field(err, EINVAL, name, "%s: %s is outside %lld..%lld%s%s", name, text,
                             (long long)(low / unit), (long long)(high / unit),
                             item->type == CONF_DURATION ? " seconds" : "", or_forever);
    }
    *(int64_t *)conf_value_member(item, target) = value;
    return 0;
}

char *conf_absolute_path(const char *path)
{
    AQ_CLEANUP(aq_freep) char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);

    if (path[0] == '/')
        return aq_strdup(path);
    return here ? aq_format("%s/%s", here, path) : NULL;
}

static int conf_value_set_text(const struct conf_item *item, const char *text, void *target,
                               struct aq_error *err, const char *name)
{
    char **place = conf_value_member(item, target), *copy;
    const char *home = getenv("HOME");

    if (item->type == CONF_PATH && text[0] == '~' && text[1] == '/' && home && home[0] == '/')
        copy = aq_format("%s%s", home, text + 1);
    else if (item->type == CONF_PATH && text[0] != '/')
        return aq_fail_field(err, EINVAL, name, "%s: '%s' is not an absolute path", name, text);
    else
        copy = aq_strdup(text);
    free(*place);
    *place = copy;
    return 0;
}

static int value_set_listen(const struct conf_item *item, const char *text, void *target,
                            struct aq_error *err, const char *name)
{
    struct conf_listen *place = conf_value_member(item, target), parsed;
    int r = conf_parse_address(text, 0, &parsed, err);

    if (r < 0) {
        (void)aq_error_wrap(err, "%s", name);
        if (err)
            (void)snprintf(err->field, sizeof(err->field), "%s", name);
        return r;
    }
    free(place->host);
    *place = parsed;
    return 0;
}

int conf_set(const struct conf_item *item, const char *text, void *target, struct aq_error *err)
{
    char name[80];
    bool flag;

    conf_item_name(item, name, sizeof(name));
    switch (item->type) {
    case CONF_STR:
    case CONF_PATH:
        return conf_value_set_text(item, text, target, err, name);
    case CONF_LISTEN:
        return value_set_listen(item, text, target, err, name);
    case CONF_BOOL:
        if (!value_parse_bool(text, &flag))
            return aq_fail_field(err, EINVAL, name, "%s: '%s' is not %s", name, text,
                                 conf_type_hint(item->type));
        *(bool *)conf_value_member(item, target) = flag;
        return 0;
    case CONF_LIST:
        conf_list_done(conf_value_member(item, target));
        conf_list_add_words(conf_value_member(item, target), text);
        return 0;
    case CONF_PAIRS:
    case CONF_TABLES:
        return aq_fail_field(err, EINVAL, name, "%s can only be set in a file", name);
    default:
        return conf_value_set_number(item, text, target, err, name);
    }
}

void conf_clear(const struct conf_item *item, void *target)
{
    void *place = conf_value_member(item, target);

    switch (item->type) {
    case CONF_STR:
    case CONF_PATH:
        free(*(char **)place);
        *(char **)place = NULL;
        break;
    case CONF_LISTEN:
        free(((struct conf_listen *)place)->host);
        *(struct conf_listen *)place = (struct conf_listen){ .host = NULL };
        break;
    case CONF_BOOL:
        *(bool *)place = false;
        break;
    case CONF_LIST:
        conf_list_done(place);
        break;
    case CONF_PAIRS:
        conf_pairs_done(place);
        break;
    case CONF_TABLES:
        conf_tables_done(item->table, place);
        break;
    default:
        *(int64_t *)place = 0;
    }
}
