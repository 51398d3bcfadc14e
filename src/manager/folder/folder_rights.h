/* SPDX-License-Identifier: Apache-2.0 */
/* folder_rights.h - tells storage hosts which rights to folders have ended
 *
 * Storage hosts ask several times a second about the rights of all tokens in use
 * (src/storage/rights.h). Each time the right is decided from the rows and accounts of that
 * moment, so that no event has to be remembered or delivered: a right ends by the end of a share or
 * of membership, a lower permission, another owner, the trash, a user or keypair that was
 * deactivated or deleted, or rules that no longer allow the host. Loop's thread.
 */
#ifndef AQ_MANAGER_FOLDER_FOLDER_RIGHTS_H
#define AQ_MANAGER_FOLDER_FOLDER_RIGHTS_H

#include "manager/call/api.h"

struct folder_rights;

/* Answers the storage hosts from now on. After storage_hosts_new(). */
struct folder_rights *folder_rights_new(struct api *api);
/* After storage_hosts_stop(). */
void folder_rights_stop(struct folder_rights *rights);
/* Once the store is closed. NULL is fine. */
void folder_rights_free(struct folder_rights *rights);

#endif
