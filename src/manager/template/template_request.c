/* SPDX-License-Identifier: Apache-2.0 */
/* template_request.c - what a session's template asks for, as members of POST /session */
#include <errno.h>

#include "base/json_load.h"
#include "manager/template/template_internal.h"

static void template_put(json_t *object, const char *key, const char *text)
{
    if (text && *text)
        (void)json_object_set_new(object, key, json_string(text));
}

void template_add_mounts(json_t *config, const json_t *mounts)
{
    json_t *names = json_array(), *map = json_object(), *path;
    const char *name;

    json_object_foreach((json_t *)(uintptr_t)mounts, name, path) {
        (void)json_array_append_new(names, json_string(name));
        if (json_string_length(path))
            (void)json_object_set(map, name, path);
    }
    (void)json_object_set_new(config, "mounts", names);
    (void)json_object_set_new(config, "mount_map", map);
}

/* The members of its "config". */
static json_t *template_config(const struct template_session *t, struct aq_error *err)
{
    json_t *config;
    json_auto_t *environ = NULL;
    json_auto_t *mounts = NULL;
    json_t *ports, *agents;

    if (template_texts(t->environ, "spec.kernel.environ", false, &environ, err) < 0
        || template_texts(t->mounts, "spec.mounts", true, &mounts, err) < 0)
        return NULL;
    config = json_object();
    if (t->ports.count) {
        (void)json_object_set_new(config, "preopen_ports", ports = json_array());
        for (size_t i = 0; i < t->ports.count; i++)
            (void)json_array_append_new(ports, json_integer(t->ports.items[i]));
    }
    if (t->agents.count) {
        (void)json_object_set_new(config, "agent_list", agents = json_array());
        for (size_t i = 0; i < t->agents.count; i++)
            (void)json_array_append_new(agents, json_string(t->agents.items[i]));
    }
    (void)json_object_set(config, "environ", environ);
    template_put(config, "scaling_group", t->scaling_group);
    if (t->resources)
        (void)json_object_set_new(config, "resources", json_deep_copy(t->resources));
    if (t->resource_opts)
        (void)json_object_set_new(config, "resource_opts", json_deep_copy(t->resource_opts));
    if (json_object_size(mounts))
        template_add_mounts(config, mounts);
    return config;
}

char *template_hide(json_t *parsed)
{
    json_t *kernel = json_object_get(json_object_get(parsed, "spec"), "kernel");

    return template_git_hide(json_object_get(kernel, "git"))
               ? json_dump_text(parsed, JSON_INDENT(2))
               : NULL;
}

json_t *template_request(const json_t *parsed, struct strbuf *ret_clone, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct template_session t;
    json_t *request, *config;

    if (template_read_session(parsed, &arena, &t, err) < 0 || !(config = template_config(&t, err)))
        return NULL;
    template_git_write(&t.git, ret_clone);
    request = json_object();
    (void)json_object_set_new(request, "config", config);
    template_put(request, "image", t.image);
    template_put(request, "architecture", t.architecture);
    template_put(request, "type", t.type);
    template_put(request, "tag", t.tag);
    template_put(request, "bootstrap_script", t.bootstrap);
    template_put(request, "startupCommand", t.startup);
    template_put(request, "clusterMode", t.cluster_mode);
    if (t.cluster_size)
        (void)json_object_set_new(request, "clusterSize", json_integer(t.cluster_size));
    if (t.priority >= 0)
        (void)json_object_set_new(request, "priority", json_integer(t.priority));
    return request;
}
