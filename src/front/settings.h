/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - what the settings of a proxy and of a storage host have in common */
#ifndef AQ_FRONT_SETTINGS_H
#define AQ_FRONT_SETTINGS_H

#include "conf/conf.h"

/* The first member of a program's own settings. Its items are in [NAME] of NAME.toml, with these
 * keys; "metrics-" stands for a section.
 */
struct front_settings {
    struct conf_listen listen, manager;
    char *name, *state, *public_url, *log_level;
    bool has_public_url; /* it was set */
    char *tls_cert, *tls_key;
    bool insecure;
    char *metrics_listen, *metrics_tls_cert, *metrics_tls_key;
    bool metrics_insecure;
};

/* Read the file of 'program' ("proxy"), or 'file' unless that is NULL, into 'ret' of 'size' bytes;
 * 'state' and 'listen' go before it unless NULL. State and public URL are filled in. The first item
 * is that of 'listen'. conf_done() only after success.
 */
int front_settings_load(const char *program, const struct conf_item *items, const char *file,
                        const char *state, const char *listen, size_t size, void *ret,
                        struct aq_error *err);

/* A text that is set to nothing, as a variable can be, is not set. */
void front_settings_drop_empty(char **place);

/* Do clients reach it by https, if only at a server in front? */
bool front_settings_is_https(const struct front_settings *settings);

#endif
