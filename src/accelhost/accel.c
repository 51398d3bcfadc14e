/* SPDX-License-Identifier: Apache-2.0 */
/* accel.c - the accelerators of this node */
#include "accelhost/accel.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "accel/protocol.h"
#include "accelhost/accel_internal.h"
#include "base/clock.h"
#include "base/json_load.h"
#include "base/log.h"
#include "base/memory.h"

#define FAILURES_UNTIL_OFFLINE 2 /* in a row; one may be bad luck */

const char *accel_status_name(enum accel_status status)
{
    static const char *const names[] = {
        [ACCEL_HEALTHY] = "healthy",
        [ACCEL_DEGRADED] = "degraded",
        [ACCEL_OFFLINE] = "offline",
        [ACCEL_UNAVAILABLE] = "unavailable",
    };

    return names[status];
}

const struct accel_plugin *accel_plugin(const struct accel *accel, size_t i)
{
    return i < accel->count ? &accel->plugins[i].description.plugin : NULL;
}

struct plugin *accel_find(const struct accel *accel, const char *slot_name)
{
    size_t len = slot_name_device_len(slot_name);

    for (size_t i = 0; i < accel->count; i++) {
        const char *key = accel->plugins[i].description.plugin.key;

        if (key && strlen(key) == len && strncmp(key, slot_name, len) == 0)
            return &accel->plugins[i];
    }
    return NULL;
}

/* ---- what a plugin says ---- */

static void accel_tell_change(struct accel *accel)
{
    if (!accel->is_starting)
        accel->on_changed(accel->data);
}

static void accel_name_plugin(struct plugin *p)
{
    p->description.plugin.name = p->plugin_choice.name;
    p->description.plugin.error = p->error;
}

/* Is it another error than before? */
static bool accel_note_error(struct plugin *p, const char *text)
{
    bool is_news = !p->error || strcmp(p->error, text) != 0;

    free(p->error);
    p->error = aq_strdup(text);
    accel_name_plugin(p);
    return is_news;
}

static int accel_check_key(const struct plugin *p, const char *key, struct aq_error *err)
{
    for (size_t i = 0; i < p->accel->count; i++) {
        const struct plugin *other = &p->accel->plugins[i];

        if (other != p && other->description.plugin.key
            && strcmp(other->description.plugin.key, key) == 0)
            return aq_fail(err, EEXIST, "has the key '%s', which plugin '%s' has already", key,
                           other->plugin_choice.name);
    }
    return 0;
}

static void accel_log_description(const struct plugin *p)
{
    const struct accel_plugin *view = &p->description.plugin;

    log_info("accelerator plugin '%s': %s, %s, %zu device entries%s%s", view->name, view->key,
             accel_status_name(view->status), view->device_count, view->status_text ? ": " : "",
             view->status_text ? view->status_text : "");
    for (size_t i = 0; i < view->device_count; i++)
        if (view->devices[i].status != ACCEL_HEALTHY)
            log_warning("device '%s' of %s is %s: %s", view->devices[i].id,
                        view->devices[i].slot_name, accel_status_name(view->devices[i].status),
                        view->devices[i].status_text ? view->devices[i].status_text : "");
}

static bool accel_on_described(void *data, const json_t *result, struct aq_error *err)
{
    struct plugin *p = data;
    AQ_CLEANUP(aq_freep) char *said = result ? json_dump_text(result, JSON_COMPACT | JSON_SORT_KEYS)
                                             : NULL;
    struct description fresh;
    bool is_same = said && p->said && strcmp(said, p->said) == 0, is_news;

    p->asked = NULL;
    if (!result) { /* by itself no reason to end it: a driver may be about to restart */
        p->was_heard = true;
        if (accel_note_error(p, err->text)) {
            log_warning("%s", err->text);
            accel_tell_change(p->accel);
        }
        return true;
    }
    if (!is_same && (answer_read_description(result, &fresh, err) < 0))
        return false;
    if (!is_same && accel_check_key(p, fresh.plugin.key, err) < 0) {
        description_done(&fresh);
        return false;
    }
    if (!is_same)
        description_keep_missing(&fresh, &p->description.plugin);
    p->was_heard = true;
    p->failures = 0;
    is_news = !is_same || p->error;
    free(AQ_TAKE(p->error));
    if (!is_same) {
        description_done(&p->description);
        p->description = fresh;
        free(p->said);
        p->said = AQ_TAKE(said);
    }
    accel_name_plugin(p);
    if (!is_same)
        accel_log_description(p);
    if (is_news)
        accel_tell_change(p->accel);
    return true;
}

static void accel_ask_description(struct plugin *p)
{
    if (!p->asked)
        p->asked = helper_ask(p->helper, "\"call\":\"" ACCEL_DESCRIBE "\"", accel_on_described, p);
}

static void accel_on_started(void *data)
{
    accel_ask_description(data);
}

