/* SPDX-License-Identifier: Apache-2.0 */
/* folder_jobs.h - what goes on with folders after their requests were answered
 *
 * A folder that is removed keeps its row, "delete-ongoing", until its storage host has removed the
 * files: it is asked at once, and again every five seconds until it has. What was being made or
 * cloned to when the manager ended is removed in the same way. Loop's thread.
 */
#ifndef AQ_MANAGER_FOLDER_FOLDER_JOBS_H
#define AQ_MANAGER_FOLDER_FOLDER_JOBS_H

#include "manager/call/api.h"
#include "model/folder.h"

struct folder_jobs;

/* Begins with what is unfinished in the store. */
int folder_jobs_new(struct api *api, struct folder_jobs **ret, struct aq_error *err);
/* After storage_hosts_stop(). */
void folder_jobs_stop(struct folder_jobs *jobs);
void folder_jobs_free(struct folder_jobs *jobs); /* NULL is fine */

/* Have the files of a folder removed whose row says "delete-ongoing", then the row. */
void folder_jobs_purge(struct folder_jobs *jobs, const struct folder *folder);

#endif
