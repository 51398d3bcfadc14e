/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - the only source of time */
#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

static const struct clock *injected;

void clock_set(const struct clock *clock)
{
    injected = clock;
}

static int64_t clock_read(clockid_t id)
{
    struct timespec ts;

    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * USEC_PER_SEC + ts.tv_nsec / 1000;
}

#ifdef AQ_FAULTS
/* The first or second number of the file, in seconds. */
static int64_t clock_offset_from_file(int which)
{
    const char *path = getenv("ALIQUOT_CLOCK_FILE");
    AQ_CLEANUP(aq_closep) int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char text[64], *at = text;
    ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    int64_t seconds = 0;

    text[len > 0 ? len : 0] = '\0';
    for (int i = 0; i <= which; i++)
        seconds = strtoll(at, &at, 10);
    return seconds * USEC_PER_SEC;
}
#else
static int64_t clock_offset_from_file(int which)
{
    (void)which;
    return 0;
}
#endif

int64_t clock_realtime_usec(void)
{
    if (injected)
        return injected->realtime_usec(injected->data);
    return clock_read(CLOCK_REALTIME) + clock_offset_from_file(0);
}

int64_t clock_monotonic_usec(void)
{
    if (injected)
        return injected->monotonic_usec(injected->data);
    return clock_read(CLOCK_MONOTONIC) + clock_offset_from_file(1);
}

int64_t clock_boottime_usec(void)
{
    return clock_read(CLOCK_BOOTTIME);
}

static char *clock_put_digits(char *at, int value, int digits)
{
    for (int i = digits - 1; i >= 0; i--, value /= 10)
        at[i] = (char)('0' + value % 10);
    return at + digits;
}

