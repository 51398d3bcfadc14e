/* SPDX-License-Identifier: Apache-2.0 */
/* The indices of an array of sessions: ranges with steps, as Slurm writes them. */
#include "model/array_range.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"

#define ARRAY_LIMIT_MAX INT64_C(1000000)

/* Indices one by one, while a set is made. */
struct indices {
    int64_t *items;
    size_t count, cap;
};

static void indices_done(struct indices *all)
{
    free(all->items);
}

static void indices_add(struct indices *all, int64_t index)
{
    vec_grow(&all->items, &all->cap, all->count + 1, sizeof(*all->items));
    all->items[all->count++] = index;
}

static int indices_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void indices_sort(struct indices *all)
{
    size_t kept = 0;

    if (all->count)
        qsort(all->items, all->count, sizeof(*all->items), indices_compare);
    for (size_t i = 0; i < all->count; i++)
        if (kept == 0 || all->items[i] != all->items[kept - 1])
            all->items[kept++] = all->items[i];
    all->count = kept;
}

/* The run of equal steps that begins at 'from': its end. Two with a gap are two runs. */
static size_t indices_find_run(const struct indices *all, size_t from)
{
    size_t end = from + 1;
    int64_t step;

    if (end == all->count)
        return end;
    step = all->items[end] - all->items[from];
    while (end < all->count && all->items[end] - all->items[end - 1] == step)
        end++;
    return end == from + 2 && step > 1 ? from + 1 : end;
}

/* From sorted ones. */
static struct array_set indices_compress(const struct indices *all)
{
    struct array_set set = { 0 };

    for (size_t i = 0, end; i < all->count; i = end) {
        end = indices_find_run(all, i);
        vec_grow(&set.ranges, &set.cap, set.count + 1, sizeof(*set.ranges));
        set.ranges[set.count++] = (struct array_range){
            .first = all->items[i],
            .last = all->items[end - 1],
            .step = end - i > 1 ? all->items[i + 1] - all->items[i] : 1,
        };
    }
    return set;
}

/* ---- reading ---- */

struct array_reader {
    const char *at;
    int64_t size_max, size; /* of indices, as they are named */
    struct aq_error *err;
};

/* Digits; -ERANGE above 'max'. */
static int array_read_number(struct array_reader *rd, int64_t max, int64_t *ret)
{
    int64_t value = 0;

    if (*rd->at < '0' || *rd->at > '9')
        return *rd->at ? aq_fail_field(rd->err, EINVAL, "array",
                                       "a number is missing before '%.20s'; write indices "
                                       "as in 0-15:4,20%%8",
                                       rd->at)
                       : aq_fail_field(rd->err, EINVAL, "array",
                                       "a number is missing at the end; write indices as in "
                                       "0-15:4,20%%8");
    for (; *rd->at >= '0' && *rd->at <= '9'; rd->at++) {
        value = value * 10 + (*rd->at - '0');
        if (value > max)
            return aq_fail_field(rd->err, EINVAL, "array",
                                 "a number is above %" PRId64 "; choose a smaller one", max);
    }
    *ret = value;
    return 0;
}

static int array_check_range(struct array_reader *rd, const struct array_range *range)
{
    if (range->last < range->first)
        return aq_fail_field(rd->err, EINVAL, "array",
                             "the range %" PRId64 "-%" PRId64
                             " ends before it begins; swap the two",
                             range->first, range->last);
    if (range->step < 1)
        return aq_fail_field(rd->err, EINVAL, "array",
                             "the step of %" PRId64 "-%" PRId64 " is 0; 1 is the smallest",
                             range->first, range->last);
    rd->size += (range->last - range->first) / range->step + 1;
    if (rd->size > rd->size_max)
        return aq_fail_field(rd->err, EINVAL, "array",
                             "it has more than %" PRId64
                             " elements, the most that are allowed; make several arrays",
                             rd->size_max);
    return 0;
}

/* "5", "0-15", "0-15:4" */
static int array_read_range(struct array_reader *rd, struct indices *all)
{
    struct array_range range = { .step = 1 };
    int r = array_read_number(rd, ARRAY_INDEX_MAX, &range.first);

    range.last = range.first;
    if (r == 0 && *rd->at == '-') {
        rd->at++;
        r = array_read_number(rd, ARRAY_INDEX_MAX, &range.last);
        if (r == 0 && *rd->at == ':') {
            rd->at++;
            r = array_read_number(rd, ARRAY_INDEX_MAX, &range.step);
        }
    }
    if (r == 0)
        r = array_check_range(rd, &range);
    for (int64_t i = range.first; r == 0 && i <= range.last; i += range.step)
        indices_add(all, i);
    return r;
}

static int array_read_limit(struct array_reader *rd, int64_t *ret)
{
    int r;

    *ret = 0;
    if (*rd->at != '%')
        return 0;
    rd->at++;
    if ((r = array_read_number(rd, ARRAY_LIMIT_MAX, ret)) < 0)
        return r;
    return *ret ? 0
                : aq_fail_field(rd->err, EINVAL, "array",
                                "%%0 would let none run; 1 is the smallest limit");
}

