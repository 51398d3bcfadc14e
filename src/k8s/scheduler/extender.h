/* SPDX-License-Identifier: Apache-2.0 */
/* extender.h - what kube-scheduler asks its extender, and what it is answered
 *
 * Bodies are JSON with Go's names of members. Each of these writes one answer; where the protocol
 * has a place for an error it is there. Pure: time is given.
 */
#ifndef AQ_K8S_SCHEDULER_EXTENDER_H
#define AQ_K8S_SCHEDULER_EXTENDER_H

#include "base/strbuf.h"
#include "k8s/scheduler/books.h"

#define EXTENDER_BODY_MAX (4u << 20)            /* 5,000 nodes have names of less */
#define ASSUMED_USEC (INT64_C(60) * 1000000)    /* longer than a bind takes */
#define CONFIRMED_USEC (INT64_C(600) * 1000000) /* a watch that says nothing is broken */

enum { REFUSED_UNKNOWN_NODE = REASON_NO_ROOM + 1, REFUSED_KINDS };

struct extender {
    struct books *books;
    struct resource_names names;
    enum card_policy policy;                 /* of pods that say none */
    bool is_complete;                        /* the books have all that is there */
    uint64_t placed, refused[REFUSED_KINDS]; /* pods by filter; nodes, by enum selection_reason */
};

/* One node that has room, and the pod is assumed there; the others with the reason. */
void extender_filter(struct extender *extender, const char *body, size_t len, int64_t now_usec,
                     struct strbuf *out) AQ_UNTRUSTED;

/* Each node with 0..10, as the policy likes it. -EAGAIN while the books are not complete, -EINVAL.
 */
int extender_prioritize(struct extender *extender, const char *body, size_t len, struct strbuf *out,
                        struct aq_error *err) AQ_UNTRUSTED;

/* Of the nodes those where evicting helps, with whom. Errors as above. */
int extender_preempt(struct extender *extender, const char *body, size_t len, struct strbuf *out,
                     struct aq_error *err) AQ_UNTRUSTED;

/* What a bind is to say. Texts are of 'json', the caller's to drop. */
struct bind_ask {
    const char *name, *space, *uid, *node;
    json_t *json;
};
int extender_read_bind(const char *body, size_t len, struct bind_ask *ret,
                       struct aq_error *err) AQ_UNTRUSTED;
void extender_write_bind(const char *error, struct strbuf *out); /* the answer; "" = it is bound */

/* Where the pod is bound to the node: as filter has decided, or decided now, and assumed until the
 * answer of the API server is there. The pod; NULL with -EAGAIN, -ENOENT, -EEXIST, -ENOSPC in
 * 'err'.
 */
struct book_pod *extender_settle(struct extender *extender, const struct bind_ask *ask,
                                 int64_t now_usec, struct aq_error *err);

#endif
