/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_status.h - how a gRPC call ended: a number, and a text for people */
#ifndef AQ_KUBE_GRPC_STATUS_H
#define AQ_KUBE_GRPC_STATUS_H

#include <stddef.h>

#include "base/strbuf.h"

enum grpc_status {
    GRPC_OK = 0,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
};

#define GRPC_TEXT_MAX 1024 /* of what a peer says of a failure; the rest is dropped */

/* The text as the header grpc-message has it: what is not printable ASCII becomes "%XX". */
void grpc_text_write(const char *text, struct strbuf *out);

/* The other way, appended. What is no code stays as it is; control characters become spaces. */
void grpc_text_read(const char *text, size_t len, struct strbuf *out) AQ_UNTRUSTED;

/* The number of a grpc-status header; GRPC_UNKNOWN for one that is none. Numbers without a name
 * here are returned as they are.
 */
int grpc_status_read(const char *text, size_t len) AQ_UNTRUSTED;

#endif
