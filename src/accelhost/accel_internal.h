/* SPDX-License-Identifier: Apache-2.0 */
/* accel_internal.h - inside accel*.c: the plugins of the settings and their state */
#ifndef AQ_ACCELHOST_ACCEL_INTERNAL_H
#define AQ_ACCELHOST_ACCEL_INTERNAL_H

#include "accelhost/accel.h"
#include "accelhost/answer.h"
#include "accelhost/helper.h"
#include "base/list.h"

/* Which shared object to load with which settings. */
struct plugin_choice {
    char *name;   /* "cuda"; of a path its last part */
    char *path;   /* of the shared object */
    char *config; /* NULL = none */
    char *sign;   /* start it only once this file is there; NULL = always */
};

struct plugin_choices {
    struct plugin_choice *items;
    size_t count, cap;
};

/* What the settings choose. -EINVAL with the setting as field. */
int plugin_choices_make(const struct accel_settings *settings, struct plugin_choices *ret,
                        struct aq_error *err);
void plugin_choices_done(struct plugin_choices *plugin_choices);
void plugin_choice_done(struct plugin_choice *plugin_choice);
/* The path of aliquot-accel; caller frees. */
char *plugin_choice_find_helper(const struct accel_settings *settings);

struct plugin {
    struct accel *accel;
    struct plugin_choice plugin_choice;
    struct helper *helper;          /* NULL until its sign is there */
    struct helper_call *asked;      /* describe() under way */
    struct description description; /* as it said last */
    char *said;                     /* the JSON of that; NULL = differs from what is in force */
    char *error;
    bool was_heard;                /* it has answered or failed once */
    int failures;                  /* in a row */
    struct helper_call *measuring; /* measure() under way */
    struct uuid *targets;          /* of that */
    size_t target_count, target_cap;
    struct measurement measured;
    int64_t measured_usec; /* monotonic; 0 = never */
    char *complaint;       /* that was made of a metric; NULL = none */
};

struct accel {
    uv_loop_t *loop;
    const struct accel_settings *settings;
    void (*on_changed)(void *data);
    void *data;
    char *program;
    struct plugin *plugins;
    size_t count;
    struct list calls; /* attach.c */
    bool is_starting;
    uv_timer_t rescan; /* its closing frees all this */
};

/* The plugin whose key the slot's name begins with, or NULL. */
struct plugin *accel_find(const struct accel *accel, const char *slot_name);

/* What measure.c keeps of a plugin. */
void plugin_drop_metrics(struct plugin *p);

/* Add what 'former' had and 'fresh' has not, as offline. */
void description_keep_missing(struct description *fresh, const struct accel_plugin *former);

/* Forget every attach under way. */
void accel_drop_calls(struct accel *accel);

#endif
