/* SPDX-License-Identifier: Apache-2.0 */
/* presets.h - resource presets: amounts with a name, for people to choose from
 *
 * They are one setting in the store, read at the start; what is changed counts once it is
 * durable.
 */
#ifndef AQ_MANAGER_SCHEDULING_PRESETS_H
#define AQ_MANAGER_SCHEDULING_PRESETS_H

#include "manager/call/object_setting.h"
#include "manager/scheduling/scheduling.h"

#define PRESETS_MAX 100
#define PRESET_NAME_MAX 64

int presets_load(struct api *api, struct aq_error *err);

/* The members "name", "resource_slots" and "shared_memory" of one. */
void presets_write(const char *name, const json_t *preset, bool sizes_are_text, struct jsonw *w);

/* 'slots' is required but to modify, where NULL stays, and to remove one. 'done' comes as that of
 * object_setting_change(). Refused at once: -EINVAL with "name", "resource_slots" or
 * "shared_memory" as field.
 */
int presets_change(struct api *api, enum object_setting_how how, const char *name,
                   const json_t *slots, const char *shared_memory, const struct audit_who *by,
                   store_done_fn done, void *data, struct aq_error *err);

#endif
