/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel publishes, and how the apps of its container are. */
#include "manager/session/session.h"

#include <string.h>

#include "base/json_load.h"
#include "model/service_port.h"

#define APPS_MAX 64

const char *apps_raw(const struct kernel *kernel)
{
    return kernel && kernel->service_ports ? kernel->service_ports : "[]";
}

static bool apps_text_is(const json_t *object, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value && strcmp(value, text) == 0;
}

static bool apps_is_served(const json_t *service)
{
    return apps_text_is(service, "protocol", "preopen") || apps_text_is(service, "name", "sshd");
}

/* Nothing of what an agent has said is believed: what is no list of numbers is left out. */
static void apps_write_ports(const json_t *ports, struct jsonw *w)
{
    const json_t *port;
    size_t i;

    jsonw_key(w, "ports");
    jsonw_array_begin(w);
    json_array_foreach(ports, i, port)
        if (json_is_integer(port))
            jsonw_int(w, json_integer_value(port));
    jsonw_array_end(w);
}

static void apps_write_known(const json_t *service, const char *ports, struct jsonw *w)
{
    jsonw_member_str(w, "name", json_string_value(json_object_get(service, "name")));
    jsonw_member_str(w, "protocol", json_string_value(json_object_get(service, "protocol")));
    apps_write_ports(json_object_get(service, ports), w);
}

void apps_write(const struct kernel *kernel, struct jsonw *w)
{
    json_auto_t *services = json_load_string(apps_raw(kernel), 0);
    const json_t *service;
    size_t i;

    jsonw_array_begin(w);
    json_array_foreach(services, i, service) {
        jsonw_object_begin(w);
        apps_write_known(service, "container_ports", w);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

uint16_t apps_find_port(const struct kernel *kernel, const char *app, int64_t port)
{
    json_auto_t *services = json_load_string(apps_raw(kernel), 0);
    const json_t *service, *found;
    size_t i, at;

    json_array_foreach(services, i, service) {
        const char *name = json_string_value(json_object_get(service, "name"));

        if (!name || strcmp(name, app) != 0 || !apps_is_served(service))
            continue;
        json_array_foreach(json_object_get(service, "container_ports"), at, found) {
            json_int_t number = json_integer_value(found);

            if (number > 0 && number <= UINT16_MAX && (!port || number == port))
                return (uint16_t)number;
        }
    }
    return 0;
}

/* ---- with states ---- */

int apps_check_name(const char *app, struct aq_error *err)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    return *app && strlen(app) <= SERVICE_NAME_MAX && !app[strspn(app, letters)]
               ? 0
               : problem_no_such(err, "app service", "'%.64s' is no name of an app", app);
}

/* An executor is a process of the session's user: only what has the form of an app passes. */
static bool apps_is_sound(const json_t *app)
{
    const char *name = json_string_value(json_object_get(app, "name"));
    struct aq_error err = { 0 };

    return name && apps_check_name(name, &err) == 0
           && json_is_string(json_object_get(app, "protocol"))
           && json_is_string(json_object_get(app, "state"));
}

static const json_t *apps_find(const json_t *list, const json_t *like)
{
    const char *name = json_string_value(json_object_get(like, "name"));
    const json_t *app;
    size_t i;

    json_array_foreach(list, i, app)
        if (name && apps_text_is(app, "name", name))
            return app;
    return NULL;
}

static const json_t *apps_find_sound(const json_t *list, const json_t *like)
{
    const json_t *app = apps_find(list, like);

    return app && apps_is_sound(app) ? app : NULL;
}

static void apps_write_texts(const json_t *app, const char *key, struct jsonw *w)
{
    const json_t *list = json_object_get(app, key), *text;
    size_t i;

    if (!json_is_array(list))
        return;
    jsonw_key(w, key);
    jsonw_array_begin(w);
    json_array_foreach(list, i, text)
        if (json_is_string(text))
            jsonw_str(w, json_string_value(text));
    jsonw_array_end(w);
}

static void apps_write_text(const json_t *app, const char *key, struct jsonw *w)
{
    const char *text = json_string_value(json_object_get(app, key));

    if (text)
        jsonw_member_str(w, key, text);
}

static void apps_write_state(const json_t *service, const json_t *app, struct jsonw *w)
{
    if (app)
        apps_write_text(app, "state", w);
    else
        jsonw_member_str(w, "state", apps_text_is(service, "name", "sshd") ? "running" : "unknown");
    apps_write_text(app, "why", w);
    apps_write_text(app, "url_template", w);
    apps_write_texts(app, "allowed_envs", w);
    apps_write_texts(app, "allowed_arguments", w);
}

void apps_write_states(const json_t *published, const json_t *answer, struct jsonw *w)
{
    const json_t *list = json_object_get(answer, "apps"), *app;
    size_t i;

    jsonw_array_begin(w);
    json_array_foreach(published, i, app) {
        jsonw_object_begin(w);
        apps_write_known(app, "container_ports", w);
        apps_write_state(app, apps_find_sound(list, app), w);
        jsonw_object_end(w);
    }
    json_array_foreach(list, i, app) {
        if (i == APPS_MAX)
            break;
        if (!apps_is_sound(app) || apps_find(published, app))
            continue;
        jsonw_object_begin(w);
        apps_write_known(app, "ports", w);
        apps_write_state(app, app, w);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}
