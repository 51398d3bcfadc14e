/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of jobs, arrays and their elements, as users of Slurm write them. */
#include "cli/slurm/job_ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "cli/client.h"

#define JOB_IDS_MAX 100000

/* The next word; commas inside of brackets belong to it. 0 at the end. */
static size_t job_ids_take(const char **at)
{
    size_t len = 0;
    bool is_inside = false;

    *at += strspn(*at, ", ");
    for (const char *c = *at; *c && (is_inside || (*c != ',' && *c != ' ')); c++, len++)
        is_inside = *c == '[' || (is_inside && *c != ']');
    return len;
}

/* "3", "[1-3,7]", "[1-3,7%2]" behind the '_' */
static int job_ids_read_elements(const char *text, size_t len, struct array_set *ret)
{
    AQ_CLEANUP(aq_freep) char *set = NULL;
    int64_t limit;

    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    } else if (strspn(text, "0123456789") < len) {
        return -EINVAL;
    }
    set = aq_format("%.*s", (int)AQ_MIN(len, (size_t)ARRAY_TEXT_MAX), text);
    return array_set_parse(set, ARRAY_INDEX_MAX, ret, &limit, NULL);
}

static int job_ids_read_one(const char *word, size_t len, struct job_ids *ret)
{
    struct job_id id = { .number = 0 };
    size_t end = strspn(word, "0123456789");
    char *after;

    id.number = strtoll(word, &after, 10);
    if (end == 0 || end > len || id.number <= 0 || ret->count == JOB_IDS_MAX)
        return -EINVAL;
    if (end < len && word[end] == '_') {
        const char *dot = memchr(word, '.', len);
        size_t to = dot ? (size_t)(dot - word) : len;

        if (job_ids_read_elements(word + end + 1, to - end - 1, &id.elements) < 0)
            return -EINVAL;
        end = to;
    }
    if (end < len) { /* a step */
        array_set_done(&id.elements);
        return word[end] == '.' ? 0 : -EINVAL;
    }
    vec_grow(&ret->items, &ret->cap, ret->count + 1, sizeof(*ret->items));
    ret->items[ret->count++] = id;
    return 0;
}

int job_ids_read(const char *text, struct job_ids *ret, struct aq_error *err)
{
    for (size_t len; text && (len = job_ids_take(&text)) > 0; text += len)
        if (job_ids_read_one(text, len, ret) < 0)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "Invalid job id: %.*s",
                                (int)AQ_MIN(len, (size_t)60), text);
    return 0;
}

void job_ids_done(struct job_ids *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        array_set_done(&ids->items[i].elements);
    free(ids->items);
    *ids = (struct job_ids){ .items = NULL };
}
