/* SPDX-License-Identifier: Apache-2.0 */
/* cron.c - reading the five fields */
#include "pipeline/cron.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CALENDAR_DAYS 146097 /* after which the calendar repeats: 400 years */

struct cron_field {
    const char *what;
    int min, max;
    const char *names; /* of three letters each, from 'min' on; NULL = none */
};

enum { CRON_MINUTE, CRON_HOUR, CRON_DAY, CRON_MONTH, CRON_WEEKDAY, CRON_FIELDS };

static const struct cron_field cron_fields[CRON_FIELDS] = {
    [CRON_MINUTE] = { "minute", 0, 59, NULL },
    [CRON_HOUR] = { "hour", 0, 23, NULL },
    [CRON_DAY] = { "day of month", 1, 31, NULL },
    [CRON_MONTH] = { "month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec" },
    [CRON_WEEKDAY] = { "day of week", 0, 7, "sunmontuewedthufrisat" }, /* 0 and 7 are Sunday */
};

static const struct {
    const char *name, *fields;
} cron_shortcuts[] = {
    { "@hourly", "0 * * * *" },   { "@daily", "0 0 * * *" },   { "@midnight", "0 0 * * *" },
    { "@weekly", "0 0 * * 0" },   { "@monthly", "0 0 1 * *" }, { "@yearly", "0 0 1 1 *" },
    { "@annually", "0 0 1 1 *" },
};

struct cron_reader {
    const char *text, *at;
    struct aq_error *err;
};

/* A mistake at the present place. */
static int cron_refuse(const struct cron_reader *in, const char *fmt, ...) AQ_PRINTF(2, 3);
static int cron_refuse(const struct cron_reader *in, const char *fmt, ...)
{
    char why[200];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    return aq_fail(in->err, EINVAL, "schedule '%.60s', column %zu: %s", in->text,
                   (size_t)(in->at - in->text) + 1, why);
}

/* A number or name of the field. */
static int cron_take_value(struct cron_reader *in, const struct cron_field *field, int *ret)
{
    size_t letters = strspn(in->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    size_t digits = strspn(in->at, "0123456789");
    int value = -1;

    if (letters == 3 && field->names)
        for (int i = 0; field->names[3 * i] && value < 0; i++)
            if (strncasecmp(field->names + 3 * i, in->at, 3) == 0)
                value = field->min + i;
    if (digits > 0 && digits <= 2) {
        value = in->at[0] - '0';
        if (digits == 2)
            value = value * 10 + (in->at[1] - '0');
        if (value < field->min)
            value = -1;
    }
    if (value < 0 || value > field->max)
        return cron_refuse(in, "%s must be %d to %d%s", field->what, field->min, field->max,
                           !field->names            ? ""
                           : field->names[0] == 'j' ? " or jan to dec"
                                                    : " or sun to sat");
    in->at += AQ_MAX(letters, digits);
    *ret = value;
    return 0;
}

/* "*", "5", "1-5", "fri-sun", each but the second perhaps with "/2". */
static int cron_take_range(struct cron_reader *in, const struct cron_field *field, uint64_t *inout)
{
    const char *begin = in->at;
    int from = field->min, to = field->max, step = 1, r = 0;
    bool is_single = false;

    if (*in->at == '*') {
        in->at++;
    } else if ((r = cron_take_value(in, field, &from)) < 0) {
        return r;
    } else if (*in->at == '-') {
        in->at++;
        if ((r = cron_take_value(in, field, &to)) < 0)
            return r;
    } else {
        to = from;
        is_single = true;
    }
    if (field == &cron_fields[CRON_WEEKDAY] && to == 0 && from > 0)
        to = 7;
    if (from > to) {
        in->at = begin;
        return cron_refuse(in, "range %d-%d is empty; write it as %d-%d,%d-%d", from, to, from,
                           field->max, field->min, to);
    }
    if (*in->at == '/') {
        size_t digits = strspn(in->at + 1, "0123456789");

        if (is_single)
            return cron_refuse(in, "a step follows '*' or a range, such as %d-%d/15", from,
                               field->max);
        in->at++;
        step = digits == 0 || digits > 2 ? 0 : (int)strtol(in->at, NULL, 10);
        if (step < 1 || step > field->max)
            return cron_refuse(in, "step must be 1 to %d", field->max);
        in->at += digits;
    }
    for (int i = from; i <= to; i += step)
        *inout |= UINT64_C(1) << i;
    return 0;
}

static int cron_take_field(struct cron_reader *in, const struct cron_field *field, uint64_t *ret)
{
    int r;

    in->at += strspn(in->at, " \t");
    if (!*in->at)
        return cron_refuse(in,
                           "the %s is missing; a schedule has five fields: minute, hour, day of "
                           "month, month, day of week",
                           field->what);
    *ret = 0;
    for (;;) {
        if ((r = cron_take_range(in, field, ret)) < 0)
            return r;
        if (*in->at != ',')
            break;
        in->at++;
    }
    if (*in->at && *in->at != ' ' && *in->at != '\t')
        return cron_refuse(in,
                           "unexpected '%.1s' in the %s; a field is a list of numbers, ranges "
                           "and steps, such as 1-5,10 or */15",
                           isprint((unsigned char)*in->at) ? in->at : "?", field->what);
    return 0;
}

static int cron_take_fields(struct cron_reader *in, struct cron *ret)
{
    uint64_t bits[CRON_FIELDS];
    bool is_star[CRON_FIELDS];
    int r;

    for (int i = 0; i < CRON_FIELDS; i++) {
        is_star[i] = in->at[strspn(in->at, " \t")] == '*';
        if ((r = cron_take_field(in, &cron_fields[i], &bits[i])) < 0)
            return r;
    }
    in->at += strspn(in->at, " \t");
    if (*in->at)
        return cron_refuse(in, "a schedule has five fields; put the command into a task");
    *ret = (struct cron){
        .minutes = bits[CRON_MINUTE],
        .hours = (uint32_t)bits[CRON_HOUR],
        .days = (uint32_t)bits[CRON_DAY],
        .months = (uint32_t)bits[CRON_MONTH],
        .weekdays = (uint32_t)((bits[CRON_WEEKDAY] | bits[CRON_WEEKDAY] >> 7) & 0x7f),
        .needs_both = is_star[CRON_DAY] || is_star[CRON_WEEKDAY],
    };
    return 0;
}

int cron_parse(const char *text, struct cron *ret, struct aq_error *err)
{
    struct cron_reader in = { text, text, err }, shortcut = { NULL, NULL, err };
    struct cron cron;
    int r;

    if (strlen(text) > CRON_BYTES_MAX)
        return aq_fail(err, EINVAL, "a schedule has at most %d bytes", CRON_BYTES_MAX);
    in.at += strspn(text, " \t");
    for (size_t i = 0; i < AQ_COUNT(cron_shortcuts); i++)
        if (strcasecmp(in.at, cron_shortcuts[i].name) == 0)
            shortcut.text = shortcut.at = cron_shortcuts[i].fields;
    if (*in.at == '@' && !shortcut.at)
        return cron_refuse(&in, "expected five fields, or @hourly, @daily, @weekly, @monthly or "
                                "@yearly");
    if ((r = cron_take_fields(shortcut.at ? &shortcut : &in, &cron)) < 0)
        return r;
    for (int64_t day = 0; day < CALENDAR_DAYS; day++)
        if (cron_matches_day(&cron, day)) {
            *ret = cron;
            return 0;
        }
    return aq_fail(err, EINVAL,
                   "schedule '%.60s' never comes: no month in it has such a day; change the day of "
                   "month or the month",
                   text);
}
