/* SPDX-License-Identifier: Apache-2.0 */
/* task.c - threads of which one runs at a time, and what they wait for
 *
 * The driver resumes a thread by posting its baton and waits for its own; a thread that waits or
 * ends gives the baton back. When a waiting task goes on is an event as any other.
 */
#include <errno.h>
#include <sched.h>

#include "base/memory.h"
#include "simuv/simuv_internal.h"

#define WAKE_USEC 20 /* until a task runs that may */

struct simuv_task *simuv_task_now;

static struct simuv_task task_driver = { .is_driver = true };
static struct list task_all = { &task_all, &task_all };
static struct list task_waits = { &task_waits, &task_waits };
static uint32_t task_ids;

/* ---- the baton ---- */

static void task_take_baton(struct simuv_task *task)
{
    while (sem_wait(&task->baton) < 0)
        ;
}

/* Called on the driver: let the thread run until it waits. */
static void task_resume(struct simuv_task *task)
{
    simuv_note("task", task->id, 0);
    simuv_task_now = task;
    (void)sem_post(&task->baton);
    task_take_baton(&task_driver);
    simuv_task_now = &task_driver;
}

static int64_t task_wake_time(void)
{
    return simuv_now + 1 + (int64_t)simuv_random_of_below(SIMUV_TURNS, WAKE_USEC);
}

/* One at a time runs anyway, and the baton passes fastest between threads of one processor. */
static void task_stay_on_this_processor(void)
{
    int processor = sched_getcpu();
    cpu_set_t set;

    CPU_ZERO(&set);
    if (processor < 0 || processor >= CPU_SETSIZE)
        return;
    CPU_SET((size_t)processor, &set);
    (void)sched_setaffinity(0, sizeof(set), &set);
}

void simuv_tasks_begin(void)
{
    task_stay_on_this_processor();
    (void)sem_init(&task_driver.baton, 0, 0);
    task_driver.thread = pthread_self();
    simuv_task_now = &task_driver;
}

/* ---- waiting ---- */

static void task_on_wait_over(struct simuv_event *event)
{
    struct simuv_wait *wait = AQ_CONTAINER_OF(event, struct simuv_wait, event);

    wait->is_done = true;
    list_remove(&wait->link);
    if (!wait->task->is_driver)
        task_resume(wait->task);
}

bool simuv_wait(const void *on, int64_t deadline, const char *what)
{
    struct simuv_wait wait = { .event = { .run = task_on_wait_over, .is_urgent = true },
                               .task = simuv_task_now,
                               .on = on };
    int error = errno;

    list_init(&wait.link);
    list_add(&task_waits, &wait.link);
    if (deadline != INT64_MAX)
        simuv_event_schedule(&wait.event, deadline);
    if (wait.task->is_driver) {
        simuv_event_wait(&wait.is_done, what);
    } else {
        (void)sem_post(&task_driver.baton);
        task_take_baton(wait.task);
    }
    errno = error;
    return wait.is_signalled;
}

static void task_signal(struct simuv_wait *wait)
{
    wait->is_signalled = true;
    simuv_event_schedule(&wait->event, task_wake_time());
}

static struct simuv_wait *task_waiting(struct list *link, const void *on)
{
    struct simuv_wait *wait = LIST_ENTRY(link, struct simuv_wait, link);

    return wait->on == on && !wait->is_signalled ? wait : NULL;
}

bool simuv_wake_one(const void *on)
{
    struct simuv_wait *chosen = NULL, *wait;
    uint64_t count = 0;

    LIST_FOREACH(it, &task_waits)
        if ((wait = task_waiting(it, on))
            && (!count++ || simuv_random_of_below(SIMUV_TURNS, count) == 0))
            chosen = wait;
    if (chosen)
        task_signal(chosen);
    return chosen;
}

