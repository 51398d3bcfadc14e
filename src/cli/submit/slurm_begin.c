/* SPDX-License-Identifier: Apache-2.0 */
/* Starts as sbatch(1)'s --begin has them. */
#include "cli/submit/slurm_begin.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "cli/submit/slurm_value.h"

#define BLANKS " \t"
#define BEGIN_WORD_MAX 24

/* What the words have said so far. */
struct slurm_begin {
    struct tm local;
    bool has_day, has_year, has_hour;
};

/* "2hours" in seconds; 0 = not a duration */
static int64_t slurm_begin_read_span(const char *text)
{
    static const struct {
        const char *name;
        int64_t sec;
    } units[] = { { "seconds", 1 },
                  { "minutes", 60 },
                  { "hours", 3600 },
                  { "days", 86400 },
                  { "weeks", 604800 } };
    int64_t value, sec = 0;
    size_t len;

    text += strspn(text, BLANKS);
    value = slurm_take_number(&text);
    text += strspn(text, BLANKS);
    len = strlen(text);
    for (size_t i = 0; i < AQ_COUNT(units) && sec == 0; i++) {
        size_t most = strlen(units[i].name);

        /* with and without the s */
        if (len == 0
            || ((len == most || len == most - 1) && strncasecmp(text, units[i].name, len) == 0))
            sec = units[i].sec;
    }
    return value < 0 ? 0 : value * sec;
}

static int slurm_begin_later(const char *text, char ret[SLURM_BEGIN_MAX])
{
    int64_t sec = slurm_begin_read_span(text);

    if (sec == 0)
        return -EINVAL;
    (void)snprintf(ret, SLURM_BEGIN_MAX, "%llds", (long long)sec);
    return 0;
}

static bool slurm_begin_take_name(struct slurm_begin *b, const char *word)
{
    static const struct {
        const char *name;
        int hour, days; /* -1 = says nothing of it */
    } names[] = {
        { "midnight", 0, -1 }, { "elevenses", 11, -1 }, { "noon", 12, -1 },    { "fika", 15, -1 },
        { "teatime", 16, -1 }, { "today", -1, 0 },      { "tomorrow", -1, 1 },
    };

    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        if (strcasecmp(word, names[i].name) != 0)
            continue;
        if (names[i].days < 0 ? b->has_hour : b->has_day)
            return false;
        if (names[i].days < 0) {
            b->local.tm_hour = names[i].hour;
            b->has_hour = true;
        } else {
            b->local.tm_mday += names[i].days;
            b->has_day = b->has_year = true;
        }
        return true;
    }
    return false;
}

/* "AM" or "PM" behind an hour of 1 to 12. */
static bool slurm_begin_take_half(struct slurm_begin *b, const char *word)
{
    bool is_after = strcasecmp(word, "pm") == 0;

    if ((!is_after && strcasecmp(word, "am") != 0) || !b->has_hour || b->local.tm_hour < 1
        || b->local.tm_hour > 12)
        return false;
    b->local.tm_hour = b->local.tm_hour % 12 + (is_after ? 12 : 0);
    return true;
}

/* "16:00", "16:00:30", "4:00pm" */
static bool slurm_begin_take_hour(struct slurm_begin *b, const char *word)
{
    int64_t parts[3] = { 0 };
    size_t len = strspn(word, "0123456789:");
    const char *half = word + len;
    char hour[BEGIN_WORD_MAX] = "";
    int count;

    memcpy(hour, word, len);
    count = slurm_take_colons(hour, parts);
    if (count < 2 || parts[0] > 23 || parts[1] > 59 || (count > 2 && parts[2] > 59))
        return false;
    b->local.tm_hour = (int)parts[0];
    b->local.tm_min = (int)parts[1];
    b->local.tm_sec = count > 2 ? (int)parts[2] : 0;
    b->has_hour = true;
    return !*half || slurm_begin_take_half(b, half);
}

