/* SPDX-License-Identifier: Apache-2.0 */
/* rights.c - rights of the node with which a pod could leave its part of a GPU
 *
 * The table of what is allowed and refused, with the reasons, is in docs/kubernetes.md. A
 * capability that is not listed is refused, so that one that Linux adds later needs a decision
 * first.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/strbuf.h"
#include "k8s/webhook/webhook_internal.h"
#include "model/device_variable.h"

#define DEVICES "NVIDIA_VISIBLE_DEVICES"
#define APPARMOR "container.apparmor.security.beta.kubernetes.io/"

static const char *const rights_lists[] = { "initContainers", "containers", "ephemeralContainers" };

/* The container that is looked at. */
struct subject {
    const struct pod_review *review;
    const json_t *container, *security;
    const char *list, *name, *advice;
    size_t index;
    bool is_on_host_network;
};

static const char *rights_text(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

/* ---- capabilities ---- */

static bool rights_is_capability(const char *name, const char *other)
{
    name += strncasecmp(name, "CAP_", 4) == 0 ? 4 : 0;
    other += strncasecmp(other, "CAP_", 4) == 0 ? 4 : 0;
    return strcasecmp(name, other) == 0;
}

/* Container runtimes give the usual ones to every container: adding them gains nothing, and devices
 * that MKNOD makes are opened only where the device cgroup allows it. The others act on the pod's
 * own network, memory and processes.
 */
static bool rights_allow_capability(const struct settings *settings, const char *name)
{
    static const char *const allowed[] = {
        "AUDIT_WRITE", "CHOWN",     "DAC_OVERRIDE",     "FOWNER",     "FSETID",
        "KILL",        "MKNOD",     "NET_BIND_SERVICE", "NET_RAW",    "SETFCAP",
        "SETGID",      "SETPCAP",   "SETUID",           "SYS_CHROOT", /* the usual ones */
        "IPC_LOCK",    "NET_ADMIN", "SYS_NICE",
    };
    const struct conf_list *more = &settings->webhook.capabilities;

    for (size_t i = 0; i < AQ_COUNT(allowed); i++)
        if (rights_is_capability(name, allowed[i]))
            return true;
    for (size_t i = 0; i < more->count; i++)
        if (rights_is_capability(name, more->items[i]))
            return true;
    return false;
}

static int rights_check_capabilities(const struct subject *s, struct aq_error *err)
{
    const json_t *added = json_object_get(json_object_get(s->security, "capabilities"), "add");
    const json_t *power;
    size_t i;

    json_array_foreach(added, i, power) {
        const char *name = json_string_value(power);

        if (!name || !rights_allow_capability(s->review->settings, name))
            return aq_fail(
                err, EPERM,
                "%s[%zu] '%.63s': securityContext.capabilities.add has '%.63s', which pods "
                "with a part of a GPU may not have: remove it%s, or let the administrator "
                "add it to webhook.allow-capabilities",
                s->list, s->index, s->name, name ? name : "", s->advice);
        if (s->is_on_host_network && rights_is_capability(name, "NET_ADMIN"))
            return aq_fail(
                err, EPERM,
                "%s[%zu] '%.63s': securityContext.capabilities.add has '%.63s', and with "
                "spec.hostNetwork it could change the node's network: remove one of them",
                s->list, s->index, s->name, name);
    }
    return 0;
}

/* ---- confinement ---- */

/* 'at' is the path of the security context in the pod. */
static int rights_check_profiles(const json_t *security, const char *at, struct aq_error *err)
{
    static const char *const profiles[] = { "seccompProfile", "appArmorProfile" };
    static const char *const types[] = { "", "container_t", "container_init_t", "container_kvm_t",
                                         "container_engine_t" };
    const char *type = rights_text(json_object_get(security, "seLinuxOptions"), "type");
    bool is_usual = !type;

    for (size_t i = 0; i < AQ_COUNT(profiles); i++) {
        const char *profile = rights_text(json_object_get(security, profiles[i]), "type");

        if (profile && strcmp(profile, "Unconfined") == 0)
            return aq_fail(
                err, EPERM,
                "%s.%s.type is Unconfined, which pods with a part of a GPU may not have: use "
                "RuntimeDefault, or a Localhost profile",
                at, profiles[i]);
    }
    for (size_t i = 0; !is_usual && i < AQ_COUNT(types); i++)
        is_usual = strcmp(type, types[i]) == 0;
    if (!is_usual)
        return aq_fail(
            err, EPERM,
            "%s.seLinuxOptions.type is '%.63s', which pods with a part of a GPU may not have: "
            "leave it out",
            at, type);
    return 0;
}

static int rights_check_security(const struct subject *s, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *at = aq_format("%s[%zu] '%.63s': securityContext", s->list, s->index,
                                              s->name);
    const char *proc = rights_text(s->security, "procMount");

    if (json_is_true(json_object_get(s->security, "privileged")))
        return aq_fail(
            err, EPERM,
            "%s.privileged gives it every device of the node, past its part of a GPU: remove "
            "it%s, or ask for whole GPUs",
            at, s->advice);
    if (proc && strcmp(proc, "Default") != 0)
        return aq_fail(
            err, EPERM,
            "%s.procMount is '%.63s', which pods with a part of a GPU may not have: leave it "
            "out",
            at, proc);
    return rights_check_profiles(s->security, at, err);
}

/* ---- environment ---- */

/* NVIDIA's runtime gives a container the cards that this variable names. The device plugin sets it
 * to "void", but the pod's own variables, and those of its envFrom, go before the device plugin's.
 */
static int rights_check_environment(const struct subject *s, struct aq_error *err)
{
    const json_t *environment = json_object_get(s->container, "env"), *variable;
    bool is_set = false;
    char index[24];
    json_t *nothing;
    size_t i;

    json_array_foreach(environment, i, variable) {
        const char *name = rights_text(variable, "name"), *value = rights_text(variable, "value");
        AQ_CLEANUP(aq_freep) char *pair = NULL;

        if (!name || strcmp(name, DEVICES) != 0)
            continue;
        is_set = true;
        pair = aq_format(DEVICES "=%s", value ? value : "");
        if (json_object_get(variable, "valueFrom") || device_variable_exceeds(pair, 0))
            return aq_fail(err, EPERM,
                           "%s[%zu] '%.63s': env " DEVICES " names GPUs past the container's part: "
                           "remove it, or set it to void",
                           s->list, s->index, s->name);
    }
    if (is_set || !json_array_size(json_object_get(s->container, "envFrom")))
        return 0;
    (void)snprintf(index, sizeof(index), "%zu", s->index);
    nothing = json_pack("{s:s, s:s}", "name", DEVICES, "value", "void");
    return json_is_array(environment)
               ? pod_patch_add(s->review, nothing, err, "spec", s->list, index, "env", "-", NULL)
               : pod_patch_add(s->review, json_pack("[o]", nothing), err, "spec", s->list, index,
                               "env", NULL);
}

/* ---- the pod ---- */

static int rights_check_container(const struct subject *s, struct aq_error *err)
{
    int r = 0;

    if (!s->review->settings->webhook.allow_privileged) {
        r = rights_check_security(s, err);
        if (r == 0)
            r = rights_check_capabilities(s, err);
        if (r == 0)
            r = rights_check_environment(s, err);
    }
    return r < 0 ? r : mounts_check(s->name, s->container, err);
}

static int rights_check_list(const struct pod_review *review, const json_t *spec, const char *list,
                             const json_t *known, struct aq_error *err)
{
    const json_t *containers = json_object_get(spec, list), *container;
    bool is_debug = strcmp(list, "ephemeralContainers") == 0;
    size_t i, k;
    int r = 0;

    json_array_foreach(containers, i, container) {
        const char *name = rights_text(container, "name");
        const struct subject subject = {
            .review = review,
            .container = container,
            .security = json_object_get(container, "securityContext"),
            .list = list,
            .name = name ? name : "",
            .advice = is_debug ? " (kubectl debug --profile=baseline)" : "",
            .index = i,
            .is_on_host_network = json_is_true(json_object_get(spec, "hostNetwork")),
        };
        const json_t *was;
        bool is_known = false;

        json_array_foreach(known, k, was)
            is_known |= json_equal(was, container);
        if (!is_known && (r = rights_check_container(&subject, err)) < 0)
            return r;
    }
    return 0;
}

static int rights_check_host(const json_t *pod, struct aq_error *err)
{
    static const struct {
        const char *name, *why;
    } members[] = {
        { "hostPID", "shows the pod the node's processes, and those of other pods: remove it" },
        { "hostIPC",
          "shares the node's memory segments with the pod: remove it, and mount an emptyDir "
          "with medium Memory at /dev/shm" },
    };
    const json_t *spec = json_object_get(pod, "spec"), *value;
    const char *key;

    for (size_t i = 0; i < AQ_COUNT(members); i++)
        if (json_is_true(json_object_get(spec, members[i].name)))
            return aq_fail(err, EPERM, "spec.%s %s", members[i].name, members[i].why);
    /* older than the field appArmorProfile, and copied into it by the API server afterwards */
    json_object_foreach(
        (json_t *)(uintptr_t)json_object_get(json_object_get(pod, "metadata"), "annotations"), key,
        value)
        if (strncmp(key, APPARMOR, strlen(APPARMOR)) == 0 && json_is_string(value)
            && strcmp(json_string_value(value), "unconfined") == 0)
            return aq_fail(
                err, EPERM,
                "annotation %.200s is 'unconfined', which pods with a part of a GPU may not "
                "have: use 'runtime/default'",
                key);
    return rights_check_profiles(json_object_get(spec, "securityContext"), "spec.securityContext",
                                 err);
}

int rights_check_pod(const struct pod_review *review, const json_t *pod, struct aq_error *err)
{
    const json_t *spec = json_object_get(pod, "spec");
    int r = 0;

    if (!review->settings->webhook.allow_privileged) {
        r = rights_check_host(pod, err);
        if (r == 0)
            r = volumes_check(review->settings, spec, err);
    }
    for (size_t i = 0; r == 0 && i < AQ_COUNT(rights_lists); i++)
        r = rights_check_list(review, spec, rights_lists[i], NULL, err);
    return r;
}

int rights_check_debug(const struct pod_review *review, const json_t *pod, const json_t *old,
                       struct aq_error *err)
{
    static const char list[] = "ephemeralContainers";

    return rights_check_list(review, json_object_get(pod, "spec"), list,
                             json_object_get(json_object_get(old, "spec"), list), err);
}
