/* look.h - looking at other slices on this machine
 *
 * Every `aliquot gpu run` answers on a socket in one folder per user. Whoever
 * looks maps the regions and only reads them.
 */
#ifndef AQ_GPUHOST_LOOK_H
#define AQ_GPUHOST_LOOK_H

#include "base/error.h"
#include "gpuhost/clocks.h"

#define GPU_LOOK_MAX 64

struct gpu_look {
    struct gpu_view view; /* view.limits NULL = no answer yet, or free */
    char name[32];        /* of the socket: the pid of its `aliquot gpu run`; "" = free */
    int fd;               /* while it has not answered */
    int64_t asked_ns;
};

/* The folder with the sockets, made if need be. Caller frees; NULL with 'err'. */
char *gpu_look_folder(struct aq_error *err);

/* Bring 'looks' up to date with the folder: take answers, ask new ones, close
 * silent ones. Never waits, so that two who look at each other both get on.
 * 'skip' is a name not to look at (NULL = none).
 */
void gpu_look_scan(const char *folder, const char *skip, struct gpu_look looks[GPU_LOOK_MAX]);
void gpu_look_close(struct gpu_look *look);

#endif
