/* SPDX-License-Identifier: Apache-2.0 */
/* presets.h - resource presets: amounts with a name, for people to choose from
 *
 * They are one setting in the store, read at the start; what is changed counts once it is
 * durable.
 */
#ifndef AQ_MANAGER_SCHEDULING_PRESETS_H
#define AQ_MANAGER_SCHEDULING_PRESETS_H

#include "manager/call/api.h"
#include "manager/call/object_setting.h"

#define PRESETS_MAX 100
#define PRESET_NAME_MAX 64

int presets_load(struct api *api, struct aq_error *err);

/* {"NAME": {"resource_slots": {"cpu": "2", ...}, "shared_memory": "64m" or null}} of all, by
 * name; borrowed until the loop runs again.
 */
const json_t *presets_all(const struct api *api);

/* The members "name", "resource_slots" and "shared_memory" of one. */
void presets_write(const char *name, const json_t *preset, bool sizes_are_text, struct jsonw *w);

/* 'slots' is required but to modify, where NULL stays, and to remove one. 'done' comes as that of
 * object_setting_change(). Refused at once: -EINVAL with "name", "resource_slots" or
 * "shared_memory" as field, -ENOMEM.
 */
int presets_change(struct api *api, enum object_setting_how how, const char *name,
                   const json_t *slots, const char *shared_memory, const struct audit_who *by,
                   store_done_fn done, void *data, struct aq_error *err);

/* ---- several, with something else ---- */

/* What is kept of a preset with this name, for presets_add_missing(). Refused as by
 * presets_change().
 */
int presets_make(const struct api *api, const char *name, const json_t *slots,
                 const char *shared_memory, json_t **ret, struct aq_error *err);

/* On a thread of the store: add those of 'added', {"NAME": as presets_make() made it}, that are
 * not there. '*ret_all' is for presets_replace(), once the transaction is durable. -E2BIG.
 */
int presets_add_missing(struct store_tx *tx, const json_t *added, json_t **ret_all,
                        struct aq_error *err);

/* Takes 'all'. */
void presets_replace(struct api *api, json_t *all);

#endif
