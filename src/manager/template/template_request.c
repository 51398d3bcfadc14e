/* SPDX-License-Identifier: Apache-2.0 */
/* template_request.c - what a session's template asks for, as members of POST /session */
#include <errno.h>

#include "base/json_load.h"
#include "manager/template/template_internal.h"

static int template_put(json_t *object, const char *key, const char *text)
{
    return text && *text ? json_object_set_new(object, key, json_string(text)) : 0;
}

static int template_put_object(json_t *object, const char *key, const json_t *value)
{
    return value ? json_object_set_new(object, key, json_deep_copy(value)) : 0;
}

int template_add_mounts(json_t *config, const json_t *mounts)
{
    json_t *names = json_array(), *map = json_object(), *path;
    const char *name;
    bool is_ok = names && map;

    json_object_foreach((json_t *)(uintptr_t)mounts, name, path) {
        is_ok = is_ok && json_array_append_new(names, json_string(name)) == 0;
        if (is_ok && json_string_length(path))
            is_ok = json_object_set(map, name, path) == 0;
    }
    is_ok = is_ok && json_object_set(config, "mounts", names) == 0
            && json_object_set(config, "mount_map", map) == 0;
    json_decref(names);
    json_decref(map);
    return is_ok ? 0 : -ENOMEM;
}

/* The members of its "config". */
static json_t *template_config(const struct template_session *t, struct aq_error *err)
{
    json_auto_t *config = json_object();
    json_auto_t *environ = NULL;
    json_auto_t *mounts = NULL;
    json_t *ports = t->ports.count ? json_array() : NULL;
    json_t *agents = t->agents.count ? json_array() : NULL;
    bool is_ok = config;

    for (size_t i = 0; is_ok && i < t->ports.count; i++)
        is_ok = json_array_append_new(ports, json_integer(t->ports.items[i])) == 0;
    for (size_t i = 0; is_ok && i < t->agents.count; i++)
        is_ok = json_array_append_new(agents, json_string(t->agents.items[i])) == 0;
    if ((ports && json_object_set_new(config, "preopen_ports", ports) < 0)
        || (agents && json_object_set_new(config, "agent_list", agents) < 0))
        is_ok = false;
    if (template_texts(t->environ, "spec.kernel.environ", false, &environ, err) < 0
        || template_texts(t->mounts, "spec.mounts", true, &mounts, err) < 0)
        return NULL;
    is_ok = is_ok && json_object_set(config, "environ", environ) == 0
            && template_put(config, "scaling_group", t->scaling_group) == 0
            && template_put_object(config, "resources", t->resources) == 0
            && template_put_object(config, "resource_opts", t->resource_opts) == 0
            && (!json_object_size(mounts) || template_add_mounts(config, mounts) == 0);
    if (!is_ok)
        (void)aq_fail_oom(err);
    return is_ok ? AQ_TAKE(config) : NULL;
}

int template_hide(json_t *parsed, char **ret_text)
{
    json_t *kernel = json_object_get(json_object_get(parsed, "spec"), "kernel");
    bool has_any;
    int r = template_git_hide(json_object_get(kernel, "git"), &has_any);

    *ret_text = r == 0 && has_any ? json_dump_text(parsed, JSON_INDENT(2)) : NULL;
    return r < 0 || (has_any && !*ret_text) ? -ENOMEM : 0;
}

json_t *template_request(const json_t *parsed, struct strbuf *ret_clone, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    json_auto_t *request = json_object();
    struct template_session t;
    json_t *config;

    if (template_read_session(parsed, &arena, &t, err) < 0 || !(config = template_config(&t, err)))
        return NULL;
    template_git_write(&t.git, ret_clone);
    if (json_object_set_new(request, "config", config) < 0
        || template_put(request, "image", t.image) < 0
        || template_put(request, "architecture", t.architecture) < 0
        || template_put(request, "type", t.type) < 0 || template_put(request, "tag", t.tag) < 0
        || template_put(request, "bootstrap_script", t.bootstrap) < 0
        || template_put(request, "startupCommand", t.startup) < 0
        || template_put(request, "clusterMode", t.cluster_mode) < 0
        || (t.cluster_size
            && json_object_set_new(request, "clusterSize", json_integer(t.cluster_size)) < 0)
        || (t.priority >= 0
            && json_object_set_new(request, "priority", json_integer(t.priority)) < 0)) {
        (void)aq_fail_oom(err);
        return NULL;
    }
    return AQ_TAKE(request);
}
