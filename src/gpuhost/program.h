/* program.h - the verbs of aliquot-gpu; each reads its own arguments */
#ifndef AQ_GPUHOST_PROGRAM_H
#define AQ_GPUHOST_PROGRAM_H

#include "base/error.h"

/* Exit code, or -errno with 'err'. argv[0] is the verb. */
int program_run(int argc, char **argv, struct aq_error *err);
int program_top(int argc, char **argv, struct aq_error *err);
int program_watch(int argc, char **argv, struct aq_error *err);

#endif
