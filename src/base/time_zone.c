/* SPDX-License-Identifier: Apache-2.0 */
/* time_zone.c - files of tzdata: the list of transitions, and the rule for the time after it */
#include "base/time_zone.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/memory.h"

#define ZONE_HEADER 44
#define ZONE_OFFSET_MAX (26 * 3600) /* RFC 8536, 3.2 */
#define DAY_SEC 86400

/* "M3.5.0/2": when in a year the clocks change. */
struct zone_change {
    char form; /* 'M' month, week and day of week; 'J' day without 29 February; 'n' day from 0 */
    int month, week, day;
    int32_t time; /* seconds of local time after midnight; may be negative */
};

/* The footer: "CET-1CEST,M3.5.0,M10.5.0/3". */
struct zone_rule {
    int32_t standard, summer; /* offsets */
    bool has_summer;
    struct zone_change to_summer, to_standard;
};

struct time_zone {
    size_t count; /* of transitions */
    int64_t *times;
    int32_t *offsets; /* from the transition on */
    int32_t first;    /* before the first one */
    bool has_rule;    /* after the last transition; without it the last offset holds */
    struct zone_rule rule;
};

/* ---- calendar: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms" ---- */

int64_t civil_to_days(int64_t year, int month, int day)
{
    int64_t era, year_of_era, day_of_year;

    year -= month <= 2;
    era = (year >= 0 ? year : year - 399) / 400;
    year_of_era = year - era * 400;
    day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year
           - 719468;
}

struct civil_day civil_from_days(int64_t days)
{
    int64_t era, day_of_era, year_of_era, day_of_year, month;

    days += 719468;
    era = (days >= 0 ? days : days - 146096) / 146097;
    day_of_era = days - era * 146097;
    year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    month = (5 * day_of_year + 2) / 153; /* from March */
    return (struct civil_day){
        .year = year_of_era + era * 400 + (month >= 10),
        .month = (int)(month < 10 ? month + 3 : month - 9),
        .day = (int)(day_of_year - (153 * month + 2) / 5 + 1),
    };
}

/* ---- the footer ---- */

/* An unsigned number of 1 to 3 digits within [min, max]. */
static bool zone_take_number(const char **at, int min, int max, int *ret)
{
    int value = 0, digits = 0;

    for (; isdigit((unsigned char)**at) && digits < 3; (*at)++, digits++)
        value = value * 10 + (**at - '0');
    *ret = value;
    return digits > 0 && value >= min && value <= max;
}

static bool zone_take_char(const char **at, char c)
{
    if (**at != c)
        return false;
    (*at)++;
    return true;
}

/* "CET" or "<+0330>". */
static bool zone_take_name(const char **at)
{
    const char *from = *at;

    if (zone_take_char(at, '<')) {
        while (isalnum((unsigned char)**at) || **at == '+' || **at == '-')
            (*at)++;
        return *at > from + 3 && zone_take_char(at, '>');
    }
    while (isalpha((unsigned char)**at))
        (*at)++;
    return *at >= from + 3;
}

/* "[+-]hhh[:mm[:ss]]" in seconds. */
static bool zone_take_time(const char **at, int32_t *ret)
{
    int sign = **at == '-' ? -1 : 1, hours, minutes = 0, seconds = 0;

    if (**at == '-' || **at == '+')
        (*at)++;
    if (!zone_take_number(at, 0, 167, &hours)
        || (zone_take_char(at, ':')
            && (!zone_take_number(at, 0, 59, &minutes)
                || (zone_take_char(at, ':') && !zone_take_number(at, 0, 59, &seconds)))))
        return false;
    *ret = sign * (hours * 3600 + minutes * 60 + seconds);
    return true;
}

static bool zone_take_change(const char **at, struct zone_change *ret)
{
    bool is_read;

    *ret = (struct zone_change){ .form = 'n', .time = 2 * 3600 };
    if (zone_take_char(at, 'M')) {
        ret->form = 'M';
        is_read = zone_take_number(at, 1, 12, &ret->month) && zone_take_char(at, '.')
                  && zone_take_number(at, 1, 5, &ret->week) && zone_take_char(at, '.')
                  && zone_take_number(at, 0, 6, &ret->day);
    } else if (zone_take_char(at, 'J')) {
        ret->form = 'J';
        is_read = zone_take_number(at, 1, 365, &ret->day);
    } else {
        is_read = zone_take_number(at, 0, 365, &ret->day);
    }
    return is_read && (!zone_take_char(at, '/') || zone_take_time(at, &ret->time));
}

