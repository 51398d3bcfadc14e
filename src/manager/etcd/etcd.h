/* SPDX-License-Identifier: Apache-2.0 */
/* etcd.h - the configuration tree in etcd, where other programs read and set it
 *
 * The keys of the tree are those below /sorna/NAMESPACE/ in etcd, as Backend.AI has them. A change
 * on either side is carried to the other; etcd_merge.h says what is done where both have changed. The
 * database is what counts for the cluster: everything goes on while etcd is away. Loop's thread only.
 */
#ifndef AQ_MANAGER_ETCD_ETCD_H
#define AQ_MANAGER_ETCD_ETCD_H

#include "base/error.h"
#include "base/strbuf.h"
#include "conf/conf.h"

struct api;

/* [etcd] of manager.toml; texts may be NULL. */
struct etcd_settings {
    struct conf_list endpoints; /* URLs; none = no etcd */
    char *namespace;
    char *user, *password_file;
    char *tls_ca;             /* PEM file; NULL = the system's */
    char *tls_cert, *tls_key; /* the client's; both or neither */
};

/* Keep the tree in this etcd, too, from now on until the API stops; nothing without endpoints.
 * 'settings' are borrowed. An etcd that is away is no error. -EINVAL with the setting as field;
 * -errno of files, or of the database.
 */
int etcd_open(struct api *api, const struct etcd_settings *settings, struct aq_error *err);

/* Append the state for /metrics; nothing without an etcd. */
void etcd_write_metrics(const struct api *api, struct strbuf *out);

/* Log in and read a key at each endpoint, with a loop of its own; for "aliquot
 * doctor". -EIO: none answers; -EAGAIN: some do; 'err' has the problem of the last that does not.
 */
int etcd_try(const struct etcd_settings *settings, struct aq_error *err);

#endif
