/* SPDX-License-Identifier: Apache-2.0 */
/* pod_review.c - see pod_review.h */
#include "k8s/webhook/pod_review.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "k8s/device_id.h"
#include "k8s/webhook/quantity.h"
#include "k8s/webhook/webhook_internal.h"

static const char *const container_lists[] = { "initContainers", "containers" };

static const char *review_text(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

/* ---- amounts ---- */

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
    return pod_warn(c->pod, err, "container '%.63s' says no %s, and gets %lld", c->name,
                    settings->memory_name, (long long)c->memory);
}

static int container_review(struct container_review *c, struct aq_error *err)
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

/* ---- what would leave its limits ---- */

/* The path as the runtime takes it: no "//", ".", ".."; /var/run is /run in all usual images. */
static void review_clean_path(const char *path, struct strbuf *out)
{
    while (*path) {
        size_t len;

        path += strspn(path, "/");
        len = strcspn(path, "/");
        if (len == 2 && memcmp(path, "..", 2) == 0) {
            while (out->len && out->data[out->len - 1] != '/')
                strbuf_truncate(out, out->len - 1);
            strbuf_truncate(out, out->len - (out->len > 0));
        } else if (len && !(len == 1 && path[0] == '.')) {
            strbuf_addc(out, '/');
            strbuf_add(out, path, len);
        }
        path += len;
    }
}

/* The path of what every container with a part of a GPU is given, if 'path' is it or below it. */
static const char *review_given_path(const char *path)
{
    static const char *const given[] = { "/etc/ld.so.preload", "/run/aliquot", "/opt/kernel" };
    AQ_CLEANUP(strbuf_donep) struct strbuf clean = STRBUF_INIT;
    const char *at;

    review_clean_path(path, &clean);
    if (!strbuf_ok(&clean))
        return given[0];
    at = clean.data;
    if (strncmp(at, "/var/run/", 9) == 0)
        at += 4;
    for (size_t i = 0; i < AQ_COUNT(given); i++) {
        size_t len = strlen(given[i]);

        if (strncmp(at, given[i], len) == 0 && (at[len] == '\0' || at[len] == '/'))
            return given[i];
    }
    return NULL;
}

static int container_check_paths(const char *name, const json_t *places, const char *member,
                                 struct aq_error *err)
{
    const json_t *place;
    size_t i;

    json_array_foreach(places, i, place) {
        const char *path = review_text(place, member);
        const char *given = path ? review_given_path(path) : NULL;

        if (given)
            return aq_fail(err, EPERM,
                           "container '%.63s': '%.100s' would hide '%s', by which its limits hold: "
                           "mount it elsewhere",
                           name, path, given);
    }
    return 0;
}

static bool container_has_power(const json_t *security)
{
    static const char *const powers[] = { "ALL", "SYS_ADMIN", "CAP_SYS_ADMIN" };
    const json_t *added = json_object_get(json_object_get(security, "capabilities"), "add"), *power;
    size_t i;

    if (json_is_true(json_object_get(security, "privileged")))
        return true;
    json_array_foreach(added, i, power)
        for (size_t n = 0; n < AQ_COUNT(powers); n++)
            if (json_is_string(power) && strcmp(json_string_value(power), powers[n]) == 0)
                return true;
    return false;
}

static int container_check_rights(const struct settings *settings, const json_t *container,
                                  struct aq_error *err)
{
    const char *name = review_text(container, "name");
    int r;

    name = name ? name : "";
    if (!settings->webhook.allow_privileged
        && container_has_power(json_object_get(container, "securityContext")))
        return aq_fail(err, EPERM,
                       "container '%.63s' has rights of the node (privileged, SYS_ADMIN), "
                       "with which the pod could leave its limits: ask for whole GPUs, "
                       "or do without",
                       name);
    r = container_check_paths(name, json_object_get(container, "volumeMounts"), "mountPath", err);
    return r < 0 ? r
                 : container_check_paths(name, json_object_get(container, "volumeDevices"),
                                         "devicePath", err);
}

static int review_rights(const struct settings *settings, const json_t *spec, struct aq_error *err)
{
    const char *node = review_text(spec, "nodeName");
    int r = 0;

    if (node && node[0] && !settings->webhook.allow_node_name)
        return aq_fail(err, EPERM,
                       "spec.nodeName passes by the scheduler, which knows what is free on a card: "
                       "use a nodeSelector kubernetes.io/hostname: %.100s",
                       node);
    if (json_is_true(json_object_get(spec, "hostPID")) && !settings->webhook.allow_privileged)
        return aq_fail(err, EPERM,
                       "spec.hostPID shows the pod the node's processes, with which it could leave "
                       "its limits: do without");
    for (size_t l = 0; r == 0 && l < AQ_COUNT(container_lists); l++) {
        const json_t *list = json_object_get(spec, container_lists[l]);

        for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
            r = container_check_rights(settings, json_array_get(list, i), err);
    }
    return r;
}

/* ---- the pod ---- */

static const json_t *review_amounts(const json_t *container, const char *name)
{
    const json_t *amounts = json_object_get(json_object_get(container, "resources"), name);

    return json_is_object(amounts) ? amounts : NULL;
}

static int review_containers(const struct pod_review *review, const json_t *spec, bool *ret_any,
                             struct aq_error *err)
{
    int r = 0;

    *ret_any = false;
    for (size_t l = 0; r == 0 && l < AQ_COUNT(container_lists); l++) {
        const json_t *list = json_object_get(spec, container_lists[l]);

        for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
            const json_t *container = json_array_get(list, i);
            const char *name = review_text(container, "name");
            struct container_review c = { .pod = review,
                                          .list = container_lists[l],
                                          .index = i,
                                          .name = name ? name : "",
                                          .limits = review_amounts(container, "limits"),
                                          .requests = review_amounts(container, "requests") };

            r = container_review(&c, err);
            *ret_any |= c.memory || c.compute;
        }
    }
    return r;
}

static bool review_names_no_scheduler(const struct settings *settings, const char *name)
{
    return !name || !name[0] || strcmp(name, "default-scheduler") == 0
           || (settings->webhook.hami && strcmp(name, "hami-scheduler") == 0);
}

int pod_review(const struct pod_review *review, const json_t *pod, struct aq_error *err)
{
    const struct settings *settings = review->settings;
    const json_t *spec = json_object_get(pod, "spec");
    bool has_part;
    int r = review_containers(review, spec, &has_part, err);

    if (r < 0 || !has_part)
        return r;
    r = review_rights(settings, spec, err);
    if (r == 0 && review_names_no_scheduler(settings, review_text(spec, "schedulerName")))
        r = pod_patch_add(review, json_string(settings->webhook.scheduler), err, "spec",
                          "schedulerName", NULL);
    return r;
}
