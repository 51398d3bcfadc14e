/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h - the objects of one kind, and every change of them, from the API server
 *
 * Lists them in pages, then follows what changes from the list's version on. A watch that ends is
 * taken up at the last version; where that is too old by now, or anything is not as it should be,
 * there is a new list, and objects that were deleted meanwhile are reported as such. So the calls
 * below show, some time later, what the API server has. While it cannot be reached it is tried
 * again after 1, 2, 4 ... 30 seconds. Belongs to one loop and its thread.
 */
#ifndef AQ_KUBE_WATCH_H
#define AQ_KUBE_WATCH_H

#include "kube/api.h"

struct kube_watch;

struct kube_watch_conf {
    struct kube_api *api;
    const char *path;     /* "/api/v1/pods" */
    const char *selector; /* "fieldSelector=spec.nodeName%3Dn1"; NULL = all */
    /* The object is there, new or changed, or as it was before. 'key' is "namespace/name", or the
     * name alone; an object of the same key and another uid has taken its place.
     */
    void (*on_object)(void *data, const char *key, const json_t *object);
    void (*on_gone)(void *data, const char *key);
    /* All objects are known; once for each list. */
    void (*on_synced)(void *data);
    /* It is tried again. */
    void (*on_failed)(void *data, const struct aq_error *err);
    void *data;
};

/* Texts are copied, the API is borrowed. The callbacks come from the loop. */
struct kube_watch *kube_watch_new(const struct kube_watch_conf *conf);
/* Not from within a callback. NULL is fine. */
void kube_watch_free(struct kube_watch *watch);

#endif
