/* SPDX-License-Identifier: Apache-2.0 */
/* simuv_internal.h - what the files of simuv share
 *
 * event.c has the queue of all that is to happen and the loop that takes from it. A task (task.c)
 * is what code runs on: the driver, which is the thread of simuv_begin(), or a thread of a host.
 * One task runs at a time. loop.c turns the loops, the network (network.c, socket.c) moves bytes.
 */
#ifndef AQ_SIMUV_SIMUV_INTERNAL_H
#define AQ_SIMUV_SIMUV_INTERNAL_H

#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <uv.h>

#include "base/list.h"
#include "simuv/simuv.h"

#define SIMUV_USEC_PER_SEC INT64_C(1000000)

/* ---- event.c ---- */

/* Something that happens at a time; part of what it happens to. */
struct simuv_event {
    void (*run)(struct simuv_event *event);
    int64_t at;
    uint64_t order;   /* among those of one time */
    uint32_t place;   /* where it is queued; 0 = it is not */
    bool is_urgent;   /* runs also while the driver waits within a callback */
    bool is_deferred; /* found due during such a wait */
};

extern bool simuv_has_begun;
extern int64_t simuv_now; /* usec */

/* At this time, or now if that is past; an event that was queued is moved. */
void simuv_event_schedule(struct simuv_event *event, int64_t at);
void simuv_event_cancel(struct simuv_event *event);

static inline bool simuv_event_is_queued(const struct simuv_event *event)
{
    return event->place != 0;
}

/* Run urgent events until *is_done; the driver calls this where a thread would wait. */
void simuv_event_wait(const bool *is_done, const char *what);

/* A loop has turned: 'step' is due. */
void simuv_event_stepped(void);

/* For the hash and the trace: something happens to 'id'. */
void simuv_note(const char *what, uint64_t id, uint64_t detail);
void simuv_note_bytes(const void *bytes, size_t len);

/* ---- random.c ---- */

enum simuv_stream { SIMUV_FAULTS, SIMUV_TURNS, SIMUV_NETWORK, SIMUV_ENTROPY, SIMUV_STREAMS };

void simuv_random_seed(uint64_t seed);
uint64_t simuv_random_of(enum simuv_stream stream);
uint64_t simuv_random_of_below(enum simuv_stream stream, uint64_t n);
bool simuv_chance_of(enum simuv_stream stream, double probability);

/* ---- entropy.c ---- */

/* Let OpenSSL and libsodium take their random bytes from the seed. */
void simuv_entropy_install(void);

/* ---- clock.c ---- */

/* How far CLOCK_REALTIME is ahead of simuv_now on the host whose code runs. */
int64_t simuv_wall_ahead_usec(void);

/* ---- host.c ---- */

struct simuv_machine {
    simuv_host id;
    struct in_addr address;
    int64_t wall_offset;
    int64_t sync_min_usec, sync_max_usec;
    int64_t down_since; /* the machine is off; 0 = it is up */
    bool is_crashed;    /* no process runs */
    uint32_t boots;
    uint16_t next_port;
    struct list loops, sockets, listeners;
    struct list abandoned; /* loops of processes that crashed */
    struct list works;     /* queued by uv_queue_work(), and not begun */
    int works_running;
    struct list paths; /* that lead here */
};

struct simuv_machine *simuv_machine_of(simuv_host host);
struct simuv_machine *simuv_machine_here(void);
struct simuv_machine *simuv_machine_find(simuv_host from, struct in_addr address); /* or NULL */
void simuv_hosts_begin(void);

/* ---- task.c ---- */

#define SIMUV_ENTER_MAX 32

struct simuv_task {
    sem_t baton; /* posted: it runs */
    struct simuv_event event;
    pthread_t thread;
    uint32_t id;
    bool is_driver, has_ended, is_detached;
    simuv_host hosts[SIMUV_ENTER_MAX];
    int depth;
    uint32_t boots; /* of its host when it began */
    void *(*start)(void *data);
    void *data, *result;
    struct list link; /* in simuv_tasks: threads that have not been joined */
};

/* A task waits; lives on its stack. */
struct simuv_wait {
    struct simuv_event event; /* ends the wait */
    struct simuv_task *task;
    const void *on; /* a lock, condition, task; NULL = time only */
    bool is_done;
    bool is_signalled; /* not by its deadline */
    struct list link;
};

extern struct simuv_task *simuv_task_now;

void simuv_tasks_begin(void);

