/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - uv_queue_work() and what else libuv does on other threads
 *
 * Each host has as many workers as libuv's default. They are threads, which all hosts share one
 * after the other: a thousand hosts that rarely work need few.
 */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "simuv/simuv_internal.h"

#define WORKERS 4 /* of a host at a time */
#define BEGIN_USEC 100
#define LOOK_UP_USEC 5000

/* A request under way; its uv_req_t.reserved[0] leads here. */
struct simuv_work {
    struct simuv_event event; /* it begins; a look-up or stat ends */
    struct simuv_loop *loop;
    struct simuv_machine *machine;
    uv_req_t *req;
    int status;
    struct list link; /* in machine->works, then in loop->works_done */
};

struct simuv_worker {
    struct simuv_task *task;
    struct simuv_work *work; /* NULL = it is idle */
    struct list link;        /* in work_idle */
};

static struct list work_idle = { &work_idle, &work_idle };

static struct simuv_work *work_new(uv_loop_t *uv, uv_req_t *req, uv_req_type type,
                                   void (*run)(struct simuv_event *event), int64_t max_usec)
{
    struct simuv_work *work = aq_alloc(sizeof(*work));

    req->type = type;
    req->reserved[0] = work;
    work->event = (struct simuv_event){ .run = run, .is_urgent = true };
    work->loop = simuv_loop_of(uv);
    work->machine = simuv_machine_of(work->loop->host);
    work->req = req;
    uv->active_reqs.count++;
    list_init(&work->link);
    list_add(&work->machine->works, &work->link);
    simuv_event_schedule(&work->event,
                         simuv_now + 1
                             + (int64_t)simuv_random_of_below(SIMUV_TURNS, (uint64_t)max_usec));
    return work;
}

static void work_finish(struct simuv_work *work, int status)
{
    work->status = status;
    simuv_event_cancel(&work->event);
    list_remove(&work->link);
    list_add(&work->loop->works_done, &work->link);
    simuv_loop_touch(work->loop);
}

/* ---- workers ---- */

static struct simuv_work *work_next(struct simuv_machine *machine)
{
    LIST_FOREACH(it, &machine->works) {
        struct simuv_work *work = LIST_ENTRY(it, struct simuv_work, link);

        if (work->req->type == UV_WORK && !simuv_event_is_queued(&work->event)) {
            list_remove(&work->link);
            return work;
        }
    }
    return NULL;
}

/* All that is ready on its host. */
static void work_run(struct simuv_worker *worker)
{
    struct simuv_machine *machine = worker->work->machine;

    do {
        uv_work_t *req = (uv_work_t *)worker->work->req;

        simuv_note("work", machine->id, 0);
        req->work_cb(req);
        work_finish(worker->work, 0);
    } while ((worker->work = work_next(machine)));
    machine->works_running--;
}

static void *work_main(void *data)
{
    struct simuv_worker *worker = data;

    for (;;) {
        work_run(worker);
        worker->task->hosts[0] = 0;
        list_add(&work_idle, &worker->link);
        while (!worker->work)
            (void)simuv_wait(worker, INT64_MAX, "work");
    }
    return NULL;
}

static void work_start(struct simuv_work *work)
{
    struct list *link = list_take(&work_idle);
    struct simuv_worker *worker = link ? LIST_ENTRY(link, struct simuv_worker, link)
                                       : aq_alloc(sizeof(*worker));
    int error = 0;

    worker->work = work;
    if (link) {
        worker->task->hosts[0] = work->machine->id;
        (void)simuv_wake_all(worker);
        return;
    }
    list_init(&worker->link);
    worker->task = simuv_task_start(work->machine->id, NULL, work_main, worker, &error);
    if (!worker->task)
        simuv_cannot("no more threads for uv_queue_work()");
}

static void work_on_begin(struct simuv_event *event)
{
    struct simuv_machine *machine = AQ_CONTAINER_OF(event, struct simuv_work, event)->machine;
    struct simuv_work *work;

    if (machine->works_running >= WORKERS || !(work = work_next(machine)))
        return;
    machine->works_running++;
    work_start(work);
}

int uv_queue_work(uv_loop_t *loop, uv_work_t *req, uv_work_cb fn, uv_after_work_cb after)
{
    if (!fn)
        return UV_EINVAL;
    req->loop = loop;
    req->work_cb = fn;
    req->after_work_cb = after;
    (void)work_new(loop, (uv_req_t *)req, UV_WORK, work_on_begin, BEGIN_USEC);
    return 0;
}

/* What no worker has begun. */
int uv_cancel(uv_req_t *req)
{
    struct simuv_work *work = req->reserved[0];

    if (!work || work->status || list_is_empty(&work->link))
        return UV_EBUSY;
    LIST_FOREACH(it, &work->machine->works)
        if (it == &work->link) {
            work_finish(work, req->type == UV_GETADDRINFO ? UV_EAI_CANCELED : UV_ECANCELED);
            return 0;
        }
    return UV_EBUSY;
}

