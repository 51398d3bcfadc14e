/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - what manager and agent say to each other
 *
 * A message is a JSON object {"type": "...", ...}; each struct below is one
 * type, each member one key of the same name. Members that are NULL, nil, 0
 * or empty are left out; absent keys read as that. Unknown keys and types are
 * skipped, so that neighbouring versions understand each other; a new key
 * must therefore be safe to ignore, and anything else needs a new protocol
 * version. Times are wall-clock microseconds since 1970, durations
 * microseconds. A member called "JSON" holds the text of one JSON value.
 *
 * Reliable messages (seq > 0) are delivered in order, once, across
 * reconnects of the same two processes. To a new manager process the agent
 * sends again what no manager has acknowledged; messages to an agent process
 * that has ended are dropped: the manager finds by the inventory of the first
 * heartbeat what has to be sent to the next. Transient messages (hello,
 * welcome, refused, heartbeat, heartbeat.reply, fenced, bye, managers, join, joined, image.*,
 * service.*, statistics, network.*, stream.*, app.*, data.*, serving.*, kernel.health, metrics.*,
 * storage.*, web.*) are neither kept nor resent.
 */
#ifndef AQ_LINK_MESSAGE_H
#define AQ_LINK_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/lists.h"
#include "base/strbuf.h"
#include "base/text_pair.h"
#include "base/uuid.h"
#include "model/kernel_spec.h"

#define LINK_PROTOCOL_MIN 1
#ifndef LINK_PROTOCOL_MAX /* tests have an agent that knows the next one, too */
#define LINK_PROTOCOL_MAX 1
#endif

enum message_type {
    MSG_UNKNOWN,         /* a type of a later version: skip it */
    MSG_JOIN,            /* "join"            agent -> manager, without client certificate */
    MSG_JOINED,          /* "joined"          manager -> agent */
    MSG_HELLO,           /* "hello"           agent -> manager, first on a control connection */
    MSG_WELCOME,         /* "welcome"         manager -> agent, the answer */
    MSG_REFUSED,         /* "refused"         manager -> agent, the other answer; then close */
    MSG_FENCED,          /* "fenced"          manager -> agent: another process has this identity */
    MSG_BYE,             /* "bye"             either: an orderly end of the connection */
    MSG_MANAGERS,        /* "managers"        manager -> all, when the list of managers changes */
    MSG_HEARTBEAT,       /* "heartbeat"       agent -> manager */
    MSG_HEARTBEAT_REPLY, /* "heartbeat.reply" manager -> agent, if it said its uptime */
    MSG_KERNEL_CREATE,   /* "kernel.create"   manager -> agent */
    MSG_KERNEL_DESTROY,  /* "kernel.destroy"  manager -> agent */
    MSG_KERNEL_RESTART,  /* "kernel.restart"  manager -> agent */
    MSG_KERNEL_FORGET,   /* "kernel.forget"   manager -> agent */
    MSG_KERNEL_RESIZE,   /* "kernel.resize"   manager -> agent */
    MSG_KERNEL_RELEASE,  /* "kernel.release"  manager -> agent */
    MSG_KERNEL_DESCRIBE, /* "kernel.describe" manager -> agent */
    MSG_KERNEL_ORDER,    /* "kernel.order"    agent -> manager, the answer */
    MSG_KERNEL_STATUS,   /* "kernel.status"   agent -> manager */
    MSG_SESSION_NETWORK, /* "session.network" manager -> agent */
    MSG_NETWORK_PEERS,   /* "network.peers"   manager -> agent, after the first heartbeat and when
                            they change */
    MSG_NETWORK_REACH,   /* "network.reach"   agent -> manager */
    MSG_DRAIN,           /* "drain"           manager -> agent */
    MSG_IMAGE_COMMAND,   /* "image.order"     manager -> agent */
    MSG_IMAGE_STATUS,    /* "image.status"    agent -> manager */
    MSG_IMAGE_LIST,      /* "image.list"      agent -> manager */
    MSG_IMAGE_LOGINS,    /* "image.logins"    manager -> agent, after the first heartbeat and when
                            they change */
    MSG_SERVICE_COMMAND, /* "service.order"   manager -> agent */
    MSG_SERVICE_STATUS,  /* "service.status"  agent -> manager, the answer */
    MSG_STATISTICS,      /* "statistics"      agent -> manager */
    MSG_STREAM_OPEN,     /* "stream.open"     manager -> agent */
    MSG_STREAM_HELLO,    /* "stream.hello"    agent -> manager, begins a stream on its connection */
    MSG_STREAM_REFUSED,  /* "stream.refused"  agent -> manager */
    MSG_STREAM_CONTROL,  /* "stream.control"  manager -> agent */
    MSG_APP_REDEEM,      /* "app.redeem"      proxy -> manager */
    MSG_APP_REDEEMED,    /* "app.redeemed"    manager -> proxy, the answer */
    MSG_APP_CONNECT,     /* "app.connect"     proxy -> manager; a stream.open answers */
    MSG_APP_CHECK,       /* "app.check"       proxy -> manager; answered only if refused */
    MSG_APP_REFUSED,     /* "app.refused"     manager -> proxy, the other answer to all; of a
                            ticket: it is revoked */
    MSG_APP_ROUTE,      /* "app.route"       manager -> proxy, the answer to a direct app.connect */
    MSG_APP_USE,        /* "app.use"         proxy -> manager, what went by a ticket */
    MSG_DATA_OPEN,      /* "data.open"       proxy -> agent, begins a stream on its connection */
    MSG_DATA_OPENED,    /* "data.opened"     agent -> proxy, the answer; then bytes */
    MSG_DATA_REFUSED,   /* "data.refused"    agent -> proxy, the other answer */
    MSG_KERNEL_HEALTH,  /* "kernel.health"   agent -> manager, on each change and after welcome */
    MSG_METRICS_WATCH,  /* "metrics.watch"   manager -> agent, after the first heartbeat and when it
                           changes */
    MSG_METRICS_VALUES, /* "metrics.values"  agent -> manager, after each reading of a page */
    MSG_SERVING_ROUTES, /* "serving.routes"  manager -> proxy, at its start and on each change */
    MSG_SERVING_DONE,  /* "serving.done"    proxy -> manager: no new request goes by older routes */
    MSG_SERVING_USE,   /* "serving.use"     proxy -> manager, what its services do */
    MSG_STORAGE_HELLO, /* "storage.hello"   storage host -> manager, after welcome */
    MSG_STORAGE_ASK,   /* "storage.ask"     manager -> storage host */
    MSG_STORAGE_ANSWER,   /* "storage.answer"  storage host -> manager, the answer */
    MSG_STORAGE_PROGRESS, /* "storage.progress" storage host -> manager, before the answer */
    MSG_STORAGE_CHECK,    /* "storage.check"   storage host -> manager */
    MSG_STORAGE_CHECKED,  /* "storage.checked" manager -> storage host, the answer */
    MSG_STORAGE_SIZE,     /* "storage.size"    storage host -> manager, what a folder holds now */
    MSG_STORAGE_CANCEL,   /* "storage.cancel"  manager -> storage host, no answer is wanted */
    MSG_WEB_ASK,          /* "web.ask"         web server -> manager */
    MSG_WEB_ANSWER,       /* "web.answer"      manager -> web server, the answer */
    MSG_WEB_ENDED,        /* "web.ended"       manager -> every web server */
    MSG_TYPE_COUNT
};

