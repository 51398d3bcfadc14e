/* SPDX-License-Identifier: Apache-2.0 */
/* attached.c - what belongs to accounts: use of resource groups, dotfiles, presets, aliases */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
#include "manager/backendai/rows.h"
#include "manager/template/template.h"
#include "manager/image/image.h"
#include "manager/scheduling/scheduling.h"
#include "manager/rules/domain_check.h"
#include "store/audit_log.h"

void backendai_attached_clear(struct backendai_attached *attached)
{
    free(attached->grants);
    free(attached->files);
    json_decref(attached->presets);
    json_decref(attached->aliases);
    json_decref(attached->all_presets);
    json_decref(attached->all_aliases);
    *attached = (struct backendai_attached){ .presets = NULL };
}

/* ---- use of resource groups ---- */

/* 'whom' is kept; 'name' is for people. */
static int backendai_take_grant(struct backendai_import *import, struct backendai_row *row,
                                enum allow_kind kind, const char *whom, const char *name,
                                struct aq_error *err)
{
    struct backendai_attached *attached = &import->attached;

    row->label = backendai_format(import, "%s for %s", row->resource_group, name);
    if (!backendai_has_resource_group(import, row->resource_group))
        return api_fail_param(err, "scaling_group", "there is no resource group '%.64s'",
                              row->resource_group);
    vec_grow(&attached->grants, &attached->grant_cap, attached->grant_count + 1,
             sizeof(*attached->grants));
    attached->grants[attached->grant_count++] = (struct backendai_grant){
        .kind = kind, .resource_group = row->resource_group, .whom = whom, .row = row
    };
    return row->was_allowed ? backendai_exists(import, row, NULL, NULL) : 0;
}

int backendai_take_domain_grant(struct backendai_import *import, struct backendai_row *row,
                                struct aq_error *err)
{
    if (!backendai_has_domain(import, row->domain))
        return api_fail_param(err, "domain", "there is no domain '%.64s'", row->domain);
    return backendai_take_grant(import, row, ALLOW_DOMAIN, row->domain, row->domain, err);
}

int backendai_take_project_grant(struct backendai_import *import, struct backendai_row *row,
                                 struct aq_error *err)
{
    struct backendai_project project;
    char id[UUID_TEXT_MAX];

    if (!backendai_find_project(import, row->project, &project))
        return api_fail_param(err, "group", "there is no project %.64s, there or here",
                              row->project);
    return backendai_take_grant(import, row, ALLOW_PROJECT,
                                backendai_format(import, "%s", uuid_format(&project.id, id)),
                                project.name, err);
}

int backendai_take_keypair_grant(struct backendai_import *import, struct backendai_row *row,
                                 struct aq_error *err)
{
    const struct backendai_row *key = map_gets(&import->keypairs, row->access_key);

    if (key && key->outcome == BACKENDAI_LEFT) {
        row->label = row->access_key;
        return backendai_leave(import, row, "the keypair is left, too");
    }
    if (!key && !core_find_keypair(import->api->core, row->access_key))
        return api_fail_param(err, "access_key", "there is no keypair '%.64s'", row->access_key);
    return backendai_take_grant(import, row, ALLOW_KEYPAIR, row->access_key, row->access_key, err);
}

int backendai_look_up_grants(struct store_tx *tx, struct backendai_import *import,
                             struct aq_error *err)
{
    for (size_t i = 0; i < import->attached.grant_count; i++) {
        const struct backendai_grant *grant = &import->attached.grants[i];
        int r = resource_group_is_allowed(tx, grant->resource_group, grant->kind, grant->whom, err);

        if (r < 0)
            return r;
        grant->row->was_allowed = r == 1;
    }
    return 0;
}

/* ---- dotfiles and bootstrap scripts ---- */

static void backendai_attach(struct backendai_import *import, const struct backendai_file *file)
{
    struct backendai_attached *attached = &import->attached;

    vec_grow(&attached->files, &attached->file_cap, attached->file_count + 1,
             sizeof(*attached->files));
    attached->files[attached->file_count++] = *file;
}

static int backendai_read_dotfile(const json_t *given, struct dotfile *ret, struct aq_error *err)
{
    *ret = (struct dotfile){
        .path = json_string_value(json_object_get(given, "path")),
        .permission = json_string_value(json_object_get(given, "perm")),
        .data = json_string_value(json_object_get(given, "data")),
    };
    if (!ret->path || !ret->permission || !ret->data)
        return aq_fail(err, EINVAL, "it is no object of path, perm and data");
    if (strlen(ret->path) > DOTFILE_PATH_MAX)
        return aq_fail(err, EINVAL, "its path is longer than %d bytes", DOTFILE_PATH_MAX);
    return dotfile_check_permission(ret->permission, err) < 0 ? -err->code
                                                              : dotfile_check_path(ret->path, err);
}

static bool backendai_has_dotfile(const struct backendai_import *import, size_t from,
                                  const char *path)
{
    for (size_t i = from; i < import->attached.file_count; i++)
        if (strcmp(import->attached.files[i].file.path, path) == 0)
            return true;
    return false;
}

int backendai_attach_dotfiles(struct backendai_import *import, struct backendai_row *row,
                              enum dotfile_kind kind, const char *owner, struct aq_error *err)
{
    const char *name = backendai_format(import, "%s", owner);
    size_t i, from = import->attached.file_count, bytes = 0;
    const json_t *given;

