/* SPDX-License-Identifier: Apache-2.0 */
/* image_aliases.h - short names of images, for everybody
 *
 * An administrator's alias ("py311") stands for the name of an image wherever
 * a session is made. Aliases are one setting in the store, read at the start;
 * what is changed counts once it is durable.
 */
#ifndef AQ_MANAGER_IMAGE_IMAGE_ALIASES_H
#define AQ_MANAGER_IMAGE_IMAGE_ALIASES_H

#include "manager/image/image.h"

#define ALIASES_MAX 1000
#define ALIAS_MAX 64

int image_aliases_load(struct api *api, struct aq_error *err);

/* Let 'alias' stand for 'image' from now on; with NULL for nothing any more.
 * 'done' comes when that is durable: -ENOENT for an alias to be removed that
 * is none, -E2BIG for one too many. Refused at once: -EINVAL with "alias" or
 * "image" as field.
 */
int image_aliases_change(struct api *api, const char *alias, const char *image,
                         const struct audit_who *by, store_done_fn done, void *data,
                         struct aq_error *err);

#endif
