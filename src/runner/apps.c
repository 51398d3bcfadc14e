/* SPDX-License-Identifier: Apache-2.0 */
/* The apps of a container. */
#include "runner/apps.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/jsonw.h"
#include "runner/app.h"
#include "runner/app_definition.h"
#include "runner/app_own.h"

#define APPS_MAX (2 * SERVICE_PORTS_MAX)
#define PORT_TRIES 20 /* after an own app's usual port */

static const char *const apps_state_names[] = { "not-started", "starting", "running", "failed",
                                                "ending" };

/* ---- which there are ---- */

static struct app *apps_find(const struct apps *apps, const char *name)
{
    LIST_FOREACH(it, &apps->items)
        if (strcmp(LIST_ENTRY(it, struct app, link)->name, name) == 0)
            return LIST_ENTRY(it, struct app, link);
    return NULL;
}

static bool apps_use_port(const struct apps *apps, uint16_t port)
{
    LIST_FOREACH(it, &apps->items) {
        const struct app *app = LIST_ENTRY(it, struct app, link);

        for (size_t i = 0; i < app->port_count; i++)
            if (app->ports[i] == port)
                return true;
    }
    return false;
}

/* Not if memory is short: it is looked for again. */
static void apps_add(struct apps *apps, const char *name, const char *protocol,
                     const uint16_t *ports, size_t count)
{
    struct app *app = apps->count < APPS_MAX ? app_new(name, protocol, ports, count) : NULL;

    if (!app)
        return;
    list_add(&apps->items, &app->link);
    apps->count++;
}

/* Those of "8888,9000", as far as it goes so. */
static struct int_list apps_read_ports(const char *text, int64_t room[SERVICE_PORTS_MAX])
{
    struct int_list ports = { .items = room };
    char *end;

    for (; text && ports.count < SERVICE_PORTS_MAX; text = *end == ',' ? end + 1 : NULL) {
        long port = strtol(text, &end, 10);

        if (end == text)
            break;
        room[ports.count++] = port;
    }
    return ports;
}

static void apps_add_services(struct apps *apps)
{
    const char *label = getenv("BACKENDAI_SERVICE_PORTS");
    int64_t room[SERVICE_PORTS_MAX];
    struct int_list opened = apps_read_ports(getenv("BACKENDAI_PREOPEN_PORTS"), room);
    struct services services = { .count = 0 };
    struct aq_error err = { 0 };

    if ((label && services_add_label(&services, label, &err) < 0)
        || services_add_preopen(&services, &opened, &err) < 0)
        return; /* with such ones a session does not start */
    for (size_t i = 0; i < services.count; i++)
        apps_add(apps, services.items[i].name, services.items[i].protocol,
                 services.ports + services.items[i].first, services.items[i].count);
}

/* Programs may be installed at any time. */
static void apps_add_own(struct apps *apps)
{
    for (size_t i = 0; i < app_own_count; i++) {
        const struct app_own *own = &app_own_table[i];
        uint16_t port = own->port;

        if (apps_find(apps, own->name) || !app_own_find(own->name))
            continue;
        while (port < own->port + PORT_TRIES && apps_use_port(apps, port))
            port++;
        apps_add(apps, own->name, "http", &port, 1);
    }
}

static void apps_refresh(struct apps *apps)
{
    if (!apps->count)
        apps_add_services(apps);
    apps_add_own(apps);
    app_ports_read(&apps->listened);
}

void apps_init(struct apps *apps, int epoll)
{
    *apps = (struct apps){ .epoll = epoll };
    list_init(&apps->items);
    (void)app_processes_signal(NULL, SIGKILL);
}

/* ---- telling ---- */

static void apps_write_texts(struct jsonw *w, const char *key, const json_t *list)
{
    const json_t *text;
    size_t i;

    if (!list)
        return;
    jsonw_key(w, key);
    jsonw_array_begin(w);
    json_array_foreach(list, i, text)
        jsonw_str(w, json_string_value(text));
    jsonw_array_end(w);
}

static void apps_write_definition(const struct app *app, struct jsonw *w)
{
    json_auto_t *definition = NULL;
    struct aq_error err = { 0 };
    const char *template;
    bool is_broken = app_load_definition(app, &definition, &err) < 0;

    template = json_string_value(json_object_get(definition, "url_template"));
    if (is_broken)
        jsonw_member_str(w, "why", err.text);
    else if (app->state == APP_FAILED)
        jsonw_member_str(w, "why", app->why);
    if (template)
        jsonw_member_str(w, "url_template", template);
    apps_write_texts(w, "allowed_envs", json_object_get(definition, "allowed_envs"));
    apps_write_texts(w, "allowed_arguments", json_object_get(definition, "allowed_arguments"));
}

