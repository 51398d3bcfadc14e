/* SPDX-License-Identifier: Apache-2.0 */
/* uri.h - parts of the URI of a database server, as libpq reads it
 *
 * postgresql://[USER[:PASSWORD]@][HOST[:PORT]][,...][/NAME][?KEY=VALUE&...]
 * https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-CONNSTRING
 */
#ifndef AQ_STORE_URI_H
#define AQ_STORE_URI_H

#include <stdbool.h>

#include "base/cleanup.h"

/* Remove every parameter of that name; *ret is the last one's value, decoded, to be
 * free()d, and stays as it was if there is none.
 */
void uri_take_parameter(char *uri, const char *key, char **ret);

/* Remove the password, wherever it stands; *ret as above. */
void uri_take_password(char *uri, char **ret);

/* Does it reach the server from this machine alone: by a socket, or on loopback? Of several hosts,
 * all.
 */
bool uri_is_local(const char *uri);

#endif