/* ---- managers ---- */

#define LINK_MANAGERS_MAX 32

struct link_manager {
    const char *name;
    const char *link; /* HOST:PORT where agents, front daemons and other managers reach it */
    const char *api;  /* URL of its API; NULL = not known */
};

struct msg_managers {
    struct link_manager *managers; /* all of the cluster */
    size_t manager_count;
};

/* Beside the members of a message that orders a change: who ordered it, and on which state. */
struct msg_stamp {
    int64_t
        epoch; /* of the manager that leads; 0 = its store has none, or it is an older version */
    int64_t commit; /* number of the store's last commit when it was sent; 0 likewise */
};

/* ---- joining and greeting ---- */

struct msg_join {
    const char *secret;   /* pki_token_secret() */
    const char *agent_id; /* wanted id; becomes the certificate's common name */
    const char *csr;      /* PEM; a manager sends none */
    const char *version, *architecture, *hostname;
    int64_t protocol_min, protocol_max;
    /* Of a manager (LINK_MANAGER_PREFIX): where agents and clients reach it, and whether its
     * settings name the database. */
    const char *link, *api;
    bool has_database;
};

/* A manager joins by an id that begins with this, and its certificates have it as their name. */
#define LINK_MANAGER_PREFIX "manager:"

struct msg_joined {
    const char *cert, *ca; /* PEM; a manager gets no certificate: it makes its own with ca_key */
    const char *agent_id;
    const char *note; /* for who runs the join; NULL = nothing to say */
    /* For a manager: the authority's key (PEM), the sealing key of the database (hexadecimal),
     * and the database's URI, NULL where msg_join.has_database. Never logged. */
    const char *ca_key, *seal_key, *database;
};

