/* SPDX-License-Identifier: Apache-2.0 */
/* Values of sbatch(1)'s options: times, sizes, numbers of GPUs. */
#include "cli/submit/slurm_value.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"

#define NUMBER_MAX (INT64_C(1) << 40)

/* Digits at *at, which moves behind them; -1 = none, or too many. */
static int64_t slurm_digits(const char **at)
{
    int64_t value = 0;

    if (!isdigit((unsigned char)**at))
        return -1;
    for (; isdigit((unsigned char)**at); ++*at) {
        value = value * 10 + (**at - '0');
        if (value > NUMBER_MAX)
            return -1;
    }
    return value;
}

int slurm_count_parse(const char *text, int64_t *ret)
{
    int64_t value = slurm_digits(&text);

    if (value < 1 || value > SLURM_COUNT_MAX || *text)
        return -EINVAL;
    *ret = value;
    return 0;
}

/* Numbers separated by colons; how many there are, -EINVAL if it is anything else. */
static int slurm_colons(const char *text, int64_t parts[3])
{
    for (int count = 0; count < 3; text++) {
        parts[count] = slurm_digits(&text);
        if (parts[count++] < 0)
            return -EINVAL;
        if (!*text)
            return count;
        if (*text != ':')
            return -EINVAL;
    }
    return -EINVAL;
}

int slurm_time_parse(const char *text, int64_t *ret_sec)
{
    const char *dash = strchr(text, '-'), *at = text;
    int64_t parts[3] = { 0 }, days = dash ? slurm_digits(&at) : 0;
    int count;

    if (strcasecmp(text, "unlimited") == 0 || strcasecmp(text, "infinite") == 0) {
        *ret_sec = 0;
        return 0;
    }
    if (days < 0 || (dash && at != dash))
        return -EINVAL;
    count = slurm_colons(dash ? dash + 1 : text, parts);
    if (count < 0)
        return -EINVAL;
    if (dash) /* hours, minutes, seconds */
        *ret_sec = days * 86400 + parts[0] * 3600 + (count > 1 ? parts[1] * 60 : 0)
                   + (count > 2 ? parts[2] : 0);
    else if (count == 3)
        *ret_sec = parts[0] * 3600 + parts[1] * 60 + parts[2];
    else /* minutes, seconds */
        *ret_sec = parts[0] * 60 + (count > 1 ? parts[1] : 0);
    return 0;
}

int slurm_size_parse(const char *text, int64_t *ret_bytes)
{
    static const char units[] = "KMGT";
    int64_t value = slurm_digits(&text);
    const char *unit = *text ? strchr(units, toupper((unsigned char)*text)) : &units[1];
    int shift;

    if (value < 0 || !unit || (*text && text[1] && strcasecmp(text + 1, "b") != 0))
        return -EINVAL;
    shift = 10 * (int)(unit - units + 1);
    if (value >= INT64_C(1) << (50 - shift))
        return -EINVAL;
    *ret_bytes = value << shift;
    return 0;
}

/* One part of a list, text[0 .. len). */
static int slurm_gpus_part(const char *text, size_t len, bool is_gres, int64_t *total,
                           bool *ret_typed)
{
    char part[80], *at = part, *colon;
    int64_t count = 1;

    if (len == 0 || len >= sizeof(part))
        return -EINVAL;
    memcpy(part, text, len);
    part[len] = '\0';
    if (is_gres) {
        part[strcspn(part, "(")] = '\0';
        if (strncmp(part, "gpu", 3) != 0 || (part[3] && part[3] != ':'))
            return -EINVAL;
        at = part[3] ? part + 4 : NULL;
    }
    colon = at ? strrchr(at, ':') : NULL;
    if (at && slurm_count_parse(colon ? colon + 1 : at, &count) < 0) {
        if (colon || !is_gres || !isalpha((unsigned char)*at))
            return -EINVAL;
        *ret_typed = true; /* gpu:TYPE */
    }
    *ret_typed |= colon && colon > at;
    *total += count;
    return colon == at && at ? -EINVAL : 0;
}

int slurm_gpus_parse(const char *text, bool is_gres, int64_t *ret, bool *ret_typed)
{
    int64_t total = 0;
    bool typed = false;

    for (;; text++) {
        size_t len = strcspn(text, ",");

        if (slurm_gpus_part(text, len, is_gres, &total, &typed) < 0 || total > SLURM_COUNT_MAX)
            return -EINVAL;
        text += len;
        if (!*text)
            break;
    }
    *ret = total;
    *ret_typed = typed;
    return 0;
}

/* ---- --begin ---- */

/* "+2hours" */
static int slurm_begin_later(const char *text, char ret[SLURM_BEGIN_MAX])
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

    text++;
    value = slurm_digits(&text);
    if (value < 0)
        return -EINVAL;
    for (size_t i = 0; i < AQ_COUNT(units); i++) {
        size_t len = strlen(text), most = strlen(units[i].name);

        /* with and without the s */
        if (len == 0
            || ((len == most || len == most - 1) && strncmp(text, units[i].name, len) == 0)) {
            sec = units[i].sec;
            break;
        }
    }
    if (sec == 0)
        return -EINVAL;
    (void)snprintf(ret, SLURM_BEGIN_MAX, "%llds", (long long)(value * sec));
    return 0;
}

/* In the local time zone. */
static int slurm_begin_write(struct tm *local, char ret[SLURM_BEGIN_MAX])
{
    char text[CLOCK_ISO_MAX];
    time_t sec;

    local->tm_isdst = -1;
    sec = mktime(local);
    if (sec < 0)
        return -EINVAL;
    (void)snprintf(ret, SLURM_BEGIN_MAX, "%s", clock_format_iso((int64_t)sec * USEC_PER_SEC, text));
    return 0;
}

/* "16:00", "16:00:30": the next one. */
static int slurm_begin_at_hour(const char *text, int64_t now_usec, char ret[SLURM_BEGIN_MAX])
{
    time_t now = (time_t)(now_usec / USEC_PER_SEC);
    int64_t parts[3] = { 0 };
    struct tm local, today;
    int count = slurm_colons(text, parts);

    if (count < 2 || parts[0] > 23 || parts[1] > 59 || (count > 2 && parts[2] > 59)
        || !localtime_r(&now, &local))
        return -EINVAL;
    local.tm_hour = (int)parts[0];
    local.tm_min = (int)parts[1];
    local.tm_sec = count > 2 ? (int)parts[2] : 0;
    local.tm_isdst = -1;
    today = local;
    if (mktime(&today) <= now)
        local.tm_mday++;
    return slurm_begin_write(&local, ret);
}

int slurm_begin_parse(const char *text, int64_t now_usec, char ret[SLURM_BEGIN_MAX])
{
    static const char *const formats[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d" };

    if (strcmp(text, "now") == 0) {
        ret[0] = '\0';
        return 0;
    }
    if (strncmp(text, "now+", 4) == 0)
        return slurm_begin_later(text + 3, ret);
    for (size_t i = 0; i < AQ_COUNT(formats); i++) {
        struct tm local = { .tm_sec = 0 };
        const char *end = strptime(text, formats[i], &local);

        if (end && !*end)
            return slurm_begin_write(&local, ret);
    }
    return slurm_begin_at_hour(text, now_usec, ret);
}