static enum app_state apps_state(const struct apps *apps, const struct app *app)
{
    if (app->state == APP_ENDING)
        return APP_ENDING;
    if (app_listens(app, &apps->listened))
        return APP_RUNNING;
    return app->state == APP_RUNNING ? APP_FAILED : app->state;
}

static void apps_write_one(const struct apps *apps, const struct app *app, struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_member_str(w, "name", app->name);
    jsonw_member_str(w, "protocol", app->protocol);
    jsonw_key(w, "ports");
    jsonw_array_begin(w);
    for (size_t i = 0; i < app->port_count; i++)
        jsonw_int(w, app->ports[i]);
    jsonw_array_end(w);
    jsonw_member_str(w, "state", apps_state_names[apps_state(apps, app)]);
    apps_write_definition(app, w);
    jsonw_object_end(w);
}

void apps_list(struct apps *apps, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    apps_refresh(apps);
    jsonw_object_begin(&w);
    jsonw_key(&w, "apps");
    jsonw_array_begin(&w);
    LIST_FOREACH(it, &apps->items)
        apps_write_one(apps, LIST_ENTRY(it, struct app, link), &w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
}

void apps_fail(struct strbuf *out, const char *kind, const char *text)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "kind", kind);
    jsonw_member_str(&w, "error", text);
    jsonw_object_end(&w);
}

static void apps_tell(struct strbuf *out, struct app *app, uint16_t port)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_int(&w, "port", port);
    jsonw_member_str(&w, "status", app->is_fresh ? "started" : "running");
    jsonw_object_end(&w);
    app->is_fresh = false;
}

/* ---- connecting ---- */

/* NULL after an answer. */
static struct app *apps_get(struct apps *apps, const char *name, struct strbuf *out)
{
    struct app *app;

    apps_refresh(apps);
    if (!(app = apps_find(apps, name)))
        apps_fail(out, "no-such-app", "there is no such app in this session");
    return app;
}

/* 0 after an answer. */
static uint16_t apps_choose_port(const struct app *app, const json_t *body, struct strbuf *out)
{
    json_int_t wanted = json_integer_value(json_object_get(body, "port"));

    for (size_t i = 0; i < app->port_count; i++)
        if (!wanted || app->ports[i] == wanted)
            return app->ports[i];
    apps_fail(out, "no-such-app", "the app has no such port");
    return 0;
}

static int apps_check_allowed(const struct app *app, const json_t *definition, const char *list,
                              json_t *given, bool may_vary, struct aq_error *err)
{
    const char *name, *part;
    json_t *value;
    size_t i;

    json_object_foreach(given, name, value) {
        const json_t *item;
        bool fits = json_is_string(value) || (may_vary && json_is_null(value))
                    || (may_vary && json_is_array(value));

        json_array_foreach(value, i, item)
            fits &= json_is_string(item);
        if (!app_definition_allows(definition, list, name))
            return aq_fail(err, EPERM, "'%.60s' is not among %s of the app '%s'", name, list,
                           app->name);
        part = json_string_value(value);
        if (!fits || (part && strlen(part) > APP_DEFINITION_MAX))
            return aq_fail(err, EPERM, "the value of '%.60s' has to be text", name);
    }
    return 0;
}

static int apps_check_given(const struct app *app, const json_t *definition, const json_t *body,
                            struct aq_error *err)
{
    int r = apps_check_allowed(app, definition, "allowed_envs", json_object_get(body, "envs"),
                               false, err);

    return r < 0 ? r
                 : apps_check_allowed(app, definition, "allowed_arguments",
                                      json_object_get(body, "arguments"), true, err);
}

/* Nothing of it lives. False after an answer. */
static bool apps_start(struct apps *apps, struct app *app, const json_t *definition,
                       const json_t *body, int64_t now_msec, struct strbuf *out)
{
    struct aq_error err = { 0 };

    if (apps_check_given(app, definition, body, &err) < 0)
        apps_fail(out, "not-allowed", err.text);
    else if (app_start(app, apps->epoll, definition, json_object_get(body, "envs"),
                       json_object_get(body, "arguments"), now_msec, &err)
             < 0)
        apps_fail(out, "app-failed", err.text);
    return !err.code;
}