/* Wait for simuv_wake() of 'on', until 'deadline' at most; INT64_MAX = without end. True if woken. */
bool simuv_wait(const void *on, int64_t deadline, const char *what);

/* One of those who wait on it, by chance, or all; false = nobody waited. */
bool simuv_wake_one(const void *on);
bool simuv_wake_all(const void *on);

/* Threads of a host that crashed never run again. */
void simuv_tasks_crash(simuv_host host);

/* Make a thread of this host; it begins a little later. */
struct simuv_task *simuv_task_start(simuv_host host, const pthread_attr_t *attr,
                                    void *(*start)(void *data), void *data, int *ret_error);

/* ---- loop.c ---- */

/* What a heap of timers compares is in it, not in the timers. */
struct simuv_due {
    uint64_t timeout, start_id;
    uv_timer_t *timer;
};

struct simuv_loop {
    uv_loop_t *uv;
    struct simuv_event event; /* the next turn */
    uint32_t id;
    simuv_host host;
    bool is_polling; /* between two turns: waits where libuv would in epoll_wait() */
    bool is_turning;
    bool is_manual;   /* run by uv_run() alone, on a thread */
    int nested;       /* calls of uv_run() */
    bool is_due;      /* for the innermost of these */
    bool is_dead;     /* its host has crashed */
    struct list link; /* of its host */
    struct list idles, prepares, checks;
    struct list asyncs_sent;  /* by uv_async_t.queue */
    struct list works_done;   /* of simuv_work */
    struct list io;           /* sockets with something to do in the poll phase */
    struct list pending;      /* sockets whose writes have ended */
    struct simuv_due *timers; /* a heap */
    size_t timer_count, timer_cap;
};

static inline struct simuv_loop *simuv_loop_of(const uv_loop_t *loop)
{
    return loop->internal_fields;
}

/* Something changed that may make the loop turn earlier. */
void simuv_loop_touch(struct simuv_loop *loop);

/* ---- handle.c ---- */

enum simuv_handle_flags {
    SIMUV_CLOSING = 1,
    SIMUV_CLOSED = 2,
    SIMUV_ACTIVE = 4,
    SIMUV_REF = 8,
    SIMUV_READING = 16,
    SIMUV_READABLE = 32, /* connected */
    SIMUV_WRITABLE = 64,
    SIMUV_SHUTTING = 128,
    SIMUV_LISTENING = 256,
};

void simuv_handle_init(uv_loop_t *loop, uv_handle_t *handle, uv_handle_type type);
void simuv_handle_start(uv_handle_t *handle);
void simuv_handle_stop(uv_handle_t *handle);
void simuv_handles_run_closing(struct simuv_loop *loop);

/* End the program: this function of libuv is not simulated. */
_Noreturn void simuv_cannot(const char *what);

/* ---- timer.c ---- */

void simuv_timers_run(struct simuv_loop *loop);
uint64_t simuv_timers_next_msec(const struct simuv_loop *loop); /* UINT64_MAX = none */

/* ---- watcher.c ---- */

void simuv_idles_run(struct simuv_loop *loop);
void simuv_prepares_run(struct simuv_loop *loop);
void simuv_checks_run(struct simuv_loop *loop);
void simuv_asyncs_run(struct simuv_loop *loop);
void simuv_async_close(uv_async_t *async);

/* ---- work.c ---- */

void simuv_works_run_done(struct simuv_loop *loop);
void simuv_works_crash(struct simuv_machine *machine);

/* ---- network.c ---- */

struct simuv_way; /* a path with what is held up on it */
struct simuv_socket;

enum simuv_segment_kind {
    SIMUV_SYN,
    SIMUV_SYNACK,
    SIMUV_DATA,
    SIMUV_FIN,
    SIMUV_RST,
    SIMUV_ROOM /* the receiver has read */
};

/* On its way; then, if it is data, in the receiver's buffer. */
struct simuv_segment {
    struct simuv_event event;
    struct list link; /* held up on a way, or in the receiver's buffer */
    enum simuv_segment_kind kind;
    struct simuv_socket *from, *to; /* with a reference each; 'to' of a SYN is NULL */
    uint64_t number;                /* among those of its sender, from 1; 0 = a reset */
    uint32_t len, taken;
    char bytes[];
};

void simuv_network_begin(void);
struct simuv_way *simuv_way_find(simuv_host from, simuv_host to);
bool simuv_way_is_open(const struct simuv_way *way);
int64_t simuv_way_blocked_since(const struct simuv_way *way);
void simuv_way_flush(struct simuv_way *way);
struct simuv_way *simuv_way_of_link(struct list *link);

