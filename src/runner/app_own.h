/* SPDX-License-Identifier: Apache-2.0 */
/* app_own.h - apps that are found by their programs, where the image defines none of that name
 *
 * They listen on 127.0.0.1 and ask for no password: only their session's user has the way there
 * through the manager, unless the image's label publishes the port.
 */
#ifndef AQ_RUNNER_APP_OWN_H
#define AQ_RUNNER_APP_OWN_H

#include <stddef.h>
#include <stdint.h>

struct app_own {
    const char *name;
    uint16_t port;          /* unless the image's label names one */
    const char *program;    /* NULL = the runner, which is everywhere */
    const char *definition; /* as app_definition.h has them */
};

extern const struct app_own app_own_table[];
extern const size_t app_own_count;

/* The first of the name whose program is there; NULL if there is none. */
const struct app_own *app_own_find(const char *name);

#endif