/* Nothing of a plugin that does not answer is offered. */
static void accel_set_offline(struct plugin *p)
{
    const struct accel_plugin *view = &p->description.plugin;
    const char *why = p->error ? arena_strdup(&p->description.arena, p->error) : NULL;

    for (size_t i = 0; i < view->device_count; i++) {
        struct accel_device *device = (struct accel_device *)(uintptr_t)&view->devices[i];

        device->status = ACCEL_OFFLINE;
        device->status_text = why;
    }
    free(AQ_TAKE(p->said));
}

static void accel_on_failed(void *data, const char *why)
{
    struct plugin *p = data;
    bool is_news = accel_note_error(p, why);

    p->was_heard = true;
    p->failures++;
    if (is_news)
        log_warning("accelerator plugin '%s' %s", p->plugin_choice.name, why);
    if (p->failures == FAILURES_UNTIL_OFFLINE)
        accel_set_offline(p);
    if (is_news || p->failures == FAILURES_UNTIL_OFFLINE)
        accel_tell_change(p->accel);
}

/* ---- life ---- */

static void accel_start_helper(struct plugin *p)
{
    const struct accel *accel = p->accel;

    if (p->helper || (p->plugin_choice.sign && access(p->plugin_choice.sign, F_OK) < 0))
        return;
    p->helper = helper_new(&(struct helper_conf){ .loop = accel->loop,
                                                  .program = accel->program,
                                                  .plugin = p->plugin_choice.path,
                                                  .config = p->plugin_choice.config,
                                                  .name = p->plugin_choice.name,
                                                  .linked = accel->settings->linked,
                                                  .limit_usec = accel->settings->limit_usec,
                                                  .on_failed = accel_on_failed,
                                                  .on_started = accel_on_started,
                                                  .data = p });
}

static void accel_on_rescan(uv_timer_t *timer)
{
    struct accel *accel = timer->data;

    for (size_t i = 0; i < accel->count; i++) {
        if (accel->plugins[i].helper)
            accel_ask_description(&accel->plugins[i]);
        else
            accel_start_helper(&accel->plugins[i]);
    }
}

static bool accel_is_waiting(const struct accel *accel)
{
    for (size_t i = 0; i < accel->count; i++)
        if (accel->plugins[i].helper && !accel->plugins[i].was_heard)
            return true;
    return false;
}

static void accel_add_plugins(struct accel *accel, struct plugin_choices *plugin_choices)
{
    accel->plugins = aq_alloc_array(plugin_choices->count + 1, sizeof(*accel->plugins));
    accel->count = plugin_choices->count;
    for (size_t i = 0; i < plugin_choices->count; i++) {
        accel->plugins[i].accel = accel;
        accel->plugins[i].plugin_choice = plugin_choices->items[i];
        plugin_choices->items[i] = (struct plugin_choice){ .name = NULL };
        accel_name_plugin(&accel->plugins[i]);
    }
    for (size_t i = 0; i < accel->count; i++)
        accel_start_helper(&accel->plugins[i]);
}

int accel_new(uv_loop_t *loop, const struct accel_settings *settings,
              void (*on_changed)(void *data), void *data, struct accel **ret, struct aq_error *err)
{
    struct plugin_choices plugin_choices = { .items = NULL };
    struct accel *accel;
    uint64_t rescan_msec = (uint64_t)(settings->rescan_usec / USEC_PER_MSEC);
    int r = plugin_choices_make(settings, &plugin_choices, err);

    if (r < 0)
        return r;
    accel = aq_alloc(sizeof(*accel));
    *accel = (struct accel){ .loop = loop,
                             .settings = settings,
                             .on_changed = on_changed,
                             .data = data,
                             .is_starting = true };
    list_init(&accel->calls);
    (void)uv_timer_init(loop, &accel->rescan);
    accel->rescan.data = accel;
    accel->program = plugin_choice_find_helper(settings);
    accel_add_plugins(accel, &plugin_choices);
    plugin_choices_done(&plugin_choices);
    while (accel_is_waiting(accel) && uv_run(loop, UV_RUN_ONCE))
        ;
    accel->is_starting = false;
    if (accel->count && rescan_msec)
        (void)uv_timer_start(&accel->rescan, accel_on_rescan, rescan_msec, rescan_msec);
    *ret = accel;
    return 0;
}

static void accel_on_rescan_closed(uv_handle_t *handle)
{
    struct accel *accel = handle->data;

    for (size_t i = 0; i < accel->count; i++) {
        struct plugin *p = &accel->plugins[i];

        description_done(&p->description);
        plugin_drop_metrics(p);
        free(p->said);
        free(p->error);
        plugin_choice_done(&p->plugin_choice);
    }
    free(accel->plugins);
    free(accel->program);
    free(accel);
}

void accel_free(struct accel *accel)
{
    if (!accel)
        return;
    accel_drop_calls(accel);
    for (size_t i = 0; i < accel->count; i++) {
        helper_free(accel->plugins[i].helper);
        accel->plugins[i].helper = NULL;
    }
    uv_close((uv_handle_t *)&accel->rescan, accel_on_rescan_closed);
}
