/* SPDX-License-Identifier: Apache-2.0 */
/* managers.c - see core/managers.h */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/url.h"
#include "manager/core/managers.h"
#include "manager/core/nodes/fronts_internal.h"
#include "manager/core/nodes/managers_internal.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/state.h"
#include "store/audit_log.h"
#include "store/leadership.h"
#include "store/seal.h"
#include "store/uri.h"

#define MANAGER_TOKEN_USEC_MAX (24 * 3600 * USEC_PER_SEC)

/* ---- rows ---- */

static void managers_keep(struct core *core, const struct manager_row *row)
{
    struct manager_row *kept = map_gets(&core->managers.rows, row->name);

    if (!kept) {
        kept = aq_alloc(sizeof(*kept));
        map_sets(&core->managers.rows, row->name, kept);
    }
    *kept = *row;
}

void managers_publish(struct core *core)
{
    const struct map *rows = &core->managers.rows;
    struct link_manager list[LINK_MANAGERS_MAX];
    size_t count = 0;

    for (; count < rows->count && count < LINK_MANAGERS_MAX; count++) {
        const struct manager_row *row = rows->entries[count].value;

        list[count] = (struct link_manager){ .name = row->name,
                                             .link = row->link,
                                             .api = row->api };
    }
    core->managers.are_several |= count > 1;
    if (core->link && core->managers.are_several)
        link_server_set_managers(core->link, list, count);
}

static int managers_visit(void *data, const struct manager_row *row)
{
    managers_keep(data, row);
    return 0;
}

/* The leader's own row; false for a core of a test. */
static bool managers_describe_self(const struct core *core, struct manager_row *ret)
{
    const struct leader_claim *claim = core->conf.claim;

    if (!claim)
        return false;
    *ret = (struct manager_row){ .joined_usec = clock_realtime_usec() };
    (void)snprintf(ret->name, sizeof(ret->name), "%.*s", MANAGER_NAME_MAX, claim->name);
    (void)snprintf(ret->link, sizeof(ret->link), "%s", claim->link);
    (void)snprintf(ret->api, sizeof(ret->api), "%s", claim->api);
    (void)snprintf(ret->version, sizeof(ret->version), "%s", claim->version);
    return true;
}

static int managers_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct core *core = data;
    struct manager_row self;
    int r = 1;

    if (managers_describe_self(core, &self) && !store_is_frozen(core->store))
        r = manager_row_refresh(tx, &self, err);
    if (r == 0)
        return aq_fail(err, EACCES,
                       "manager '%s' was removed from this cluster; to be one of it again it joins "
                       "with an empty state folder and a token of 'aliquot admin manager token'",
                       self.name);
    if (r > 0)
        r = manager_row_read_epoch(tx, &core->managers.epoch, &core->managers.taken_usec, err);
    return r < 0 ? r : manager_row_list(tx, managers_visit, core, err);
}

int managers_load(struct core *core, struct aq_error *err)
{
    return store_call(core->store, managers_read, core, err);
}

void managers_free(struct core *core)
{
    for (size_t i = 0; i < core->managers.rows.count; i++)
        free(core->managers.rows.entries[i].value);
    map_done(&core->managers.rows);
}

/* ---- hello ---- */

int managers_check(const struct core *core, const char *name, struct aq_error *err)
{
    if (map_gets(&core->managers.rows, name))
        return 0;
    return aq_fail(err, EACCES,
                   "there is no manager '%s' in this cluster: it was removed, or has another name "
                   "now than when it joined",
                   name);
}

static int managers_write_refresh(struct store_tx *tx, void *data, struct aq_error *err)
{
    return manager_row_refresh(tx, data, err);
}

static void managers_on_refreshed(void *data, int r, const struct aq_error *err)
{
    struct manager_row *row = data;

    if (r < 0)
        log_warning("failed to save the addresses of manager '%s': %s", row->name, err->text);
    free(row);
}

void managers_note_hello(struct core *core, const char *name, const struct msg_hello *hello)
{
    struct manager_row *row = map_gets(&core->managers.rows, name), was = *row, *changed;
    struct address address;

    if (hello->addr && strlen(hello->addr) < sizeof(row->api))
        (void)snprintf(row->api, sizeof(row->api), "%s", hello->addr);
    if (hello->link && strlen(hello->link) < sizeof(row->link)
        && address_parse(hello->link, LINK_PORT, &address, NULL) == 0)
        (void)snprintf(row->link, sizeof(row->link), "%s", hello->link);
    if (hello->version)
        (void)snprintf(row->version, sizeof(row->version), "%s", hello->version);
    if (strcmp(was.api, row->api) == 0 && strcmp(was.link, row->link) == 0
        && strcmp(was.version, row->version) == 0)
        return;
    changed = aq_alloc(sizeof(*changed));
    *changed = *row;
    store_write(core->store, managers_write_refresh, managers_on_refreshed, changed);
    managers_publish(core);
}