bool simuv_wake_all(const void *on)
{
    struct simuv_wait *wait;
    bool is_any = false;

    LIST_FOREACH(it, &task_waits)
        if ((wait = task_waiting(it, on))) {
            task_signal(wait);
            is_any = true;
        }
    return is_any;
}

/* ---- threads ---- */

static void task_on_begin(struct simuv_event *event)
{
    task_resume(AQ_CONTAINER_OF(event, struct simuv_task, event));
}

static void *task_main(void *data)
{
    struct simuv_task *task = data;

    task_take_baton(task);
    task->result = task->start(task->data);
    task->has_ended = true;
    (void)simuv_wake_all(task);
    if (task->is_detached)
        list_remove(&task->link); /* nobody asks for it any more */
    (void)sem_post(&task_driver.baton);
    return task->result;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *data);

struct simuv_task *simuv_task_start(simuv_host host, const pthread_attr_t *attr,
                                    void *(*start)(void *data), void *data, int *ret_error)
{
    struct simuv_task *task = aq_alloc(sizeof(*task));

    (void)sem_init(&task->baton, 0, 0);
    task->event = (struct simuv_event){ .run = task_on_begin, .is_urgent = true };
    task->id = ++task_ids;
    task->hosts[task->depth++] = host;
    task->start = start;
    task->data = data;
    list_init(&task->link);
    *ret_error = __real_pthread_create(&task->thread, attr, task_main, task);
    if (*ret_error) {
        free(task);
        return NULL;
    }
    list_add(&task_all, &task->link);
    simuv_event_schedule(&task->event, task_wake_time());
    return task;
}

static simuv_host task_host(const struct simuv_task *task)
{
    return task->depth ? task->hosts[0] : 0;
}

void simuv_tasks_crash(simuv_host host)
{
    LIST_FOREACH(it, &task_waits) {
        struct simuv_wait *wait = LIST_ENTRY(it, struct simuv_wait, link);

        if (wait->task->is_driver || task_host(wait->task) != host)
            continue;
        simuv_event_cancel(&wait->event);
        list_remove(&wait->link);
    }
    LIST_FOREACH(it, &task_all) {
        struct simuv_task *task = LIST_ENTRY(it, struct simuv_task, link);

        if (task_host(task) != host)
            continue;
        simuv_event_cancel(&task->event);
        list_remove(&task->link);
    }
}

/* ---- what code calls ---- */

int __real_pthread_join(pthread_t thread, void **ret);
int __real_pthread_detach(pthread_t thread);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *data);
int __wrap_pthread_join(pthread_t thread, void **ret);
int __wrap_pthread_detach(pthread_t thread);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *data)
{
    struct simuv_task *task;
    int error = 0;

    if (!simuv_has_begun)
        return __real_pthread_create(thread, attr, start, data);
    task = simuv_task_start(simuv_current_host(), attr, start, data, &error);
    if (task)
        *thread = task->thread;
    return error;
}

static struct simuv_task *task_find(pthread_t thread)
{
    LIST_FOREACH(it, &task_all)
        if (pthread_equal(LIST_ENTRY(it, struct simuv_task, link)->thread, thread))
            return LIST_ENTRY(it, struct simuv_task, link);
    return NULL;
}

int __wrap_pthread_join(pthread_t thread, void **ret)
{
    struct simuv_task *task = simuv_has_begun ? task_find(thread) : NULL;
    int r;

    if (!task)
        return __real_pthread_join(thread, ret);
    while (!task->has_ended)
        (void)simuv_wait(task, INT64_MAX, "pthread_join() of a thread that never ends");
    r = __real_pthread_join(thread, ret); /* it may have to return yet */
    list_remove(&task->link);
    (void)sem_destroy(&task->baton);
    free(task);
    return r;
}

int __wrap_pthread_detach(pthread_t thread)
{
    struct simuv_task *task = simuv_has_begun ? task_find(thread) : NULL;

    if (task)
        task->is_detached = true;
    return __real_pthread_detach(thread);
}