struct msg_hello {
    int64_t protocol_min, protocol_max;
    const char *agent_id;         /* must be the certificate's common name */
    struct uuid incarnation;      /* random, per agent process */
    struct uuid peer_incarnation; /* manager process that received_seq counts; nil = none yet */
    int64_t received_seq;         /* last message of that manager that was handled */
    int64_t started_usec;         /* when the agent process began */
    const char *version, *architecture, *hostname;
    const char *addr, *region, *resource_group; /* as configured; NULL = manager decides */
    const char *topology;      /* where it is, see topology_check(); NULL = not known */
    const char *slots;         /* JSON {"cpu":["count","4"],"mem":["bytes","1073741824"]}: offered,
                                 that is capacity times overcommit less reserved */
    const char *devices;       /* JSON list [{"id","slot","amount",...}] */
    const char *runtime;       /* "process", "crun 1.8.1" ... */
    const char *runtime_notes; /* what is weaker on this node than it could be, a line each */
    const char *plugins; /* JSON list of accelerator plugins: agent/resources/plugins_json.c */
    const char *volumes; /* JSON list of the hosts of folders that it mounts, ["local:volume1"] */
    const char *network; /* JSON of struct cluster_network_offer; NULL = as mode "none" */
    bool has_sftp;       /* sessions of the type system can run there */
    const char *data;    /* HOST:PORT at which proxies reach it, or "-" = only from its own machine;
                           NULL = by the manager alone */
    const char *domain_url; /* of a proxy with a domain: "https://DOMAIN:PORT", of which
                               NAME--serve.DOMAIN is a service's; NULL = it has none */
    const char *link;       /* of a manager: HOST:PORT of its own link; NULL = not a manager */
    int64_t epoch;          /* the highest that was followed; 0 = none */
    int64_t commit; /* the highest that an order of that epoch followed; 0 = none since its start */
};

struct msg_welcome {
    int64_t protocol;        /* the version that both speak from here on */
    struct uuid incarnation; /* of the manager process */
    bool is_resumed;         /* false: both sides count from 1 again */
    int64_t received_seq;    /* last message of this agent incarnation that was handled */
    int64_t heartbeat_usec;  /* wanted interval; 0 = the agent's own */
    const char *version;
    int64_t at_usec; /* the manager's clock, to report skew */
    bool has_leases; /* heartbeats are answered; false: a manager that starts kernels elsewhere
                        without leases */
    int64_t epoch;   /* of the manager that leads; 0 = its store counts none, or an older version */
    struct link_manager *managers; /* all of the cluster; none: not known */
    size_t manager_count;
};

struct msg_refused {
    const char *kind; /* "protocol", "identity", "revoked", "token", "refused", "not-leader" */
    const char *text;
    int64_t retry_usec; /* > 0: try again after this; 0: give up and exit */
    const char *leader; /* "not-leader": HOST:PORT of the manager that leads; NULL = not known */
};

struct msg_fenced {
    struct uuid by; /* the incarnation that took over */
    const char *text;
};

struct msg_bye {
    const char *text;
};

/* ---- kernels ---- */

#define MSG_KERNELS_MAX 8192 /* of an agent: in a heartbeat */

enum msg_kernel_state {
    MSG_KERNEL_CREATING,    /* "CREATING": accepted and durable */
    MSG_KERNEL_RUNNING,     /* "RUNNING": the program was started */
    MSG_KERNEL_RESTARTING,  /* "RESTARTING": the old attempt is being ended */
    MSG_KERNEL_TERMINATING, /* "TERMINATING" */
    MSG_KERNEL_TERMINATED,  /* "TERMINATED": ended; reason and perhaps exit_code are there */
    MSG_KERNEL_ERROR,       /* "ERROR": never ran; error_* say why */
};

struct msg_kernel_create {
    struct uuid kernel_id, session_id;
    int64_t attempt;         /* 1.. ; with kernel_id the key that makes this message idempotent.
                                 A larger one ends the former attempt first, keeps its directory */
    struct kernel_spec spec; /* its members are keys beside the others */
};

struct msg_kernel_destroy {
    struct uuid kernel_id;
    int64_t attempt;     /* ends this attempt and earlier ones; 0 = any */
    int64_t grace_usec;  /* SIGTERM, then SIGKILL after this; 0 = SIGKILL at once */
    int64_t notice_usec; /* before SIGTERM, from the session's checkpoint_signal on, or its signal
                            if it has no other; 0 = none. Older agents send SIGTERM at once */
    const char *reason;  /* becomes the reason of the end unless one is already set */
};

struct msg_kernel_restart { /* same order, devices and work directory, new attempt */
    struct uuid kernel_id;
    int64_t attempt; /* the new one */
    int64_t grace_usec;
};

struct msg_kernel_forget { /* the end is recorded: the directory may go (logs are kept) */
    struct uuid kernel_id;
    int64_t attempt; /* an older one never removes a newer directory */
};

struct msg_kernel_release { /* all kernels of its session can start: so may the program */
    struct uuid kernel_id;
    int64_t attempt;
};

struct msg_session_network { /* who is in it has changed */
    struct uuid session_id;
    const char *network; /* as kernel_spec.network: all of it */
};

struct msg_network_peers { /* agents to which the way is checked all the time */
    const char *network;   /* JSON of model/cluster_network.h; "agents" empty = none */
};