/* ---- joining ---- */

static int managers_check_engine(const struct core *core, struct aq_error *err)
{
    if (core->conf.database && store_is_server(core->conf.database))
        return 0;
    return aq_fail_kind(
        err, ENOTSUP, "conflict",
        "this cluster's database is a file, which one manager serves alone; move it to "
        "PostgreSQL first: aliquot-manager db migrate --to postgresql://...");
}

int managers_check_token(const struct core *core, int64_t ttl_usec, struct aq_error *err)
{
    int r = managers_check_engine(core, err);

    if (r == 0 && ttl_usec > MANAGER_TOKEN_USEC_MAX)
        r = aq_fail_field(err, EINVAL, "expires_sec",
                          "a token for a manager gives away the keys of the cluster: it lives for "
                          "up to 24 hours");
    return r;
}

static int managers_check_database(const struct core *core, const struct msg_join *msg,
                                   bool is_local, struct aq_error *err)
{
    int r = managers_check_engine(core, err);

    if (r == 0 && !msg->has_database && !is_local && uri_is_local(core->conf.database))
        r = aq_fail(err, ENOTSUP,
                    "the leader reaches the database on its own machine only; set database in "
                    "[manager] of its manager.toml to an address that other machines reach, or "
                    "name one to the manager that joins: --database postgresql://...");
    return r;
}

int managers_read_join(const struct core *core, const struct msg_join *msg, bool is_local,
                       struct manager_row *ret, struct aq_error *err)
{
    const char *name = core_front_name(FRONT_MANAGER, msg->agent_id);
    struct address address;
    struct url url;
    int r = managers_check_database(core, msg, is_local, err);

    if (r < 0)
        return r;
    if (core->conf.claim && strcmp(core->conf.claim->name, name) == 0)
        return aq_fail_field(err, EEXIST, "name",
                             "'%s' is the name of the manager that leads: give this one another "
                             "by --name or name in [manager] of manager.toml",
                             name);
    if (!map_gets(&core->managers.rows, name) && core->managers.rows.count >= LINK_MANAGERS_MAX)
        return aq_fail(err, ENOSPC,
                       "a cluster has at most %d managers; remove one first: "
                       "aliquot manager rm NAME",
                       LINK_MANAGERS_MAX);
    if (!msg->link || strlen(msg->link) >= sizeof(ret->link)
        || address_parse(msg->link, LINK_PORT, &address, err) < 0)
        return aq_fail_field(err, EINVAL, "link",
                             "'%.80s' is not the host:port at which agents reach this manager: "
                             "advertise in [link] of its manager.toml",
                             msg->link ? msg->link : "");
    if (!msg->api || strlen(msg->api) >= sizeof(ret->api) || url_parse(msg->api, &url, err) < 0)
        return aq_fail_field(err, EINVAL, "api",
                             "'%.80s' is not the URL at which clients reach this manager: "
                             "advertise in [manager] of its manager.toml",
                             msg->api ? msg->api : "");
    *ret = (struct manager_row){ .joined_usec = clock_realtime_usec() };
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    (void)snprintf(ret->link, sizeof(ret->link), "%s", msg->link);
    (void)snprintf(ret->api, sizeof(ret->api), "%s", msg->api);
    (void)snprintf(ret->version, sizeof(ret->version), "%s", msg->version ? msg->version : "");
    return 0;
}

void managers_take(struct core *core, const struct manager_row *row)
{
    managers_keep(core, row);
    managers_publish(core);
}

int managers_export_keys(const struct core *core, bool has_database, struct link_join_keys *ret,
                         struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/aliquot.db.key", core->conf.state_dir);
    int r = pki_ca_export_key(core->ca, &ret->ca_key, err);

    if (r < 0)
        return r;
    ret->seal_key = aq_alloc(SEAL_KEY_TEXT);
    ret->database = has_database ? NULL : aq_strdup(core->conf.database);
    return seal_export(path, ret->seal_key, err);
}

/* ---- removal ---- */

