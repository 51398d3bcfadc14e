/* SPDX-License-Identifier: Apache-2.0 */
/* slot_request.c - requests for slots of one agent: equal ones are one object
 *
 * A request nobody uses stays, with all that was found about it, until many
 * are idle: the next session often asks for the same.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "sched/cluster_internal.h"

#define IDLE_MAX 1024

/* ---- contents ---- */

static void slot_request_add_kernel(const struct cluster *c, struct slot_request *req,
                                    const struct slots *slots)
{
    req->kernels++;
    req->amounts[c->columns]++;
    for (size_t i = 0; i < slots->count; i++) {
        size_t column = cluster_column(c, slots->items[i].name);

        if (column == SIZE_MAX) {
            if (slots->items[i].amount > 0)
                req->unknown = slots->items[i].name;
            continue;
        }
        req->named[column] = true;
        if (__builtin_add_overflow(req->amounts[column], slots->items[i].amount,
                                   &req->amounts[column]))
            req->amounts[column] = AMOUNT_INFINITE;
    }
}

/* "cuda" has "cuda", "cuda.shares" and "cuda.device:10g-mig". */
static bool slot_request_is_of_device(const char *slot_name, const char *device)
{
    size_t len = strlen(device);

    return strncmp(slot_name, device, len) == 0
           && (slot_name[len] == '\0' || slot_name[len] == '.');
}

static bool slot_request_is_ordered(const struct slot_request *req, size_t column)
{
    for (size_t i = 0; i < req->order_count; i++)
        if (req->order[i] == column)
            return true;
    return false;
}

/* Columns in the order in which they are compared: those of the configured
 * devices, then the other named ones by name.
 */
static void slot_request_order_columns(const struct cluster *c, struct slot_request *req)
{
    for (size_t p = 0; p < c->slot_priority_count; p++)
        for (size_t i = 0; i < c->columns; i++)
            if (req->named[i] && !slot_request_is_ordered(req, i)
                && slot_request_is_of_device(c->names[i], c->slot_priority[p]))
                req->order[req->order_count++] = (uint16_t)i;
    for (size_t i = 0; i < c->columns; i++)
        if (req->named[i] && !slot_request_is_ordered(req, i))
            req->order[req->order_count++] = (uint16_t)i;
}

static void slot_request_free(struct slot_request *req)
{
    free(req->amounts);
    free(req->fits);
    free(req);
}

/* One block for the three lists. */
static struct slot_request *slot_request_new(const struct cluster *c)
{
    struct slot_request *req = aq_alloc(sizeof(*req));
    size_t width = c->width;
    char *block = aq_alloc_array(width, sizeof(int64_t) + sizeof(uint16_t) + sizeof(bool));

    req->amounts = (int64_t *)(void *)block;
    req->order = (uint16_t *)(void *)(block + width * sizeof(int64_t));
    req->named = (bool *)(block + width * (sizeof(int64_t) + sizeof(uint16_t)));
    return req;
}

static void slot_request_read_spec(struct cluster *c, struct slot_request *req,
                                   const struct slot_request_spec *spec)
{
    uint8_t model;

    /* an architecture or a model beyond those there is place for is on no agent */
    if (cluster_architecture(c, spec->architecture, &req->architecture) < 0)
        req->architecture = UINT16_MAX;
    req->volumes = cluster_volumes(c, spec->volumes, spec->volume_count);
    for (size_t k = 0; k < spec->kernel_count; k++)
        slot_request_add_kernel(c, req, spec->kernels[k]);
    for (size_t i = 0; i < spec->model_count; i++)
        if (cluster_model(c, spec->models[i], &model) == 0)
            req->models |= UINT64_C(1) << model;
    if (spec->model_count == 0)
        req->models = UINT64_MAX;
    req->booking = spec->booking;
    req->may_split = spec->may_split;
    slot_request_order_columns(c, req);
}

static void slot_request_make_key(struct cluster *c, const struct slot_request *req)
{
    struct {
        uint64_t models, volumes;
        const char *unknown;
        uint32_t kernels, booking;
        uint16_t architecture;
        uint16_t may_split;
        uint32_t unused;
    } head = { req->models,  req->volumes,      req->unknown,   req->kernels,
               req->booking, req->architecture, req->may_split, 0 };

    strbuf_clear(&c->key);
    strbuf_add(&c->key, &head, sizeof(head));
    strbuf_add(&c->key, req->amounts, c->width * sizeof(*req->amounts));
    strbuf_add(&c->key, req->named, c->width * sizeof(*req->named));
}

size_t cluster_lead_column(const struct cluster *c, const struct slot_request *req)
{
    for (size_t i = 0; i < req->order_count; i++)
        if (req->amounts[req->order[i]] > 0)
            return req->order[i];
    return c->columns; /* a kernel at least */
}

/* ---- the table ---- */

static void slot_request_drop(struct cluster *c, size_t i)
{
    slot_request_make_key(c, c->requests[i]);
    (void)map_remove(&c->requests_by_key, c->key.data, c->key.len);
    slot_request_free(c->requests[i]);
    c->requests[i] = c->requests[--c->request_count];
    if (i < c->request_count)
        c->requests[i]->id = (uint32_t)i;
}

static void slot_request_drop_idle(struct cluster *c)
{
    for (size_t i = c->request_count; i-- > 0;)
        if (c->requests[i]->users == 0)
            slot_request_drop(c, i);
    c->idle_requests = 0;
}

struct slot_request *slot_request_get(struct cluster *c, const struct slot_request_spec *spec)
{
    struct slot_request *req = slot_request_new(c), *known;

    slot_request_read_spec(c, req, spec);
    slot_request_make_key(c, req);
    if ((known = map_get(&c->requests_by_key, c->key.data, c->key.len))) {
        slot_request_free(req);
        c->idle_requests -= known->users == 0;
        known->users++;
        return known;
    }
    vec_grow(&c->requests, &c->request_cap, c->request_count + 1, sizeof(*c->requests));
    map_set(&c->requests_by_key, c->key.data, c->key.len, req);
    req->id = (uint32_t)c->request_count;
    c->requests[c->request_count++] = req;
    req->users = 1;
    return req;
}

void slot_request_release(struct cluster *c, struct slot_request *req)
{
    assert(req->users > 0 && c->requests[req->id] == req);
    if (--req->users > 0)
        return;
    if (++c->idle_requests > IDLE_MAX)
        slot_request_drop_idle(c);
}

void slot_requests_done(struct cluster *c)
{
    for (size_t i = 0; i < c->request_count; i++)
        slot_request_free(c->requests[i]);
    free(c->requests);
    map_done(&c->requests_by_key);
}