    if (row->dotfiles && !json_is_array(row->dotfiles))
        return api_fail_param(err, "dotfiles", "must be a list");
    json_array_foreach(row->dotfiles, i, given) {
        struct backendai_file file = { .owner = { kind, name } };
        struct aq_error why = { 0 };
        int r = backendai_read_dotfile(given, &file.file, &why);

        if (r == 0 && backendai_has_dotfile(import, from, file.file.path))
            r = aq_fail(&why, EEXIST, "there are two of this path");
        if (r == 0
            && (import->attached.file_count - from == DOTFILES_MAX
                || bytes + strlen(file.file.data) > DOTFILES_BYTES_MAX))
            r = aq_fail(&why, E2BIG, "there are %d of %d bytes at most", DOTFILES_MAX,
                        DOTFILES_BYTES_MAX);
        if (r < 0) {
            backendai_note(import, row, "dotfile '%.64s' is left: %s",
                           file.file.path ? file.file.path : "", why.text);
            continue;
        }
        bytes += strlen(file.file.data);
        backendai_attach(import, &file);
    }
    return 0;
}

void backendai_attach_script(struct backendai_import *import, struct backendai_row *row)
{
    if (row->script && row->script[0])
        backendai_attach(import,
                         &(struct backendai_file){ .owner = { DOTFILE_BOOTSTRAP, row->access_key },
                                                   .file = { .path = "", .data = row->script } });
}

/* ---- presets, aliases ---- */

static void backendai_keep(json_t **object, const char *key, json_t *value)
{
    if (!*object)
        *object = json_object();
    json_object_set_new(*object, key, value);
}

int backendai_take_preset(struct backendai_import *import, struct backendai_row *row,
                          struct aq_error *err)
{
    json_auto_t *given = NULL;
    json_t *preset = NULL;
    struct aq_error why = { 0 };
    int r;

    row->label = row->name;
    if (json_object_get(presets_all(import->api), row->name))
        return backendai_exists(import, row, NULL, NULL);
    if (json_object_get(import->attached.presets, row->name))
        return api_fail_param(err, "name", "there are two presets of this name");
    given = json_pack("{s:o, s:s?}", "resource_slots",
                      backendai_slots(import, row, row->slots, true), "shared_memory",
                      row->shared_memory);
    r = presets_make(import->api, row->name, given, &preset, &why);
    if (r < 0)
        return backendai_leave(import, row, "%s %s", why.field, why.text);
    backendai_keep(&import->attached.presets, row->name, preset);
    return 0;
}

int backendai_take_alias(struct backendai_import *import, struct backendai_row *row,
                         struct aq_error *err)
{
    struct aq_error why = { 0 };

    row->label = row->name;
    if (json_object_get(image_aliases_all(import->api), row->name))
        return backendai_exists(import, row, NULL, NULL);
    if (json_object_get(import->attached.aliases, row->name))
        return api_fail_param(err, "alias", "it stands for two images");
    if (image_aliases_check(row->name, row->image, &why) < 0)
        return backendai_leave(import, row, "%s %s", why.field, why.text);
    backendai_keep(&import->attached.aliases, row->name, json_string(row->image));
    return 0;
}

/* ---- writing ---- */

static int backendai_write_files(struct store_tx *tx, const struct backendai_attached *attached,
                                 struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < attached->file_count; i++) {
        const struct backendai_file *file = &attached->files[i];

        r = file->owner.kind == DOTFILE_BOOTSTRAP
                ? dotfile_set_script(tx, file->owner.name, file->file.data, err)
                : dotfile_create(tx, &file->owner, &file->file, err);
    }
    return r;
}

/* Accounts have entries of their own in the audit log. */
static int backendai_write_audit(struct store_tx *tx, const struct backendai_attached *attached,
                                 struct aq_error *err)
{
    char after[160];
    const struct audit_change change = { .action = "import-backendai",
                                         .object_kind = "cluster",
                                         .after = after };

    (void)snprintf(after, sizeof(after),
                   "{\"allowed\":%zu,\"dotfiles\":%zu,\"presets\":%zu,\"aliases\":%zu}",
                   attached->grant_count, attached->file_count, json_object_size(attached->presets),
                   json_object_size(attached->aliases));
    return audit_log_add_change(tx, attached->by, &change, err);
}

/* store_tx_fn; perhaps more than once. */
static int backendai_write_attached(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct backendai_attached *attached = data;
    int r = 0;

    for (size_t i = 0; r == 0 && i < attached->grant_count; i++)
        r = resource_group_allow(tx, attached->grants[i].resource_group, attached->grants[i].kind,
                                 attached->grants[i].whom, err);
    if (r == 0)
        r = backendai_write_files(tx, attached, err);
    json_decref(attached->all_presets);
    json_decref(attached->all_aliases);
    attached->all_presets = attached->all_aliases = NULL;
    if (r == 0 && attached->presets)
        r = presets_add_missing(tx, attached->presets, &attached->all_presets, err);
    if (r == 0 && attached->aliases)
        r = image_aliases_add_missing(tx, attached->aliases, &attached->all_aliases, err);
    return r < 0 ? domain_check(r, err) : backendai_write_audit(tx, attached, err);
}

void backendai_add_attached(struct backendai_import *import)
{
    struct backendai_attached *attached = &import->attached;
    struct event *event;

    attached->by = &import->by;
    event = event_batch_add(import->change->batch, EVENT_ROWS_ADDED, clock_realtime_usec());
    event->rows_added.write = backendai_write_attached;
    event->rows_added.data = attached;
}

void backendai_apply_attached(struct backendai_import *import)
{
    struct backendai_attached *attached = &import->attached;

    if (attached->all_presets)
        presets_replace(import->api, AQ_TAKE(attached->all_presets));
    if (attached->all_aliases)
        image_aliases_replace(import->api, AQ_TAKE(attached->all_aliases));
}
