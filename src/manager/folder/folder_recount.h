/* SPDX-License-Identifier: Apache-2.0 */
/* folder_recount.h - requests sizes of folders that sessions write to
 *
 * What a session writes into a mounted folder does not pass its storage host, which sees it only
 * when it measures the folder. The host is asked to measure a folder every two minutes while a
 * session may write to it, once after the session has ended, and at the manager's start if the
 * folder was never measured. The host bounds the cost, and reports sizes by storage.size.
 * Loop's thread.
 */
#ifndef AQ_MANAGER_FOLDER_FOLDER_RECOUNT_H
#define AQ_MANAGER_FOLDER_FOLDER_RECOUNT_H

#include "manager/call/api.h"

struct folder_recount;

int folder_recount_new(struct api *api, struct folder_recount **ret, struct aq_error *err);
void folder_recount_stop(struct folder_recount *recount);
void folder_recount_free(struct folder_recount *recount); /* NULL is fine */

#endif
