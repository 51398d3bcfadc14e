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
    struct gpu_view view; /* view.limits NULL = free */
    char name[32];        /* of the socket: the pid of its `aliquot gpu run` */
};

/* The folder with the sockets, made if need be. Caller frees; NULL with 'err'. */
char *gpu_look_folder(struct aq_error *err);

/* Map what answers on 'path'. */
int gpu_look_open(const char *path, struct gpu_view *ret, struct aq_error *err);
void gpu_look_close(struct gpu_view *view);

/* Bring 'looks' up to date with the folder: new ones mapped, silent ones closed.
 * 'skip' is a name not to look at (NULL = none).
 */
void gpu_look_scan(const char *folder, const char *skip, struct gpu_look looks[GPU_LOOK_MAX]);

#endif
