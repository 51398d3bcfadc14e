/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp_limits.c - system calls that containers get less of than the node's profile allows
 *
 * In a user namespace of its own a program has all capabilities, and with them reaches parts
 * of the Linux kernel that are else root's: mounts, nftables. AF_VSOCK (40) leads to the hypervisor,
 * past the container's network. clone3(2) and socketcall(2) have their arguments in memory,
 * where no filter looks: ENOSYS, upon which libraries use clone(2) and socket(2).
 */
#include "agent/runtime/seccomp_limits.h"

#include <string.h>

#include "base/cleanup.h"

#define ALLOW_IF(name, value, two, op)                                                \
    "{\"names\":[\"" name "\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{\"index\":0," \
    "\"value\":" value ",\"valueTwo\":" two ",\"op\":\"SCMP_CMP_" op "\"}]}"
#define REFUSE(name, code) \
    "{\"names\":[\"" name "\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":" code "}"

/* CLONE_NEW* of clone(2); unshare(2) knows CLONE_NEWTIME besides. */
#define NEW_NAMESPACES "2114060288"
#define NEW_NAMESPACES_AND_TIME "2114060416"

static const struct {
    const char *name;
    const char *rules; /* instead, as a JSON array */
    bool is_nesting;
} limits[] = {
    { "clone", "[" ALLOW_IF("clone", NEW_NAMESPACES, "0", "MASKED_EQ") "]", true },
    { "clone3", "[" REFUSE("clone3", "38") "]", true },
    { "unshare", "[" ALLOW_IF("unshare", NEW_NAMESPACES_AND_TIME, "0", "MASKED_EQ") "]", true },
    { "setns", "[" REFUSE("setns", "1") "]", true },
    { "mount", "[" REFUSE("mount", "1") "]", true },
    { "fsopen", "[" REFUSE("fsopen", "1") "]", true },
    { "open_tree", "[" REFUSE("open_tree", "1") "]", true },
    { "socket", "[" ALLOW_IF("socket", "40", "0", "NE") "]", false },
    { "socketcall", "[" REFUSE("socketcall", "38") "]", false },
};

/* Where the rule has the name; its number of names if it has it not. */
static size_t seccomp_limits_find(const json_t *rule, const char *name)
{
    const json_t *names = json_object_get(rule, "names"), *item;
    size_t i;

    json_array_foreach(names, i, item)
        if (json_is_string(item) && strcmp(json_string_value(item), name) == 0)
            return i;
    return json_array_size(names);
}

static bool seccomp_limits_has(const json_t *rule, const char *name)
{
    return seccomp_limits_find(rule, name) < json_array_size(json_object_get(rule, "names"));
}

static bool seccomp_limits_is_allowed(const json_t *rules, const char *name)
{
    const json_t *rule;
    size_t i;

    json_array_foreach(rules, i, rule) {
        const char *action = json_string_value(json_object_get(rule, "action"));

        if (action && strcmp(action, "SCMP_ACT_ALLOW") == 0 && seccomp_limits_has(rule, name))
            return true;
    }
    return false;
}

static void seccomp_limits_take(json_t *rules, const char *name)
{
    json_t *rule;
    size_t i;

    json_array_foreach(rules, i, rule)
        while (seccomp_limits_has(rule, name))
            (void)json_array_remove(json_object_get(rule, "names"),
                                    seccomp_limits_find(rule, name));
}

int seccomp_limits_add(json_t *rules, bool may_nest, struct aq_error *err)
{
    for (size_t i = 0; i < AQ_COUNT(limits); i++) {
        json_t *own;
        int r;

        if ((limits[i].is_nesting && may_nest) || !seccomp_limits_is_allowed(rules, limits[i].name))
            continue;
        seccomp_limits_take(rules, limits[i].name);
        own = json_loads(limits[i].rules, 0, NULL);
        r = own ? json_array_extend(rules, own) : -1;
        json_decref(own);
        if (r < 0)
            return aq_fail_oom(err);
    }
    return 0;
}
