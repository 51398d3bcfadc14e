/* SPDX-License-Identifier: Apache-2.0 */
/* Values of sbatch(1)'s options: times, sizes, numbers of GPUs. */
#include "cli/submit/slurm_value.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define NUMBER_MAX (INT64_C(1) << 40)

int64_t slurm_take_number(const char **at)
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
    int64_t value = slurm_take_number(&text);

    if (value < 1 || value > SLURM_COUNT_MAX || *text)
        return -EINVAL;
    *ret = value;
    return 0;
}

int slurm_take_colons(const char *text, int64_t parts[3])
{
    for (int count = 0; count < 3; text++) {
        parts[count] = slurm_take_number(&text);
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
    int64_t parts[3] = { 0 }, days = dash ? slurm_take_number(&at) : 0;
    int count;

    if (strcasecmp(text, "unlimited") == 0 || strcasecmp(text, "infinite") == 0
        || strcmp(text, "-1") == 0) {
        *ret_sec = 0;
        return 0;
    }
    if (days < 0 || (dash && at != dash))
        return -EINVAL;
    count = slurm_take_colons(dash ? dash + 1 : text, parts);
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
    int64_t value = slurm_take_number(&text);
    const char *unit = *text ? strchr(units, toupper((unsigned char)*text)) : &units[1];
    int shift;

    if (value < 0 || !unit
        || (*text && text[1] && strcasecmp(text + 1, "b") != 0 && strcasecmp(text + 1, "ib") != 0))
        return -EINVAL;
    shift = 10 * (int)(unit - units + 1);
    if (value >= INT64_C(1) << (50 - shift))
        return -EINVAL;
    *ret_bytes = value << shift;
    return 0;
}

/* "4", "1k" (of 1024); moves behind it. */
static int64_t slurm_take_nodes(const char **at)
{
    int64_t value = slurm_take_number(at);
    int shift = **at == 'k' || **at == 'K' ? 10 : **at == 'm' || **at == 'M' ? 20 : 0;

    *at += shift ? 1 : 0;
    value = value < 0 ? value : value << shift;
    return value > SLURM_COUNT_MAX ? -1 : value;
}

int slurm_nodes_parse(const char *text, int64_t *ret, bool *ret_range)
{
    int64_t least = slurm_take_nodes(&text), most = least;

    if (*text == '-') {
        text++;
        most = slurm_take_nodes(&text);
    }
    if (least < 1 || most < least)
        return -EINVAL;
    *ret_range = most != least || *text;
    if (*text == ',' || *text == ':') /* "2-8:2", "1,4,16" */
        text += strspn(text, "0123456789,:-");
    if (*text || strchr(",:-", text[-1]))
        return -EINVAL;
    *ret = least;
    return 0;
}

/* "0", "3", "20G" of something: is it none? */
static bool slurm_is_zero(const char *text)
{
    return *text && text[strspn(text, "0")] == '\0';
}

/* "TYPE", "N", "TYPE:N" or "TYPE=N" of GPUs; NULL = one. */
static int slurm_gpus_of_kind(const char *at, int64_t *total, bool *ret_typed)
{
    const char *last = at ? strrchr(at, ':') : NULL, *number;
    int64_t count = 1;

    last = last ? last : at ? strrchr(at, '=') : NULL;
    number = last ? last + 1 : at;
    if (!at)
        ;
    else if (slurm_is_zero(number))
        count = 0;
    else if (slurm_count_parse(number, &count) < 0) {
        if (last || !isalpha((unsigned char)*at))
            return -EINVAL;
        *ret_typed = true;
    }
    *ret_typed |= last != NULL;
    *total += count;
    return last == at && at ? -EINVAL : 0;
}

/* One part of --gres: "gpu", "gpu:TYPE:N", "gres/gpu=N"; none of something else is nothing. */
static int slurm_gpus_of_gres(char *part, int64_t *total, bool *ret_typed)
{
    char *at = strncmp(part, "gres", 4) == 0 && part[4] && strchr("/:", part[4]) ? part + 5 : part;
    size_t len;

    at[strcspn(at, "(")] = '\0';
    len = strcspn(at, ":=");
    if (strcasecmp(at, "none") == 0)
        return 0;
    if (len == 3 && strncmp(at, "gpu", 3) == 0)
        return slurm_gpus_of_kind(at[3] ? at + 4 : NULL, total, ret_typed);
    at = at[len] ? strrchr(at + len, at[len]) : NULL;
    return at && slurm_is_zero(at + 1) ? 0 : -EINVAL;
}

/* One part of a list, text[0 .. len). */
static int slurm_gpus_part(const char *text, size_t len, bool is_gres, int64_t *total,
                           bool *ret_typed)
{
    char part[80];

    if (len == 0 || len >= sizeof(part))
        return -EINVAL;
    memcpy(part, text, len);
    part[len] = '\0';
    return is_gres ? slurm_gpus_of_gres(part, total, ret_typed)
                   : slurm_gpus_of_kind(part, total, ret_typed);
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
