/* SPDX-License-Identifier: Apache-2.0 */
/* payload.h - bodies that the WebUI hides from who looks at a log of requests
 *
 * "IV:BASE64": AES-256-CBC with a key that is made of the server's URL and the IV, both of which
 * everybody knows. It keeps nobody out: what protects the body is TLS.
 */
#ifndef AQ_WEB_PAYLOAD_H
#define AQ_WEB_PAYLOAD_H

#include "base/error.h"
#include "base/strbuf.h"

#define PAYLOAD_MAX ((size_t)1 << 20)

/* 'endpoint' is "scheme://host[:port]". -EINVAL says no more than that it cannot be read, whatever
 * is wrong.
 */
int payload_open(const char *endpoint, const char *text, size_t len, struct strbuf *ret,
                 struct aq_error *err) AQ_UNTRUSTED;

#endif
