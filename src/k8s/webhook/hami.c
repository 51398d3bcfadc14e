/* SPDX-License-Identifier: Apache-2.0 */
/* hami.c - HAMi's names of resources, which become ours
 *
 * nvidia.com/gpu without one of the others stays as it is: it is a whole GPU, of another device
 * plugin.
 */
#include <errno.h>

#include "base/strbuf.h"
#include "k8s/webhook/webhook_internal.h"

#define MIB (INT64_C(1) << 20)

enum { HAMI_COUNT, HAMI_MEMORY, HAMI_PERCENTAGE, HAMI_CORES, HAMI_NAMES };

static const char *const hami_names[HAMI_NAMES] = {
    "nvidia.com/gpu",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
};

static int64_t hami_divide_up(int64_t number, int64_t by)
{
    return number / by + (number % by != 0);
}

static int hami_read_memory(struct container_review *c, const int64_t asked[HAMI_NAMES],
                            struct aq_error *err)
{
    const struct settings *settings = c->pod->settings;

    if (asked[HAMI_MEMORY] > 0)
        c->memory = asked[HAMI_MEMORY] > INT64_MAX / MIB
                        ? INT64_MAX
                        : hami_divide_up(asked[HAMI_MEMORY] * MIB, settings->memory_unit);
    else if (asked[HAMI_PERCENTAGE] <= 0)
        return 0;
    else if (!settings->webhook.card_memory)
        return aq_fail(err, EPERM,
                       "container '%.63s': %s is a part of a card whose size is not known: say %s "
                       "in MiB, or let webhook.card-memory be set",
                       c->name, hami_names[HAMI_PERCENTAGE], hami_names[HAMI_MEMORY]);
    else if (asked[HAMI_PERCENTAGE] > 100)
        return aq_fail(err, EPERM, "container '%.63s': %s is at most 100", c->name,
                       hami_names[HAMI_PERCENTAGE]);
    else
        c->memory = hami_divide_up(asked[HAMI_PERCENTAGE] * settings->webhook.card_memory, 100);
    return 0;
}

static int hami_remove(const struct container_review *c, const char *name, struct aq_error *err)
{
    int r = 0;

    if (json_object_get(c->limits, name))
        r = container_patch(c, "limits", name, NULL, err);
    if (r == 0 && json_object_get(c->requests, name))
        r = container_patch(c, "requests", name, NULL, err);
    return r;
}

/* Take the names out, and say what of them became what. */
static int hami_replace(const struct container_review *c, const int64_t asked[HAMI_NAMES],
                        struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf was = STRBUF_INIT, is = STRBUF_INIT;
    const struct settings *settings = c->pod->settings;
    int r = 0;

    for (size_t i = 0; r == 0 && i < HAMI_NAMES; i++) {
        if (asked[i] < 0)
            continue;
        strbuf_addf(&was, "%s%s %lld", was.len ? ", " : "", hami_names[i], (long long)asked[i]);
        r = hami_remove(c, hami_names[i], err);
    }
    if (c->memory)
        strbuf_addf(&is, "%s %lld", settings->memory_name, (long long)c->memory);
    if (c->compute)
        strbuf_addf(&is, "%s%s %lld", is.len ? ", " : "", settings->compute_name,
                    (long long)c->compute);
    if (r < 0)
        return r;
    pod_warn(c->pod, "container '%.63s': %s became %s", c->name, was.data,
             is.len ? is.data : "nothing");
    return 0;
}

int hami_translate(struct container_review *c, struct aq_error *err)
{
    const struct settings *settings = c->pod->settings;
    int64_t asked[HAMI_NAMES];
    int r = 0;

    for (size_t i = 0; r == 0 && i < HAMI_NAMES; i++)
        r = container_read(c, hami_names[i], &asked[i], err);
    if (r < 0 || (asked[HAMI_MEMORY] < 0 && asked[HAMI_PERCENTAGE] < 0 && asked[HAMI_CORES] < 0))
        return r;
    if (json_object_get(c->limits, settings->memory_name)
        || json_object_get(c->limits, settings->compute_name) || c->memory || c->compute)
        return aq_fail(err, EPERM,
                       "container '%.63s' asks by two kinds of names: say %s and %s, or HAMi's",
                       c->name, settings->memory_name, settings->compute_name);
    if (asked[HAMI_COUNT] > 1)
        return aq_fail(err, EPERM,
                       "container '%.63s': a part of a GPU lies on one card, so %s is 1, and a "
                       "container that needs %lld cards asks for whole ones",
                       c->name, hami_names[HAMI_COUNT], (long long)asked[HAMI_COUNT]);
    r = hami_read_memory(c, asked, err);
    if (r == 0 && asked[HAMI_CORES] > 0)
        c->compute = hami_divide_up(asked[HAMI_CORES] * settings->compute_units, 100);
    return r < 0 ? r : hami_replace(c, asked, err);
}
