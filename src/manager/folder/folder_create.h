/* SPDX-License-Identifier: Apache-2.0 */
/* folder_create.h - making a folder, and what its name and options may be */
#ifndef AQ_MANAGER_FOLDER_FOLDER_CREATE_H
#define AQ_MANAGER_FOLDER_FOLDER_CREATE_H

#include "manager/folder/folder_call.h"

/* Parameters of the call; NULL = not given. */
struct folder_create_params {
    const char *name, *host;
    const char *group; /* name or id of the project that shall own it */
    const char *usage, *permission, *quota;
    bool is_cloneable;
};
extern const struct folder_create_params folder_create_defaults;

/* Makes the row, then the place of its files; answers with the folder. */
void folder_create(struct folder_call *call);

/* Has the owner of the call's folder room for another one, of the name that 'folder' has? For
 * 'run'. -EEXIST, -EDQUOT.
 */
int folder_check_room(struct store_tx *tx, const struct folder_call *call,
                      const struct folder *folder, struct aq_error *err);

/* It may be one that sessions mount unasked. -EINVAL names the field. */
int folder_check_new_name(struct api *api, const char *field, const char *name,
                          struct aq_error *err);
/* Those that are given, into the folder. -EINVAL. */
int folder_read_options(struct folder *folder, const char *usage, const char *permission,
                        struct aq_error *err);

/* What the audit log says of a folder before or after a change. */
json_t *folder_audit_side(const struct folder *folder);

#endif
