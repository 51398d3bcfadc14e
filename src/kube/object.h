/* SPDX-License-Identifier: Apache-2.0 */
/* object.h - what of any object of Kubernetes matters here, and what its API server says of changes
 */
#ifndef AQ_KUBE_OBJECT_H
#define AQ_KUBE_OBJECT_H

#include <jansson.h>

#include "base/error.h"
#include "base/strbuf.h"

#define KUBE_NAME_MAX 253
#define KUBE_KEY_MAX (63 + 1 + KUBE_NAME_MAX) /* "namespace/name", or the name alone */

/* False if it has no name, or one that cannot be. */
bool kube_object_key(const json_t *object, char ret[KUBE_KEY_MAX + 1]) AQ_UNTRUSTED;

/* metadata.resourceVersion; NULL if there is none. Borrowed. */
const char *kube_object_version(const json_t *object) AQ_UNTRUSTED;

enum kube_event_kind {
    KUBE_EVENT_IS,       /* the object is there, new or changed */
    KUBE_EVENT_GONE,     /* the object was that before it went */
    KUBE_EVENT_BOOKMARK, /* nothing has changed up to its version */
    KUBE_EVENT_EXPIRED,  /* what was asked for is too long ago */
    KUBE_EVENT_FAILED,   /* the object says why: a Status */
    KUBE_EVENT_OTHER,    /* none that is known */
};

/* One line of a watch. *ret is the object, the caller's to drop; -EPROTO for what is no event. */
int kube_event_read(const char *line, size_t len, enum kube_event_kind *ret_kind, json_t **ret,
                    struct aq_error *err) AQ_UNTRUSTED;

/* Fill 'err' from an answer that is an error and return -err->code: -EACCES (401), -EPERM (403),
 * -ENOENT, -EEXIST and -ESTALE (409: the name is taken, the version is not the newest),
 * -EKEYEXPIRED (410: the version is too old), -EINVAL (400, 422), -EAGAIN (429, 503, 504: later),
 * else -EIO. 'body' is a Status object or anything else.
 */
int kube_status_read(int http_status, const char *body, size_t len,
                     struct aq_error *err) AQ_UNTRUSTED;

#endif
