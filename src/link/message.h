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
#include "base/strbuf.h"
#include "link/message_app.h"
#include "link/message_greeting.h"
#include "link/message_kernel.h"
#include "link/message_node.h"
#include "link/message_serving.h"
#include "link/message_statistics.h"
#include "link/message_storage.h"
#include "link/message_stream.h"
#include "link/message_web.h"

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