/* It does not listen now. False after an answer. */
static bool apps_bring_up(struct apps *apps, struct app *app, const json_t *body, uint16_t port,
                          int64_t now_msec, struct strbuf *out)
{
    json_auto_t *definition = NULL;
    struct aq_error err = { 0 };

    if (app->state == APP_STARTING || app->state == APP_ENDING)
        return true;
    if (strcmp(app->protocol, "preopen") != 0 && app_load_definition(app, &definition, &err) < 0) {
        apps_fail(out, "app-failed", err.text);
        return false;
    }
    if (!definition || json_is_true(json_object_get(definition, "noop"))) {
        apps_tell(out, app, port); /* its program is somebody else's: connecting will tell */
        return false;
    }
    if (app->state != APP_RUNNING || !app_lives(app))
        return apps_start(apps, app, definition, body, now_msec, out);
    if (!app_listens(app, &apps->listened))
        app->state = APP_STARTING; /* again, in the time that it has for it */
    app->until_msec = now_msec + app->seconds * INT64_C(1000);
    return true;
}

bool apps_want(struct apps *apps, const char *name, const char *body, size_t len, int64_t now_msec,
               uint16_t *ret_port, struct strbuf *out)
{
    json_auto_t *tree = json_load_text(body, len, JSON_REJECT_DUPLICATES, NULL);
    struct app *app = apps_get(apps, name, out);
    uint16_t port = app ? apps_choose_port(app, tree, out) : 0;

    *ret_port = port;
    if (!port)
        return false;
    if (app->state != APP_ENDING && app_ports_has(&apps->listened, port)) {
        apps_tell(out, app, port);
        return false;
    }
    return apps_bring_up(apps, app, tree, port, now_msec, out);
}

bool apps_want_end(struct apps *apps, const char *name, int64_t now_msec, struct strbuf *out)
{
    struct app *app = apps_get(apps, name, out);

    if (!app)
        return false;
    if (app_lives(app)) {
        app_end(app, now_msec);
        return true;
    }
    if (app_listens(app, &apps->listened)) {
        apps_fail(out, "not-allowed", "this app was not started by a connection; end its program");
        return false;
    }
    app->state = APP_NOT_STARTED;
    strbuf_adds(out, "{}");
    return false;
}

static bool apps_settle_end(const struct app *app, struct strbuf *out)
{
    if (app->state != APP_ENDING)
        strbuf_adds(out, "{}");
    return app->state != APP_ENDING;
}

bool apps_settle(struct apps *apps, const char *name, uint16_t port, int64_t now_msec,
                 struct strbuf *out)
{
    struct app *app = apps_find(apps, name);

    if (!port)
        return apps_settle_end(app, out);
    if (app->state == APP_RUNNING && !app_ports_has(&apps->listened, port))
        app_ports_read(&apps->listened);
    if (app->state == APP_RUNNING && app_ports_has(&apps->listened, port))
        apps_tell(out, app, port);
    else if (app->state == APP_FAILED)
        apps_fail(out, "app-failed", app->why);
    else if (app->state == APP_NOT_STARTED)
        apps_fail(out, "app-failed", "the app was ended meanwhile; connect again to start it");
    else if (app->state == APP_RUNNING && now_msec >= app->until_msec)
        apps_fail(out, "app-failed", "the app runs, but does not listen on this port");
    else
        return false;
    return true;
}

/* ---- time passes ---- */

void apps_reaped(struct apps *apps, pid_t pid, int status)
{
    app_ports_read(&apps->listened);
    LIST_FOREACH(it, &apps->items)
        app_reaped(LIST_ENTRY(it, struct app, link), pid, status, &apps->listened);
}

int64_t apps_turn(struct apps *apps, int64_t now_msec)
{
    bool is_waited_for = false;

    LIST_FOREACH(it, &apps->items) {
        const struct app *app = LIST_ENTRY(it, struct app, link);

        is_waited_for |= app->state == APP_STARTING || app->state == APP_ENDING;
    }
    if (!is_waited_for)
        return INT64_MAX;
    app_ports_read(&apps->listened);
    LIST_FOREACH(it, &apps->items)
        app_look(LIST_ENTRY(it, struct app, link), &apps->listened, now_msec);
    return now_msec + APP_LOOK_MSEC;
}