struct msg_network_reach {                  /* on each change, and every minute */
    struct str_list reachable, unreachable; /* ids of agents that are checked */
};

struct msg_kernel_resize { /* other amounts of the parts of devices that it has, as it runs */
    struct uuid kernel_id;
    int64_t attempt;
    const char *slots; /* all of the kernel's, as in create */
    int64_t trial;     /* not 0: change nothing yet, reserve it, and say that it is
                                 prepared and this number. What is ordered next, this or what it
                                 holds, ends that */
};

struct msg_kernel_describe { /* answered by kernel.order, if the agent has it */
    struct uuid kernel_id;
};

struct msg_kernel_order {
    struct uuid kernel_id;
    const char *order; /* JSON: the kernel.create that it was made from, without secrets; NULL = it
                          cannot be read any more */
};

struct msg_kernel_status { /* also one element of the heartbeat's inventory */
    struct uuid kernel_id, session_id;
    int64_t attempt;
    enum msg_kernel_state state;
    const char *reason; /* "self-terminated", "task-timeout", "monitor-lost" ...; NULL = none */
    bool has_exit;
    int64_t exit_code;   /* 0..255, 128+n for signal n */
    const char *outputs; /* JSON {"NAME": "VALUE"} that its program has handed on; NULL = none */
    const char *alloc;   /* JSON {"cpu":{"0":"1"},"mem":{"root":"1073741824"}}; once allocated */
    const char *service_ports;  /* JSON list of model/service_port.h; once published, NULL = none */
    const char *slots;          /* what it holds, as in create; NULL = as in its command */
    const char *prepared;       /* what it could hold by a trial of kernel.resize; NULL = none */
    const char *prepared_alloc; /* as 'alloc', if it did */
    int64_t trial; /* of the command that prepared it, or that error_* refuse; 0 = of before
                                 the agent's start, or none */
    const char *error_kind;  /* "unsupported-resource", "insufficient-resource" ... */
    const char *error_field; /* slot, device or member that is meant */
    const char *error_text;
    /* Of a kernel with a probe that ended without a command to: the last lines of its log, at most 10
     * and 2 KiB, without control characters; NULL = none. A heartbeat may leave them out.
     */
    const char *last_lines;
    /* "misuse": how its programs use GPUs past their parts of them, a line each; NULL = not as far
     * as is known
     */
    const char *limit_violation;
    int64_t epoch, commit; /* msg_stamp of the order that began the attempt, as of its directory */
    bool is_ready;         /* CREATING, held, and it lacks nothing but kernel.release */
    bool bootstrap;        /* CREATING, and its bootstrap script runs */
    int64_t lease_usec, lease_grace_usec; /* as in kernel_spec: those that apply now */
    int64_t at_usec;                      /* when the state began */
};

struct msg_heartbeat {
    struct uuid incarnation;
    int64_t seq;          /* grows with each heartbeat of the incarnation */
    int64_t received_seq; /* messages up to here are in the inventory below */
    int64_t at_usec;
    int64_t uptime_usec; /* CLOCK_BOOTTIME of the node when it was sent; 0 = an agent without
                            leases */
    bool is_draining;
    const char *refusal;               /* why no new kernel should be sent; NULL = it takes them */
    const char *slots;                 /* as in hello */
    const char *devices;               /* as in hello; NULL = as they were */
    const char *volumes;               /* as in hello; NULL = as they were */
    const char *plugins;               /* the same */
    struct msg_kernel_status *kernels; /* all that have a directory */
    size_t kernel_count;
};

struct msg_kernel_lease {
    struct uuid kernel_id;
    int64_t attempt;
    int64_t lease_usec, lease_grace_usec; /* as in kernel_spec */
};

struct msg_heartbeat_reply { /* the manager was in contact when that heartbeat was sent, or later */
    int64_t uptime_usec;     /* of the heartbeat */
    struct msg_kernel_lease
        *leases; /* in place of those that the heartbeat had, where they differ */
    size_t lease_count;
};

struct msg_image_logins {
    const char *auths; /* JSON: "auths" of containers-auth.json(5); NULL = there are none */
};

struct msg_drain {
    bool on; /* true: kernel.create is answered with ERROR "draining" */
};

/* ---- images ---- */

struct msg_image_command {
    struct uuid job_id; /* what image.status answers to */
    const char *action; /* "pull", "remove", "collect", "cancel" */
    const char *image;  /* pull, remove: its name */
    bool always;        /* pull: ask the registry although it is there */
    bool all;           /* collect: everything unused */
};

