/* SPDX-License-Identifier: Apache-2.0 */
/* pod_review.c - see pod_review.h */
#include "k8s/webhook/pod_review.h"

#include <errno.h>
#include <string.h>

#include "base/strbuf.h"
#include "k8s/webhook/webhook_internal.h"

static const char *const review_lists[] = { "initContainers", "containers" };

static const char *review_text(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
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

static int review_check_paths(const char *name, const json_t *places, const char *member,
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

static bool review_has_power(const json_t *security)
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

static int review_check_rights(const struct settings *settings, const json_t *container,
                               struct aq_error *err)
{
    const char *name = review_text(container, "name");
    int r;

    name = name ? name : "";
    if (!settings->webhook.allow_privileged
        && review_has_power(json_object_get(container, "securityContext")))
        return aq_fail(err, EPERM,
                       "container '%.63s' has rights of the node (privileged, SYS_ADMIN), "
                       "with which the pod could leave its limits: ask for whole GPUs, "
                       "or do without",
                       name);
    r = review_check_paths(name, json_object_get(container, "volumeMounts"), "mountPath", err);
    return r < 0 ? r
                 : review_check_paths(name, json_object_get(container, "volumeDevices"),
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
    for (size_t l = 0; r == 0 && l < AQ_COUNT(review_lists); l++) {
        const json_t *list = json_object_get(spec, review_lists[l]);

        for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
            r = review_check_rights(settings, json_array_get(list, i), err);
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
    for (size_t l = 0; r == 0 && l < AQ_COUNT(review_lists); l++) {
        const json_t *list = json_object_get(spec, review_lists[l]);

        for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
            const json_t *container = json_array_get(list, i);
            const char *name = review_text(container, "name");
            struct container_review c = { .pod = review,
                                          .list = review_lists[l],
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
