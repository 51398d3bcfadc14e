/* SPDX-License-Identifier: Apache-2.0 */
/* request_mix.c - the shapes of requests and how often each came */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "sched/fragmentation.h"

#define SHAPES_MAX 1024

bool request_shape_of(const struct cluster *c, const struct slot_request *req,
                      struct request_shape *ret)
{
    *ret = (struct request_shape){ .models = UINT64_MAX };
    if (req->unknown)
        return false;
    for (size_t i = 0; i < c->columns; i++) {
        int64_t amount = req->amounts[i], capacity = c->device_capacity[i];

        if (i == c->cpu_column)
            ret->cpu_milli = amount / (AMOUNT_ONE / 1000);
        if (!capacity || amount <= 0 || amount == AMOUNT_INFINITE || ret->devices)
            continue;
        ret->devices = (int32_t)AQ_MIN((amount - 1) / capacity + 1, INT64_C(1024));
        ret->part_milli = (int32_t)AQ_MAX(amount / ret->devices * 1000 / capacity, INT64_C(1));
        ret->column = (uint32_t)i;
        ret->models = req->models;
    }
    return true;
}

/* Half of all that was seen is forgotten, and what came once. */
static void request_mix_forget(struct request_mix *m)
{
    size_t kept = 0;

    m->total /= 2;
    m->cpu_milli /= 2;
    m->device_milli /= 2;
    for (size_t i = 0; i < m->count; i++) {
        m->shapes[i].count /= 2;
        if (m->shapes[i].count >= 1)
            m->shapes[kept++] = m->shapes[i];
    }
    m->count = kept;
}

void request_mix_add(struct request_mix *m, const struct request_shape *shape)
{
    size_t i = 0;

    while (i < m->count && memcmp(&m->shapes[i].shape, shape, sizeof(*shape)) != 0)
        i++;
    if (i == m->count) {
        if (m->count == SHAPES_MAX)
            request_mix_forget(m);
        i = m->count;
        if (i == SHAPES_MAX)
            return; /* a thousand frequent ones: one more does not matter */
        vec_grow(&m->shapes, &m->cap, i + 1, sizeof(*m->shapes));
        memset(&m->shapes[i], 0, sizeof(m->shapes[i]));
        memcpy(&m->shapes[i].shape, shape, sizeof(*shape));
        m->count++;
    }
    m->shapes[i].count++;
    m->total++;
    m->cpu_milli += (double)shape->cpu_milli;
    m->device_milli += (double)shape->devices * shape->part_milli;
}

static int request_shape_compare(const struct request_shape *a, const struct request_shape *b)
{
    if (a->devices != b->devices)
        return a->devices < b->devices ? -1 : 1;
    if (a->part_milli != b->part_milli)
        return a->part_milli < b->part_milli ? -1 : 1;
    if (a->cpu_milli != b->cpu_milli)
        return a->cpu_milli < b->cpu_milli ? -1 : 1;
    if (a->column != b->column)
        return a->column < b->column ? -1 : 1;
    return (a->models > b->models) - (a->models < b->models);
}

size_t request_mix_sort(struct request_mix *m, double part)
{
    double sum = 0;
    size_t n = 0;

    /* nearly sorted from the last time */
    for (size_t i = 1; i < m->count; i++) {
        __typeof__(*m->shapes) s = m->shapes[i];
        size_t j = i;

        for (; j > 0
               && (m->shapes[j - 1].count < s.count
                   || (m->shapes[j - 1].count == s.count
                       && request_shape_compare(&s.shape, &m->shapes[j - 1].shape) < 0));
             j--)
            m->shapes[j] = m->shapes[j - 1];
        m->shapes[j] = s;
    }
    while (n < m->count && sum < part * m->total)
        sum += m->shapes[n++].count;
    return n;
}

void request_mix_done(struct request_mix *m)
{
    free(m->shapes);
}