struct msg_image_status {
    struct uuid job_id;                /* nil: not ordered, a kernel needs it */
    struct uuid session_id, kernel_id; /* nil: ordered */
    const char *image;
    const char *state; /* "resolving", "retrying", "fetching", "unpacking", "ready", "failed"; the
                                 last two end the job */
    int64_t done_bytes, total_bytes;
    int64_t freed_bytes;                 /* remove, collect */
    const char *digest;                  /* pull: once ready */
    const char *error_kind, *error_text; /* failed; retrying: the last try, by the text alone */
};

struct msg_image_list { /* all images of the node: after connecting and when they change */
    const char *images; /* JSON list [{"digest","names","size_bytes","architecture",
                                 "fetched_at","used_at","holds","labels"}]; times in microseconds */
};

/* ---- the agent as a service of its machine; older agents do not answer ---- */

struct msg_service_command {
    struct uuid job_id; /* what service.status answers to */
    const char *action; /* "status", "stop", "restart" */
};

struct msg_service_status { /* of stop and restart the end of the connection is an answer, too */
    struct uuid job_id;
    const char *unit;  /* "aliquot-agent.service"; NULL = not known */
    const char *state; /* as systemctl says it; NULL = the command failed */
    const char *error_text;
};

/* ---- statistics: raw samples, of which the manager derives the rest (model/metric.h) ---- */

#define MSG_METRICS_MAX 1024  /* in a message */
#define MSG_VALUES_MAX 1024   /* of the node, a device or a kernel */
#define MSG_MEASURED_MAX 8192 /* devices, kernels */

struct msg_metric {
    const char *key;    /* "cpu_util" */
    int64_t unit, show; /* enum metric_unit, metric_show */
    int64_t stats;      /* METRIC_... */
};

struct msg_value {   /* [metric, value] or [metric, value, capacity] */
    int64_t metric;  /* index into the message's metrics */
    double value;    /* finite, as the capacity */
    double capacity; /* negative = none */
};

struct msg_device_values {
    const char *device;
    struct msg_value *values;
    size_t value_count;
};

struct msg_kernel_values {
    struct uuid kernel_id, session_id;
    int64_t attempt;
    struct msg_value *values;
    size_t value_count;
};

struct msg_statistics { /* one sample; kernels may be spread over several messages */
    int64_t at_usec;
    int64_t interval_usec; /* until the next; 0 = not known */
    struct msg_metric *metrics;
    size_t metric_count;
    struct msg_value *node; /* none in all but the first message of a sample */
    size_t node_count;
    struct msg_device_values *devices;
    size_t device_count;
    struct msg_kernel_values *kernels;
    size_t kernel_count;
};

/* ---- streams: one further connection each, bytes or records (link_stream.h) after stream.hello
 * ----
 */

struct msg_stream_open {
    struct uuid stream_id;
    const char *key;  /* one-time key, presented in stream.hello */
    const char *kind; /* "logs", "timed-logs", "pty", or of link/exec.h "exec", "files", "input";
                         to a proxy "app" */
    struct uuid kernel_id;
    struct uuid request_id; /* app: of the app.connect that it answers */
    bool follow;            /* logs: go on until the kernel ends */
    int64_t tail_lines;     /* logs: only the last n lines; 0 = all that is kept */
    bool only_new;          /* logs: nothing of what is kept */
    int64_t attempt;     /* logs, timed-logs: of the kernel; 0 = the newest. Older agents send the
                               newest */
    int64_t since_usec;  /* timed-logs: only lines printed then or later; 0 = all. Older agents
                            do not know the kind */
    int64_t ago_usec;    /* timed-logs: the same, so long ago by the agent's clock */
    bool timestamps;     /* timed-logs: before each line when it was printed, RFC 3339 in UTC */
    int64_t rows, cols;  /* pty, exec: size at the start; 0 = leave */
    const char *command; /* exec: JSON {"argv":["ls"],"env":{"A":"b"},"cwd":"/tmp"}; without
                                 argv a shell */
    bool tty, input;     /* exec: on a terminal; with standard input */
    bool reuse;          /* the manager can read a framed stream (link_stream.h) */
};

struct msg_stream_hello {
    struct uuid stream_id;
    const char *key;
    bool framed; /* the connection goes on after the stream */
};

struct msg_stream_refused {
    struct uuid stream_id;
    const char *kind, *text; /* "not-found", "no-terminal" ... */
};

struct msg_stream_control { /* pty, exec: either or both */
    struct uuid stream_id;
    int64_t rows, cols;
    int64_t signal; /* to the program's process group; 0 = none */
};

/* ---- apps of sessions, which a proxy leads browsers to ----
 *
 * A proxy connects as an agent does, by an id that begins with LINK_PROXY_PREFIX. It says app.*
 * alone, and an agent none of them. Its hello's 'addr' is the URL at which browsers reach it.
 */

#define LINK_PROXY_PREFIX "proxy:"

struct msg_app_redeem { /* a token that the manager made for a user: it is used up */
    struct uuid request_id;
    const char *token;
};

