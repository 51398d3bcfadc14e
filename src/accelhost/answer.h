/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - parses and checks the answers of a plugin process
 *
 * Nothing a plugin says is believed: ids, names, amounts and paths are checked
 * here, so that what follows can use them. All failures are -EINVAL with a text that names the
 * device, slot or member.
 */
#ifndef AQ_ACCELHOST_ANSWER_H
#define AQ_ACCELHOST_ANSWER_H

#include <jansson.h>

#include "accelhost/accel.h"

#define ACCEL_KEY_MAX 16
#define ACCEL_DEVICES_MAX 8192
#define ACCEL_SLOTS_MAX 256
#define ACCEL_NEEDS_MAX 4096
#define ACCEL_METRICS_MAX 65536

/* One line. 'ret_result' is owned by the caller, NULL if the plugin reports an
 * error, which is in 'ret_why' then.
 */
int answer_parse(const char *line, size_t len, int64_t *ret_id, json_t **ret_result,
                 struct aq_error *ret_why, struct aq_error *err) AQ_UNTRUSTED;

/* One plugin's description; everything is in the arena. */
struct description {
    struct accel_plugin plugin; /* name and error are left NULL */
    struct arena arena;
};
void description_done(struct description *d);
int answer_read_description(const json_t *result, struct description *ret,
                            struct aq_error *err) AQ_UNTRUSTED;

/* Add the plugin's needs and parts to 'to'; 'kind' is its key. Undone as a
 * whole by accel_attachment_done().
 */
int answer_read_attachment(const json_t *result, const char *kind, struct accel_attachment *to,
                           struct aq_error *err) AQ_UNTRUSTED;

/* A plugin's metrics. One that cannot be used (a key of another plugin, a value
 * that is no number) is left out, and 'ret_complaint' says so of the first.
 */
struct measurement {
    struct accel_metric *items;
    size_t count;
    struct arena arena; /* owns all of it */
};
void measurement_done(struct measurement *m);
int answer_read_metrics(const json_t *result, const char *kind, const struct uuid *targets,
                        size_t target_count, struct measurement *ret,
                        struct aq_error *ret_complaint, struct aq_error *err) AQ_UNTRUSTED;

#endif