/* ---- names ---- */

static void work_on_ready(struct simuv_event *event)
{
    struct simuv_work *work = AQ_CONTAINER_OF(event, struct simuv_work, event);

    work_finish(work, 0);
}

static int work_look_up_error(int error)
{
    return error == EAI_SERVICE ? UV_EAI_SERVICE : UV_EAI_NONAME;
}

/* Numbers and "localhost" only: the network has no names. */
int uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *req, uv_getaddrinfo_cb fn, const char *node,
                   const char *service, const struct addrinfo *hints)
{
    struct addrinfo numeric = hints ? *hints : (struct addrinfo){ 0 };
    int error;

    if (!fn)
        simuv_cannot("uv_getaddrinfo() that waits");
    numeric.ai_flags = (numeric.ai_flags & ~AI_ADDRCONFIG) | AI_NUMERICHOST;
    if (node && !strcmp(node, "localhost"))
        node = "127.0.0.1";
    req->loop = loop;
    req->cb = fn;
    req->addrinfo = NULL;
    error = getaddrinfo(node, service, &numeric, &req->addrinfo);
    req->retcode = error ? work_look_up_error(error) : 0;
    (void)work_new(loop, (uv_req_t *)req, UV_GETADDRINFO, work_on_ready, LOOK_UP_USEC);
    return 0;
}

void uv_freeaddrinfo(struct addrinfo *list)
{
    if (list)
        freeaddrinfo(list);
}

/* ---- files ---- */

int uv_fs_stat(uv_loop_t *loop, uv_fs_t *req, const char *path, uv_fs_cb fn)
{
    if (!fn)
        simuv_cannot("uv_fs_stat() that waits");
    memset(&req->statbuf, 0, sizeof(req->statbuf));
    req->loop = loop;
    req->cb = fn;
    req->fs_type = UV_FS_STAT;
    req->ptr = NULL;
    req->path = aq_strdup(path);
    (void)work_new(loop, (uv_req_t *)req, UV_FS, work_on_ready, BEGIN_USEC);
    return 0;
}

void uv_fs_req_cleanup(uv_fs_t *req)
{
    free((char *)(uintptr_t)req->path);
    req->path = NULL;
}

static void work_stat(uv_fs_t *req)
{
    struct stat st;

    req->result = stat(req->path, &st) < 0 ? -errno : 0;
    if (req->result < 0)
        return;
    req->statbuf.st_mode = st.st_mode;
    req->statbuf.st_size = (uint64_t)st.st_size;
    req->statbuf.st_uid = st.st_uid;
    req->statbuf.st_gid = st.st_gid;
    req->statbuf.st_dev = st.st_dev;
    req->statbuf.st_ino = st.st_ino;
    req->statbuf.st_nlink = st.st_nlink;
    req->statbuf.st_mtim = (uv_timespec_t){ st.st_mtim.tv_sec, st.st_mtim.tv_nsec };
    req->ptr = &req->statbuf;
}

/* ---- the end ---- */

static void work_tell(uv_req_t *req, int status)
{
    uv_getaddrinfo_t *look_up = (uv_getaddrinfo_t *)req;
    uv_work_t *work = (uv_work_t *)req;
    uv_fs_t *fs = (uv_fs_t *)req;

    if (req->type == UV_WORK && work->after_work_cb) {
        work->after_work_cb(work, status);
    } else if (req->type == UV_FS) {
        if (status < 0)
            fs->result = status;
        else
            work_stat(fs);
        fs->cb(fs);
    } else if (req->type == UV_GETADDRINFO) {
        struct addrinfo *list = look_up->addrinfo;

        if (status < 0) {
            uv_freeaddrinfo(list);
            list = NULL;
        }
        look_up->cb(look_up, status < 0 ? status : look_up->retcode, list);
    }
}

void simuv_works_run_done(struct simuv_loop *loop)
{
    struct list done, *link;

    list_init(&done);
    list_move(&loop->works_done, &done);
    while ((link = list_take(&done))) {
        struct simuv_work *work = LIST_ENTRY(link, struct simuv_work, link);
        uv_req_t *req = work->req;
        int status = work->status;

        free(work);
        req->reserved[0] = NULL;
        loop->uv->active_reqs.count--;
        work_tell(req, status);
    }
}

void simuv_works_crash(struct simuv_machine *machine)
{
    LIST_FOREACH(it, &machine->works) {
        struct simuv_work *work = LIST_ENTRY(it, struct simuv_work, link);

        simuv_event_cancel(&work->event);
        list_remove(&work->link);
        free(work);
    }
    machine->works_running = 0;
}
