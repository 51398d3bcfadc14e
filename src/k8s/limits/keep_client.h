/* SPDX-License-Identifier: Apache-2.0 */
/* keep_client.h - the plugin's connection to `aliquot-k8s keep`
 *
 * While nobody is there, it is tried again after 1, 2, 4 ... 30 seconds, and the slices go on
 * without: then a plugin that ends takes their memory with it. Belongs to one loop and its thread.
 */
#ifndef AQ_K8S_LIMITS_KEEP_CLIENT_H
#define AQ_K8S_LIMITS_KEEP_CLIENT_H

#include <uv.h>

#include "k8s/keep/keep_message.h"

struct keep_client;

struct keep_client_conf {
    uv_loop_t *loop;
    const char *folder; /* plugin.run; borrowed */
    /* One that it keeps; takes the files. */
    void (*on_entry)(void *data, const char *key, const char *text, int files[KEEP_FILES]);
    /* All were told, and what it is to keep is to be put now; or nobody is there, or answers. */
    void (*on_listed)(void *data, bool is_there);
    void *data;
};

/* Callbacks come from the loop. -ENAMETOOLONG. */
int keep_client_new(const struct keep_client_conf *conf, struct keep_client **ret,
                    struct aq_error *err);
/* NULL is fine. */
void keep_client_free(struct keep_client *client);

/* Nothing happens while nobody is there. */
void keep_client_put(struct keep_client *client, const char *key, const char *text,
                     const int files[KEEP_FILES]);
void keep_client_drop(struct keep_client *client, const char *key);

#endif
