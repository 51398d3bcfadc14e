/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - parses a request to run a command (protocol.h) */
#ifndef AQ_RUNNER_REQUEST_H
#define AQ_RUNNER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct request {
    char **argv, **envp; /* NULL-terminated, pointing into 'strings' */
    size_t argc, envc;
    const char *cwd; /* NULL = none given */
    bool tty, input, reports;
    uint16_t rows, cols;
    char *strings;
};

/* Read an EXEC packet; 'ret' owns a copy. -EINVAL names what is wrong. */
int request_parse(const char *packet, size_t len, struct request *ret,
                  struct aq_error *err) AQ_UNTRUSTED;
void request_done(struct request *request);

#endif