/* From one end of a connection to the other, behind what went before. */
void simuv_segment_send(struct simuv_socket *from, enum simuv_segment_kind kind, const char *bytes,
                        size_t len);
void simuv_segment_free(struct simuv_segment *segment);

/* ---- socket.c ---- */

enum simuv_socket_state {
    SIMUV_NEW,
    SIMUV_LISTENS,
    SIMUV_CONNECTING,
    SIMUV_CONNECTED,
    SIMUV_ENDED
};

/* One end of a connection, as the kernel of its host sees it. */
struct simuv_socket {
    int refs; /* its handle, its peer, segments */
    uint32_t id;
    simuv_host host;
    enum simuv_socket_state state;
    uv_stream_t *uv;           /* NULL = not accepted yet, or closed */
    bool is_orphan;            /* closed by its program */
    bool is_lost;              /* with its machine: not even a reset came */
    struct simuv_socket *peer; /* with a reference */
    struct simuv_way *out;     /* to the peer */
    struct sockaddr_in local, remote;
    struct list received;      /* segments */
    size_t unread;             /* bytes in these */
    size_t under_way;          /* bytes sent that the peer has not read */
    size_t held;               /* segments that wait on a way that is not open */
    uint64_t sent, arrived;    /* numbers of its segments */
    int64_t last_arrival;      /* of what this end sent */
    int64_t heard_usec;        /* something last came */
    int64_t dead_at, probe_at; /* retransmissions, keepalive give up; 0 = no */
    struct simuv_event timer;  /* for these two, or for a connection that is to be made */
    int error;                 /* errno to be told */
    bool has_fin, sent_fin, wants_room, lingers_not, keeps_alive, was_told;
    int fd; /* as code sees it; -1 = not asked for */
    int backlog;
    size_t waiting_count;
    struct list waiting; /* connections to be accepted */
    struct list waiting_link;
    struct list io_link, pending_link, host_link, listener_link;
};

struct simuv_socket *simuv_socket_new(simuv_host host);
void simuv_socket_ref(struct simuv_socket *socket);
void simuv_socket_unref(struct simuv_socket *socket);

/* What a segment does that arrives. */
void simuv_socket_receive(struct simuv_segment *segment);

int simuv_socket_listen(struct simuv_socket *socket, int backlog);
int simuv_socket_connect(struct simuv_socket *socket, const struct sockaddr_in *to);

/* Returns the number of bytes that were queued, or -errno; -EAGAIN: the buffer is full. */
ssize_t simuv_socket_write(struct simuv_socket *socket, const uv_buf_t *bufs, unsigned count);

/* After -EAGAIN: its handle is to hear of it when there is some. */
void simuv_socket_want_room(struct simuv_socket *socket);

/* Bytes, 0 at the end or -errno; 'is_peek' leaves them there. */
ssize_t simuv_socket_read(struct simuv_socket *socket, char *into, size_t room, bool is_peek);
bool simuv_socket_is_readable(const struct simuv_socket *socket);
void simuv_socket_shutdown(struct simuv_socket *socket);
void simuv_socket_close(struct simuv_socket *socket);

/* The connection is over for this end; its peer hears of it by another way or not at all. */
void simuv_socket_fail(struct simuv_socket *socket, int error);

/* ---- silence.c ---- */

void simuv_socket_on_timer(struct simuv_event *event);

/* What it sends, or would hear, is held up: timeouts run. */
void simuv_socket_watch(struct simuv_socket *socket);

/* The way between two machines is not open any more. */
void simuv_sockets_watch(struct simuv_machine *a, struct simuv_machine *b);
void simuv_sockets_crash(struct simuv_machine *machine, bool is_silent);

/* ---- stream.c ---- */

static inline struct simuv_socket *simuv_stream_socket(const uv_stream_t *stream)
{
    return stream->queued_fds;
}

/* The socket can do something that its handle may wait for. */
void simuv_stream_notify(struct simuv_socket *socket);
void simuv_streams_run_io(struct simuv_loop *loop);
void simuv_streams_run_pending(struct simuv_loop *loop);
void simuv_stream_close(uv_stream_t *stream);
void simuv_stream_finish_close(uv_stream_t *stream);

/* ---- file.c ---- */

/* Close what the host's process had open. */
void simuv_files_crash(simuv_host host);

/* ---- descriptor.c ---- */

int simuv_descriptor_of(struct simuv_socket *socket);
void simuv_descriptor_free(struct simuv_socket *socket);

#endif
