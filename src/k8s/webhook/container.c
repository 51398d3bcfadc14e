/* SPDX-License-Identifier: Apache-2.0 */
/* container.c - what a container of a pod asks for, and gets */
#include <errno.h>
#include <stdio.h>

#include "k8s/device_id.h"
#include "k8s/quantity.h"
#include "k8s/webhook/webhook_internal.h"

static bool container_quantity(const json_t *map, const char *name, int64_t *ret)
{
    const json_t *value = json_object_get(map, name);

    *ret = -1;
    return !value || quantity_read(value, ret);
}

int container_read(const struct container_review *c, const char *name, int64_t *ret,
                   struct aq_error *err)
{
    int64_t limit, request;

    if (!container_quantity(c->limits, name, &limit)
        || !container_quantity(c->requests, name, &request))
        return aq_fail(err, EPERM, "container '%.63s': %s is a whole number, such as 8", c->name,
                       name);
    if (limit >= 0 && request >= 0 && limit != request)
        return aq_fail(err, EPERM,
                       "container '%.63s': limits say %s %lld and requests %lld, but nobody else "
                       "gets what is between: say it under limits alone",
                       c->name, name, (long long)limit, (long long)request);
    *ret = AQ_MAX(limit, request);
    return 0;
}

/* Let limits and requests say what it gets. */
static int container_write(const struct container_review *c, const char *name, int64_t amount,
                           struct aq_error *err)
{
    const struct {
        const char *name;
        const json_t *map;
    } maps[] = { { "limits", c->limits }, { "requests", c->requests } };
    int r = 0;

    for (size_t i = 0; r == 0 && i < AQ_COUNT(maps); i++) {
        char number[24];
        int64_t is;

        if (container_quantity(maps[i].map, name, &is) && is == amount)
            continue;
        (void)snprintf(number, sizeof(number), "%lld", (long long)amount);
        r = container_patch(c, maps[i].name, name, json_string(number), err);
    }
    return r;
}

/* A container that asks for something has one of them; the other is made. */
static int container_make_maps(const struct container_review *c, struct aq_error *err)
{
    char index[24];

    (void)snprintf(index, sizeof(index), "%zu", c->index);
    if (c->limits && c->requests)
        return 0;
    return pod_patch_add(c->pod, json_object(), err, "spec", c->list, index, "resources",
                         c->limits ? "requests" : "limits", NULL);
}

static int container_check_most(const struct container_review *c, const char *name, int64_t amount,
                                int64_t most, struct aq_error *err)
{
    if (amount <= most)
        return 0;
    return aq_fail(err, EPERM,
                   "container '%.63s': %s is at most %lld, as its part of a GPU lies on one card",
                   c->name, name, (long long)most);
}

static int container_check_amounts(struct container_review *c, struct aq_error *err)
{
    const struct settings *settings = c->pod->settings;
    const int64_t card = settings->webhook.card_memory;
    int r = container_check_most(c, settings->compute_name, c->compute, settings->compute_units,
                                 err);

    if (r == 0)
        r = container_check_most(c, settings->memory_name, c->memory,
                                 card ? card : DEVICE_UNITS_MAX, err);
    if (r < 0)
        return r;
    if (!c->compute || c->memory)
        return 0;
    if (!settings->webhook.default_memory)
        return aq_fail(err, EPERM,
                       "container '%.63s' asks for %s without %s, and without memory there is no "
                       "GPU: say how much it needs",
                       c->name, settings->compute_name, settings->memory_name);
    c->memory = settings->webhook.default_memory;
    pod_warn(c->pod, "container '%.63s' says no %s, and gets %lld", c->name, settings->memory_name,
             (long long)c->memory);
    return 0;
}

int container_review(struct container_review *c, struct aq_error *err)
{
    const struct settings *settings = c->pod->settings;
    int r = container_read(c, settings->memory_name, &c->memory, err);

    if (r == 0)
        r = container_read(c, settings->compute_name, &c->compute, err);
    c->memory = AQ_MAX(c->memory, 0);
    c->compute = AQ_MAX(c->compute, 0);
    if (r == 0 && settings->webhook.hami)
        r = hami_translate(c, err);
    if (r == 0)
        r = container_check_amounts(c, err);
    if (r == 0 && (c->memory || c->compute))
        r = container_make_maps(c, err);
    if (r == 0 && c->memory)
        r = container_write(c, settings->memory_name, c->memory, err);
    if (r == 0 && c->compute)
        r = container_write(c, settings->compute_name, c->compute, err);
    return r;
}