struct msg_app_redeemed { /* what the token stood for */
    struct uuid request_id, session_id;
    const char *app, *access_key;
};

/* Start the app if need be; its bytes come by a stream of kind "app". Of app.check: may this user
 * still connect?
 */
struct msg_app_connect {
    struct uuid request_id, session_id;
    const char *app, *access_key;
    bool direct;        /* app.connect: a ticket is wanted, if the app's agent takes them */
    bool watch;         /* app.check: request_id is a ticket's; say so if its right ends later */
    const char *ticket; /* with 'watch': itself, to get a newer one by app.route */
    struct uuid service_id; /* not nil: of a model service, whose replica the session is; 'app' is
                               MODEL_SERVICE_APP, the port that of its revision, and the right is
                               that the session is a replica of it */
};

/* How the proxy reaches the app itself (ticket.h). Also when its right has ended and while it is
 * watched, app.refused with the ticket's id says that.
 */
struct msg_app_route {
    struct uuid request_id, ticket_id;
    const char *ticket, *agent_id;
    const char *address; /* as in hello */
    int64_t expires_usec;
};

/* What went by a ticket since the last message; 'connections' are those that are open now. */
struct msg_app_use {
    struct uuid ticket_id, session_id;
    const char *app, *access_key;
    int64_t connections, requests, bytes_in, bytes_out;
    bool is_work;    /* of a person */
    int64_t traffic; /* bytes that may be: core_note_traffic() */
};

/* ---- a proxy's connection to an agent, on which streams follow each other ---- */

struct msg_data_open {
    const char *ticket;
};

struct msg_data_opened {
    int64_t port; /* of the app, as in the ticket */
};

struct msg_data_refused {
    const char *kind, *text;
};

struct msg_app_refused {
    struct uuid request_id;
    const char *kind, *text; /* "session-not-found", "app-failed" ... */
};

/* ---- folders of users, which lie on storage hosts ----
 *
 * A storage host connects as an agent does, by an id that begins with LINK_STORAGE_PREFIX. It says
 * storage.* alone. Its hello's 'addr' is the URL at which clients reach it.
 */

#define LINK_STORAGE_PREFIX "storage:"

struct msg_storage_hello {
    /* JSON list [{"name":"volume1","backend":"vfs","capabilities":[...],"used_bytes":N,
     * "capacity_bytes":N}], again when that changes; 0 = not known yet
     */
    const char *volumes;
};

/* ---- model services ---- */

/* Of a kernel with a probe (kernel_spec.probe_port). */
struct msg_kernel_health {
    struct uuid kernel_id;
    int64_t attempt;
    const char *state; /* "starting" (never answered yet), "ready", "unhealthy" (answered before) */
    const char *text;  /* what the last probe found, for people; NULL = it answered as expected */
    int64_t at_usec;   /* wall clock: since when */
};

#define MSG_METRICS_PAGES_MAX 512 /* of an agent */

struct msg_metrics_page { /* in Prometheus' text format, of a program in a kernel */
    struct uuid kernel_id;
    int64_t port;          /* of 127.0.0.1 in the kernel's network */
    const char *path;      /* "/metrics" */
    struct str_list names; /* http/exposition_scan.h: what is read of it, at most 16 */
};

/* All pages that the agent reads from now on. Older agents read none. */
struct msg_metrics_watch {
    struct msg_metrics_page *pages;
    size_t page_count;
};

struct msg_metrics_values {
    struct uuid kernel_id;
    int64_t port;
    const char *path;
    struct str_list names;    /* as in metrics.watch */
    struct msg_value *values; /* 'metric' is an index of 'names'; others have no value now */
    size_t value_count;
    const char *text; /* why some have none, for people; NULL = all have one */
};

#define MSG_SERVICES_MAX 1024       /* of a cluster */
#define MSG_REPLICAS_MAX 1024       /* of a service */
#define MSG_SERVING_TOKENS_MAX 1024 /* of a service */

struct msg_serving_token { /* a bearer token; the token itself is with its user alone */
    struct uuid id;
    const char *hash;      /* SHA-256 of the token, 64 lower-case hexadecimal digits */
    int64_t expires_usec;  /* wall clock; 0 = never */
    struct str_list paths; /* prefixes of paths that it may ask for; empty = all */
    int64_t rate_milli;    /* thousandths of requests a second, in a bucket of 10 s; 0 = no limit */
    int64_t budget;        /* OpenAI tokens that are left; 0 = no limit, see is_spent */
    bool is_spent;         /* its budget is used up */
};

struct msg_serving_replica {
    struct uuid session_id;
    int64_t revision;
    int64_t share_ppm; /* what it gives in relation to others, millionths; 1000000 = one share */
    int64_t ratio_ppm; /* traffic ratio; is 0 only with is_draining */
    bool is_draining;  /* takes no new request; those under way go on */
    bool is_unhealthy; /* its agent says so: only if there is no other */
};

