/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - main() of a front daemon: options, joining, signals, /metrics, and an orderly end
 *
 * A front daemon is what clients reach beside the manager, such as a proxy. It connects to the
 * manager with a certificate of its own (front/identity.h), and holds nothing that a restart loses.
 */
#ifndef AQ_FRONT_PROGRAM_H
#define AQ_FRONT_PROGRAM_H

#include <sys/types.h>
#include <uv.h>

#include "front/settings.h"
#include "link/identity.h"

struct front;

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
    /* "aliquot doctor": as checks_run() of check/check.h, on standard output. */
    int (*check)(const void *settings, char *const *parts, int count, struct aq_error *err);

    /* 'self' is its own. After a failure of open() close() follows, too. */
    int (*open)(void *self, struct front *front, uv_loop_t *loop, const void *settings,
                const struct link_identity *identity, struct aq_error *err);
    /* Take no more; requests under way may end. front_drained() once none is left. */
    void (*drain)(void *self);
    /* Clients that are left are cut. The loop runs until its handles are gone. */
    void (*close)(void *self);
    void (*reload)(void *self); /* the certificate's files have changed */
    bool (*write_metrics)(void *self, struct strbuf *out);
};

/* The status to exit with. 'self' is zeroed, 'settings' of type->settings_size bytes. */
int front_main(const struct front_type *type, void *self, void *settings, int argc, char **argv);

/* ---- from within a front daemon ---- */

void front_connected(struct front *front);
/* The manager refuses it for good. */
void front_refused(struct front *front, const char *kind, const char *text);
void front_drained(struct front *front);

#endif