/* Up to the second, for which a year has four digits; its end, and the microseconds that follow. */
static char *clock_format_second(int64_t usec, char buf[CLOCK_ISO_MAX], int *ret_fraction)
{
    int64_t fraction = usec % USEC_PER_SEC;
    time_t seconds = (time_t)(usec / USEC_PER_SEC);
    struct tm tm;
    char *at;

    if (fraction < 0) {
        fraction += USEC_PER_SEC;
        seconds--;
    }
    (void)gmtime_r(&seconds, &tm);
    *ret_fraction = (int)fraction;
    if (tm.tm_year < -900 || tm.tm_year > 9999 - 1900)
        return buf + strftime(buf, CLOCK_ISO_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
    at = clock_put_digits(buf, tm.tm_year + 1900, 4);
    *at++ = '-';
    at = clock_put_digits(at, tm.tm_mon + 1, 2);
    *at++ = '-';
    at = clock_put_digits(at, tm.tm_mday, 2);
    *at++ = 'T';
    at = clock_put_digits(at, tm.tm_hour, 2);
    *at++ = ':';
    at = clock_put_digits(at, tm.tm_min, 2);
    *at++ = ':';
    return clock_put_digits(at, tm.tm_sec, 2);
}

char *clock_format_iso(int64_t usec, char buf[CLOCK_ISO_MAX])
{
    int fraction;
    char *at = clock_format_second(usec, buf, &fraction);

    if (fraction) {
        *at++ = '.';
        at = clock_put_digits(at, fraction, 6);
    }
    memcpy(at, "+00:00", 7);
    return buf;
}

char *clock_format_utc(int64_t usec, char buf[CLOCK_ISO_MAX])
{
    int fraction;
    char *at = clock_format_second(usec, buf, &fraction);

    *at++ = '.';
    at = clock_put_digits(at, fraction, 6);
    memcpy(at, "Z", 2);
    return buf;
}

char *clock_format_local(int64_t usec, char buf[CLOCK_ISO_MAX])
{
    time_t seconds = (time_t)(usec / USEC_PER_SEC);
    struct tm tm;

    if (!localtime_r(&seconds, &tm) || !strftime(buf, CLOCK_ISO_MAX, "%Y-%m-%d %H:%M:%S", &tm))
        return clock_format_iso(usec, buf);
    return buf;
}

/* Read exactly 'digits' digits within [min, max] and step over them. */
static bool clock_take_number(const char **at, int digits, int min, int max, int *ret)
{
    int n = 0;

    for (int i = 0; i < digits; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        n = n * 10 + (**at - '0');
    }
    *ret = n;
    return n >= min && n <= max;
}

static bool clock_take_char(const char **at, const char *any)
{
    if (**at == '\0' || !strchr(any, **at))
        return false;
    (*at)++;
    return true;
}

static bool clock_take_fraction(const char **at, int *ret_usec)
{
    int digits = 0;

    *ret_usec = 0;
    if (!clock_take_char(at, ".,"))
        return true;
    for (; isdigit((unsigned char)**at); (*at)++, digits++)
        if (digits < 6)
            *ret_usec = *ret_usec * 10 + (**at - '0');
    if (digits == 0 || digits > 12)
        return false;
    for (; digits < 6; digits++)
        *ret_usec *= 10;
    return true;
}

static bool clock_take_zone(const char **at, int *ret_minutes)
{
    int sign, hours, minutes = 0;

    *ret_minutes = 0;
    if (**at == '\0' || clock_take_char(at, "Zz"))
        return true;
    sign = **at == '-' ? -1 : 1;
    if (!clock_take_char(at, "+-") || !clock_take_number(at, 2, 0, 23, &hours))
        return false;
    if (**at) {
        (void)clock_take_char(at, ":");
        if (!clock_take_number(at, 2, 0, 59, &minutes))
            return false;
    }
    *ret_minutes = sign * (hours * 60 + minutes);
    return true;
}

/* timegm() after a check that the day exists in the month. */
static bool clock_to_usec(struct tm *tm, int fraction, int zone_minutes, int64_t *ret_usec)
{
    int day = tm->tm_mday;
    time_t t = timegm(tm);

    if (tm->tm_mday != day)
        return false;
    *ret_usec = ((int64_t)t - zone_minutes * 60) * USEC_PER_SEC + fraction;
    return true;
}

/* The same in the time zone of this process. */
static bool clock_local_to_usec(struct tm *tm, int fraction, int64_t *ret_usec)
{
    struct tm checked = *tm;

    tm->tm_isdst = -1; /* as that day has it */
    if (!clock_to_usec(&checked, 0, 0, ret_usec))
        return false;
    *ret_usec = (int64_t)mktime(tm) * USEC_PER_SEC + fraction;
    return true;
}

/* 'is_local': what has no zone is in that of this process, else in UTC. */
static bool clock_parse_iso(const char *at, bool is_local, int64_t *ret_usec)
{
    int year, month, fraction = 0, zone = 0;
    struct tm tm = { 0 };

    if (!clock_take_number(&at, 4, 1970, 9999, &year) || !clock_take_char(&at, "-")
        || !clock_take_number(&at, 2, 1, 12, &month) || !clock_take_char(&at, "-")
        || !clock_take_number(&at, 2, 1, 31, &tm.tm_mday))
        return false;
    if (*at
        && (!clock_take_char(&at, "Tt ") || !clock_take_number(&at, 2, 0, 23, &tm.tm_hour)
            || !clock_take_char(&at, ":") || !clock_take_number(&at, 2, 0, 59, &tm.tm_min)))
        return false;
    if (clock_take_char(&at, ":")
        && (!clock_take_number(&at, 2, 0, 60, &tm.tm_sec) || !clock_take_fraction(&at, &fraction)))
        return false;
    is_local = is_local && !*at;
    if (!clock_take_zone(&at, &zone) || *at)
        return false;
    tm.tm_year = year - 1900;
    tm.tm_mon = month - 1;
    return is_local ? clock_local_to_usec(&tm, fraction, ret_usec)
                    : clock_to_usec(&tm, fraction, zone, ret_usec);
}

static bool clock_parse_rfc1123(const char *at, int64_t *ret_usec)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int year, month = 0;
    struct tm tm = { 0 };
    const char *comma = strchr(at, ',');

    if (!comma || comma[1] != ' ')
        return false;
    at = comma + 2;
    if (!clock_take_number(&at, 2, 1, 31, &tm.tm_mday) || !clock_take_char(&at, " "))
        return false;
    while (month < 12 && strncasecmp(months + 3 * month, at, 3) != 0)
        month++;
    if (month == 12)
        return false;
    at += 3;
    if (!clock_take_char(&at, " ") || !clock_take_number(&at, 4, 1970, 9999, &year)
        || !clock_take_char(&at, " ") || !clock_take_number(&at, 2, 0, 23, &tm.tm_hour)
        || !clock_take_char(&at, ":") || !clock_take_number(&at, 2, 0, 59, &tm.tm_min)
        || !clock_take_char(&at, ":") || !clock_take_number(&at, 2, 0, 60, &tm.tm_sec))
        return false;
    if (strcasecmp(at, " GMT") != 0 && strcasecmp(at, " UTC") != 0 && strcmp(at, " +0000") != 0)
        return false;
    tm.tm_year = year - 1900;
    tm.tm_mon = month;
    return clock_to_usec(&tm, 0, 0, ret_usec);
}