struct removal {
    struct core *core;
    char name[MANAGER_NAME_MAX + 1];
    struct audit_by by;
    core_done_fn done;
    void *data;
};

static int managers_write_removal(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct removal *removal = data;
    const struct audit_change change = { .action = "remove-manager",
                                         .object_kind = "manager",
                                         .object_id = removal->name,
                                         .object_name = removal->name };
    int r = manager_row_remove(tx, removal->name, err);

    if (r == 0)
        return aq_fail(err, ENOENT, "there is no manager '%s'", removal->name);
    return r < 0 || !removal->by.is_some ? AQ_MIN(r, 0)
                                         : audit_log_add_change(tx, &removal->by.who, &change, err);
}

static void managers_finish_removal(void *data, int r, const struct aq_error *err)
{
    struct removal *removal = data;

    removal->done(removal->data, r, err);
    free(removal);
}

static void managers_on_removed(void *data, int r, const struct aq_error *err)
{
    struct removal *removal = data;
    struct core *core = removal->core;
    char id[AGENT_ID_MAX + 1];

    AQ_FAULT("core.manager.removed");
    if (r == 0) {
        (void)snprintf(id, sizeof(id), LINK_MANAGER_PREFIX "%s", removal->name);
        free(map_removes(&core->managers.rows, removal->name));
        if (core->link)
            link_server_drop(core->link, id, "this manager was removed from the cluster");
        fronts_forget(core, id);
        managers_publish(core);
        log_info("manager '%s' is removed from the cluster", removal->name);
    }
    managers_finish_removal(removal, r, err);
}

void core_remove_manager(struct core *core, const char *name, const struct audit_who *by,
                         core_done_fn done, void *data)
{
    struct removal *removal = aq_alloc(sizeof(*removal));
    struct aq_error err;
    int r = 0;

    *removal = (struct removal){
        .core = core, .by = audit_by_copy(by), .done = done, .data = data
    };
    if (!map_gets(&core->managers.rows, name))
        r = aq_fail(&err, ENOENT, "there is no manager '%.64s'", name);
    else if (core->conf.claim && strcmp(core->conf.claim->name, name) == 0)
        r = aq_fail_kind(&err, EBUSY, "conflict",
                         "manager '%s' leads; let another one lead first: aliquot manager yield",
                         name);
    if (r < 0) {
        core_defer(core, managers_finish_removal, removal, r, &err);
        return;
    }
    memcpy(removal->name, name, strlen(name) + 1);
    store_write(core->store, managers_write_removal, managers_on_removed, removal);
}

/* ---- lists ---- */

static int managers_compare(const void *a, const void *b)
{
    const struct manager_row *const *left = a, *const *right = b;

    return strcmp((*left)->name, (*right)->name);
}

void core_each_manager(const struct core *core,
                       void (*fn)(void *data, const struct core_manager *manager), void *data)
{
    const struct map *rows = &core->managers.rows;
    const char *self = core->conf.claim ? core->conf.claim->name : "";
    AQ_CLEANUP(aq_freep) void *list = aq_alloc_array(rows->count + 1, sizeof(void *));
    const struct manager_row **sorted = list;

    for (size_t i = 0; i < rows->count; i++)
        sorted[i] = rows->entries[i].value;
    qsort(sorted, rows->count, sizeof(*sorted), managers_compare);
    for (size_t i = 0; i < rows->count; i++) {
        struct core_manager manager = { .name = sorted[i]->name,
                                        .link = sorted[i]->link,
                                        .api = sorted[i]->api,
                                        .version = sorted[i]->version,
                                        .is_leader = strcmp(sorted[i]->name, self) == 0 };
        char id[AGENT_ID_MAX + 1];

        (void)snprintf(id, sizeof(id), LINK_MANAGER_PREFIX "%s", manager.name);
        manager.is_connected = manager.is_leader || fronts_find(core, id, &manager.heard_usec);
        if (manager.is_leader)
            manager.heard_usec = clock_realtime_usec();
        fn(data, &manager);
    }
}

static void managers_note_absent(void *data, const struct core_manager *manager)
{
    *(bool *)data &= manager->is_connected;
}

bool managers_stand_by(const struct core *core)
{
    bool all = true;

    core_each_manager(core, managers_note_absent, &all);
    return all;
}

int64_t core_get_epoch(const struct core *core, int64_t *ret_taken_usec)
{
    *ret_taken_usec = core->managers.taken_usec;
    return core->managers.epoch;
}
