/* SPDX-License-Identifier: Apache-2.0 */
/* folder_call.h - what requests on folders share
 *
 * A request is decoded, its folder is found and the right to it checked in one function of the
 * store, which also changes rows and writes the audit log; then a storage host is asked, where
 * files are meant, and the client is answered. On the loop's thread but for 'run'.
 */
#ifndef AQ_MANAGER_FOLDER_FOLDER_CALL_H
#define AQ_MANAGER_FOLDER_FOLDER_CALL_H

#include "manager/call/api.h"
#include "manager/folder/folder_rules.h"
#include "manager/folder/storage_hosts.h"
#include "store/audit_log.h"
#include "store/folder.h"

struct folder_call;

typedef int folder_run_fn(struct store_tx *tx, struct folder_call *call, struct aq_error *err);
typedef void folder_done_fn(struct folder_call *call);
typedef void folder_failed_fn(struct folder_call *call, const struct aq_error *err);
/* 'answer' as storage_done_fn() has it. */
typedef void folder_answer_fn(struct folder_call *call, json_t *answer, const struct aq_error *err);

/* In which states a folder may be for a request. */
enum folder_states {
    FOLDER_IF_READY,
    FOLDER_IF_IN_TRASH,
    FOLDER_IF_SETTLED, /* either */
    FOLDER_IN_ANY_STATE
};

/* 'err' NULL: it is done. */
typedef void folder_finish_fn(struct folder_call *call, const struct aq_error *err);

/* In the request's arena. */
struct folder_call {
    struct api *api;
    struct request *req;
    json_t *tree; /* of the parameters; freed when the store is done */
    void *params;
    struct folder_viewer who;
    const char *email; /* of who asks */
    const struct audit_who *by;

    const char *name; /* or id, of the folder that is meant; NULL = none is looked for */
    enum folder_op op;
    enum folder_states states;
    folder_run_fn *run;       /* once it was found and the right checked; NULL = nothing more */
    folder_done_fn *done;     /* answers, or asks the storage */
    folder_failed_fn *failed; /* instead of 'done'; NULL = folder_call_fail() */
    folder_answer_fn *answered;
    struct storage_call *asked; /* what is waited for; it is cancelled when the client goes */
    bool is_once;               /* it is answered once: manager/call/repeat.h */
    int status;                 /* of the usual answer without a body; 0 = 204 */
    folder_finish_fn *finish;   /* told instead of answering the request; NULL = it is answered */
    void *data;                 /* its */

    struct folder folder;
    struct folder_limits limits;          /* of its owner */
    const struct folder_mounted *mounted; /* folder_mounted.c: what sessions mount */
    void *result;                         /* of 'run' */
    const char *kept; /* of a creation: the answer, kept with what it makes; NULL = it is not */
    int count;
};

/* The parameters decoded into a copy of 'defaults' (NULL = zeroes); the path names the folder by
 * its parameter "name", if it has one. NULL after the request was answered.
 */
struct folder_call *folder_call_new(struct api *api, struct request *req, enum folder_op op,
                                    size_t params_size, const void *defaults);

/* One that is part of another request: nothing is decoded. */
struct folder_call *folder_call_make(struct api *api, struct request *req, enum folder_op op,
                                     size_t params_size, const void *defaults);

/* Run it, on the writer's thread if it changes something. */
void folder_call_read(struct folder_call *call);
void folder_call_write(struct folder_call *call);
/* Folders that a session holds. One that waits holds none: it looks at them again before it starts.
 */
const struct folder_mounts *folder_mounts_of(const struct session *session);
/* The latter, where no session may mount the folder: for 'run' of folder_check_unused(). */
void folder_call_write_unused(struct folder_call *call);
int folder_check_unused(const struct folder_call *call, struct aq_error *err); /* -EBUSY */
void folder_call_fail(struct folder_call *call, const struct aq_error *err);

/* Ask the folder's host; 'args' is taken and gets the folder's id and who asks. A client that goes
 * away meanwhile ends what only reads, and what has not begun of a removal: -ECANCELED. Whatever
 * fails is answered, and so is an error of the storage unless 'answered' is not NULL.
 */
void folder_call_ask(struct folder_call *call, const char *op, json_t *args,
                     folder_answer_fn *answered);
/* What a storage says, as clients know it. */
struct aq_error folder_storage_error(const struct aq_error *err);

/* The usual answers: status of the call without a body, {} and JSON. */
void folder_reply(struct folder_call *call);
void folder_reply_empty_object(struct folder_call *call);
void folder_reply_json(struct folder_call *call, json_t *body); /* taken */

/* The entry of the audit log, for 'run'. 'before' and 'after' are taken, NULL = nothing. */
int folder_audit(struct store_tx *tx, const struct folder_call *call, const char *action,
                 json_t *before, json_t *after, struct aq_error *err);

/* -EINVAL names the field. */
int folder_read_permission(const char *field, const char *text, enum folder_permission *ret,
                           struct aq_error *err);

/* As REST shows a folder to who asks. */
json_t *folder_show(const struct folder *folder, const struct folder_viewer *who);

#endif