static int array_read_all(struct array_reader *rd, struct indices *all, int64_t *ret_limit)
{
    int r;

    if (!*rd->at)
        return aq_fail_field(rd->err, EINVAL, "array",
                             "it is empty; name indices, such as 0-99%%8");
    while ((r = array_read_range(rd, all)) == 0 && *rd->at == ',')
        rd->at++;
    if (r == 0 && ret_limit)
        r = array_read_limit(rd, ret_limit);
    if (r == 0 && *rd->at)
        r = aq_fail_field(rd->err, EINVAL, "array",
                          "'%.20s' is not understood; write indices as in 0-15:4,20%s", rd->at,
                          ret_limit ? "%8" : "");
    return r;
}

int array_set_parse(const char *text, int64_t size_max, struct array_set *ret, int64_t *ret_limit,
                    struct aq_error *err)
{
    struct array_reader rd = { .at = text, .size_max = size_max, .err = err };
    AQ_CLEANUP(indices_done) struct indices all = { 0 };
    int r = array_read_all(&rd, &all, ret_limit);

    if (r < 0)
        return r;
    indices_sort(&all);
    array_set_done(ret);
    *ret = indices_compress(&all);
    return 0;
}

struct array_set array_set_copy(const struct array_set *set)
{
    struct array_set copy = { .count = set->count, .cap = set->count };

    copy.ranges = aq_alloc_array(AQ_MAX(set->count, 1), sizeof(*copy.ranges));
    if (set->count)
        memcpy(copy.ranges, set->ranges, set->count * sizeof(*copy.ranges));
    return copy;
}

/* ---- asking ---- */

void array_set_write(const struct array_set *set, struct strbuf *out)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct array_range *range = &set->ranges[i];

        strbuf_addf(out, "%s%" PRId64, i ? "," : "", range->first);
        if (range->last > range->first)
            strbuf_addf(out, "-%" PRId64, range->last);
        if (range->step > 1)
            strbuf_addf(out, ":%" PRId64, range->step);
    }
}

static int64_t array_range_size(const struct array_range *range)
{
    return (range->last - range->first) / range->step + 1;
}

int64_t array_set_size(const struct array_set *set)
{
    int64_t size = 0;

    for (size_t i = 0; i < set->count; i++)
        size += array_range_size(&set->ranges[i]);
    return size;
}

bool array_set_has(const struct array_set *set, int64_t index)
{
    size_t low = 0, high = set->count;

    while (low < high) { /* the first range that does not end before it */
        size_t middle = low + (high - low) / 2;

        if (set->ranges[middle].last < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->count && set->ranges[low].first <= index
           && (index - set->ranges[low].first) % set->ranges[low].step == 0;
}

int64_t array_set_min(const struct array_set *set)
{
    return set->ranges[0].first;
}

int64_t array_set_max(const struct array_set *set)
{
    return set->ranges[set->count - 1].last;
}

int64_t array_set_step(const struct array_set *set)
{
    return set->count == 1 ? set->ranges[0].step : 1;
}

struct array_cursor array_set_seek(const struct array_set *set, int64_t position)
{
    struct array_cursor c = { .set = set };

    while (c.range < set->count && position >= array_range_size(&set->ranges[c.range]))
        position -= array_range_size(&set->ranges[c.range++]);
    if (c.range < set->count)
        c.next = set->ranges[c.range].first + position * set->ranges[c.range].step;
    return c;
}

int64_t array_cursor_next(struct array_cursor *c)
{
    int64_t index = c->next;

    if (c->range == c->set->count)
        return -1;
    if (index < c->set->ranges[c->range].last)
        c->next += c->set->ranges[c->range].step;
    else if (++c->range < c->set->count)
        c->next = c->set->ranges[c->range].first;
    return index;
}

int64_t array_set_add(struct array_set *to, const struct array_set *of,
                      const struct array_set *wanted, int64_t position, int64_t *ret_found)
{
    struct array_cursor old = array_set_seek(to, 0), c = array_set_seek(of, 0);
    AQ_CLEANUP(indices_done) struct indices all = { 0 };
    size_t before;

    *ret_found = 0;
    for (int64_t i; (i = array_cursor_next(&old)) >= 0;)
        indices_add(&all, i);
    before = all.count;
    for (int64_t at = 0, i; (i = array_cursor_next(&c)) >= 0; at++) {
        bool is_wanted = array_set_has(wanted, i);

        *ret_found += is_wanted;
        if (is_wanted && at >= position)
            indices_add(&all, i);
    }
    indices_sort(&all);
    array_set_done(to);
    *to = indices_compress(&all);
    return (int64_t)(all.count - before);
}

int64_t array_set_find_beyond(const struct array_set *of, const struct array_set *part)
{
    struct array_cursor a = array_set_seek(of, 0), b = array_set_seek(part, 0);
    int64_t has = array_cursor_next(&a), index;

    while ((index = array_cursor_next(&b)) >= 0) {
        while (has >= 0 && has < index)
            has = array_cursor_next(&a);
        if (has != index)
            return index;
    }
    return -1;
}
