/* SPDX-License-Identifier: Apache-2.0 */
/* folder_recount.h - has folders measured that sessions write to
 *
 * What a session writes into a mounted folder does not pass its storage host, which sees it only when
 * it measures the folder. It is asked to every two minutes while a session may write to the folder,
 * and once after that, and at the manager's start for what was never measured; the host bounds what that costs it, and tells sizes by storage.size.
 * Loop's thread.
 */
#ifndef AQ_MANAGER_REQUEST_FOLDER_RECOUNT_H
#define AQ_MANAGER_REQUEST_FOLDER_RECOUNT_H

#include "manager/request/api.h"

struct folder_recount;

int folder_recount_new(struct api *api, struct folder_recount **ret, struct aq_error *err);
void folder_recount_stop(struct folder_recount *recount);
void folder_recount_free(struct folder_recount *recount); /* NULL is fine */

#endif