struct msg_serving_service {
    struct uuid id;
    const char *name;
    bool is_gone;           /* it has ended, or ends: only id and name are there, and the tokens of
                               what is under way */
    bool is_public;         /* without tokens */
    const char *access_key; /* of its owner, on whose behalf replicas are reached */
    int64_t cap;            /* requests under way in one replica, of this proxy; 0 = no limit */
    int64_t queue_max;      /* requests that wait, in this proxy */
    int64_t queue_bytes;    /* and their bytes together */
    int64_t queue_usec;     /* how long one waits before 503 */
    int64_t request_usec;   /* no byte of an answer for so long: 504; 0 = no limit */
    const char *affinity;   /* "none", "header:NAME", "prompt" */
    int64_t wanted;         /* replicas; 0 and no replica = it sleeps, requests wake it */
    const char *problem;    /* why it has no replica, for people; NULL = none is known */
    struct msg_serving_token *tokens;
    size_t token_count;
    struct msg_serving_replica *replicas;
    size_t replica_count;
};

struct msg_serving_routes {
    int64_t version; /* grows, also over restarts of the manager: wall clock of it */
    bool is_whole;   /* services that are not listed are gone; else as they were */
    struct msg_serving_service *services;
    size_t service_count;
};

struct msg_serving_done {
    int64_t version;
};

struct msg_serving_replica_use { /* counts and sums are since the last serving.use */
    struct uuid session_id;
    int64_t revision;  /* of the routes; 0: an older proxy, which has nothing of the second group */
    int64_t in_flight; /* now */
    int64_t requests, failures; /* failures: no answer, or one that broke off */
    bool is_ejected; /* this proxy routes no requests to it: it refused or reset connections */

    int64_t ok, client_errors, server_errors, broken; /* as of the service */
    int64_t duration_usec, first_byte_usec;           /* sums over the answered */
    /* The answered by serving/latency.h; buckets at the end that are 0 may be absent. */
    struct int_list duration_buckets, first_byte_buckets;
    int64_t prompt_tokens, completion_tokens, cached_tokens;
};

struct msg_serving_token_use { /* since the last */
    struct uuid id;
    int64_t requests, prompt_tokens, completion_tokens;
    int64_t cached_tokens, ok, client_errors, server_errors, refused;
};

struct msg_serving_service_use { /* counts and sums are since the last serving.use */
    struct uuid id;
    int64_t in_flight, queued;                /* now; in_flight without those that wait */
    int64_t arrived;                          /* requests that were let in */
    int64_t ok, client_errors, server_errors; /* answers 2xx-3xx, 4xx, 5xx of replicas */
    int64_t refused;                          /* 429 and 503 of the proxy */
    int64_t broken;                           /* clients that left, answers that broke off */
    int64_t duration_usec, first_byte_usec, queue_usec; /* sums over the answered */
    int64_t waited; /* how many of the answered had waited in the queue */
    int64_t prompt_tokens, completion_tokens, cached_tokens;
    int64_t oldest_usec; /* how long the first of those that wait now has waited */
    struct msg_serving_replica_use *replicas; /* in the others nothing is under way */
    size_t replica_count;
    struct msg_serving_token_use *tokens;
    size_t token_count;
};

/* At once when a request comes to a service without a replica, else when the counts have changed, at
 * most each 100 ms.
 */
struct msg_serving_use {
    int64_t version; /* of the routes in use */
    struct msg_serving_service_use *services;
    size_t service_count;
};

struct msg_storage_ask {
    struct uuid request_id;
    const char *volume; /* by its name */
    const char *op;     /* "list", "mkdir" ...: src/storage/ops.c */
    const char *args;   /* JSON object */
};

struct msg_storage_answer {
    struct uuid request_id;
    const char *result;     /* JSON object; NULL = it failed: */
    const char *error_code; /* "ENOENT": errno(3) */
    const char *error_kind; /* as that of struct aq_error; NULL = of the code */
    const char *error_field, *error_text;
};

/* Of what takes long. */
struct msg_storage_progress {
    struct uuid request_id;
    int64_t done, total; /* bytes */
};

/* Which rights to folders have ended? Asked again and again while clients use them. */
struct msg_storage_check {
    struct uuid request_id;
    const char *rights; /* JSON list [{"user":ID,"key":ACCESS_KEY,"folder":ID,"write":BOOL}] */
};

struct msg_storage_checked {
    struct uuid request_id;
    const char *ended; /* JSON list of indices into 'rights' */
};

/* A folder whose size is known has changed. */
struct msg_storage_size {
    const char *volume; /* by its name */
    struct uuid folder;
    int64_t files, bytes; /* files as they were counted last */
};

/* Nobody waits for the answer any more. */
struct msg_storage_cancel {
    struct uuid request_id;
};

