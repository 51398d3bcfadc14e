/* SPDX-License-Identifier: Apache-2.0 */
/* store_server.h - the store on a PostgreSQL server beside a bare program */
#ifndef AQ_BENCH_STORE_SERVER_H
#define AQ_BENCH_STORE_SERVER_H

#include <stddef.h>

#define ROUNDS_MAX 15

/* The middle one; sorts the values. */
double median(double *values, size_t count);

/* Measure on 'server', a URI with %s for a database's name, with keys in the folder 'dir', which is
 * made and removed. The exit status.
 */
int store_server_run(const char *dir, const char *server, size_t count, size_t rounds);

#endif
