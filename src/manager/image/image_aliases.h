/* SPDX-License-Identifier: Apache-2.0 */
/* image_aliases.h - short names of images, for everybody
 *
 * An administrator's alias ("py311") stands for the name of an image wherever
 * a session is made. Aliases are one setting in the store, read at the start;
 * what is changed counts once it is durable.
 */
#ifndef AQ_MANAGER_IMAGE_IMAGE_ALIASES_H
#define AQ_MANAGER_IMAGE_IMAGE_ALIASES_H

#include "manager/call/api.h"

#define ALIASES_MAX 1000
#define ALIAS_MAX 64

int image_aliases_load(struct api *api, struct aq_error *err);

/* What the name stands for if it is an alias, else the name itself; borrowed
 * until the loop runs again.
 */
const char *image_aliases_resolve(const struct api *api, const char *name);

/* {"ALIAS": "IMAGE"} of all, by name; borrowed as above. */
const json_t *image_aliases_all(const struct api *api);

/* Let 'alias' stand for 'image' from now on; with NULL for nothing any more.
 * 'done' comes when that is durable: -ENOENT for an alias to be removed that
 * is none, -E2BIG for one too many. Refused at once: -EINVAL with "alias" or
 * "image" as field, -ENOMEM.
 */
int image_aliases_change(struct api *api, const char *alias, const char *image,
                         const struct audit_who *by, store_done_fn done, void *data,
                         struct aq_error *err);

/* ---- several, with something else ---- */

/* Refused as by image_aliases_change(). */
int image_aliases_check(const char *alias, const char *image, struct aq_error *err);

/* On a thread of the store: add those of 'added', {"ALIAS": "IMAGE"}, that are not there.
 * '*ret_all' is for image_aliases_replace(), once the transaction is durable. -E2BIG.
 */
int image_aliases_add_missing(struct store_tx *tx, const json_t *added, json_t **ret_all,
                              struct aq_error *err);

/* Takes 'all'. */
void image_aliases_replace(struct api *api, json_t *all);

#endif