/* "2026-12-24", "12/24", "12/24/26", "12.24", "1224", "122426" */
static bool slurm_begin_take_day(struct slurm_begin *b, const char *word)
{
    static const char *const formats[] = { "%Y-%m-%d", "%m/%d/%y", "%m/%d", "%m.%d.%y",
                                           "%m.%d",    "%m%d%y",   "%m%d" };
    bool is_long = strspn(word, "0123456789") == 6;

    for (size_t i = 0; i < AQ_COUNT(formats); i++) {
        struct tm day = { .tm_year = b->local.tm_year };
        const char *end = strptime(word, formats[i], &day);

        if (!end || *end || (strcmp(formats[i], "%m%d") == 0 && strlen(word) != 4)
            || (strcmp(formats[i], "%m%d%y") == 0 && !is_long))
            continue;
        b->local.tm_year = day.tm_year;
        b->local.tm_mon = day.tm_mon;
        b->local.tm_mday = day.tm_mday;
        b->has_day = true;
        b->has_year = strcasestr(formats[i], "%y") != NULL;
        return true;
    }
    return false;
}

/* The next word of *at, which ends at a blank or at the T of a date. */
static bool slurm_begin_take_word(struct slurm_begin *b, const char **at)
{
    char word[BEGIN_WORD_MAX];
    size_t len = strcspn(*at, BLANKS);

    if (isdigit((unsigned char)**at) && memchr(*at, 'T', len))
        len = (size_t)((const char *)memchr(*at, 'T', len) - *at);
    if (len == 0 || len >= sizeof(word))
        return false;
    memcpy(word, *at, len);
    word[len] = '\0';
    *at += len;
    *at += **at == 'T' && (*at)[1] ? 1 : 0;
    return (!b->has_hour && slurm_begin_take_hour(b, word))
           || (!b->has_day && slurm_begin_take_day(b, word)) || slurm_begin_take_name(b, word)
           || slurm_begin_take_half(b, word);
}

/* In the local time zone; an hour without a day and a day without a year are the next one. */
static int slurm_begin_write(const struct slurm_begin *b, time_t now, char ret[SLURM_BEGIN_MAX])
{
    struct tm local = b->local;
    char text[CLOCK_ISO_MAX];
    time_t sec = mktime(&local);

    if (!b->has_year && sec <= now) {
        local = b->local;
        if (b->has_day)
            local.tm_year++;
        else
            local.tm_mday++;
        sec = mktime(&local);
    }
    if (sec < 0)
        return -EINVAL;
    (void)snprintf(ret, SLURM_BEGIN_MAX, "%s", clock_format_iso((int64_t)sec * USEC_PER_SEC, text));
    return 0;
}

/* Parses a time, which is today unless a date is given. */
static int slurm_begin_read_date(struct slurm_begin *b, const char *at, time_t now)
{
    if (!*at || !localtime_r(&now, &b->local))
        return -EINVAL;
    b->local.tm_hour = b->local.tm_min = b->local.tm_sec = 0;
    b->local.tm_isdst = -1;
    while (*at) {
        if (!slurm_begin_take_word(b, &at))
            return -EINVAL;
        at += strspn(at, BLANKS);
    }
    return 0;
}

int slurm_begin_parse(const char *text, int64_t now_usec, char ret[SLURM_BEGIN_MAX])
{
    time_t now = (time_t)(now_usec / USEC_PER_SEC);
    struct slurm_begin b = { .has_day = false };
    const char *at = text + strspn(text, BLANKS);

    if (strncasecmp(at, "now", 3) == 0) {
        at += 3;
        at += strspn(at, BLANKS);
        if (*at == '+')
            return slurm_begin_later(at + 1, ret);
        if (*at)
            return -EINVAL;
        ret[0] = '\0';
        return 0;
    }
    return slurm_begin_read_date(&b, at, now) < 0 ? -EINVAL : slurm_begin_write(&b, now, ret);
}

int slurm_moment_parse(const char *text, int64_t now_usec, int64_t *ret_usec)
{
    time_t now = (time_t)(now_usec / USEC_PER_SEC), sec;
    struct slurm_begin b = { .has_day = false };
    const char *at = text + strspn(text, BLANKS);

    if (strncasecmp(at, "now", 3) == 0) {
        int64_t span = at[3] ? slurm_begin_read_span(at + 4) : 0;

        if (at[3] && ((at[3] != '-' && at[3] != '+') || span == 0))
            return -EINVAL;
        *ret_usec = now_usec + (at[3] == '-' ? -span : span) * USEC_PER_SEC;
        return 0;
    }
    if (slurm_begin_read_date(&b, at, now) < 0)
        return -EINVAL;
    sec = mktime(&b.local);
    *ret_usec = (int64_t)sec * USEC_PER_SEC;
    return sec < 0 ? -EINVAL : 0;
}