static bool zone_read_rule(const char *text, struct zone_rule *ret)
{
    *ret = (struct zone_rule){ .has_summer = false };
    if (!zone_take_name(&text) || !zone_take_time(&text, &ret->standard))
        return false;
    ret->standard = -ret->standard; /* the text counts to the west */
    if (*text) {
        ret->has_summer = true;
        ret->summer = ret->standard + 3600;
        if (!zone_take_name(&text))
            return false;
        if (*text != ',') {
            if (!zone_take_time(&text, &ret->summer))
                return false;
            ret->summer = -ret->summer;
        }
        if (!zone_take_char(&text, ',') || !zone_take_change(&text, &ret->to_summer)
            || !zone_take_char(&text, ',') || !zone_take_change(&text, &ret->to_standard))
            return false;
    }
    return !*text && ret->standard >= -ZONE_OFFSET_MAX && ret->standard <= ZONE_OFFSET_MAX
           && ret->summer >= -ZONE_OFFSET_MAX && ret->summer <= ZONE_OFFSET_MAX;
}

/* When the clocks change in a year; 'offset' is that until then. */
static int64_t zone_change_at(const struct zone_change *change, int64_t year, int32_t offset)
{
    int64_t day = civil_to_days(year, 1, 1);

    if (change->form == 'M') {
        int64_t first = civil_to_days(year, change->month, 1);
        int64_t next = change->month == 12 ? civil_to_days(year + 1, 1, 1)
                                           : civil_to_days(year, change->month + 1, 1);
        int weekday = (int)(((first + 4) % 7 + 7) % 7); /* 1970-01-01 was a Thursday */

        day = first + (change->day - weekday + 7) % 7 + 7 * (change->week - 1);
        if (day >= next) /* week 5 is the last one */
            day -= 7;
    } else if (change->form == 'J') {
        bool is_leap = civil_to_days(year, 3, 1) - civil_to_days(year, 2, 1) == 29;

        day += change->day - 1 + (is_leap && change->day >= 60);
    } else {
        day += change->day;
    }
    return day * DAY_SEC + change->time - offset;
}

static struct time_zone_span zone_find_by_rule(const struct zone_rule *rule, int64_t at)
{
    struct time_zone_span span = { -TIME_ZONE_NEVER, TIME_ZONE_NEVER, rule->standard };
    int64_t year = civil_from_days((at >= 0 ? at : at - DAY_SEC + 1) / DAY_SEC).year;

    if (!rule->has_summer)
        return span;
    for (int64_t y = year - 1; y <= year + 1; y++) {
        int64_t summer = zone_change_at(&rule->to_summer, y, rule->standard);
        int64_t standard = zone_change_at(&rule->to_standard, y, rule->summer);

        if (summer <= at && summer >= span.from)
            span = (struct time_zone_span){ summer, span.until, rule->summer };
        if (standard <= at && standard > span.from)
            span = (struct time_zone_span){ standard, span.until, rule->standard };
        if (summer > at)
            span.until = AQ_MIN(span.until, summer);
        if (standard > at)
            span.until = AQ_MIN(span.until, standard);
    }
    return span;
}

/* ---- the file ---- */

struct zone_block {
    uint32_t utc_count, standard_count, leap_count, time_count, type_count, char_count;
    size_t width; /* of a time */
    size_t size;  /* bytes after the header */
};

static uint32_t zone_read_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int64_t zone_read_time(const uint8_t *at, size_t width)
{
    uint64_t high = zone_read_u32(at);

    return width == 4 ? (int32_t)high : (int64_t)(high << 32 | zone_read_u32(at + 4));
}

/* False if the block, whose header is at 'at', does not end within 'len' bytes. */
static bool zone_read_header(const uint8_t *at, size_t len, size_t width, struct zone_block *ret)
{
    if (len < ZONE_HEADER || memcmp(at, "TZif", 4) != 0)
        return false;
    *ret = (struct zone_block){ zone_read_u32(at + 20), zone_read_u32(at + 24),
                                zone_read_u32(at + 28), zone_read_u32(at + 32),
                                zone_read_u32(at + 36), zone_read_u32(at + 40),
                                .width = width };
    if (ret->utc_count > 256 || ret->standard_count > 256 || ret->leap_count > 256
        || ret->time_count > TIME_ZONE_TRANSITIONS_MAX || ret->type_count < 1
        || ret->type_count > 256 || ret->char_count > 4096)
        return false;
    ret->size = ret->time_count * (width + 1) + ret->type_count * 6 + ret->char_count
                + ret->leap_count * (width + 4) + ret->standard_count + ret->utc_count;
    return ret->size <= len - ZONE_HEADER;
}

static bool zone_read_offset(const uint8_t *types, uint32_t count, uint8_t type, int32_t *ret)
{
    if (type >= count)
        return false;
    *ret = (int32_t)zone_read_u32(types + 6 * type);
    return *ret >= -ZONE_OFFSET_MAX && *ret <= ZONE_OFFSET_MAX;
}

