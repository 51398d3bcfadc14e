/* SPDX-License-Identifier: Apache-2.0 */
/* share_spec.h - how a resource group weighs what was used of it, in the words of Backend.AI 26
 *
 * On the loop's thread.
 */
#ifndef AQ_MANAGER_SCHEDULING_SHARE_SPEC_H
#define AQ_MANAGER_SCHEDULING_SHARE_SPEC_H

#include "manager/call/api.h"

struct share_spec {
    struct core_fair_settings settings;
    const char *weights; /* of slots: JSON {"entries": [...]}, in the arena */
};

/* -ENOENT. */
int share_spec_read(const struct api *api, const char *resource_group, struct arena *arena,
                    struct share_spec *ret, struct aq_error *err);
/* Members of an object that may have others: days, default_weight, resource_weights. */
void share_spec_write(const struct share_spec *spec, struct jsonw *w);

/* A weight, a number or its text: null (or NULL) takes it back. NULL with -EINVAL and the field;
 * json_decref.
 */
json_t *share_spec_read_weight(const json_t *given, const char *field, struct aq_error *err);

/* Change members of the group's "fair_share" as the caller may: 'given' is consumed, a member that
 * is null goes. 'done' comes when the change is durable, or what is wrong is answered.
 */
void share_spec_save(struct api *api, struct request *req, const char *resource_group,
                     json_t *given, core_done_fn done, void *data);

#endif
