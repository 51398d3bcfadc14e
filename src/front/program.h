/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - main() of a front daemon: options, joining, its link to the manager, signals,
 * /metrics, and an orderly end
 *
 * A front daemon is what clients reach beside the manager, such as a proxy. It connects to the
 * manager with a certificate of its own (front/identity.h), and holds nothing that a restart loses.
 */
#ifndef AQ_FRONT_PROGRAM_H
#define AQ_FRONT_PROGRAM_H

#include <sys/types.h>
#include <uv.h>

#include "check/check.h"
#include "front/settings.h"
#include "link/identity.h"
#include "link/link.h"

struct front_type;

/* A front daemon that runs, on its loop's thread. The daemon reads it and changes nothing. */
struct front {
    const struct front_type *type;
    void *self;
    const struct front_settings *settings;
    uv_loop_t loop;
    struct tls_context *tls;  /* of the settings' certificate, from before open(); NULL = none */
    struct link_client *link; /* to the manager, from after open() until after close() */
    uv_signal_t terminated, interrupted, hangup;
    uv_timer_t watchdog;
    struct metrics_server *metrics;
    struct defer *grace; /* while draining */
    bool is_stopping;
    int status;
};

struct front_type {
    const char *name;     /* "proxy": program aliquot-proxy, settings proxy.toml */
    const char *purpose;  /* a line of --help, what 'run' does beside connecting to the manager */
    const char *draining; /* what is said when it ends */
    mode_t mask;          /* of the files that it makes */
    const struct conf_item *items;
    const char *option;   /* an item of [NAME] that is an option, too: "static"; NULL = none */
    size_t settings_size; /* of its settings, which begin with struct front_settings */
    /* Checks and fills in what is its own. After a failure conf_done() follows. NULL = nothing. */
    int (*finish)(void *settings, struct aq_error *err);
    const struct check *checks; /* of "aliquot doctor"; each looks at the settings */

    /* 'self' is its own. After a failure of open() close() follows, too. */
    int (*open)(void *self, struct front *front, const void *settings,
                const struct link_identity *identity, struct aq_error *err);
    /* Add to what the manager is told of it when it connects; NULL = nothing is added. */
    void (*on_greet)(void *self, struct msg_hello *hello);
    void (*on_connected)(void *self); /* to the manager; NULL = nothing is to be done */
    void (*on_message)(void *self, const struct message *msg); /* acknowledged afterwards */
    void (*on_disconnected)(void *self);                       /* also after a failed try */
    /* Take no more; requests under way may end. front_drained() once none is left. */
    void (*drain)(void *self);
    /* Clients that are left are cut. The loop runs until its handles are gone. */
    void (*close)(void *self);
    void (*write_metrics)(void *self, struct strbuf *out);
};

/* The status to exit with. 'self' is zeroed, 'settings' of type->settings_size bytes. */
int front_main(const struct front_type *type, void *self, void *settings, int argc, char **argv);

/* ---- from within a front daemon ---- */

bool front_is_connected(const struct front *front);
/* As link_client_send(); -ENOTCONN without a connection to the manager. */
int front_send(const struct front *front, const struct message *msg, struct aq_error *err);
void front_drained(struct front *front);

#endif
