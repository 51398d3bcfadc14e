/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp.c - the node's seccomp profile for containers */
#include "agent/runtime/seccomp.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "agent/runtime/seccomp_rules.h"
#include "base/jsonw.h"

static const struct {
    const char *machine, *go_name, *scmp;
} architectures[] = {
    { "x86_64", "amd64", "SCMP_ARCH_X86_64" },     { "aarch64", "arm64", "SCMP_ARCH_AARCH64" },
    { "ppc64le", "ppc64le", "SCMP_ARCH_PPC64LE" }, { "s390x", "s390x", "SCMP_ARCH_S390X" },
    { "riscv64", "riscv64", "SCMP_ARCH_RISCV64" },
};

static bool seccomp_has_text(const json_t *list, const char *text)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
        if (json_is_string(item) && strcmp(json_string_value(item), text) == 0)
            return true;
    return false;
}

static bool seccomp_has_any_capability(const json_t *list, const struct seccomp_host *host)
{
    for (const char *const *name = host->capabilities; *name; name++)
        if (seccomp_has_text(list, *name))
            return true;
    return false;
}

static bool seccomp_is_at_least(const char *release, const char *minimum)
{
    int have[2] = { 0 }, want[2] = { 0 };

    (void)sscanf(release, "%d.%d", &have[0], &have[1]);
    (void)sscanf(minimum, "%d.%d", &want[0], &want[1]);
    return have[0] > want[0] || (have[0] == want[0] && have[1] >= want[1]);
}

static const char *seccomp_go_name(const struct seccomp_host *host)
{
    for (size_t i = 0; i < AQ_COUNT(architectures); i++)
        if (strcmp(architectures[i].machine, host->machine) == 0)
            return architectures[i].go_name;
    return host->machine;
}

/* All that "includes" names must hold, nothing that "excludes" names may. */
static bool seccomp_holds(const json_t *rule, const struct seccomp_host *host)
{
    const json_t *in = json_object_get(rule, "includes"), *ex = json_object_get(rule, "excludes");
    const json_t *arches = json_object_get(in, "arches"), *caps = json_object_get(in, "caps");
    const char *least = json_string_value(json_object_get(in, "minKernel"));

    if (json_array_size(arches) && !seccomp_has_text(arches, seccomp_go_name(host)))
        return false;
    if (json_array_size(caps) && !seccomp_has_any_capability(caps, host))
        return false;
    if (least && !seccomp_is_at_least(host->release, least))
        return false;
    least = json_string_value(json_object_get(ex, "minKernel"));
    return !seccomp_has_text(json_object_get(ex, "arches"), seccomp_go_name(host))
           && !seccomp_has_any_capability(json_object_get(ex, "caps"), host)
           && !(least && seccomp_is_at_least(host->release, least));
}

static void seccomp_write_architectures(struct jsonw *w, const json_t *map, const char *machine)
{
    const json_t *entry, *item;
    const char *scmp = NULL;
    size_t i, j;

    for (i = 0; i < AQ_COUNT(architectures); i++)
        if (strcmp(architectures[i].machine, machine) == 0)
            scmp = architectures[i].scmp;
    if (!scmp)
        return; /* the runtime takes the native one */
    jsonw_key(w, "architectures");
    jsonw_array_begin(w);
    jsonw_str(w, scmp);
    json_array_foreach(map, i, entry) {
        const char *name = json_string_value(json_object_get(entry, "architecture"));

        if (!name || strcmp(name, scmp) != 0)
            continue;
        json_array_foreach(json_object_get(entry, "subArchitectures"), j, item)
            jsonw_str(w, json_string_value(item));
    }
    jsonw_array_end(w);
}

/* The rules that hold on the host, once each: containers-common says some things twice. */
static json_t *seccomp_choose(const json_t *rules, const struct seccomp_host *host)
{
    json_t *chosen = json_array(), *rule, *other;
    size_t i, k;

    json_array_foreach(rules, i, rule) {
        bool is_new = seccomp_holds(rule, host);

        json_array_foreach(chosen, k, other)
            is_new = is_new && !json_equal(rule, other);
        if (is_new)
            json_array_append(chosen, rule);
    }
    return chosen;
}

int seccomp_translate(const char *profile, size_t len, const struct seccomp_host *host,
                      struct strbuf *out, struct aq_error *err)
{
    json_error_t at;
    json_t *root = json_loadb(profile, len, 0, &at), *rules, *chosen;
    const char *usual;
    struct jsonw w = jsonw_make(out);

    if (!root)
        return aq_fail(err, EINVAL, "line %d: %s", at.line, at.text);
    rules = json_object_get(root, "syscalls");
    usual = json_string_value(json_object_get(root, "defaultAction"));
    if (!usual || !json_is_array(rules)) {
        json_decref(root);
        return aq_fail(err, EINVAL, "there is no defaultAction, or no syscalls");
    }
    chosen = seccomp_choose(rules, host);
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "defaultAction", usual);
    if (json_is_integer(json_object_get(root, "defaultErrnoRet")))
        jsonw_member_int(&w, "defaultErrnoRet",
                         json_integer_value(json_object_get(root, "defaultErrnoRet")));
    seccomp_write_architectures(&w, json_object_get(root, "archMap"), host->machine);
    jsonw_key(&w, "syscalls");
    jsonw_array_begin(&w);
    seccomp_rules_write(&w, chosen, host->may_nest);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    json_decref(chosen);
    json_decref(root);
    return 0;
}
