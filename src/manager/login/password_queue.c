/* SPDX-License-Identifier: Apache-2.0 */
/* Passwords that are checked on threads of their own. */
#include "manager/login/password_queue.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define THREADS 2

struct password_queue {
    uv_async_t wake;
    pthread_mutex_t lock;
    pthread_cond_t queued;
    pthread_t threads[THREADS];
    size_t thread_count;
    bool is_stopping;
    struct list waiting; /* struct password_check, by round */
    struct list finished;
    size_t count;   /* waiting */
    uint64_t round; /* of the last one taken: the turn of addresses */
};

/* ---- a thread ---- */

static struct password_check *password_queue_take(struct password_queue *queue)
{
    struct password_check *check = NULL;

    (void)pthread_mutex_lock(&queue->lock);
    while (list_is_empty(&queue->waiting) && !queue->is_stopping)
        (void)pthread_cond_wait(&queue->queued, &queue->lock);
    if (!queue->is_stopping) {
        check = LIST_ENTRY(queue->waiting.next, struct password_check, link);
        list_remove(&check->link);
        queue->count--;
        queue->round = check->round;
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return check;
}

static void password_queue_do(struct password_check *check)
{
    check->is_right = !check->password || password_verify(check->hash, check->password);
    check->result = check->is_right && check->new_password
                        ? password_hash(check->new_password, check->new_hash, NULL)
                        : 0;
}

static void *password_queue_loop(void *data)
{
    struct password_queue *queue = data;
    struct password_check *check;

    while ((check = password_queue_take(queue))) {
        password_queue_do(check);
        (void)pthread_mutex_lock(&queue->lock);
        list_add(&queue->finished, &check->link);
        (void)pthread_mutex_unlock(&queue->lock);
        (void)uv_async_send(&queue->wake);
    }
    return NULL;
}

static int password_queue_start(struct password_queue *queue, struct aq_error *err)
{
    sigset_t all, before;
    int r = 0;

    (void)sigfillset(&all); /* signals are for the loop's thread */
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    while (r == 0 && queue->thread_count < THREADS) {
        r = pthread_create(&queue->threads[queue->thread_count], NULL, password_queue_loop, queue);
        queue->thread_count += r == 0;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return queue->thread_count ? 0 : aq_fail(err, r, "a thread for passwords: %s", strerror(r));
}

/* ---- the loop ---- */

static void password_queue_finish(struct list *finished)
{
    while (!list_is_empty(finished)) {
        struct password_check *check = LIST_ENTRY(finished->next, struct password_check, link);

        list_remove(&check->link);
        check->done(check);
    }
}

static void password_queue_on_wake(uv_async_t *wake)
{
    struct password_queue *queue = wake->data;
    struct list finished;

    list_init(&finished);
    (void)pthread_mutex_lock(&queue->lock);
    LIST_FOREACH(link, &queue->finished) {
        list_remove(link);
        list_add(&finished, link);
    }
    (void)pthread_mutex_unlock(&queue->lock);
    password_queue_finish(&finished);
}

struct password_queue *password_queue_new(uv_loop_t *loop)
{
    struct password_queue *queue = aq_alloc(sizeof(*queue));

    list_init(&queue->waiting);
    list_init(&queue->finished);
    (void)pthread_mutex_init(&queue->lock, NULL);
    (void)pthread_cond_init(&queue->queued, NULL);
    (void)uv_async_init(loop, &queue->wake, password_queue_on_wake);
    queue->wake.data = queue;
    return queue;
}

/* Give it the round after the last of its address and put it in its place.
 * Returns how many of its address wait. The lock is held.
 */
static size_t password_queue_place(struct password_queue *queue, struct password_check *check)
{
    struct list *place = &queue->waiting;
    size_t own = 0;

    check->round = queue->round + 1;
    LIST_FOREACH(link, &queue->waiting) {
        const struct password_check *other = LIST_ENTRY(link, struct password_check, link);

        if (strcmp(other->address, check->address) == 0) {
            own++;
            check->round = AQ_MAX(check->round, other->round + 1);
        }
    }
    while (place->prev != &queue->waiting
           && LIST_ENTRY(place->prev, struct password_check, link)->round > check->round)
        place = place->prev;
    if (own < PASSWORD_QUEUE_ADDRESS_MAX) {
        list_add(place, &check->link);
        queue->count++;
    }
    return own;
}

/* The last in the queue, if there are too many. The lock is held. */
static struct password_check *password_queue_push_out(struct password_queue *queue)
{
    struct password_check *last = LIST_ENTRY(queue->waiting.prev, struct password_check, link);

    if (queue->count <= PASSWORD_QUEUE_MAX)
        return NULL;
    list_remove(&last->link);
    queue->count--;
    return last;
}

int password_queue_fail_busy(struct aq_error *err)
{
    return aq_fail_kind(err, EAGAIN, "rate-limit-exceeded",
                        "too many passwords are being checked; try again in a few seconds");
}

int password_queue_add(struct password_queue *queue, struct password_check *check,
                       struct aq_error *err)
{
    struct password_check *last;
    size_t own;

    if (queue->is_stopping)
        return aq_fail(err, ECANCELED, "the manager is stopping");
    if (!queue->thread_count && password_queue_start(queue, err) < 0)
        return -err->code;
    (void)pthread_mutex_lock(&queue->lock);
    own = password_queue_place(queue, check);
    last = password_queue_push_out(queue);
    (void)pthread_mutex_unlock(&queue->lock);
    if (own >= PASSWORD_QUEUE_ADDRESS_MAX || last == check)
        return password_queue_fail_busy(err);
    (void)pthread_cond_signal(&queue->queued);
    if (last) {
        last->result = -EAGAIN;
        last->done(last);
    }
    return 0;
}

/* ---- the end ---- */

void password_queue_stop(struct password_queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    queue->is_stopping = true;
    (void)pthread_cond_broadcast(&queue->queued);
    (void)pthread_mutex_unlock(&queue->lock);
    while (queue->thread_count)
        (void)pthread_join(queue->threads[--queue->thread_count], NULL);
    LIST_FOREACH(link, &queue->waiting) {
        list_remove(link);
        list_add(&queue->finished, link);
    }
    queue->count = 0;
    LIST_FOREACH(link, &queue->finished)
        LIST_ENTRY(link, struct password_check, link)->result = -ECANCELED;
    password_queue_finish(&queue->finished);
}

static void password_queue_on_closed(uv_handle_t *handle)
{
    struct password_queue *queue = handle->data;

    (void)pthread_mutex_destroy(&queue->lock);
    (void)pthread_cond_destroy(&queue->queued);
    free(queue);
}

void password_queue_free(struct password_queue *queue)
{
    if (!queue)
        return;
    password_queue_stop(queue);
    uv_close((uv_handle_t *)&queue->wake, password_queue_on_closed);
}
