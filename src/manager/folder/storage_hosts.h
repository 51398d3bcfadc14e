/* SPDX-License-Identifier: Apache-2.0 */
/* storage_hosts.h - the storage hosts that are connected, and what is asked of them
 *
 * A host is named "STORAGE:VOLUME", such as "local:volume1": a volume of a storage host. It
 * connects to the manager (core/fronts.h); what it has, it says then, and nothing of it is kept.
 * Loop's thread; callbacks never come from within a call.
 */
#ifndef AQ_MANAGER_FOLDER_STORAGE_HOSTS_H
#define AQ_MANAGER_FOLDER_STORAGE_HOSTS_H

#include <jansson.h>

#include "manager/core/core.h"

#define STORAGE_HOST_MAX 128 /* bytes of a name */

struct storage_hosts;
struct storage_call;

/* Answers the core's storage hosts from now on. */
struct storage_hosts *storage_hosts_new(struct core *core);
/* What was asked ends without a callback, and nobody is answered any more. */
void storage_hosts_stop(struct storage_hosts *hosts);
/* NULL is fine. */
void storage_hosts_free(struct storage_hosts *hosts);

/* What a host asks: which rights to folders have ended (folder_rights.c). Borrowed for the call. */
typedef void storage_check_fn(void *data, const char *id, const struct msg_storage_check *check);
void storage_hosts_set_check(struct storage_hosts *hosts, storage_check_fn *fn, void *data);

struct storage_host {
    char name[STORAGE_HOST_MAX + 1]; /* "local:volume1" */
    const char *backend;             /* "vfs" */
    const json_t *capabilities;      /* list of texts */
    int64_t used, capacity;          /* bytes, of a minute ago at most; 0 = not known */
};

/* All of them, sorted by name; borrowed until the loop runs again. */
const struct storage_host *storage_hosts_list(const struct storage_hosts *hosts, size_t *ret_count);
/* NULL = it is not connected. */
const struct storage_host *storage_hosts_find(const struct storage_hosts *hosts, const char *name);

/* 'answer' is a JSON object, borrowed for the call, or NULL: then 'err' says why. A path of the
 * arguments is its field.
 */
typedef void storage_done_fn(void *data, json_t *answer, const struct aq_error *err);

/* Ask a host: 'op' and 'args' (borrowed; always with "id", a folder's, and with "user", whose id
 * asks) are those of src/storage/ops.h. 'on_done' is called once, after five minutes at the latest
 * (a clone: hours); after -ETIMEDOUT the operation may have been done. Requests for the size of a
 * folder that is being counted share that count. -EHOSTUNREACH (storage-proxy-error) if the host is
 * not connected, -EAGAIN if this user (http/quota.h) or all users exceed their calls.
 */
int storage_ask(struct storage_hosts *hosts, const char *host, const char *op, const json_t *args,
                storage_done_fn *on_done, void *data, struct storage_call **ret,
                struct aq_error *err);
/* How many bytes of how many are through: told from time to time before the answer. */
typedef void storage_progress_fn(void *data, int64_t done, int64_t total);
void storage_call_follow(struct storage_call *call, storage_progress_fn *on_progress);
/* The answer is not wanted any more: the host is told, unless others wait for the same answer. It
 * drops what it has not begun, and ends a count. NULL is fine.
 */
void storage_call_cancel(struct storage_call *call);

#endif