static int clock_parse_any_date(const char *text, bool is_local, int64_t *ret_usec)
{
    int64_t usec;

    if (!clock_parse_iso(text, is_local, &usec) && !clock_parse_rfc1123(text, &usec))
        return -EINVAL;
    *ret_usec = usec;
    return 0;
}

int clock_parse_date(const char *text, int64_t *ret_usec)
{
    return clock_parse_any_date(text, false, ret_usec);
}

int clock_parse_local_date(const char *text, int64_t *ret_usec)
{
    return clock_parse_any_date(text, true, ret_usec);
}

static int64_t clock_unit_usec(char unit)
{
    switch (unit) {
    case 's':
        return USEC_PER_SEC;
    case 'm':
        return 60 * USEC_PER_SEC;
    case 'h':
        return 3600 * USEC_PER_SEC;
    case 'd':
        return 86400 * USEC_PER_SEC;
    case 'w':
        return 7 * 86400 * USEC_PER_SEC;
    default:
        return 0;
    }
}

/* One "12.5h"; without a unit, seconds and nothing may follow. */
static bool clock_take_duration(const char **at, int64_t *total)
{
    int64_t whole = 0, unit, part;
    int fraction = 0;

    if (!isdigit((unsigned char)**at))
        return false;
    for (; isdigit((unsigned char)**at); (*at)++)
        if (__builtin_mul_overflow(whole, 10, &whole)
            || __builtin_add_overflow(whole, **at - '0', &whole))
            return false;
    if (!clock_take_fraction(at, &fraction))
        return false;
    unit = **at ? clock_unit_usec((char)tolower((unsigned char)**at)) : USEC_PER_SEC;
    if (!unit)
        return false;
    if (**at)
        (*at)++;
    if (__builtin_mul_overflow(whole, unit, &part))
        return false;
    if (__builtin_add_overflow(part, fraction * (unit / USEC_PER_SEC), &part))
        return false;
    return !__builtin_add_overflow(*total, part, total);
}

int clock_parse_duration(const char *text, int64_t *ret_usec)
{
    int64_t total = 0;
    const char *at = text;

    do {
        if (!clock_take_duration(&at, &total))
            return -EINVAL;
    } while (*at);
    if (total == 0 && strpbrk(text, "123456789"))
        return -EINVAL; /* 0 often means "no limit", and less than a microsecond does not */
    *ret_usec = total;
    return 0;
}

int clock_parse_since(const char *text, int64_t *ret_usec, int64_t *ret_ago_usec)
{
    bool is_unix_time = text[strspn(text, "0123456789.")] == '\0';
    int64_t usec;
    bool is_span = clock_parse_duration(text, &usec) == 0, is_ago = is_span && !is_unix_time;

    if (!is_span && clock_parse_date(text, &usec) < 0)
        return -EINVAL;
    usec = AQ_MAX(usec, 1);
    *ret_usec = is_ago ? 0 : usec;
    *ret_ago_usec = is_ago ? usec : 0;
    return 0;
}