static bool zone_read_block(struct time_zone *zone, const uint8_t *at,
                            const struct zone_block *block)
{
    const uint8_t *kinds = at + block->time_count * block->width;
    const uint8_t *types = kinds + block->time_count;

    zone->count = block->time_count;
    zone->times = aq_alloc((zone->count + 1) * sizeof(*zone->times));
    zone->offsets = aq_alloc((zone->count + 1) * sizeof(*zone->offsets));
    if (!zone_read_offset(types, block->type_count, 0, &zone->first))
        return false;
    for (size_t i = 0; i < zone->count; i++) {
        zone->times[i] = zone_read_time(at + i * block->width, block->width);
        if ((i > 0 && zone->times[i] <= zone->times[i - 1]) || zone->times[i] < -TIME_ZONE_NEVER
            || zone->times[i] > TIME_ZONE_NEVER
            || !zone_read_offset(types, block->type_count, kinds[i], &zone->offsets[i]))
            return false;
    }
    return true;
}

/* "\nCET-1CEST,M3.5.0,M10.5.0/3\n"; an empty one says nothing about later times. */
static bool zone_read_footer(struct time_zone *zone, const uint8_t *at, size_t len)
{
    char text[128];
    const uint8_t *end = len > 0 && *at == '\n' ? memchr(at + 1, '\n', len - 1) : NULL;
    size_t size = end ? (size_t)(end - at) - 1 : 0;

    if (!end || size >= sizeof(text) || memchr(at, '\0', size + 1))
        return false;
    memcpy(text, at + 1, size);
    text[size] = '\0';
    zone->has_rule = size > 0;
    return size == 0 || zone_read_rule(text, &zone->rule);
}

int time_zone_parse(const void *bytes, size_t len, struct time_zone **ret, struct aq_error *err)
{
    AQ_CLEANUP(time_zone_freep) struct time_zone *zone = aq_alloc(sizeof(*zone));
    const uint8_t *at = bytes;
    struct zone_block block;

    if (len > TIME_ZONE_BYTES_MAX || !zone_read_header(at, len, 4, &block))
        return aq_fail(err, EPROTO, "not a file of a time zone (TZif)");
    if (at[4] >= '2') { /* the same again, with times of 64 bits */
        at += ZONE_HEADER + block.size;
        len -= ZONE_HEADER + block.size;
        if (!zone_read_header(at, len, 8, &block))
            return aq_fail(err, EPROTO, "the file of the time zone is cut off");
    }
    if (block.leap_count > 0)
        return aq_fail(err, EPROTO, "time zones with leap seconds are not supported");
    if (!zone_read_block(zone, at + ZONE_HEADER, &block)
        || (block.width == 8
            && !zone_read_footer(zone, at + ZONE_HEADER + block.size,
                                 len - ZONE_HEADER - block.size)))
        return aq_fail(err, EPROTO, "the file of the time zone is damaged");
    *ret = AQ_TAKE(zone);
    return 0;
}

int time_zone_check_name(const char *name, struct aq_error *err)
{
    size_t len = strlen(name);
    bool is_name = len > 0 && len <= TIME_ZONE_NAME_MAX && isalpha((unsigned char)name[0])
                   && name[len - 1] != '/' && !strstr(name, "//");

    for (size_t i = 0; i < len && is_name; i++)
        is_name = isalnum((unsigned char)name[i]) || strchr("/_+-", name[i]);
    return is_name ? 0
                   : aq_fail(err, EINVAL,
                             "'%.70s' is not the name of a time zone; names are such as UTC and "
                             "Europe/Berlin",
                             name);
}

int time_zone_open(const char *name, struct time_zone **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf file = STRBUF_INIT;
    const char *set = getenv("TZDIR"), *top = set && *set ? set : "/usr/share/zoneinfo";
    AQ_CLEANUP(aq_closep) int fd = -1;
    int r = time_zone_check_name(name, err);

    if (r < 0)
        return r;
    fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return aq_fail(err, ENOENT, "this machine has no time zones in %s; install tzdata", top);
    if (fd < 0)
        return aq_fail_errno(err, "open %s", top);
    r = fs_read(fd, name, TIME_ZONE_BYTES_MAX, &file, err);
    if (r == -ENOENT || r == -EISDIR || r == -ENOTDIR)
        return aq_fail(
            err, ENOENT,
            "time zone '%s' does not exist; 'timedatectl list-timezones' lists those that do",
            name);
    if (r == 0)
        r = time_zone_parse(file.data, file.len, ret, err);
    return r < 0 ? aq_error_wrap(err, "time zone '%s'", name) : 0;
}

void time_zone_free(struct time_zone *zone)
{
    if (!zone)
        return;
    free(zone->times);
    free(zone->offsets);
    free(zone);
}

struct time_zone_span time_zone_find(const struct time_zone *zone, int64_t at_sec)
{
    size_t low = 0, high = zone->count; /* the number of transitions up to then */
    struct time_zone_span span = { -TIME_ZONE_NEVER, TIME_ZONE_NEVER, zone->first };

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (zone->times[middle] <= at_sec)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == zone->count && zone->has_rule)
        span = zone_find_by_rule(&zone->rule, at_sec);
    else if (low > 0)
        span.offset = zone->offsets[low - 1];
    if (low > 0)
        span.from = AQ_MAX(span.from, zone->times[low - 1]);
    if (low < zone->count)
        span.until = zone->times[low];
    return span;
}
