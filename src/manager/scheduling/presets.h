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
#include "model/resource_preset.h"

#define PRESETS_MAX 100
#define PRESET_NAME_MAX 64

int presets_load(struct api *api, struct aq_error *err);

/* One, or all by name; with texts in the arena. False if there is none. */
bool presets_find(const struct api *api, const char *name, struct arena *arena,
                  struct resource_preset *ret);
struct resource_preset *presets_list(const struct api *api, struct arena *arena, size_t *ret_count);

/* Its members into an object. Backend.AI's clients read sizes as text, in our own form they are
 * numbers.
 */
void presets_write(const struct resource_preset *preset, bool sizes_are_text, struct jsonw *w);

/* 'given' is the members of a request: by resource_preset_create, or of OBJECT_SETTING_MODIFY by
 * resource_preset_change; to remove a preset it is not looked at. 'done' comes as that of
 * object_setting_change(). Refused at once: -EINVAL with "name" or the member as field.
 */
int presets_change(struct api *api, enum object_setting_how how, const char *name,
                   const json_t *given, const struct audit_who *by, store_done_fn done, void *data,
                   struct aq_error *err);

#endif
