/* SPDX-License-Identifier: Apache-2.0 */
/* bind.c - a pod is bound to a node, and says on which cards: one request to the API server
 *
 * Annotations of a Binding are copied to the pod.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/url.h"
#include "k8s/scheduler/scheduler_internal.h"

struct bind {
    struct list link;
    struct scheduler_daemon *scheduler;
    struct request *req;
    struct kube_call *call;
    char *uid, *pod, *node; /* for finding and for logs */
};

static void bind_free(struct bind *bind)
{
    if (!bind)
        return;
    list_remove(&bind->link);
    free(bind->uid);
    free(bind->pod);
    free(bind->node);
    free(bind);
}
AQ_DEFINE_CLEANUP(struct bind, bind_free)

static void bind_reply(struct request *req, const char *error)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    extender_write_bind(error, &out);
    request_reply_json(req, 200, &out);
}

/* ---- the Binding ---- */

/* {"train":"GPU-..."}: containers and their cards. */
static void bind_write_placement(const struct book_pod *pod, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    for (uint32_t i = 0; i < pod->pod.container_count; i++) {
        const struct pod_container *container = &pod->pod.containers[i];

        jsonw_member_str(&w, container->name,
                         pod->node->cards.cards[pod->cards[container->part]].id);
    }
    jsonw_object_end(&w);
}

static void bind_write_metadata(const struct bind_ask *ask, const struct book_pod *pod,
                                struct jsonw *w)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf placement = STRBUF_INIT, stamp = STRBUF_INIT;

    bind_write_placement(pod, &placement);
    strbuf_addi(&stamp, clock_realtime_usec() * 1000);
    jsonw_object_begin(w);
    jsonw_member_str(w, "name", ask->name);
    jsonw_member_str(w, "namespace", ask->space);
    jsonw_member_str(w, "uid", ask->uid);
    jsonw_key(w, "annotations");
    jsonw_object_begin(w);
    jsonw_member_str(w, POD_PLACEMENT, placement.data);
    jsonw_member_str(w, POD_TIMESTAMP, stamp.data);
    jsonw_object_end(w);
    jsonw_object_end(w);
}

static void bind_write(const struct bind_ask *ask, const struct book_pod *pod, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "apiVersion", "v1");
    jsonw_member_str(&w, "kind", "Binding");
    jsonw_key(&w, "metadata");
    bind_write_metadata(ask, pod, &w);
    jsonw_key(&w, "target");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "apiVersion", "v1");
    jsonw_member_str(&w, "kind", "Node");
    jsonw_member_str(&w, "name", ask->node);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
}

/* ---- its answer ---- */

static void bind_undo(struct scheduler_daemon *scheduler, const char *uid)
{
    struct book_pod *pod = books_find_pod(scheduler->extender.books, uid);

    if (pod && !pod->is_assumed_bound)
        books_forget(scheduler->extender.books, pod);
    scheduler->bind_failures++;
}

/* Did the API server reject the Binding? Else it may be in effect, or take effect later: an answer
 * that is lost, or a write to etcd that timed out.
 */
static bool bind_is_refused(const struct aq_error *err)
{
    return err->code == EINVAL || err->code == EACCES || err->code == EPERM || err->code == ENOENT
           || err->code == EEXIST || err->code == ESTALE;
}

static void bind_on_answer(void *data, const json_t *answer, const struct aq_error *err)
{
    struct bind *bind = data;
    struct scheduler_daemon *scheduler = bind->scheduler;
    struct book_pod *pod = books_find_pod(scheduler->extender.books, bind->uid);
    struct request *req;

    if (answer) {
        if (pod)
            books_confirm(pod, clock_monotonic_usec() + CONFIRMED_USEC);
        scheduler->bound++;
        log_info("pod %s is bound to %s", bind->pod, bind->node);
    } else {
        if (bind_is_refused(err))
            bind_undo(scheduler, bind->uid);
        else
            scheduler
                ->bind_failures++; /* the assumption stays until it ends, or is decided again */
        log_warning("pod %s is not bound to %s: %s", bind->pod, bind->node, err->text);
    }
    req = bind->req;
    bind_free(bind);
    bind_reply(req, err->text);
}

void scheduler_end_binds(struct scheduler_daemon *scheduler)
{
    struct list *link;

    while ((link = list_take(&scheduler->binds))) {
        struct bind *bind = LIST_ENTRY(link, struct bind, link);
        struct request *req = bind->req;

        kube_call_cancel(bind->call);
        bind_free(bind);
        bind_reply(req, "the scheduler ends");
    }
}

/* ---- asking ---- */

static int bind_send(struct bind *bind, const struct bind_ask *ask, const struct book_pod *pod,
                     struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT, body = STRBUF_INIT;
    struct kube_ask post = { .method = METHOD_POST, .type = KUBE_JSON };

    strbuf_adds(&path, "/api/v1/namespaces/");
    url_encode(&path, ask->space);
    strbuf_adds(&path, "/pods/");
    url_encode(&path, ask->name);
    strbuf_adds(&path, "/binding");
    bind_write(ask, pod, &body);
    post.path = path.data;
    post.body = body.data;
    return kube_api_ask(bind->scheduler->api, &post, bind_on_answer, bind, &bind->call, err);
}

static int bind_begin(struct scheduler_daemon *scheduler, struct request *req,
                      const struct bind_ask *ask, struct aq_error *err)
{
    AQ_CLEANUP(bind_freep) struct bind *bind = aq_alloc(sizeof(*bind));
    struct book_pod *pod;
    int r;

    list_init(&bind->link);
    pod = extender_settle(&scheduler->extender, ask, clock_monotonic_usec(), err);
    if (!pod)
        return -err->code;
    bind->scheduler = scheduler;
    bind->req = req;
    bind->uid = aq_strdup(ask->uid);
    bind->pod = aq_strdup(pod->pod.key);
    bind->node = aq_strdup(ask->node);
    r = bind_send(bind, ask, pod, err);
    if (r < 0) {
        bind_undo(scheduler, ask->uid);
        return r;
    }
    list_add(&scheduler->binds, &bind->link);
    (void)AQ_TAKE(bind);
    return 0;
}

void scheduler_bind(struct scheduler_daemon *scheduler, struct request *req)
{
    struct bind_ask ask = { .json = NULL };
    struct aq_error err = { 0 };
    size_t len;
    const char *body = request_get_body(req, &len);
    int r = extender_read_bind(body, len, &ask, &err);

    if (r == 0)
        r = bind_begin(scheduler, req, &ask, &err);
    if (r < 0)
        bind_reply(req, err.text);
    json_decref(ask.json);
}
