/* SPDX-License-Identifier: Apache-2.0 */
/* slices_internal.h - inside src/gpuslice */
#ifndef AQ_GPUSLICE_SLICES_INTERNAL_H
#define AQ_GPUSLICE_SLICES_INTERNAL_H

#include "gpuhost/time_share.h"
#include "gpuslice/slices.h"

struct watchdog;

struct slices {
    struct slices_conf conf;
    char *watch_program;
    struct watchdog *watchdog;
    struct slice **items;
    struct gpu_region_view *views; /* of the same, in the same order */
    size_t count, item_cap, view_cap;
    uint64_t last_number;
    bool is_watched;   /* also without slices */
    uv_timer_t clocks; /* its closing frees all this */
};

/* NULL is fine to free. */
struct watchdog *watchdog_new(struct slices *slices);
void watchdog_free(struct watchdog *dog);
/* There is something to watch: check until there is not. */
void watchdog_wake(struct watchdog *dog);

#endif
