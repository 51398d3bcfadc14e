/* SPDX-License-Identifier: Apache-2.0 */
/* etcd_client.h - calls to etcd: one of its endpoints at a time, its login, one watch
 *
 * A call that fails leaves everything as it was; the caller goes to the next endpoint and logs in
 * again. Loop's thread only.
 */
#ifndef AQ_MANAGER_ETCD_ETCD_CLIENT_H
#define AQ_MANAGER_ETCD_ETCD_CLIENT_H

#include <uv.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "manager/etcd/etcd.h"

#define ETCD_ANSWER_MAX (8u << 20)         /* bytes of an answer; more fail with EFBIG */
#define ETCD_CALL_USEC (10 * USEC_PER_SEC) /* within which a call must be answered */

struct etcd_client;

/* 'settings' are borrowed. -EINVAL with the setting as field; -errno of files. */
int etcd_client_new(uv_loop_t *loop, const struct etcd_settings *settings, struct etcd_client **ret,
                    struct aq_error *err);
/* Calls and watch are broken off. NULL is fine. */
void etcd_client_free(struct etcd_client *client);

/* The endpoint in use: a URL. Borrowed. */
const char *etcd_client_get_endpoint(const struct etcd_client *client);
/* Break off call and watch, forget the login, and use the next endpoint. */
void etcd_client_leave(struct etcd_client *client);

/* 'text' is borrowed; if 'err' has a code there is none. */
typedef void etcd_done_fn(void *data, int status, const char *text, size_t len,
                          const struct aq_error *err);

/* POST a request to 'path', such as "/v3/kv/range". One call at a time; 'done' comes from the loop.
 * -EINVAL, and 'done' is not called.
 */
int etcd_client_call(struct etcd_client *client, const char *path, const struct strbuf *body,
                     etcd_done_fn *done, void *data, struct aq_error *err);
bool etcd_client_is_calling(const struct etcd_client *client);
/* Break off a call that is not answered in time: 'done' is called with ETIMEDOUT. */
void etcd_client_end_late(struct etcd_client *client);

typedef void etcd_login_fn(void *data, const struct aq_error *err);

/* Get a token for the user of the settings; -ENODATA if none is set. Errors of reading the
 * password's file.
 */
int etcd_client_login(struct etcd_client *client, etcd_login_fn *done, void *data,
                      struct aq_error *err);

struct etcd_watch_ops {
    void (*on_line)(void *data, const char *line, size_t len);
    /* Once, and last: the watch is gone. */
    void (*on_end)(void *data, const struct aq_error *err);
};

/* One watch at a time; 'ops' are static. */
int etcd_client_watch(struct etcd_client *client, const struct strbuf *body,
                      const struct etcd_watch_ops *ops, void *data, struct aq_error *err);
/* Read nothing of the watch from now on, or go on. Lines that were read are given later, too. */
void etcd_client_hold_watch(struct etcd_client *client, bool is_held);

#endif