/* ---- people who have logged in with a browser ----
 *
 * A web server connects as an agent does, by an id that begins with LINK_WEB_PREFIX. It says
 * web.ask alone. What it is answered has secret keys.
 */

#define LINK_WEB_PREFIX "web:"

struct msg_web_ask {
    struct uuid request_id;
    const char *op;   /* "login", "find" ...: src/manager/login/web_logins.c */
    const char *args; /* JSON object */
};

struct msg_web_answer {
    struct uuid request_id;
    const char *result;     /* JSON object; NULL = it failed: */
    const char *error_kind; /* slug of a problem document */
    const char *error_text;
    int64_t retry_sec; /* when to ask again; 0 = it says nothing */
};

/* A header of the API's answer to who has ended, by the request, the login that it may have come
 * with: a web server hears of that end as of all others, perhaps before the answer.
 */
#define WEB_ENDED_HEADER "X-Aliquot-Login-Ended"

/* These logins let nobody in any more. One of the three is set. */
struct msg_web_ended {
    struct uuid login_id, user_id; /* of one; of all of a user */
    const char *access_key;        /* of all with this key */
};

/* ---- encoding ---- */

struct message {
    enum message_type type;
    struct arena arena;     /* owns everything below after message_decode(); unused otherwise */
    struct msg_stamp stamp; /* of message_is_order(); of others it is neither written nor read */
    union {
        struct msg_join join;
        struct msg_joined joined;
        struct msg_hello hello;
        struct msg_welcome welcome;
        struct msg_refused refused;
        struct msg_fenced fenced;
        struct msg_bye bye;
        struct msg_managers managers;
        struct msg_heartbeat heartbeat;
        struct msg_heartbeat_reply heartbeat_reply;
        struct msg_kernel_create kernel_create;
        struct msg_kernel_destroy kernel_destroy;
        struct msg_kernel_restart kernel_restart;
        struct msg_kernel_forget kernel_forget;
        struct msg_kernel_release kernel_release;
        struct msg_session_network session_network;
        struct msg_network_peers network_peers;
        struct msg_network_reach network_reach;
        struct msg_kernel_resize kernel_resize;
        struct msg_kernel_describe kernel_describe;
        struct msg_kernel_order kernel_order;
        struct msg_kernel_status kernel_status;
        struct msg_drain drain;
        struct msg_image_logins image_logins;
        struct msg_image_command image_command;
        struct msg_image_status image_status;
        struct msg_image_list image_list;
        struct msg_service_command service_command;
        struct msg_service_status service_status;
        struct msg_statistics statistics;
        struct msg_stream_open stream_open;
        struct msg_stream_hello stream_hello;
        struct msg_stream_refused stream_refused;
        struct msg_stream_control stream_control;
        struct msg_app_redeem app_redeem;
        struct msg_app_redeemed app_redeemed;
        struct msg_app_connect app_connect;
        struct msg_app_refused app_refused;
        struct msg_app_route app_route;
        struct msg_app_use app_use;
        struct msg_data_open data_open;
        struct msg_data_opened data_opened;
        struct msg_data_refused data_refused;
        struct msg_kernel_health kernel_health;
        struct msg_metrics_watch metrics_watch;
        struct msg_metrics_values metrics_values;
        struct msg_serving_routes serving_routes;
        struct msg_serving_done serving_done;
        struct msg_serving_use serving_use;
        struct msg_storage_hello storage_hello;
        struct msg_storage_ask storage_ask;
        struct msg_storage_answer storage_answer;
        struct msg_storage_progress storage_progress;
        struct msg_storage_check storage_check;
        struct msg_storage_checked storage_checked;
        struct msg_storage_size storage_size;
        struct msg_storage_cancel storage_cancel;
        struct msg_web_ask web_ask;
        struct msg_web_answer web_answer;
        struct msg_web_ended web_ended;
    };
};

/* Append the JSON text to 'out'. -EINVAL if a JSON member does
 * not hold JSON.
 */
int message_encode(const struct message *msg, struct strbuf *out, struct aq_error *err);

/* Read one message. Required members absent, wrong types, integers out of
 * range, text that is not UTF-8 or holds NUL: -EINVAL with err->field. An
 * unknown type succeeds as MSG_UNKNOWN.
 */
int message_decode(const char *text, size_t len, struct message *ret,
                   struct aq_error *err) AQ_UNTRUSTED;
/* A copy that stands alone; message_done() when done with it. Errors as of both. */
int message_copy(const struct message *msg, struct message *ret, struct aq_error *err);
void message_done(struct message *msg);

const char *message_type_name(enum message_type type); /* "kernel.create"; "unknown" */
bool message_is_reliable(enum message_type type);
/* Orders a change of the receiver, and carries a stamp. */
bool message_is_order(enum message_type type);
const char *msg_kernel_state_name(enum msg_kernel_state state);

#endif
